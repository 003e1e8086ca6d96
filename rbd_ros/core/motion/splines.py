"""Clamped uniform B-splines of all joints over s = t / duration in [0, 1]: bases, control points, and motions.

`q(t) = Σ_k c_k B_k(t / T)`. A quintic spline has four continuous derivatives, snap the last; a septic one has six.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import factorial, perm
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compiled.entry import entry
from ..errors import RbdError, shown
from ..model.scalars import positive
from .trajectory import Reference

Array = NDArray[np.float64]
DEGREES = (5, 7)
MOST_POINTS = 400
DERIVATIVES = 4    # of a motion: velocity, acceleration, jerk, snap


@entry("void(float64[:, :, ::1], float64[::1], float64, float64[:, :, ::1])", nogil=True)
def spline_states(pieces, s, duration, out):
    """out (N, orders, nv): value and derivatives of polynomials, pieces[i, m] of (s − s_i)^m, by time, at s (N,)."""
    intervals, powers, nv = pieces.shape
    for k in range(s.shape[0]):
        i = min(max(int(s[k] * intervals), 0), intervals - 1)
        u = s[k] - i / intervals
        scale = 1.0
        for d in range(out.shape[1]):
            for j in range(nv):
                out[k, d, j] = 0.0
            for m in range(powers - 1, d - 1, -1):
                factor = 1.0
                for e in range(d):
                    factor *= m - e
                for j in range(nv):
                    out[k, d, j] = out[k, d, j] * u + factor * pieces[i, m, j]
            for j in range(nv):
                out[k, d, j] *= scale
            scale /= duration


@dataclass(frozen=True, eq=False)
class Basis:
    """B-spline basis functions of one degree; `powers[i, m, k]`: coefficient of (s − s_i)^m of the k-th of the
    degree + 1 functions on interval i, which belong to the control points i … i + degree.
    """

    degree: int
    count: int    # control points
    knots: Array
    powers: Array

    @property
    def intervals(self) -> int:
        return self.count - self.degree

    @property
    def end_derivatives(self) -> int:
        """Number of prescribed rows q, v, a, jerk at each end: (degree + 1) / 2."""
        return (self.degree + 1) // 2

    @property
    def collocation(self) -> Array:
        """Collocation points s, as many as free accelerations: Greville abscissae of the second derivative, without
        those determined by the ends' derivatives.
        """
        p, held = self.degree - 2, self.end_derivatives - 2
        knots = self.knots[2:-2]    # of the second derivative
        means = np.lib.stride_tricks.sliding_window_view(knots[1:-1], p).mean(axis=1)
        return np.asarray(means[held:len(means) - held])

    def interval(self, s: Array) -> NDArray[np.int64]:
        """Interval of each s in [0, 1]; 1 is in the last one."""
        indices: NDArray[np.int64] = np.clip((s * self.intervals).astype(np.int64), 0, self.intervals - 1)
        return indices

    def values(self, s: Array, derivatives: int) -> tuple[NDArray[np.int64], Array]:
        """Intervals (N,), and the non-zero B_k with derivatives by s (N, derivatives + 1, degree + 1)."""
        intervals = self.interval(s)
        u = s - intervals / self.intervals
        m = np.arange(self.degree + 1)
        rows = np.zeros((len(s), derivatives + 1, self.degree + 1))
        for d in range(derivatives + 1):
            factors = np.array([perm(int(k), d) for k in m], dtype=np.float64)
            rows[:, d] = factors * u[:, None] ** np.maximum(m - d, 0)
        return intervals, rows @ self.powers[intervals]

    def end(self, derivatives: Array, duration: float, last: bool) -> Array:
        """The first (last: the final) control points (m, nv) with q, v, a, … (m, nv) at that end."""
        m = len(derivatives)
        points: Array = _end_points(self, m, last) @ (derivatives * duration ** np.arange(m)[:, None])
        return points


@lru_cache(maxsize=64)
def _end_points(basis: Basis, m: int, last: bool) -> Array:
    """Matrix (m, m) from value and derivatives by s at an end to its control points."""
    values = basis.values(np.array([float(last)]), m - 1)[1][0]
    return np.linalg.inv(values[:, basis.degree + 1 - m:] if last else values[:, :m])


def basis(degree: int, count: int) -> Basis:
    """The basis of degree 5 or 7 with `count` control points; raises `RbdError` for other degrees or too few points."""
    if isinstance(degree, bool) or not isinstance(degree, int | np.integer) or degree not in DEGREES:
        raise RbdError(f"degree must be 5 (quintic) or 7 (septic), got {shown(degree)}")
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not degree + 2 <= count <= MOST_POINTS:
        raise RbdError(f"control_points must be an integer from {degree + 2} to {MOST_POINTS} for degree {degree}, "
                       f"got {shown(count)}")
    return _basis(int(degree), int(count))


@lru_cache(maxsize=32)
def _basis(degree: int, count: int) -> Basis:
    intervals = count - degree
    knots = np.concatenate([np.zeros(degree), np.linspace(0.0, 1.0, intervals + 1), np.ones(degree)])
    from scipy.interpolate import BSpline    # local import: saves 20 MB in nodes without planning

    spline = BSpline(knots, np.eye(count), degree)
    left = knots[degree:degree + intervals]    # exact knots, because SciPy searches the interval
    powers = np.empty((intervals, degree + 1, degree + 1))
    for m in range(degree + 1):
        full = spline(left, nu=m) / factorial(m)
        for i in range(intervals):
            powers[i, m] = full[i, i:i + degree + 1]
    for array in (knots, powers):
        array.setflags(write=False)
    return Basis(degree, count, knots, powers)


class SplineMotion:
    """A motion of all joints: `motion(t)` has .q, .v, .a, .jerk, .snap (nv,), or (N, nv) for t (N,), rad, m and s.

    Before 0 and after `duration` the robot is at rest at the ends. control: (K, nv), in the unit of the joints.

        >>> motion = rbd.SplineMotion(np.repeat([[0.0, 0.0], [1.0, -0.5]], 6, axis=0), 2.0)
        >>> motion(2.0).q, motion(1.0).v.round(3)
        (array([ 1. , -0.5]), array([ 2.096, -1.048]))
    """

    def __init__(self, control: ArrayLike, duration: float, degree: int = 5) -> None:
        points = np.array(control, dtype=np.float64)
        if points.ndim != 2 or not np.isfinite(points).all():
            raise RbdError(f"control must be finite numbers of shape (K, nv), got shape {points.shape}")
        self.basis = basis(degree, len(points))
        self.duration = positive(duration, "duration", "time")
        self.control = points
        self.control.setflags(write=False)
        windows = np.lib.stride_tricks.sliding_window_view(points, degree + 1, axis=0)    # (intervals, nv, degree + 1)
        # (intervals, power, nv)
        self._pieces: Array = np.ascontiguousarray(self.basis.powers @ windows.transpose(0, 2, 1))

    def states(self, s: Array, orders: int) -> Array:
        """Position and time derivatives (N, orders, nv) at s (N,) in [0, 1], in one pass."""
        out = np.empty((len(s), orders, self.control.shape[1]))
        spline_states(self._pieces, s, self.duration, out)
        return out

    def derivatives(self, t: ArrayLike, count: int = DERIVATIVES) -> Array:
        """Position and this many derivatives by time at t (s), within [0, duration]: (count + 1, N, nv)."""
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        s = np.clip(times / self.duration, 0.0, 1.0)
        intervals = self.basis.interval(s)
        u = (s - intervals / self.basis.intervals)[:, None]
        degree = self.basis.degree
        out = np.empty((count + 1, len(s), self.control.shape[1]))
        for d in range(count + 1):
            piece = self._pieces * np.array([perm(m, d) for m in range(degree + 1)], dtype=np.float64)[:, None]
            value = piece[intervals, degree]
            for m in range(degree - 1, d - 1, -1):
                value = value * u + piece[intervals, m]
            out[d] = value / self.duration**d
        return out

    def polynomials(self) -> tuple[Array, Array]:
        """Times (K + 1,) from 0 in s, and powers (K, degree + 1, nv) of the time since each but the last."""
        scale = self.duration ** -np.arange(self.basis.degree + 1.0)
        return np.linspace(0.0, self.duration, self.basis.intervals + 1), self._pieces * scale[:, None]

    def __call__(self, t: ArrayLike) -> Reference:
        times = np.asarray(t, dtype=np.float64)
        if times.ndim > 1 or not np.isfinite(times).all():
            raise RbdError(f"t must be a finite time or (N,) of them, got {shown(t)}")
        out = self.derivatives(times)
        outside: Any = np.atleast_1d((times < 0.0) | (times > self.duration))
        out[1:, outside] = 0.0
        return Reference(*(out[:, 0] if times.ndim == 0 else out))

    def sample(self, t: float) -> Reference:
        """The reference at time t (s), as by calling the motion; the interface of torque nodes."""
        return self(t)
