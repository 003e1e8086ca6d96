"""Detection of forward jumps of the clock: stamps against the steady time of reception.

Let o = stamp − rate · time of reception. A late message decreases o; an o beyond the maximum of the last second means
that the clock jumped:

    o − max o > PERIODS · step

step: mean advance of stamps, repeated ones excluded. rate: 1; for a simulation whose pace (mean advance over mean time
between receptions) is below 1/SLOWER or above MUCH, SLOWER or FASTER times the pace, as a margin for an uneven pace. In
such a simulation a jump is detected if larger than the margin of a second: 0.2 s times a fast pace. Pauses, paused
simulations and drift are no jumps.
"""
from __future__ import annotations

import math

from ...core.steady.stream_times import (
    CLOCK, LEAP, LEARNING, PERIODS, UNKNOWN, clock_advance_entry, clock_leaps_entry,
)
from ..live_numbers import LiveNumbers, Number

__all__ = ["LEAP", "LEARNING", "PERIODS", "UNKNOWN", "StampClock"]


class StampClock(LiveNumbers):
    """Estimator of the stamps' clock; arguments are times in s since the last accepted message. period: mean advance of
    the stamps, s.
    """

    period, _advance, _interval, _advances = (Number(CLOCK, name) for name in (
        "period", "advance", "interval", "advances"))

    def __init__(self) -> None:
        super().__init__(CLOCK, clock_leaps_entry, clock_advance_entry)
        self.restart()

    @property
    def least(self) -> float:
        """Half a period, s: smaller steps are jitter of the stamps; 0 until the period is known."""
        return 0.5 * self._advance if self._advances >= LEARNING else 0.0

    @property
    def pace(self) -> float:
        """Advance of the stamps per second of steady time."""
        return self._advance / max(self._interval, 1e-9) if self._advances >= LEARNING else 1.0

    def restart(self) -> None:
        """Reset for another clock, which starts with the next message; forget the period."""
        numbers = self._numbers
        # rate: see the module's docstring
        for name, value in (("count", 0.0), ("advances", 0.0), ("offset", 0.0), ("until", -math.inf), ("rate", 1.0),
                            ("highest", 0.0), ("highest_before", 0.0), ("period", UNKNOWN)):
            numbers[CLOCK.index(name)] = value

    def leaps(self, passed: float, waited: float) -> bool:
        """Whether a stamp later by `passed`, received `waited` later, shows a jump of the clock."""
        return bool(clock_leaps_entry.call(self._numbers, passed, waited))

    def advance(self, now: float, passed: float, waited: float) -> None:
        """Account for an accepted message."""
        clock_advance_entry.call(self._numbers, now, passed, waited)
