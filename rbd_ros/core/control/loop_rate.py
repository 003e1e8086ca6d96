"""Is the loop fast enough for feedback? Torque that follows an old state pushes where the robot has been.

Judged in the time of the stamps, so that a simulation that runs slowly, or stands still, is no slow loop:

    age of a state > MAX_AGE periods        its feedback is left out, and comes back within `ramp_in`
    mean step of the stamps > period/FRACTION     the loop is too slow: no command, until it is EAGER times as fast

age: from the reception of a joint state by the middleware to its answer. period: one over the expected rate, or the
shortest mean of `LEARNING` steps since activation. The mean step forgets with the time constant `WINDOW`.
"""
from __future__ import annotations

import math

WINDOW = 0.5      # s
LEARNING = 64     # steps
EAGER = 1.5


class LoopRate:
    """rate: expected, Hz; 0: learnt. max_age: in periods, inf for no limit. fraction: of the rate; 0 for no limit."""

    def __init__(self, rate: float, max_age: float, fraction: float) -> None:
        self.rate = rate
        self.counts = {"old_states": 0, "slow_loop": 0}
        self.allow(max_age, fraction)
        self.restart()

    def allow(self, max_age: float, fraction: float) -> None:
        """Other limits from now on."""
        self.max_age, self.fraction = max_age, fraction

    def restart(self) -> None:
        """Activation, or another clock: what was learnt is forgotten."""
        self.period = 1.0 / self.rate if self.rate > 0.0 else math.inf
        self.share, self.slow, self.mean = 1.0, False, 0.0
        self._count, self._sum = 0, 0.0

    def judge(self, step: float, age: float, elapsed: float, ramp: float) -> bool:
        """A state whose stamp is `step` s after the last one's is answered `age` s after it came. Sets `share`, of the
        feedback that it may carry, and returns whether the loop is fast enough for any command. elapsed: s since the
        last state; ramp: s in which feedback comes back.
        """
        if step > 0.0:
            self._learn(step)
        if age > self.max_age * self.period:
            self.counts["old_states"] += 1
            self.share = 0.0
        elif self.share < 1.0:
            self.share = min(self.share + elapsed / ramp, 1.0) if ramp > 0.0 else 1.0
        longest = self.period / self.fraction if self.fraction > 0.0 else math.inf
        was, self.slow = self.slow, self.mean > (longest / EAGER if self.slow else longest)
        self.counts["slow_loop"] += self.slow and not was
        return not self.slow

    def _learn(self, step: float) -> None:
        weight = 1.0 if self.mean == 0.0 else 1.0 - math.exp(-step / WINDOW)
        self.mean += weight * (step - self.mean)
        if self.rate > 0.0:
            return
        self._count, self._sum = self._count + 1, self._sum + step
        if self._count == LEARNING:
            self.period = min(self.period, self._sum / LEARNING)
            self._count, self._sum = 0, 0.0
