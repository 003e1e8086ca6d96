"""`~/effort`, which every torque node publishes."""
from __future__ import annotations

from array import array
from typing import Any

from rclpy.node import Node

from rbd_interfaces.msg import JointEffort

from ...runtime.control.torque_settings import TorqueSettings
from ...runtime.safety import Command
from .output import Array, Output, shared


class EffortOutput(Output):
    """`~/effort`, rbd_interfaces/JointEffort in the order of parameter `joints`."""

    def __init__(self, node: Node, settings: TorqueSettings) -> None:
        message = JointEffort(name=list(settings.joints))
        self._effort = shared(message, "effort", len(settings.joints))
        super().__init__(node, message, "~/effort", settings.output)

    def publish(self, stamp: Any, q: Array, v: Array, command: Command) -> None:
        self._effort[:] = command.effort[self._indices]
        self._message.header.stamp = stamp
        self._publisher.publish(self._message)


class EffortRateOutput(EffortOutput):
    """`~/effort` with time derivatives, where the command has them."""

    def publish(self, stamp: Any, q: Array, v: Array, command: Command) -> None:
        rates = command.rates
        self._message.derivatives_valid = rates is not None
        for field, values in zip(("effort_rate", "effort_acceleration"), (None, None) if rates is None else rates,
                                 strict=True):
            setattr(self._message, field, array("d", b"" if values is None else values[self._indices].tobytes()))
        super().publish(stamp, q, v, command)
