"""Retiming of a motion along its path: `q(s(t))`, s a quintic polynomial.

So a motion stops on its path, reverses along it, and resumes after a pause: the rate ds/dt changes from one value to
another with continuous acceleration.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .trajectory import Interpolation, Reference

Array = NDArray[np.float64]


class Retimed:
    """`motion` at the time s(t): from `start` with rate ds/dt = `rate`, to `end` with rate `last` after `duration` s;
    then at constant rate. Jerk and snap are unknown.
    """

    def __init__(self, motion: Interpolation, start: float, rate: float, end: float, last: float, duration: float
                 ) -> None:
        self.motion = motion
        self._start, self._rate, self._last, self._reached = start, rate, last, end
        self._blend = duration
        d, first, second = end - start, rate * duration, last * duration
        self._c = np.array([10.0 * d - 6.0 * first - 4.0 * second, -15.0 * d + 8.0 * first + 7.0 * second,
                            6.0 * d - 3.0 * first - 3.0 * second])    # of x³, x⁴ and x⁵, x = t/duration
        self.duration = duration + max((motion.duration - end) / last if last > 0.0 else 0.0, 0.0)

    @property
    def goes_on(self) -> bool:
        """Whether the final rate is not 0."""
        return self._last != 0.0

    def time(self, t: float) -> tuple[float, float, float]:
        """s, and its first and second derivative, at t."""
        if t >= self._blend:
            return self._reached + self._last * (t - self._blend), self._last, 0.0
        if t <= 0.0:
            return self._start + self._rate * t, self._rate, 0.0
        x, (a, b, c) = t / self._blend, self._c
        s = self._start + self._rate * t + x**3 * (a + x * (b + x * c))
        ds = self._rate + x**2 * (3.0 * a + x * (4.0 * b + 5.0 * x * c)) / self._blend
        dds = x * (6.0 * a + x * (12.0 * b + 20.0 * x * c)) / self._blend**2
        return float(s), float(ds), float(dds)

    def caught_up(self, t: float) -> bool:
        """Whether from t on this is the original motion, shifted in time."""
        return t >= self._blend and self._last == 1.0

    def sample(self, t: float) -> Reference:
        """The reference at time t (s)."""
        s, ds, dds = self.time(t)
        reference = self.motion.sample(s)
        return Reference(reference.q, reference.v * ds, reference.a * ds**2 + reference.v * dds)
