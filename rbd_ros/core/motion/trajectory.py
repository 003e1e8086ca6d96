"""Joint trajectories, interpolated as joint_trajectory_controller does.

Between two points the spline is as smooth as what both of them contain: positions only: linear; velocities too:
cubic Hermite; accelerations too: quintic Hermite. Before the first point the motion starts from where the robot is
meant to be; after the last one its position is held.
"""
from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import RbdError
from .polynomial import polynomial

Array = NDArray[np.float64]


class Reference(NamedTuple):
    """Desired motion of all joints in model order (rad, m and seconds); jerk and snap are None where not known."""

    q: Array
    v: Array
    a: Array
    jerk: Array | None = None
    snap: Array | None = None

    @staticmethod
    def rest(q: Array) -> Reference:
        """Standing still at q."""
        return Reference(q, *np.zeros((4, *q.shape)))


@dataclass(frozen=True)
class Waypoint:
    """A point of a trajectory: time from its start (s), position, and the derivatives where given."""

    time: float
    q: Array
    v: Array | None = None
    a: Array | None = None


class Piece(NamedTuple):
    """From begin to end (s) a motion is a polynomial (degree + 1, nv) in (t - begin)/scale."""

    begin: float
    end: float
    scale: float
    coefficients: Array

    @staticmethod
    def rest(begin: float, q: Array) -> Piece:
        """Standing still at q, for ever."""
        return Piece(begin, math.inf, 1.0, q.reshape(1, -1))


class Interpolation(Protocol):
    """A motion through waypoints, standing still before and after."""

    duration: float

    def sample(self, t: float) -> Reference:
        """The reference at time t (s) from the start."""
        ...


class Trajectory:
    """Piecewise polynomial through waypoints with strictly increasing times, the first at or after 0."""

    def __init__(self, waypoints: Sequence[Waypoint], start: Reference) -> None:
        points = with_start(waypoints, start)
        self._times = [float(point.time) for point in points]    # numbers of Python are found faster
        self.times: Array = np.array(self._times)
        self.points = points
        self._segments: dict[int, Array] = {}    # made when they are needed: control goes on while a long one arrives
        self.begin, self.end = Reference.rest(start.q), Reference.rest(points[-1].q)
        self.duration = float(self.times[-1])

    def sample(self, t: float) -> Reference:
        """The reference at time t (s) from the start; standing still before and after."""
        if t >= self.duration:
            return self.end
        if t < 0.0:
            return self.begin
        begin, _, scale, c = self.piece(t)
        return Reference(*polynomial(c, (t - begin) / scale, scale, 2))

    def piece(self, t: float) -> Piece:
        """The one at time t (s), which is not negative."""
        if t >= self.duration:
            return Piece.rest(self.duration, self.end.q)
        i = bisect_right(self._times, t) - 1
        c = self._segments.get(i)
        if c is None:
            first, last = self.points[i:i + 2]
            c = self._segments[i] = segment(first, last, last.time - first.time)
        return Piece(self._times[i], self._times[i + 1], 1.0, c)


def with_start(waypoints: Sequence[Waypoint], start: Reference) -> list[Waypoint]:
    """The waypoints, with the start as first one unless they have one at time 0; `RbdError` for times out of order."""
    check_times(waypoints)
    first = [Waypoint(0.0, start.q, start.v, start.a)] if waypoints[0].time > 0.0 else []
    return [*first, *waypoints]


def check_times(waypoints: Sequence[Waypoint]) -> None:
    """`RbdError` unless there are waypoints, in order."""
    times = [point.time for point in waypoints]
    if not times or times[0] < 0.0 or any(b <= a for a, b in pairwise(times)):
        raise RbdError(f"trajectory: times from start must be at least 0 and strictly increase, got {times}")


def segment(first: Waypoint, last: Waypoint, T: float | Array) -> Array:
    """Coefficients (degree + 1, nv) of the polynomial in the time since `first`; `last` is T (s) later. Or of many:
    arrays (segments, nv) of waypoints, T (segments, 1).
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
