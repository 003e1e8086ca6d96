"""Output as sensor_msgs/JointState, for bridges to simulators, which index position, velocity and effort alike."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import JointState

from ...core.model.robot_model import RobotModel
from ...runtime.control.torque_settings import TorqueSettings
from ...runtime.parameters import Parameter, Table
from ...runtime.safety import Command
from .output import Array, Output, shared

TABLE: Table = (
    Parameter("joint_state.topic", "string", "~/effort_commands", "Topic of the sensor_msgs/JointState output.",
              read_only=True),
)


class JointStateOutput(Output):
    """sensor_msgs/JointState with position, velocity and effort in the order of parameter `joints`."""

    def __init__(self, node: Node, settings: TorqueSettings, topic: str) -> None:
        message = JointState(name=list(settings.joints))
        count = len(settings.joints)
        self._position = shared(message, "position", count)
        self._velocity = shared(message, "velocity", count)
        self._effort = shared(message, "effort", count)
        super().__init__(node, message, topic, settings.output)

    def publish(self, stamp: Any, q: Array, v: Array, command: Command) -> None:
        self._position[:] = q[self._indices]
        self._velocity[:] = v[self._indices]
        self._effort[:] = command.effort[self._indices]
        self._message.header.stamp = stamp
        self._publisher.publish(self._message)


def make(node: Any, model: RobotModel, settings: TorqueSettings, values: Mapping[str, Any]) -> JointStateOutput:
    """From the parameters `joint_state.*`."""
    return JointStateOutput(node, settings, values["joint_state.topic"])
