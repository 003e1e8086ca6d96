"""Outputs of a torque node: those whose messages every ROS installation has, and the choice among all."""
from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rbd_interfaces.msg import JointEffort

from ...core.model.robot_model import RobotModel
from ...runtime.control.torque_settings import TorqueSettings
from .control_msgs_outputs import make_joint_command, make_multi_dof
from .jtc_output import make_jtc
from .lbr_output import make_lbr
from .output import Array, Indices, Output, joint_indices, shared


class EffortOutput(Output):
    """`~/effort`, rbd_interfaces/JointEffort in the order of parameter `joints`."""

    def __init__(self, node: Node, settings: TorqueSettings) -> None:
        message = JointEffort(name=list(settings.joints))
        self._effort = shared(message, "effort", len(settings.joints))
        super().__init__(node, message, "~/effort", settings.output)

    def publish(self, stamp: Any, q: Array, v: Array, effort: Array) -> None:
        self._effort[:] = effort[self._indices]
        self._message.header.stamp = stamp
        self._publisher.publish(self._message)


class EffortRateOutput(EffortOutput):
    """`~/effort` with time derivatives; `rates` returns them in model order (2, nv) or None, and whether they hold."""

    def __init__(self, node: Node, settings: TorqueSettings, rates: Callable[[], tuple[Array | None, bool]]) -> None:
        super().__init__(node, settings)
        self._rates = rates

    def publish(self, stamp: Any, q: Array, v: Array, effort: Array) -> None:
        rates, self._message.derivatives_valid = self._rates()
        for field, values in zip(("effort_rate", "effort_acceleration"), (None, None) if rates is None else rates,
                                 strict=True):
            setattr(self._message, field, array("d", b"" if values is None else values[self._indices].tobytes()))
        super().publish(stamp, q, v, effort)


class ForwardCommandOutput(Output):
    """std_msgs/Float64MultiArray for a forward_command_controller, in that controller's order of joints.

    The controller has no timeout and keeps the last torque; it drops messages that are not finite.
    """

    def __init__(self, node: Node, settings: TorqueSettings, controller: str, indices: Indices) -> None:
        message = Float64MultiArray()
        self._effort = shared(message, "data", len(indices))
        super().__init__(node, message, f"{controller}/commands", indices)

    def publish(self, stamp: Any, q: Array, v: Array, effort: Array) -> None:
        self._effort[:] = effort[self._indices]
        self._publisher.publish(self._message)


class JointStateOutput(Output):
    """sensor_msgs/JointState with position, velocity and effort, as bridges to simulators index all three."""

    def __init__(self, node: Node, settings: TorqueSettings, topic: str) -> None:
        message = JointState(name=list(settings.joints))
        count = len(settings.joints)
        self._position = shared(message, "position", count)
        self._velocity = shared(message, "velocity", count)
        self._effort = shared(message, "effort", count)
        super().__init__(node, message, topic, settings.output)

    def publish(self, stamp: Any, q: Array, v: Array, effort: Array) -> None:
        self._position[:] = q[self._indices]
        self._velocity[:] = v[self._indices]
        self._effort[:] = effort[self._indices]
        self._message.header.stamp = stamp
        self._publisher.publish(self._message)


def make_outputs(node: Any, model: RobotModel, settings: TorqueSettings, values: Mapping[str, Any]) -> list[Output]:
    """The outputs that parameter `adapters` names; `RbdError` if one of them cannot be."""
    outputs: list[Output] = []
    for name in dict.fromkeys(values["adapters"]):
        outputs.append(_MAKERS[name](node, model, settings, values))
    return outputs


def _forward_command(node: Any, model: RobotModel, settings: TorqueSettings, values: Mapping[str, Any]) -> Output:
    indices = joint_indices("forward_command.joints", values["forward_command.joints"] or settings.joints, model)
    return ForwardCommandOutput(node, settings, values["forward_command.controller"], indices)


def _joint_state(node: Any, model: RobotModel, settings: TorqueSettings, values: Mapping[str, Any]) -> Output:
    return JointStateOutput(node, settings, values["joint_state.topic"])


_MAKERS: dict[str, Callable[[Any, RobotModel, TorqueSettings, Mapping[str, Any]], Output]] = {
    "forward_command": _forward_command, "joint_state": _joint_state, "jtc": make_jtc, "multi_dof": make_multi_dof,
    "joint_command": make_joint_command, "lbr": make_lbr}
