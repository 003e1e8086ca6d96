"""Limits of one output: saturation (higher limits fade in, lower ones act at once) and rate limit.

Invariants: |clip(x)| ≤ the present limit, component by component; clip is monotone, so it keeps the order of efforts.
|follow(x, last, t) − last| ≤ rate · t.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.motion.cycle import clipped_entry, followed_entry
from .fade import Fade, mix

Array = NDArray[np.float64]


class Limiter:
    """limit (n,): N m or N, inf for none; rate (n,): N m/s or N/s, inf for none."""

    def __init__(self, limit: Array, rate: Array) -> None:
        self._limits: Fade[Array] = Fade(np.array(limit))    # kernels take no read-only arrays
        self._set_rate(rate)

    def _set_rate(self, rate: Array) -> None:
        self._rate = np.array(rate)
        self.limits_rate = not np.isinf(rate).all()

    def use(self, limit: Array, rate: Array) -> None:
        """Change the limits."""
        self._set_rate(rate)
        fade = self._limits
        if fade.old is not None:
            fade.old = np.minimum(fade.old, limit)
        fade.new = np.minimum(fade.new, limit)
        if fade.fading or (limit > fade.new).any():
            fade.change(np.array(limit))

    @property
    def limits(self) -> tuple[Array, Array]:
        """Present limit and rate, both (n,), without a fade."""
        return self._limits.new, self._rate

    @property
    def fading(self) -> bool:
        """Whether higher limits fade in."""
        return self._limits.fading

    def advance(self, elapsed: float, duration: float) -> None:
        """Advance by `elapsed` s; higher limits fade in within `duration` s."""
        self._limits.advance(elapsed, duration)

    def settle(self) -> None:
        """Complete all fades."""
        self._limits.replace(self._limits.newest)

    def clip(self, effort: Array) -> Array:
        """The effort within the limits; during a fade, the mix of the efforts within old and new limits."""
        return self.clipped(effort)[0]

    def clipped(self, effort: Array) -> tuple[Array, bool]:
        """The clipped effort, and whether the effort was within the limits."""
        fade, new = self._limits, np.empty(len(effort))
        same = clipped_entry.call(effort, fade.new, new)
        if fade.old is None:
            return new, same
        mixed = mix(np.minimum(np.maximum(effort, -fade.old), fade.old), new, fade.share)
        return mixed, np.array_equal(mixed, effort)

    def follow(self, effort: Array, last: Array, elapsed: float) -> tuple[Array, bool]:
        """The rate-limited effort, `elapsed` s after `last`, and whether the effort was within the rate limit."""
        if not self.limits_rate:
            return effort, True
        within = np.empty(len(effort))
        return within, followed_entry.call(effort, last, self._rate, max(elapsed, 0.0), within)
