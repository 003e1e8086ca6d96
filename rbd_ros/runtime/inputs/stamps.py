"""Detection of forward jumps of the clock: stamps against the steady time of reception.

Let o = stamp − rate · time of reception. A message that is late makes o smaller; o that grows beyond the largest one
of the last second is of a clock that leapt:

    o − max o > PERIODS · step

step: mean of the advance of stamps that advance. rate: 1; in a simulation whose pace is below 1/SLOWER or above MUCH,
SLOWER or FASTER times the pace (mean of all advances over the mean time between receptions), which leaves room for
an uneven pace; leaps there are found if they are more than what that leaves within a second, 0.2 s times a fast pace. A
pause never is a leap, nor is a simulation that stands still, or drift.
"""
from __future__ import annotations

import math

from ...core.steady.stream_times import (
    CLOCK, LEAP, LEARNING, PERIODS, UNKNOWN, clock_advance_entry, clock_leaps_entry,
)
from ..live_numbers import LiveNumbers, Number

__all__ = ["LEAP", "LEARNING", "PERIODS", "UNKNOWN", "StampClock"]


class StampClock(LiveNumbers):
    """Estimate of the clock of the stamps; all arguments in s, since the last message that counted."""

    _advance, _interval, _advances = (Number(CLOCK, name) for name in ("advance", "interval", "advances"))

    def __init__(self) -> None:
        super().__init__(CLOCK, clock_leaps_entry, clock_advance_entry)
        self.restart()

    @property
    def period(self) -> float:
        """Mean advance of the stamps, s."""
        return max(self._advance, 1e-4) if self._advances >= LEARNING else UNKNOWN

    @property
    def least(self) -> float:
        """Half a period, s: less is jitter of the stamps; 0 until the period is known."""
        return 0.5 * self._advance if self._advances >= LEARNING else 0.0

    @property
    def pace(self) -> float:
        """Seconds of the stamps in a second."""
        return self._advance / max(self._interval, 1e-9) if self._advances >= LEARNING else 1.0

    def restart(self) -> None:
        """Another clock, by the next message; its period is learnt anew."""
        numbers = self._numbers
        for name, value in (("count", 0.0), ("advances", 0.0), ("offset", 0.0), ("until", -math.inf), ("rate", 1.0),
                            ("highest", 0.0), ("highest_before", 0.0)):    # rate: as the module's docstring says
            numbers[CLOCK.index(name)] = value

    def leaps(self, passed: float, waited: float) -> bool:
        """Whether a stamp later by `passed` that came `waited` later is of a clock that leapt."""
        return bool(clock_leaps_entry.call(self._numbers, passed, waited))

    def advance(self, now: float, passed: float, waited: float) -> None:
        """Such a message counts."""
        clock_advance_entry.call(self._numbers, now, passed, waited)
