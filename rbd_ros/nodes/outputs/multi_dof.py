"""Output for pid_controller: control_msgs/MultiDOFCommand, imported only if selected.

With reference_and_state_interfaces [effort] the controller closes a loop on the measured torque. It replaces received
names by its own, so the order of `multi_dof.joints` must be its order; `values_dot` stays empty, as it is undefined for
an effort.
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

(TOPIC,) = ADAPTER_TOPICS["multi_dof"]
TABLE: Table = (
    TOPIC.parameter,
    Parameter("multi_dof.joints", "strings", (), "The order of degrees of freedom in that controller, which ignores "
              "names. Empty: `joints`.", read_only=True),
)


class MultiDofOutput(Output):
    """control_msgs/MultiDOFCommand with the efforts as `values`."""

    def __init__(self, node: Node, kind: Any, topic: str, joints: Sequence[str], indices: Indices) -> None:
        message = kind(dof_names=list(joints))
        super().__init__(node, message, topic, indices, {"values": len(joints)})

    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        self.numbers["values"][:] = command.effort[self._indices]
        self.send()


def make(node: Any, model: RobotModel, settings: TorqueSettings, values: Mapping[str, Any]) -> MultiDofOutput:
    """The output of parameters `multi_dof.*`."""
    joints = values["multi_dof.joints"] or settings.joints
    return MultiDofOutput(node, message_type("multi_dof", "control_msgs", "MultiDOFCommand"),
                          TOPIC.name(values), joints, joint_indices("multi_dof.joints", joints, model))
