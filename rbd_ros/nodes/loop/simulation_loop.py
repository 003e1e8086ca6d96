"""Loop of a simulator, and of the lockstep node: messages, services, and the passage of time.

| parameter `control_loop` | implementation                                                               | messages |
|--------------------------|------------------------------------------------------------------------------|----------|
| `direct`                 | a thread with a wait set around all of them, until the next state is due     | bytes    |
| `executor`               | the node's executor, with a timer; also with `executor: events`              | objects  |

All callbacks run under the node's lock, and messages are handled before services: a command received before a request
for steps acts in these steps.
"""
from __future__ import annotations

import gc
import math
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray

from rbd_interfaces.msg import NamedWrenches

from ...runtime.inputs.joint_state_bytes import JointStateReader
from ...runtime.inputs.number_bytes import read_array, read_number
from ...runtime.inputs.rejections import Rejected, check_size
from ...runtime.parameters import Parameter
from ..base.conversions import named_wrenches, reading
from ..base.rclpy_inside import ThreadlessGroup, Waiting, bounded, take
from .control_loop import EVENTS, PATIENCE, ControlLoop

SIMULATION_LOOP = Parameter(
    "control_loop", "string", "direct", "What waits for messages and services: a thread with its own wait set, reading "
    "messages as bytes (direct), or the executor of rclpy (executor).",
    choices=("direct", "executor"), read_only=True)
INPUT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
MANY = 1000    # messages taken at once from an unlimited queue


def reader(kind: type) -> Callable[[bytes], Any]:
    """Decoder of serialized messages to plain values, or to the message; raises `Malformed`."""
    def convert(data: bytes) -> Any:
        return deserialize_message(data, kind)

    if kind is JointState:
        return JointStateReader(convert).read
    if kind is Float64MultiArray:
        return partial(read_array, convert=convert)
    if kind is Float64:
        return partial(read_number, convert=convert)
    return reading(kind, named_wrenches) if kind is NamedWrenches else reading(kind)


class SimulationLoop(ABC):
    """Exists from configuration to cleanup of `node`. advance: performs due work, and returns the time (s) until more
    is due; on_rejected: called for malformed or too large messages. Both are called under the node's lock.
    """

    group: CallbackGroup | None = None

    def __init__(self, node: Any, on_rejected: Callable[[Rejected], None]) -> None:
        self._node, self._on_rejected = node, on_rejected
        self.subscriptions: list[Any] = []
        self.services: list[Any] = []
        self.clients: list[Any] = []    # of `group`, created elsewhere

    def listen(self, kind: type, topic: str, callback: Callable[[Any], None], qos: QoSProfile = INPUT) -> None:
        """Subscribe; callback: called with the plain values of `reader`."""
        node = self._node
        read, name, most = reader(kind), node.resolve_topic_name(topic), node.most_bytes

        def on_message(message: Any, info: Any) -> None:
            with node.lock:
                try:
                    check_size(name, len(message), most)
                    values = read(message)
                except Rejected as error:
                    self._on_rejected(error)
                else:
                    callback(values)

        self.subscriptions.append(bounded(
            node, kind, topic, on_message, qos, most, callback_group=self.group,
            qos_overriding_options=QoSOverridingOptions.with_default_policies()))

    def serve(self, kind: type, name: str, callback: Callable[..., Any]) -> None:
        """Offer a service."""
        def locked(request: Any, response: Any) -> Any:
            with self._node.lock:
                return callback(request, response)

        self.services.append(self._node.create_service(kind, name, locked, callback_group=self.group))

    def take_waiting(self) -> None:
        """Handle the waiting commands, but not later ones, which may come without end."""
        for each in self.subscriptions:
            for _ in range(each.qos_profile.depth or MANY):
                taken = take(each)
                if taken is None:
                    break
                each.callback(*taken)

    @abstractmethod
    def start(self) -> None:
        """Start; no `listen` or `serve` may follow."""

    @abstractmethod
    def resume(self) -> None:
        """Let time pass from now on."""

    @abstractmethod
    def rest(self) -> None:
        """Let time stand still from now on."""

    def stop(self) -> None:
        """Release everything; call it without the lock."""
        while self.subscriptions:
            self._node.destroy_subscription(self.subscriptions.pop())
        while self.services:
            self._node.destroy_service(self.services.pop())


