"""Outputs with messages of control_msgs, which is loaded only if one of them is selected.

MultiDOFCommand is what pid_controller takes as a reference: with reference_and_state_interfaces [effort] it closes a
loop about the measured torque. It overwrites the names it receives with its own, so the order of `multi_dof.joints`
must be its order; `values_dot` stays empty, as it has no meaning for an effort.

JointCommand (in control_msgs since April 2026) goes to what lies behind a topic-based hardware interface. Its stamp is
the time of publication, not that of the joint state: receivers time out by it, and a repeated safe output is fresh.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rclpy.node import Node

from ...core.model.robot_model import RobotModel
from ...runtime.control.torque_settings import TorqueSettings
from .output import Array, Indices, Output, joint_indices, message_type, shared


class MultiDofOutput(Output):
    """control_msgs/MultiDOFCommand with the efforts as `values`."""

    def __init__(self, node: Node, kind: Any, controller: str, joints: Sequence[str], indices: Indices) -> None:
        message = kind(dof_names=list(joints))
        self._effort = shared(message, "values", len(joints))
        super().__init__(node, message, f"{controller}/reference", indices)

    def publish(self, stamp: Any, q: Array, v: Array, effort: Array) -> None:
        self._effort[:] = effort[self._indices]
        self._publisher.publish(self._message)


class JointCommandOutput(Output):
    """control_msgs/JointCommand for the interface `effort`."""

    def __init__(self, node: Node, kind: Any, topic: str, joints: Sequence[str], indices: Indices) -> None:
        message = kind(interface_name="effort", joint_names=list(joints))
        self._effort = shared(message, "values", len(joints))
        super().__init__(node, message, topic, indices)

    def publish(self, stamp: Any, q: Array, v: Array, effort: Array) -> None:
        self._effort[:] = effort[self._indices]
        self._message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(self._message)


def make_multi_dof(node: Any, model: RobotModel, settings: TorqueSettings, values: Mapping[str, Any]) -> MultiDofOutput:
    """From the parameters `multi_dof.*`."""
    joints = values["multi_dof.joints"] or settings.joints
    return MultiDofOutput(node, message_type("multi_dof", "control_msgs", "MultiDOFCommand"),
                          values["multi_dof.controller"], joints, joint_indices("multi_dof.joints", joints, model))


def make_joint_command(node: Any, model: RobotModel, settings: TorqueSettings,
                       values: Mapping[str, Any]) -> JointCommandOutput:
    """From the parameters `joint_command.*`."""
    joints = values["joint_command.joints"] or settings.joints
    return JointCommandOutput(node, message_type("joint_command", "control_msgs", "JointCommand"),
                              values["joint_command.topic"], joints,
                              joint_indices("joint_command.joints", joints, model))
