"""Command of one cycle: made by laws, passed by the safety filter, sent by outputs."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.actuation.motor_reference import MotorReference

Array = NDArray[np.float64]


class Defect(str):
    """A problem caused by a program error: its traceback."""

    __slots__ = ()


class Command(NamedTuple):
    """effort (nv,): of the joints. rates (2, nv): its first and second time derivative, None where they are not known,
    or are not those of this effort (limits, ramps, fades).

    motor_effort (nm,), motors: of elastic joints, in the order of `Actuation.motor_names`; None without. motors: where
    drives with a position loop of their own have to be; None while the output is safe. problem: why there is no command
    of the laws in it, or of one of them; "" if nothing is wrong.
    """

    effort: Array
    rates: Array | None = None
    motor_effort: Array | None = None
    motors: MotorReference | None = None
    problem: str = ""

    @property
    def efforts(self) -> tuple[Array, ...]:
        """One per channel of the filter."""
        return (self.effort,) if self.motor_effort is None else (self.effort, self.motor_effort)


class NoCommand(NamedTuple):
    """Absence of a command, replaced by the safe effort. problem: the reason, "" if no command was requested."""

    problem: str = ""


NOTHING = NoCommand()