class TimerLoop(SimulationLoop):
    """Loop in the node's executor. period: s of the timer, if there is an `advance`."""

    def __init__(self, node: Any, on_rejected: Callable[[Rejected], None], advance: Callable[[], float] | None,
                 period: float) -> None:
        super().__init__(node, on_rejected)
        self._timer = None
        if advance is not None:
            def tick() -> None:
                with node.lock:
                    advance()

            self._timer = node.create_timer(period, tick, clock=node.steady, autostart=False)

    def start(self) -> None:
        pass

    def resume(self) -> None:
        if self._timer is not None:
            self._timer.reset()

    def rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def stop(self) -> None:
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
        super().stop()


class ThreadLoop(SimulationLoop):
    """Loop in a thread."""

    def __init__(self, node: Any, on_rejected: Callable[[Rejected], None],
                 advance: Callable[[], float] | None) -> None:
        super().__init__(node, on_rejected)
        self._thread = _Thread(node, self, advance or (lambda: math.inf))
        self.group = self._thread.group

    def start(self) -> None:
        gc.collect()
        gc.freeze()    # as in `JointStateInputs`
        self._thread.start()

    def resume(self) -> None:
        self._thread.wake()

    def rest(self) -> None:
        pass    # `advance` knows when work is due

    def stop(self) -> None:
        self._thread.stop()
        super().stop()


class _Thread(ControlLoop):
    """Waits for messages and requests of the loop, and for the next due time."""

    def __init__(self, node: Any, loop: ThreadLoop, advance: Callable[[], float]) -> None:
        super().__init__(node)
        self.group = ThreadlessGroup()
        self._loop, self._advance = loop, advance
        self._waiting: Any = None    # from `start` on
        self._stopped = False

    def start(self) -> None:
        loop = self._loop
        self._waiting = Waiting(self._node.context, loop.subscriptions, loop.services, loop.clients, wakes=True)
        super().start()

    def wake(self) -> None:
        """Call `advance` at once."""
        if self._waiting is not None:
            self._waiting.wake()

    def _execute(self) -> None:
        node, loop, remaining, looked = self._node, self._loop, 0.0, time.monotonic()
        try:
            with self._waiting as waiting:
                while not self._stopped:
                    waiting.wait(min(remaining, PATIENCE))
                    with node.lock:
                        loop.take_waiting()
                        for service in waiting.services:
                            waiting.serve(service)
                        for client in waiting.clients:
                            waiting.hear(client)
                        remaining = self._advance()
                    if time.monotonic() - looked > EVENTS:
                        waiting.events()
                        looked = time.monotonic()
        except Exception as error:
            if not self._stopped and node.context.ok():
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """End the process by a program error, as in a callback of an executor."""
        def raise_again() -> None:
            raise error

        if self._node.executor is None:
            self._node.get_logger().error("".join(traceback.format_exception(error)))
        else:
            self._node.executor.create_task(raise_again)

    def _end(self) -> None:
        self._stopped = True
        self.wake()


def make_loop(node: Any, values: Mapping[str, Any], on_rejected: Callable[[Rejected], None],
              advance: Callable[[], float] | None = None, period: float = 0.0) -> SimulationLoop:
    """The loop selected by the parameters. period: s between states, 0: without a pause."""
    if values["control_loop"] == "direct" and values["executor"] != "events":
        return ThreadLoop(node, on_rejected, advance)
    return TimerLoop(node, on_rejected, advance, period)
