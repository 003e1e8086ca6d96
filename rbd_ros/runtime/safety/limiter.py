"""Limits of one output: of its size, where higher ones fade in and lower ones act at once, and of its rate.

Invariants: |clip(x)| ≤ the present limit, component by component; clip is monotone, so what lay between two efforts
still does. |follow(x, last, t) − last| ≤ rate · t.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .fade import Fade, mix

Array = NDArray[np.float64]


class Limiter:
    """limit (n,): N m or N, inf for none; rate (n,): N m/s or N/s, inf for none."""

    def __init__(self, limit: Array, rate: Array) -> None:
        self._limits: Fade[Array] = Fade(limit)
        self._set_rate(rate)

    def _set_rate(self, rate: Array) -> None:
        self._rate = rate
        self._unlimited = np.isinf(rate)
        self.limits_rate = not self._unlimited.all()

    def use(self, limit: Array, rate: Array) -> None:
        """Other limits from now on."""
        self._set_rate(rate)
        fade = self._limits
        if fade.old is not None:
            fade.old = np.minimum(fade.old, limit)
        fade.new = np.minimum(fade.new, limit)
        if fade.fading or (limit > fade.new).any():
            fade.change(limit)

    @property
    def fading(self) -> bool:
        """Whether higher limits are on their way."""
        return self._limits.fading

    def advance(self, elapsed: float, duration: float) -> None:
        """`elapsed` s later; higher limits take `duration` s."""
        self._limits.advance(elapsed, duration)

    def settle(self) -> None:
        """Be at the newest limits."""
        self._limits.replace(self._limits.newest)

    def clip(self, effort: Array) -> Array:
        """The effort within the limits; while higher ones come in, between what the old ones and they let through."""
        fade = self._limits
        new: Array = np.minimum(np.maximum(effort, -fade.new), fade.new)
        if fade.old is None:
            return new
        return mix(np.minimum(np.maximum(effort, -fade.old), fade.old), new, fade.share)

    def follow(self, effort: Array, last: Array, elapsed: float) -> Array:
        """The effort, no farther from the last one than the rate allows in that time (s)."""
        if not self.limits_rate:
            return effort
        step = np.where(self._unlimited, np.inf, 0.0)
        np.multiply(self._rate, max(elapsed, 0.0), out=step, where=~self._unlimited)
        within: Array = np.minimum(np.maximum(effort, last - step), last + step)
        return within
