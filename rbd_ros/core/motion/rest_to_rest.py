"""Motions from rest to rest through given points: minimum-jerk segments, with dwells between them."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import RbdError, shown
from .sampled_motion import SampledMotion
from .trajectory import Reference

Array = NDArray[np.float64]
# s(x) = 10 x³ − 15 x⁴ + 6 x⁵ (Flash, Hogan 1985), highest power first, and its derivatives
_QUINTIC = [np.poly1d([6.0, -15.0, 10.0, 0.0, 0.0, 0.0])]
for _ in range(4):
    _QUINTIC.append(_QUINTIC[-1].deriv())
PEAK_SPEED = 1.875    # largest derivative of s, at x = 1/2


class RestToRestMotion(SampledMotion):
    """`motion(t)` has .q, .v, .a, .jerk, .snap (nv,), or (N, nv) for t (N,), rad, m and s.

    points (M, nv); durations (M − 1,): of the segments, s; dwells (M,): at rest at each point, s. Before the first
    point and after the last one the robot is at rest there.
    """

    def __init__(self, points: ArrayLike, durations: ArrayLike, dwells: ArrayLike) -> None:
        values: list[Any] = []
        for value, name, dimensions in ((points, "points", 2), (durations, "durations", 1), (dwells, "dwells", 1)):
            array = np.array(value, dtype=np.float64)
            if array.ndim != dimensions or not np.isfinite(array).all():
                raise RbdError(f"{name} must be finite numbers in {dimensions} dimension{'s' * (dimensions > 1)}, got "
                               f"{shown(value)}")
            values.append(array)
        self.points, self.durations, rests = values
        count = len(self.points)
        if count < 1 or self.durations.shape != (count - 1,) or rests.shape != (count,):
            raise RbdError(f"expected {max(count - 1, 0)} durations and {count} dwells for {count} points, got "
                           f"{self.durations.shape} and {rests.shape}")
        if not (self.durations > 0.0).all() or not (rests >= 0.0).all():
            raise RbdError("durations must be positive and dwells at least 0")
        self.begins = np.cumsum(rests[:-1] + np.concatenate([[0.0], self.durations[:-1]])[:count - 1])
        self.duration = float(rests.sum() + self.durations.sum())

    def __call__(self, t: ArrayLike) -> Reference:
        times = np.asarray(t, dtype=np.float64)
        if times.ndim > 1 or not np.isfinite(times).all():
            raise RbdError(f"t must be a finite time or (N,) of them, got {shown(t)}")
        if not len(self.durations):
            return Reference.rest(np.broadcast_to(self.points[0], (*times.shape, self.points.shape[1])))
        k = np.maximum(np.searchsorted(self.begins, times, side="right") - 1, 0)
        duration = self.durations[k]
        x = np.clip((times - self.begins[k]) / duration, 0.0, 1.0)
        distance = self.points[k + 1] - self.points[k]
        moving = (x > 0.0) & (x < 1.0)
        rates = [(np.where(moving, _QUINTIC[d](x), 0.0) / duration**d)[..., None] * distance for d in range(1, 5)]
        return Reference(self.points[k] + _QUINTIC[0](x)[..., None] * distance, *rates)
