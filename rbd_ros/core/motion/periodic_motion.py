"""Periodic motions as finite Fourier series."""
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import RbdError, shown
from ..model.scalars import positive
from .sampled_motion import SampledMotion
from .trajectory import Reference

Array = NDArray[np.float64]


def fourier(t: Array, count: int, period: float, derivative: int = 0) -> Array:
    """Columns 1, sin and cos of the harmonics 1 … count, or their derivative by time: (N, 2 count + 1)."""
    k = 2.0 * np.pi * np.arange(1, count + 1) / period
    phase = np.outer(t, k) + 0.5 * np.pi * derivative
    columns = np.empty((len(t), 2 * count + 1))
    columns[:, 0] = 1.0 if derivative == 0 else 0.0
    columns[:, 1::2], columns[:, 2::2] = k**derivative * np.sin(phase), k**derivative * np.cos(phase)
    return columns


class PeriodicMotion(SampledMotion):
    """`motion(t)` has .q, .v, .a, .jerk, .snap (nv,), or (N, nv) for t (N,), rad, m and s.

    coefficients (2 count + 1, nv): of 1, sin and cos of each harmonic. Before 0 and after `periods` periods the robot
    is at rest at the ends.
    """

    def __init__(self, coefficients: ArrayLike, period: float, periods: int = 1) -> None:
        c = np.array(coefficients, dtype=np.float64)
        if c.ndim != 2 or len(c) % 2 == 0 or not np.isfinite(c).all():
            raise RbdError(f"coefficients must be finite numbers of shape (2 count + 1, nv), got shape {c.shape}")
        self.coefficients = c
        self.coefficients.setflags(write=False)
        self.period = positive(period, "period", "time")
        self.periods = periods
        self.duration = self.period * periods

    def __call__(self, t: ArrayLike) -> Reference:
        times = np.asarray(t, dtype=np.float64)
        if times.ndim > 1 or not np.isfinite(times).all():
            raise RbdError(f"t must be a finite time or (N,) of them, got {shown(t)}")
        each = np.atleast_1d(times)
        inside = np.clip(each, 0.0, self.duration)
        count = len(self.coefficients) // 2
        out = [fourier(inside, count, self.period, d) @ self.coefficients for d in range(5)]
        for d in range(1, 5):
            out[d][(each < 0.0) | (each > self.duration)] = 0.0
        return Reference(*(x[0] if times.ndim == 0 else x for x in out))
