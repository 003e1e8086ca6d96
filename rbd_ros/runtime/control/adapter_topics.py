"""Topics of the output adapters of torque nodes: for the adapters, which use them, and for their rights."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import RbdError
from ..parameters import Parameter

MIT_INTERFACES = ("position", "velocity", "effort", "kp", "kd")    # of a motor that closes a loop itself
MIT_PER = Parameter("mit.topic_per", "string", "interface", "What one message is for: an interface, with a number per "
                    "joint (forward_command_controller), or a joint, with a number per interface (multi_interface_"
                    "forward_command_controller).", choices=("interface", "joint"), read_only=True)


@dataclass(frozen=True)
class AdapterTopic:
    """The topic of a text parameter with a suffix, to publish to or, if `subscribed`, to subscribe to."""

    parameter: Parameter
    suffix: str = ""
    subscribed: bool = False

    def name(self, values: Mapping[str, Any]) -> str:
        """The topic for parameter values by name; missing ones have their defaults."""
        return f"{values.get(self.parameter.name, self.parameter.default)}{self.suffix}"

    def names(self, values: Mapping[str, Any]) -> list[str]:
        """All topics of this entry."""
        return [self.name(values)]


@dataclass(frozen=True)
class TopicPerItem(AdapterTopic):
    """A topic per item of a list. `per`: parameter that chooses what the items are; `lists`: for each choice, the
    parameters that list them, with their defaults; the first that is not empty counts. {} in the name of the topic
    stands for the item, which is appended without it.
    """

    per: Parameter | None = None
    lists: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    def names(self, values: Mapping[str, Any]) -> list[str]:
        assert self.per is not None
        lists = self.lists[values.get(self.per.name, self.per.default)]
        items = next(filter(None, (list_of(values, name, default) for name, default in lists.items())), [])
        if not items:
            raise RbdError(f"parameter '{self.per.name}' makes a topic per joint: list them in parameter 'joints'")
        pattern = str(values.get(self.parameter.name, self.parameter.default))
        pattern = pattern if "{}" in pattern else f"{pattern}_{{}}"
        return [f"{pattern.replace('{}', item)}{self.suffix}" for item in items]


def list_of(values: Mapping[str, Any], name: str, default: tuple[str, ...] = ()) -> list[str]:
    """A list of text among the values of parameters by name, without empty items."""
    listed = values.get(name, default)
    return [item for item in ([listed] if isinstance(listed, str) else listed) if item]


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
    "mit": (TopicPerItem(
        _text("mit.controller", "forward_{}_controller", "Controllers that take std_msgs/Float64MultiArray on "
              "<controller>/commands; {} stands for the interface or joint, and is appended if missing."), "/commands",
        per=MIT_PER, lists={"interface": {"mit.interfaces": MIT_INTERFACES},
                            "joint": {"mit.joints": (), "joints": ()}}),),
}
