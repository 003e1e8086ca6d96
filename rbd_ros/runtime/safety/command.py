"""Command of one cycle: computed by laws, passed by the safety filter, sent by outputs."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.actuation.motor_reference import MotorReference

Array = NDArray[np.float64]


class Defect(str):
    """Traceback of a program error, as a command's problem."""

    __slots__ = ()


class Command(NamedTuple):
    """effort (nv,): of the joints. rates (2, nv): first and second time derivative of the effort; None if unknown, or
    if limits, ramps or fades modify the effort.

    motor_effort (nm,), motors: of elastic joints, in the order of `Actuation.motor_names`; None without elastic joints.
    motors: reference for drives with their own position loop; None while the output is the safe effort. problem: why
    the command of one or all laws is missing; "" if none is.
    """

    effort: Array
    rates: Array | None = None
    motor_effort: Array | None = None
    motors: MotorReference | None = None
    problem: str = ""

    @property
    def efforts(self) -> tuple[Array, ...]:
        """Efforts, one per channel of the filter."""
        return (self.effort,) if self.motor_effort is None else (self.effort, self.motor_effort)


class NoCommand(NamedTuple):
    """Absence of a command, replaced by the safe effort. problem: the reason, "" if no command was requested."""

    problem: str = ""


NOTHING = NoCommand()
