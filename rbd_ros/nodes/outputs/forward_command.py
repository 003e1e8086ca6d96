"""Output for forward_command_controller and effort_controllers/JointGroupEffortController.

The controller has no timeout and holds the last torque; it drops non-finite messages.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rclpy.node import Node
from std_msgs.msg import Float64MultiArray

from ...core.model.robot_model import RobotModel
from ...runtime.control.adapter_topics import ADAPTER_TOPICS
from ...runtime.control.torque_settings import TorqueSettings
from ...runtime.parameters import Parameter, Table
from ...runtime.safety import Command
from .output import Array, Indices, Output, Stamp, joint_indices

(TOPIC,) = ADAPTER_TOPICS["forward_command"]
TABLE: Table = (
    TOPIC.parameter,
    Parameter("forward_command.joints", "strings", (), "The order of joints in that controller. Empty: `joints`.",
              read_only=True),
)


class ForwardCommandOutput(Output):
    """std_msgs/Float64MultiArray in the controller's order of joints."""

    def __init__(self, node: Node, topic: str, indices: Indices) -> None:
        super().__init__(node, Float64MultiArray(), topic, indices, {"data": len(indices)})

    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        self.numbers["data"][:] = command.effort[self._indices]
        self.send()


def make(node: Any, model: RobotModel, settings: TorqueSettings, values: Mapping[str, Any]) -> ForwardCommandOutput:
    """The output of parameters `forward_command.*`."""
    indices = joint_indices("forward_command.joints", values["forward_command.joints"] or settings.joints, model)
    return ForwardCommandOutput(node, TOPIC.name(values), indices)
