"""What the simulator publishes, and the states that its services take."""
from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.qos_overriding_options import QoSOverridingOptions
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from ..core.errors import RbdError
from ..core.simulation.plant import Plant
from ..core.simulation.settings import SimulatorSettings

Array = NDArray[np.float64]


class StatePublisher:
    """`joint_states` in the order of parameter `joints`, and before it `/clock`, if wanted."""

    def __init__(self, node: Node, settings: SimulatorSettings) -> None:
        self._node = node
        self._message = JointState(name=list(settings.joints))
        views = []
        for field in ("position", "velocity", "effort"):
            setattr(self._message, field, array("d", bytes(8 * len(settings.joints))))
            views.append(np.frombuffer(getattr(self._message, field)))    # the message's own memory
        self._q, self._v, self._effort = views
        self._states = node.create_publisher(JointState, "joint_states", 10, qos_overriding_options=(
            QoSOverridingOptions.with_default_policies()))
        self._clock = node.create_publisher(Clock, "/clock", 10) if settings.publish_clock else None

    def publish(self, stamp: Any, plant: Plant) -> None:
        """The present state of the plant, stamped with a builtin_interfaces/Time."""
        order = plant.settings.output
        self._q[:] = plant.simulator.q[order]
        self._v[:] = plant.simulator.v[order]
        self._effort[:] = plant.effort[order]
        self._message.header.stamp = stamp
        if self._clock is not None:
            self._clock.publish(Clock(clock=stamp))
        self._states.publish(self._message)

    def destroy(self) -> None:
        self._node.destroy_publisher(self._states)
        if self._clock is not None:
            self._node.destroy_publisher(self._clock)


def in_model_order(state: Any, names: Sequence[str]) -> tuple[Array, Array]:
    """Positions and velocities (nv,) of a rbd_interfaces/RobotState in the order of `names`; else `RbdError`."""
    if sorted(state.name) != sorted(names):
        raise RbdError(f"the state must list every joint once: {', '.join(names)}; got {', '.join(state.name)}")
    if len(state.position) != len(names) or len(state.velocity) not in (0, len(names)):
        raise RbdError(f"the state has {len(state.position)} positions and {len(state.velocity)} velocities for "
                       f"{len(names)} joints")
    order = [list(state.name).index(name) for name in names]
    velocity = np.array(state.velocity)[order] if len(state.velocity) else np.zeros(len(names))
    return np.array(state.position)[order], velocity
