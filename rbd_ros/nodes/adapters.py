"""Outputs of a torque node. Messages are made once and filled in place."""
from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rbd_interfaces.msg import JointEffort

from ..core.control.torque_settings import TorqueSettings
from ..core.errors import unknown_name
from ..core.model.robot_model import RobotModel

Array = NDArray[np.float64]


class Output:
    """One publisher. `publish` takes arrays in model order."""

    def __init__(self, node: Node, message: Any, topic: str, indices: NDArray[np.intp]) -> None:
        self._node, self._message, self._indices = node, message, indices
        self._publisher = node.create_publisher(type(message), topic, QoSProfile(depth=1), qos_overriding_options=(
            QoSOverridingOptions.with_default_policies()))

    def publish(self, stamp: Any, q: Array, v: Array, effort: Array) -> None:
        raise NotImplementedError

    def destroy(self) -> None:
        self._node.destroy_publisher(self._publisher)


class EffortOutput(Output):
    """`~/effort`, rbd_interfaces/JointEffort in the order of parameter `joints`."""

    def __init__(self, node: Node, settings: TorqueSettings) -> None:
        message = JointEffort(name=list(settings.joints))
        self._effort = _shared(message, "effort", len(settings.joints))
        super().__init__(node, message, "~/effort", settings.output)

    def publish(self, stamp: Any, q: Array, v: Array, effort: Array) -> None:
        self._effort[:] = effort[self._indices]
        self._message.header.stamp = stamp
        self._publisher.publish(self._message)


class ForwardCommandOutput(Output):
    """std_msgs/Float64MultiArray for a forward_command_controller, in that controller's order of joints.

    The controller has no timeout and keeps the last torque; it drops messages that are not finite.
    """

    def __init__(self, node: Node, settings: TorqueSettings, controller: str, indices: NDArray[np.intp]) -> None:
        message = Float64MultiArray()
        self._effort = _shared(message, "data", len(indices))
        super().__init__(node, message, f"{controller}/commands", indices)

    def publish(self, stamp: Any, q: Array, v: Array, effort: Array) -> None:
        self._effort[:] = effort[self._indices]
        self._publisher.publish(self._message)


class JointStateOutput(Output):
    """sensor_msgs/JointState with position, velocity and effort, as bridges to simulators index all three."""

    def __init__(self, node: Node, settings: TorqueSettings, topic: str) -> None:
        message = JointState(name=list(settings.joints))
        count = len(settings.joints)
        self._position = _shared(message, "position", count)
        self._velocity = _shared(message, "velocity", count)
        self._effort = _shared(message, "effort", count)
        super().__init__(node, message, topic, settings.output)

    def publish(self, stamp: Any, q: Array, v: Array, effort: Array) -> None:
        self._position[:] = q[self._indices]
        self._velocity[:] = v[self._indices]
        self._effort[:] = effort[self._indices]
        self._message.header.stamp = stamp
        self._publisher.publish(self._message)


def make_outputs(node: Node, model: RobotModel, settings: TorqueSettings, values: Mapping[str, Any]) -> list[Output]:
    """`~/effort` and the outputs that parameter `adapters` names."""
    outputs: list[Output] = [EffortOutput(node, settings)]
    if "forward_command" in values["adapters"]:
        indices = _indices(values["forward_command.joints"] or settings.joints, model)
        outputs.append(ForwardCommandOutput(node, settings, values["forward_command.controller"], indices))
    if "joint_state" in values["adapters"]:
        outputs.append(JointStateOutput(node, settings, values["joint_state.topic"]))
    return outputs


def _indices(names: Sequence[str], model: RobotModel) -> NDArray[np.intp]:
    for name in names:
        if name not in model.joint_names:
            raise unknown_name("joint in parameter 'forward_command.joints':", name, model.joint_names)
    return np.array([model.joint_names.index(name) for name in names], dtype=np.intp)


def _shared(message: Any, field: str, count: int) -> Array:
    """A view of the memory of a message's field of `count` numbers."""
    setattr(message, field, array("d", bytes(8 * count)))
    return np.frombuffer(getattr(message, field))    # whatever the setter made of it
