"""A torque node in this process, without ROS and with a clock of the test: its own callbacks, from bytes to outputs."""
from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

from rbd_ros.nodes import cartesian, feedforward, flatness
from rbd_ros.nodes.base import emergency_stop, following_node, torque_node
from rbd_ros.nodes.base.emergency_stop import EmergencyStop
from rbd_ros.nodes.base.rclpy_inside import LentGroup
from rbd_ros.nodes.loop import joint_state_inputs, steady_answers
from rbd_ros.nodes.loop.joint_state_inputs import JointStateInputs
from rbd_ros.runtime.control.loop_rate import Transit
from rbd_ros.runtime.inputs.trajectory_points import TrajectoryReader
from rbd_ros.runtime.parameters import validate

NODES = {"feedforward": feedforward.FeedforwardNode, "flatness": flatness.FlatnessNode,
         "cartesian": cartesian.CartesianNode}
TIMED = (cartesian, feedforward, flatness, emergency_stop, following_node, torque_node, steady_answers)
S = 1_000_000_000


class Log:
    """Lines of a log; of `Seldom`, too, which has a key first."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, *words: str, **how: Any) -> None:
        self.lines.append(words[-1])

    warning = error = info


class SilentNode:
    """Made of a node of this kind that no constructor of ROS has seen. now: the time of its steady clock, s.

    published: (command, whether it answers a state) of each output; log: lines of the node.
    """

    def __init__(self, kind: str, model: Any, values: dict[str, Any], monkeypatch: Any) -> None:
        self.now, self.published, self.log, self._answering = 0.0, [], Log(), False
        node = self.node = object.__new__(NODES[kind])
        clock = SimpleNamespace(monotonic=lambda: self.now, time_ns=lambda: round(self.now * 1e9) + 10**18)
        for module in TIMED:
            monkeypatch.setattr(module, "time", clock)
        monkeypatch.setattr(joint_state_inputs, "bounded", lambda node, kind, topic, callback, *more, **options:
                            SimpleNamespace(callback=callback))
        node._log, node.seldom, node.lock = self.log, Log(), threading.RLock()
        node.resolve_topic_name, node.controller = lambda name: name, None
        node.active, node.status, node.model, node.most_bytes = False, "", model, 65536
        node._stamp, node._transit, node._late, node._handover = (0, 0), Transit(), [], None
        node._outputs = [SimpleNamespace(publish=self._publish, begin=lambda: None)]
        node._odometry = None
        self.values = validate(node.table, values)
        node.controller = node.make_controller(model, node.settings(self.values, model))
        node.controller.warm_up()
        stops = node._stops = object.__new__(EmergencyStop)
        stops._node, stops._held, stops._subscriptions = node, False, []
        stops.hear_latched = stops.take = lambda: None
        self._inputs = JointStateInputs(node, self.values, lambda: node.controller.statistics.period,
                                        node._on_watchdog, LentGroup())
        node.listen_to_states(self._inputs)
        node._states = self
        self._reader = TrajectoryReader("~/joint_trajectory", 10_000, 65536, model)
        self.next_cycle: Any = None    # while the node ends

    @property
    def controller(self) -> Any:
        return self.node.controller

    def _publish(self, stamp: Any, q: Any, v: Any, command: Any) -> None:
        self.published.append((command._replace(effort=command.effort.copy()), self._answering))

    def activate(self) -> None:
        self.node.on_activate(None)

    def take(self) -> bool:
        """Of `JointStateInputs`: a cycle of the test, while the node ends; else there is nothing."""
        if self.next_cycle is None:
            return False
        self.next_cycle()
        return True

    def state(self, stamp_ns: int, names: Any, position: Any, velocity: Any = (), effort: Any = ()) -> None:
        self._answering = True
        self._receive(-1, stamp_ns, names, position, velocity, effort)
        self._answering = False

    def motor_state(self, stamp_ns: int, names: Any, position: Any, velocity: Any) -> None:
        self._receive(0, stamp_ns, names, position, velocity, ())

    def _receive(self, which: int, stamp_ns: int, names: Any, *numbers: Any) -> None:
        message = JointState(name=list(names), **{field: [float(x) for x in each] for field, each in zip(
            ("position", "velocity", "effort"), numbers, strict=True)})
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, S)
        received = round(self.now * 1e9) + 10**18
        self._inputs._subscriptions[which].callback(bytes(serialize_message(message)), {
            "source_timestamp": 0, "received_timestamp": received})

    def watch(self) -> None:
        """The timer of the watchdog."""
        ending, self.next_cycle = self.next_cycle, None
        if ending is None:
            self.node._on_watchdog()
        else:
            with self.node.lock:
                self.node._publish(self.controller.watchdog(self.now))
        self.next_cycle = ending

    def trajectory(self, message: Any) -> None:
        self.node._on_trajectory(self._reader.read(bytes(serialize_message(message))))

    def stop(self) -> None:
        self.node._stops._hear(Bool(data=True))

    def reset(self) -> None:
        self.node._stops._on_reset(Trigger.Request(), Trigger.Response())

    def set(self, changes: dict[str, Any]) -> None:
        values = validate(self.node.table, self.values | changes)
        settings = self.node.settings(values, self.node.model)
        self.node.apply(settings)
        self.values = values

    def end(self, cycle: Any) -> None:
        """Run down, with these cycles."""
        self.next_cycle = cycle
        self.node._run_down()
        self.next_cycle = None
