"""Dedicated thread for the few time-critical callbacks.

An rclpy executor checks all entities of its nodes whenever it wakes: services, timers, subscriptions, some 5 µs each,
and a torque node has twenty. Here one thread waits only for joint states, emergency stops and similar messages, and the
main executor for all other entities. Both share a lock, which is held during callbacks.

| parameter `control_loop` | implementation                                                       | messages |
|--------------------------|----------------------------------------------------------------------|----------|
| `direct`                 | a wait set around the subscriptions                                  | bytes    |
| `executor`               | an rclpy executor around the subscriptions                           | objects  |

With `executor: events` there is no control loop: that executor needs no second one, and supports no callback groups.

`direct` can wait actively: within `active_wait` before and after the expected time of the next message it polls instead
of sleeping, which saves the wake-up time of the thread, and keeps a processor busy for up to 2·active_wait·rate of the
time.
"""
from __future__ import annotations

import contextlib
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from rclpy.executors import ExternalShutdownException
from rclpy.node import Node

from ...runtime.parameters import Parameter, Table
from ..base.rclpy_inside import GroupExecutor, LentGroup, OneThreadGroup, Stop, ThreadlessGroup, Waiting
from .scheduling import SCHEDULING_TABLE, Scheduling

CONTROL_LOOP_TABLE: Table = (
    Parameter("control_loop", "string", "direct", "How a separate thread waits for joint states: with its own wait "
              "set, reading them as bytes (direct), or with an executor of rclpy (executor).",
              choices=("direct", "executor"), read_only=True),
    Parameter("active_wait", "number", 0.0, "Time before and after the expected arrival of a joint state in which the "
              "thread polls instead of sleeping, s; costs processor time. Needs control_loop direct.", lower=0.0,
              upper=0.01, read_only=True),
    *SCHEDULING_TABLE,
)
EVENTS = 0.5      # s between checks of QoS events
PATIENCE = 0.1    # s, longest wait without messages


class ControlLoop(ABC):
    """Executes the callbacks of the subscriptions of its `group`, and of a `lent` group, from `start` to `stop`."""

    group: Any
    active_s = 0.0     # spent waiting actively

    def __init__(self, node: Node, scheduling: Scheduling | None = None, lent: LentGroup | None = None) -> None:
        self._node: Any = node
        self._scheduling = scheduling
        self._lent = lent or LentGroup()
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)

    def start(self) -> None:
        """Start the thread; all subscriptions of the group must exist."""
        sys.setswitchinterval(5e-4)    # s for which other threads may delay the answer to a joint state
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after its present callback."""
        self._end()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        if self._scheduling is not None:
            self._scheduling.apply_to_thread(self._node.get_logger().warning)
        self._lent.thread = threading.get_ident()
        try:
            self._execute()
        finally:
            self._lent.thread = None

    @abstractmethod
    def _execute(self) -> None:
        """Execute callbacks until `_end`."""

    @abstractmethod
    def _end(self) -> None:
        """Make `_execute` return soon."""


class ExecutorLoop(ControlLoop):
    """Control loop with an rclpy executor."""

    def __init__(self, node: Node, scheduling: Scheduling, lent: LentGroup | None = None) -> None:
        super().__init__(node, scheduling, lent)
        self.group = OneThreadGroup()
        self._stopped = Stop()

    def _execute(self) -> None:
        self.group.thread = threading.get_ident()
        executor = GroupExecutor(self._node, (self.group, self._lent))
        with contextlib.suppress(ExternalShutdownException):
            executor.spin_until_future_complete(self._stopped)
        executor.shutdown()

    def _end(self) -> None:
        self._stopped.set_result(True)


class DirectLoop(ControlLoop):
    """Control loop with a wait set. Subscriptions are served in order of creation; callbacks take (message, info).

    period: s between messages, 0 if unknown, for active waiting of `active` s. watch: called every `watch_period` s,
    with or without messages, at a tenth of the cost of an executor's timer.
    """

    def __init__(self, node: Node, scheduling: Scheduling, active: float = 0.0,
                 period: Callable[[], float] = lambda: 0.0, watch: Callable[[], None] = lambda: None,
                 watch_period: float = 1.0, lent: LentGroup | None = None) -> None:
        super().__init__(node, scheduling, lent)
        self.group = ThreadlessGroup()
        self._waiting: Any = None    # from `start` on
        self.active, self._period = active, period
        self._watch, self.watch_period = watch, watch_period
        self._patience = min(PATIENCE, watch_period)
        self._last = 0.0    # time of the last message
        self._stopped = False

    def start(self) -> None:
        self._waiting = Waiting(self._node.context, [each for each in self._node.subscriptions
                                                     if each.callback_group in (self.group, self._lent)])
        super().start()

    def _execute(self) -> None:
        waiting, looked, watched = self._waiting, 0.0, time.monotonic()
        with waiting:
            while not self._stopped:
                try:
                    if not (self.active > 0.0 and self._wait_actively(waiting)):
                        waiting.wait(self._patience)
                        self._take(waiting)
                    if (now := time.monotonic()) - watched >= self.watch_period:
                        watched = now
                        self._watch()
                    if now - looked > EVENTS:
                        waiting.events()
                        looked = now
                except Exception as error:
                    if self._stopped or not self._node.context.ok():
                        return
                    self._node.get_logger().error(f"waiting for joint states: {error}", throttle_duration_sec=1.0)
                    time.sleep(0.01)

    def _take(self, waiting: Any) -> bool:
        """Handle one waiting message of each subscription; returns whether there was any."""
        received, now = False, time.monotonic()
        for each in waiting.subscriptions:
            taken = waiting.take(each)
            if taken is not None:
                each.callback(*taken)
                received, self._last = True, now
        return received

    def _wait_actively(self, waiting: Any) -> bool:
        """Poll for the next message around its expected time; returns whether it came."""
        expected, margin = self._last + self._period(), self.active
        asleep = expected - margin - time.monotonic()
        if not self._last or asleep > self._patience:
            return False
        if asleep > 0.0:
            waiting.wait(asleep)
            if self._take(waiting):
                return True
        received, begin = False, time.monotonic()
        now = begin
        while now < expected + margin and not (received or self._stopped):
            received = self._take(waiting)
            if not received:
                time.sleep(0.0)    # yield the interpreter to other threads
                now = time.monotonic()
        self.active_s += now - begin
        return received

    def _end(self) -> None:
        self._stopped = True    # seen within PATIENCE
