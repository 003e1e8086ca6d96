"""Joint trajectories, interpolated as by joint_trajectory_controller.

The interpolation between two points depends on their common contents: positions only: linear; velocities too: cubic
Hermite; accelerations too: quintic Hermite. Before the first point the motion starts from the present reference; after
the last point its position is held.
"""
from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import RbdError
from .polynomial import polynomial

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Reference(NamedTuple):
    """Desired motion of all joints in model order (rad, m and seconds); jerk and snap are None if unknown.

        >>> rbd.Reference.rest(np.zeros(2)).v
        array([0., 0.])
    """

    q: Array
    v: Array
    a: Array
    jerk: Array | None = None
    snap: Array | None = None

    @staticmethod
    def rest(q: Array) -> Reference:
        """Rest at q."""
        return Reference(q, *np.zeros((4, *q.shape)))


@dataclass(frozen=True)
class Waypoint:
    """A point of a trajectory: time from its start (s), position, and optional derivatives."""

    time: float
    q: Array
    v: Array | None = None
    a: Array | None = None


@dataclass(frozen=True, eq=False)
class Waypoints:
    """Points of a trajectory as arrays: times from its start (N,), positions (N, nv), derivatives (N, nv), zero if
    missing, and flags (N,) of points with derivatives.
    """

    time: Array
    q: Array
    v: Array
    a: Array
    has_v: Flags
    has_a: Flags

    @staticmethod
    def of(points: Waypoints | Sequence[Waypoint]) -> Waypoints:
        """Convert points to arrays."""
        if isinstance(points, Waypoints):
            return points
        q = np.array([point.q for point in points], dtype=np.float64)
        has_v, has_a = (np.array([x is not None for x in row], dtype=np.bool_)
                        for row in ([point.v for point in points], [point.a for point in points]))
        v, a = np.zeros_like(q), np.zeros_like(q)
        for i, point in enumerate(points):
            for row, value in ((v, point.v), (a, point.a)):
                if value is not None:
                    row[i] = value
        return Waypoints(np.array([point.time for point in points], dtype=np.float64), q, v, a, has_v, has_a)

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, index: int) -> Waypoint:
        return Waypoint(float(self.time[index]), self.q[index], self.v[index] if self.has_v[index] else None,
                        self.a[index] if self.has_a[index] else None)

    def taken(self, which: slice | Flags) -> Waypoints:
        """The selected points, in their order."""
        return Waypoints(self.time[which], self.q[which], self.v[which], self.a[which], self.has_v[which],
                         self.has_a[which])

    def after(self, first: Waypoint) -> Waypoints:
        """The points with `first` prepended."""
        head = Waypoints.of([first])
        return Waypoints(
            np.append(head.time, self.time), np.vstack([head.q, self.q]), np.vstack([head.v, self.v]),
            np.vstack([head.a, self.a]), np.append(head.has_v, self.has_v), np.append(head.has_a, self.has_a))


class Piece(NamedTuple):
    """Piece of a motion from begin to end (s): a polynomial (degree + 1, nv) in (t - begin)/scale."""

    begin: float
    end: float
    scale: float
    coefficients: Array

    @staticmethod
    def rest(begin: float, q: Array) -> Piece:
        """Rest at q, without end."""
        return Piece(begin, math.inf, 1.0, q.reshape(1, -1))


class Interpolation(Protocol):
    """A motion through waypoints, at rest before and after."""

    duration: float

    def sample(self, t: float) -> Reference:
        """The reference at time t (s) from the start."""
        ...


class Trajectory:
    """Piecewise polynomial through waypoints with strictly increasing times, the first at or after 0."""

    def __init__(self, waypoints: Waypoints | Sequence[Waypoint], start: Reference) -> None:
        points = self.points = with_start(waypoints, start)
        self.times: Array = points.time
        self._times: list[float] = self.times.tolist()    # faster search in Python numbers
        self._segments: dict[int, Array] = {}    # computed on demand, so that a long trajectory does not delay control
        self.begin, self.end = Reference.rest(start.q), Reference.rest(points.q[-1])
        self.duration = self._times[-1]

    def sample(self, t: float) -> Reference:
        """The reference at time t (s) from the start; at rest before and after."""
        if t >= self.duration:
            return self.end
        if t < 0.0:
            return self.begin
        begin, _, scale, c = self.piece(t)
        return Reference(*polynomial(c, (t - begin) / scale, scale, 2))

    def piece(self, t: float) -> Piece:
        """The polynomial piece at time t ≥ 0 (s)."""
        if t >= self.duration:
            return Piece.rest(self.duration, self.end.q)
        i = bisect_right(self._times, t) - 1
        c = self._segments.get(i)
        if c is None:
            first, last = self.points[i], self.points[i + 1]
            c = self._segments[i] = segment(first, last, last.time - first.time)
        return Piece(self._times[i], self._times[i + 1], 1.0, c)


def with_start(waypoints: Waypoints | Sequence[Waypoint], start: Reference) -> Waypoints:
    """The waypoints, preceded by the start unless they have a point at time 0; raises `RbdError` for unordered times.
    """
    points = Waypoints.of(waypoints)
    check_times(points.time)
    return points.after(Waypoint(0.0, start.q, start.v, start.a)) if points.time[0] > 0.0 else points


def check_times(times: Array) -> None:
    """Raise `RbdError` unless the times (N,) are non-empty, at least 0 and increasing."""
    back = np.flatnonzero(np.diff(times) <= 0.0)
    got = ("no points" if not len(times) else f"{times[0]:g} s" if times[0] < 0.0 else
           f"{times[back[0]]:g} s, then {times[back[0] + 1]:g} s" if len(back) else "")
    if got:
        raise RbdError(f"trajectory: times from start must be at least 0 and strictly increase, got {got}")


def segment(first: Waypoint, last: Waypoint, T: float | Array) -> Array:
    """Coefficients (degree + 1, nv) of the polynomial in the time since `first`; `last` is T (s) later. Also for many
    segments: arrays (segments, nv) of waypoints, T (segments, 1).
    """
    q0, D = first.q, last.q - first.q
    if first.v is None or last.v is None:
        return np.stack([q0, D / T])
    v0, v1 = first.v, last.v
    if first.a is None or last.a is None:
        return np.stack([q0, v0, (3.0 * D - (2.0 * v0 + v1) * T) / T**2, (-2.0 * D + (v0 + v1) * T) / T**3])
    a0, a1 = first.a, last.a
    return np.stack([
        q0, v0, a0 / 2.0,
        (20.0 * D - (8.0 * v1 + 12.0 * v0) * T - (3.0 * a0 - a1) * T**2) / (2.0 * T**3),
        (-30.0 * D + (14.0 * v1 + 16.0 * v0) * T + (3.0 * a0 - 2.0 * a1) * T**2) / (2.0 * T**4),
        (12.0 * D - 6.0 * (v1 + v0) * T + (a1 - a0) * T**2) / (2.0 * T**5)])
