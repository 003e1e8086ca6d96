"""Points of a motion for joint_trajectory_controller and similar ones, and their interpolation."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.motion.trajectory import Waypoint, segment

Array = NDArray[np.float64]
BETWEEN = 8    # samples per segment


class Points(NamedTuple):
    """Times (N,) from 0 in s; positions, velocities, accelerations, efforts (N, nv) in model order."""

    time: Array
    q: Array
    v: Array
    a: Array
    effort: Array

    def polynomials(self) -> tuple[Array, Array]:
        """The interpolation by the controller: times (N,), and powers (N − 1, degree + 1, nv) of the time since each
        but the last.
        """
        return self.time, _segments(*self[:4]).swapaxes(0, 1)


class GivenPoints(NamedTuple):
    """Points as a trajectory gives them: times (N,), positions (N, nv), velocities and accelerations, NaN where a point
    has none.
    """

    time: Array
    q: Array
    v: Array
    a: Array

    def polynomials(self) -> tuple[Array, Array]:
        """As `Points.polynomials`: cubic where two neighbours have velocities, quintic with accelerations, too."""
        powers = np.zeros((len(self.time) - 1, 6, self.q.shape[1]))
        known = [~np.isnan(x.max(axis=1)) for x in (self.v, self.a)]
        fast, full = (each[:-1] & each[1:] for each in known)
        degrees = np.where(fast, np.where(full, 5, 3), 1)
        T = np.diff(self.time)
        for degree in np.unique(degrees):
            k = np.flatnonzero(degrees == degree)
            first, last = (Waypoint(0.0, self.q[i], self.v[i] if degree > 1 else None,
                                    self.a[i] if degree > 3 else None) for i in (k, k + 1))
            powers[k, :degree + 1] = segment(first, last, T[k, None]).swapaxes(0, 1)
        return self.time, powers


def sampled(motion: Any, period: float) -> Points:
    """Equidistant points, at most `period` apart, of a motion from rest to rest with `duration` and `effort(t)`. The
    first and last velocities are exactly 0; joint_trajectory_controller requires it of the last.
    """
    count = max(int(np.ceil(motion.duration / period - 1e-9)), 1) + 1
    t = np.linspace(0.0, motion.duration, count)
    q, v, a = motion(t)[:3]
    v[0], v[-1] = 0.0, 0.0
    return Points(t, q, v, a, motion.effort(t))


def interpolated(t: Array, q: Array, v: Array | None, a: Array | None) -> tuple[Array, Array, Array, Array]:
    """Times (M,), positions, velocities and accelerations (M, nv) between points, interpolated as by the controller."""
    c = _segments(t, q, v, a)
    # (segments, samples), both ends: accelerations may jump
    s = np.diff(t)[:, None] * np.linspace(0.0, 1.0, BETWEEN + 1)
    powers = np.stack([s**i for i in range(len(c))])
    derivatives = []
    for d in range(3):
        i = np.arange(d, len(c))
        factors = np.ones(len(i)) if d == 0 else i if d == 1 else i * (i - 1.0)
        derivatives.append(np.einsum("i,isk,isj->skj", factors, powers[:len(i)], c[d:]).reshape(-1, q.shape[1]))
    return (t[:-1, None] + s).ravel(), derivatives[0], derivatives[1], derivatives[2]


def _segments(t: Array, q: Array, v: Array | None, a: Array | None) -> Array:
    """Powers (degree + 1, segments, nv) of the time since each point but the last."""
    first, last = (Waypoint(0.0, q[part], None if v is None else v[part], None if a is None else a[part])
                   for part in (slice(None, -1), slice(1, None)))
    return segment(first, last, np.diff(t)[:, None])
