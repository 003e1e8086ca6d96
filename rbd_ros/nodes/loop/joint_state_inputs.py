"""Joint-state subscriptions of a torque node in its control loop, as bytes or as objects."""
from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from ...runtime.inputs.joint_state_bytes import Fields, JointStateReader, Layout
from ...runtime.inputs.rejections import Rejected, check_size
from ..base.conversions import fields_of, reading
from ..base.model_node import BEST_EFFORT
from ..base.rclpy_inside import LentGroup, bounded, take
from .control_loop import ControlLoop, DirectLoop, ExecutorLoop
from .scheduling import Scheduling

Info = Mapping[str, int]    # message info: `source_timestamp`, `received_timestamp`, ns


class Shortcut(Protocol):
    """Fast path for ordinary messages."""

    def answer(self, message: bytes, info: Info) -> bool:
        """Try to handle a message in place of the callback; returns whether it was handled."""

    def prepare(self, layout_of: Callable[[bytes], Layout | None], message: bytes) -> None:
        """Prepare for messages like this one, which the callback has handled. layout_of: layout of a message."""


class JointStateInputs:
    """Exists from configuration to cleanup of `node`. values: parameters; period: s between states, 0 if unknown.

    watch: called at `watchdog_rate`. lent: group of further subscriptions for the control loop, if there is one.
    """

    def __init__(self, node: Any, values: Mapping[str, Any], period: Callable[[], float], watch: Callable[[], None],
                 lent: LentGroup) -> None:
        self._node = node
        self._scheduling = Scheduling(values)
        self.loop: ControlLoop | None = None    # None with the events executor
        self._timer: Any = None
        watch_period = 1.0 / values["watchdog_rate"]
        if values["executor"] != "events" and values["control_loop"] == "direct":
            self.loop = DirectLoop(node, self._scheduling, values["active_wait"], period, self._guarded(watch),
                                   watch_period, lent)
        else:
            self._timer = node.create_timer(watch_period, self._guarded(watch), clock=node.steady)
            if values["executor"] != "events":
                self.loop = ExecutorLoop(node, self._scheduling, lent)
        self._subscriptions: list[Any] = []

    def listen(self, topic: str, callback: Callable[[Fields, Info], None], shortcut: Shortcut | None = None,
               joints: Sequence[str] = ()) -> Any:
        """Create a subscription; earlier ones are served first. callback: called under the node's lock. shortcut: tried
        before it, with `DirectLoop`, until it raises an exception. joints: messages with none of these are read once
        per second only.
        """
        node, loop, most = self._node, self.loop, self._node.most_bytes
        name = node.resolve_topic_name(topic)
        reader = JointStateReader(lambda data: deserialize_message(data, JointState), joints)
        read: Callable[[bytes], Fields] = reader.read
        if not isinstance(loop, DirectLoop):
            read, shortcut = reading(JointState, fields_of), None

        def on_message(message: Any, info: Info) -> None:
            nonlocal shortcut
            with node.lock:
                try:
                    if shortcut is not None and message.__class__ is bytes and shortcut.answer(message, info):
                        return
                except Exception:
                    shortcut = None    # the callback answers
                    node.on_defect(traceback.format_exc())
                try:
                    check_size(name, len(message), most)
                    if reader.is_foreign(time.monotonic(), message):
                        return
                    callback(read(message), info)
                except Rejected as error:
                    node.on_rejected(error)
                    return
                except Exception:
                    node.on_defect(traceback.format_exc())
                    return
                try:
                    if shortcut is not None:
                        shortcut.prepare(reader.layout, message)
                except Exception:
                    shortcut = None    # otherwise it would stop the robot again after each reset
                    node.on_defect(traceback.format_exc())

        subscription = bounded(
            node, JointState, topic, on_message, BEST_EFFORT, most, callback_group=None if loop is None else loop.group,
            qos_overriding_options=QoSOverridingOptions.with_default_policies())
        self._subscriptions.append(subscription)
        return subscription

    def _guarded(self, call: Callable[[], None]) -> Callable[[], None]:
        def guarded() -> None:
            try:
                call()
            except Exception:
                self._node.on_defect(traceback.format_exc())
        return guarded

    def start(self) -> None:
        """Start to call; no `listen` may follow."""
        gc.collect()
        gc.freeze()    # existing objects are permanent: exclude them from garbage collection in the control loop
        if self.loop is not None:
            self.loop.start()

    def stop(self) -> None:
        """Release everything."""
        if self.loop is not None:
            self.loop.stop()
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
        while self._subscriptions:
            self._node.destroy_subscription(self._subscriptions.pop())

    def take(self) -> bool:
        """Handle a waiting message of the last subscription; returns whether there was one."""
        if self.loop is not None:
            return False
        last = self._subscriptions[-1]
        taken = take(last)
        if taken is not None:
            last.callback(*taken)
        return taken is not None

    def report(self) -> dict[str, Any]:
        """Values for diagnostics."""
        return {"active_wait_s": 0.0 if self.loop is None else self.loop.active_s,
                "scheduling": self._scheduling.state}
