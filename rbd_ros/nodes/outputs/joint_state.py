"""Output as sensor_msgs/JointState, for bridges to simulators that need position, velocity and effort."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import JointState

from ...core.model.robot_model import RobotModel
from ...runtime.control.adapter_topics import ADAPTER_TOPICS
from ...runtime.control.torque_settings import TorqueSettings
from ...runtime.parameters import Table
from ...runtime.safety import Command
from .output import Array, Output, Stamp

(TOPIC,) = ADAPTER_TOPICS["joint_state"]
TABLE: Table = (TOPIC.parameter,)


class JointStateOutput(Output):
    """sensor_msgs/JointState with position, velocity and effort in the order of parameter `joints`."""

    def __init__(self, node: Node, settings: TorqueSettings, topic: str) -> None:
        super().__init__(node, JointState(name=list(settings.joints)), topic, settings.output,
                         dict.fromkeys(("position", "velocity", "effort"), len(settings.joints)), stamped=True)

    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        for field, values in (("position", q), ("velocity", v), ("effort", command.effort)):
            self.numbers[field][:] = values[self._indices]
        self.send(stamp)


def make(node: Any, model: RobotModel, settings: TorqueSettings, values: Mapping[str, Any]) -> JointStateOutput:
    """The output of parameters `joint_state.*`."""
    return JointStateOutput(node, settings, TOPIC.name(values))
