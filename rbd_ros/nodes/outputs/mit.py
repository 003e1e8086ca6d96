"""Output for motors that close a loop themselves: position, velocity, effort, kp and kd (`runtime.control.mit`).

The controllers are forward_command_controllers, one per interface, each with all joints, or
multi_interface_forward_command_controllers, one per joint, each with all interfaces. Neither has names in its message
or a timeout. Messages of one cycle may act in different cycles of the controller manager, which does no harm: the set
point is the measured state, so the sum is still the effort of one of both joint states.

`mit.interfaces` without kp and kd is for drivers with gains of their own; `mit.kp` and `mit.kd` must be these.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from std_msgs.msg import Float64MultiArray

from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...runtime.control.adapter_topics import ADAPTER_TOPICS, MIT_INTERFACES, MIT_PER
from ...runtime.control.mit import MitLaw, MitSettings, within
from ...runtime.control.torque_settings import TorqueSettings
from ...runtime.parameters import Parameter, Table, table_of
from ...runtime.safety import Command
from .message_bytes import MessageBytes
from .output import Array, Indices, Output, Source, Stamp, joint_indices

S = TypeVar("S", bound=TorqueSettings)
NEEDED = ("position", "velocity", "effort")

(TOPICS,) = ADAPTER_TOPICS["mit"]
TABLE: Table = (
    TOPICS.parameter, MIT_PER,
    Parameter("mit.interfaces", "strings", MIT_INTERFACES, "Interfaces that are sent, and their order where a message "
              "is for a joint; kp and kd only if the driver takes them.", choices=MIT_INTERFACES, read_only=True),
    Parameter("mit.joints", "strings", (), "The order of joints in those controllers. Empty: `joints`.",
              read_only=True),
    *table_of(MitSettings),
)


class MitOutput(Output):
    """std_msgs/Float64MultiArray per interface or per joint. rows: which rows of a command are sent."""

    def __init__(self, node: Node, source: Source, law: MitLaw, topics: Sequence[str], indices: Indices, rows: Indices,
                 per_joint: bool) -> None:
        self._node, self._source, self._law = node, source, law
        self._indices, self._rows, self._per_joint = indices, rows, per_joint
        self._stamp: Stamp | None = None    # of the last joint state, None without
        size = len(rows) if per_joint else len(indices)
        self._channels = [(node.create_publisher(
            Float64MultiArray, topic, QoSProfile(depth=1),
            qos_overriding_options=QoSOverridingOptions.with_default_policies()),
            MessageBytes(Float64MultiArray(), {"data": size}, stamped=False)) for topic in topics]

    def begin(self) -> None:
        self._stamp = None
        self._law.begin()

    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        lost = self._source.state_age - self._source.state_timeout
        again, self._stamp = stamp == self._stamp, stamp if any(stamp) else None
        rows = self._law.command(q, v, command.effort, lost, again)
        if rows is None:
            return
        numbers = rows[np.ix_(self._rows, self._indices)]
        for (publisher, message), data in zip(self._channels, numbers.T if self._per_joint else numbers, strict=True):
            message.numbers["data"][:] = data
            message.send(publisher)

    @property
    def topics(self) -> list[str]:
        return [publisher.topic_name for publisher, _ in self._channels]

    def destroy(self) -> None:
        for publisher, _ in self._channels:
            self._node.destroy_publisher(publisher)


def restrict(settings: S, values: Mapping[str, Any]) -> S:
    """The settings of a node with this output."""
    return within(settings, MitSettings.from_values(values, settings))


def make(node: Any, model: RobotModel, settings: TorqueSettings, values: Mapping[str, Any]) -> MitOutput:
    """The output of parameters `mit.*`."""
    interfaces = values["mit.interfaces"] or MIT_INTERFACES
    lacking = [name for name in NEEDED if name not in interfaces]
    if lacking or len(set(interfaces)) != len(interfaces):
        raise RbdError(f"parameter 'mit.interfaces' is {', '.join(interfaces)}: expected position, velocity "
                       "and effort, and kp and kd if the driver takes them, once each")
    joints = values["mit.joints"] or settings.joints
    indices = joint_indices("mit.joints", joints, model)
    rows = np.array([MIT_INTERFACES.index(name) for name in interfaces], dtype=np.intp)
    law = MitLaw(model, MitSettings.from_values(values, settings))
    topics = TOPICS.names({**values, "mit.joints": joints, "mit.interfaces": interfaces})
    return MitOutput(node, node, law, topics, indices, rows, values["mit.topic_per"] == "joint")
