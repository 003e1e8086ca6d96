"""Base class of the outputs of a torque node."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

from ...core.errors import RbdError, unknown_name
from ...core.model.robot_model import RobotModel
from ...runtime.safety import Command
from ..base.optional import interface_type
from .message_bytes import MessageBytes

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Stamp = tuple[int, int]    # s, ns


class Source(Protocol):
    """Interface of the torque node for outputs."""

    @property
    def state_timeout(self) -> float:
        """Age (s) from which a joint state is stale."""

    @property
    def state_age(self) -> float:
        """Age (s) of the last joint state, since its reception."""

    def fade_in(self) -> None:
        """Ramp in from the safe effort, as after activation, when the robot starts to take commands."""


class Output(ABC):
    """One publisher. `publish` takes arrays in model order; `indices`: permutation to the order of the message, whose
    fields with `sizes` numbers are filled through `numbers` (`MessageBytes`).
    """

    def __init__(self, node: Node, message: Any, topic: str, indices: Indices, sizes: Mapping[str, int],
                 stamped: bool = False) -> None:
        self._node, self._indices = node, indices
        self._publisher = node.create_publisher(type(message), topic, QoSProfile(depth=1), qos_overriding_options=(
            QoSOverridingOptions.with_default_policies()))
        self._bytes = MessageBytes(message, sizes, stamped)
        self.numbers = self._bytes.numbers

    @abstractmethod
    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        """Send the command that answers a joint state with this stamp, q and v."""

    def begin(self) -> None:    # noqa: B027
        """Handle the activation of the node: what was sent before no longer acts."""

    def send(self, stamp: Stamp = (0, 0)) -> None:
        """Send the numbers, with this stamp if the message has a stamp."""
        self._bytes.send(self._publisher, *stamp)

    @property
    def topics(self) -> list[str]:
        """Published topics, by full name."""
        return [self._publisher.topic_name]

    def destroy(self) -> None:
        self._node.destroy_publisher(self._publisher)


def joint_indices(parameter: str, names: Sequence[str], model: RobotModel) -> Indices:
    """Indices of these joints in model order; raises `RbdError`, naming `parameter`."""
    for name in names:
        if name not in model.joint_names:
            raise unknown_name(f"joint in parameter '{parameter}':", name, model.joint_names)
    if len(set(names)) != len(names):
        raise RbdError(f"parameter '{parameter}' names a joint twice: {', '.join(names)}")
    return np.array([model.joint_names.index(name) for name in names], dtype=np.intp)


def message_type(adapter: str, package: str, name: str) -> Any:
    """The class of a message of an optional package; raises `RbdError` if the package is missing."""
    return interface_type(f"adapter '{adapter}' publishes", package, "msg", name)
