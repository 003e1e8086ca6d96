"""Stamps of a stream of messages against the steady time of their reception: has the clock leapt ahead?

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

PERIODS = 5          # a leap of so many steps of the stamps
SLOWER, FASTER, MUCH = 2.0, 1.2, 1.1
LEARNING = 8         # stamps that advance, from the first or a restart on, until period and pace count; LEAP until then
LEAP = 1.0           # s
UNKNOWN = 0.01       # s: the period until it is known
WINDOW = 0.5         # s: the largest o is that of one to two windows
_MEMORY, _LONGEST = 64, 4.0    # messages of the means; an advance counts as at most so many steps


class StampClock:
    """What is known about the clock of the stamps; all arguments in s, since the last message that counted."""

    def __init__(self) -> None:
        self._advance = self._step = self._interval = 0.0
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
        self._count = self._advances = 0
        self._offset, self._until = 0.0, -math.inf
        self._rate = 1.0    # as the module's docstring says
        self._highest = self._highest_before = 0.0

    def leaps(self, passed: float, waited: float) -> bool:
        """Whether a stamp later by `passed` that came `waited` later is of a clock that leapt."""
        if self._advances < LEARNING:
            return passed - waited > LEAP
        ahead = self._offset + passed - self._rate * waited - max(self._highest, self._highest_before)
        return ahead > PERIODS * self._step

    def advance(self, now: float, passed: float, waited: float) -> None:
        """Such a message counts."""
        self._offset += passed - self._rate * waited
        if now >= self._until:
            self._highest_before, self._highest, self._until = self._highest, self._offset, now + WINDOW
        elif self._offset > self._highest:
            self._highest = self._offset
        if self._advances >= LEARNING:
            longest = _LONGEST * self._step
            passed, waited = min(passed, longest), min(waited, max(longest, _LONGEST * self._interval))
        self._count += 1
        if passed > 0.0:
            self._advances += 1
            self._step += (passed - self._step) / min(self._advances, _MEMORY)
        weight = 1.0 / min(self._count, _MEMORY)
        self._advance += weight * (passed - self._advance)
        self._interval += weight * (waited - self._interval)
        pace = self.pace
        self._rate = FASTER * pace if pace > MUCH else min(1.0, SLOWER * pace)
