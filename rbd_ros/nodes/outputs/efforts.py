"""Output `~/effort` of all torque nodes."""
from __future__ import annotations

from rclpy.node import Node

from rbd_interfaces.msg import JointEffort

from ...runtime.control.torque_settings import TorqueSettings
from ...runtime.safety import Command
from .message_bytes import MessageBytes
from .output import Array, Output, Stamp

RATES = ("effort_rate", "effort_acceleration")


class EffortOutput(Output):
    """`~/effort`, rbd_interfaces/JointEffort in the order of parameter `joints`."""

    def __init__(self, node: Node, settings: TorqueSettings) -> None:
        count = len(settings.joints)
        super().__init__(node, JointEffort(name=list(settings.joints)), "~/effort", settings.output,
                         {"effort": count}, stamped=True)

    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        self.numbers["effort"][:] = command.effort[self._indices]
        self.send(stamp)


class EffortRateOutput(EffortOutput):
    """`~/effort` with time derivatives, if the command has them."""

    def __init__(self, node: Node, settings: TorqueSettings) -> None:
        super().__init__(node, settings)
        self._with_rates = MessageBytes(JointEffort(name=list(settings.joints), derivatives_valid=True),
                                        dict.fromkeys(("effort", *RATES), len(settings.joints)), stamped=True)

    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        if command.rates is None:
            super().publish(stamp, q, v, command)
            return
        numbers = self._with_rates.numbers
        numbers["effort"][:] = command.effort[self._indices]
        for field, values in zip(RATES, command.rates, strict=True):
            numbers[field][:] = values[self._indices]
        self._with_rates.send(self._publisher, *stamp)
