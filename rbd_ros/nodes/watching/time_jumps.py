"""Detection of backward jumps of simulated time on /clock."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.clock import JumpThreshold
from rclpy.duration import Duration

RESET_OF_GAZEBO = ("Gazebo's reset of a world takes out an arm that was spawned, and its controllers: if no joint "
                   "states follow, end gazebo.launch.py and start it again (docs/cosimulation.md)")


def watch_time(node: Any, went_back: Callable[[float], None]) -> Callable[[], None]:
    """Call `went_back` with the size (s) of backward jumps of the node's time; returns a function that ends the watch.

    Only for nodes with use_sim_time.
    """
    handle = node.get_clock().create_jump_callback(
        JumpThreshold(min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=False),
        post_callback=lambda jump: went_back(-jump.delta.nanoseconds * 1e-9))
    end: Callable[[], None] = handle.unregister
    return end
