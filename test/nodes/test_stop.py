"""A node that runs for days must not collect callbacks, and must still wake up to end."""
from __future__ import annotations

import os
import threading

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor

from rbd_ros.nodes.stop import Stop


def test_one_callback_is_kept_however_long_it_spins(private_domain):
    context = Context()
    rclpy.init(context=context, domain_id=int(os.environ["ROS_DOMAIN_ID"]))
    executor = SingleThreadedExecutor(context=context)
    node = rclpy.create_node("spinning", context=context)
    executor.add_node(node)
    stop, spins, wakes, enough = Stop(), [], [], threading.Event()

    def tick():
        spins.append(1)
        if len(spins) == 300:
            timer.cancel()    # from now on there is nothing to do: only the end wakes the executor
            enough.set()

    def end():
        enough.wait(30.0)
        wake = executor.wake
        executor.wake = lambda: (wakes.append(1), wake())
        stop.set_result(True)

    timer = node.create_timer(1e-4, tick)
    ender = threading.Thread(target=end)
    ender.start()
    executor.spin_until_future_complete(stop, timeout_sec=None)
    ender.join()
    assert len(spins) == 300 and len(wakes) == 1
    node.destroy_node()
    executor.shutdown()
    rclpy.shutdown(context=context)


def test_only_the_first_callback_is_kept():
    stop, calls = Stop(), []
    for i in range(1000):
        stop.add_done_callback(lambda _, i=i: calls.append(i))
    stop.set_result(True)
    assert calls == [0]
