"""A thread of its own for the one callback that must be fast.

An rclpy executor looks at every entity of its nodes each time it wakes: services, timers, subscriptions, some 5 µs
each, and a torque node has twenty. Here one executor waits for the joint states alone, in a thread of its own, and
the main executor for all the rest. Both share a lock, which is held while a callback runs.
"""
from __future__ import annotations

import contextlib
import sys
import threading

from rclpy.executors import ExternalShutdownException
from rclpy.node import Node

from .rclpy_inside import GroupExecutor, OneThreadGroup, Stop


class ControlLoop:
    """Executes the callbacks of `group` from `start` to `stop`."""

    def __init__(self, node: Node) -> None:
        self.group = OneThreadGroup()
        self._node = node
        self._stopped = Stop()
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)

    def start(self) -> None:
        """Begin; all entities of the group must exist by now."""
        sys.setswitchinterval(5e-4)    # s that other threads may keep the interpreter when a joint state is there
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set_result(True)
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        self.group.thread = threading.get_ident()
        executor = GroupExecutor(self._node, self.group)
        with contextlib.suppress(ExternalShutdownException):
            executor.spin_until_future_complete(self._stopped)
        executor.shutdown()
