"""Topics of the output adapters of torque nodes: for the adapters, which use them, and for their rights."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..parameters import Parameter


@dataclass(frozen=True)
class AdapterTopic:
    """The topic of a text parameter with a suffix, to publish to or, if `subscribed`, to subscribe to."""

    parameter: Parameter
    suffix: str = ""
    subscribed: bool = False

    def name(self, values: Mapping[str, Any]) -> str:
        """The topic for parameter values by name; missing ones have their defaults."""
        return f"{values.get(self.parameter.name, self.parameter.default)}{self.suffix}"


def _text(name: str, default: str, description: str) -> Parameter:
    return Parameter(name, "string", default, description, read_only=True)


ADAPTER_TOPICS: dict[str, tuple[AdapterTopic, ...]] = {
    "forward_command": (AdapterTopic(_text(
        "forward_command.controller", "effort_controller",
        "Controller that takes std_msgs/Float64MultiArray on <controller>/commands."), "/commands"),),
    "joint_state": (AdapterTopic(_text(
        "joint_state.topic", "~/effort_commands", "Topic of the sensor_msgs/JointState output.")),),
    "jtc": (AdapterTopic(_text(
        "jtc.controller", "joint_trajectory_controller",
        "Controller that takes trajectory_msgs/JointTrajectory on <controller>/joint_trajectory; it needs an effort "
        "interface."), "/joint_trajectory"),),
    "multi_dof": (AdapterTopic(_text(
        "multi_dof.controller", "pid_controller",
        "Controller that takes control_msgs/MultiDOFCommand on <controller>/reference."), "/reference"),),
    "joint_command": (AdapterTopic(_text(
        "joint_command.topic", "robot_joint_commands/effort", "Topic of the control_msgs/JointCommand output.")),),
    "linear_feedback": (AdapterTopic(_text(
        "linear_feedback.topic", "control", "Topic of the linear_feedback_controller_msgs/Control output.")),),
    "lbr": (
        AdapterTopic(_text("lbr.command_topic", "command/torque", "Topic of the lbr_fri_idl/LBRTorqueCommand output.")),
        AdapterTopic(_text("lbr.state_topic", "state", "Topic of lbr_fri_idl/LBRState: torque is sent only while its "
                           "session_state is 4."), subscribed=True)),
}
