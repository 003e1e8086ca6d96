"""Output for a topic-based hardware interface: control_msgs/JointCommand, imported only if selected.

The message is in control_msgs since April 2026. Its stamp is the time of publication, not that of the joint state:
receivers use it for timeouts, and a repeated safe output is fresh.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rclpy.node import Node

from ...core.model.robot_model import RobotModel
from ...runtime.control.adapter_topics import ADAPTER_TOPICS
from ...runtime.control.torque_settings import TorqueSettings
from ...runtime.parameters import Parameter, Table
from ...runtime.safety import Command
from .output import Array, Indices, Output, Stamp, joint_indices, message_type

(TOPIC,) = ADAPTER_TOPICS["joint_command"]
TABLE: Table = (
    TOPIC.parameter,
    Parameter("joint_command.joints", "strings", (), "Joints in that message. Empty: `joints`.", read_only=True),
)


class JointCommandOutput(Output):
    """control_msgs/JointCommand for the interface `effort`."""

    def __init__(self, node: Node, kind: Any, topic: str, joints: Sequence[str], indices: Indices) -> None:
        message = kind(interface_name="effort", joint_names=list(joints))
        super().__init__(node, message, topic, indices, {"values": len(joints)}, stamped=True)

    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        self.numbers["values"][:] = command.effort[self._indices]
        self.send(self._node.get_clock().now().seconds_nanoseconds())


def make(node: Any, model: RobotModel, settings: TorqueSettings, values: Mapping[str, Any]) -> JointCommandOutput:
    """The output of parameters `joint_command.*`."""
    joints = values["joint_command.joints"] or settings.joints
    return JointCommandOutput(node, message_type("joint_command", "control_msgs", "JointCommand"),
                              TOPIC.name(values), joints,
                              joint_indices("joint_command.joints", joints, model))
