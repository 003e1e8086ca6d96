"""C⁴ trajectories, four times continuously differentiable, as torque derivatives require.

The polynomial of degree 9 between two waypoints has the position and four derivatives of both. Where waypoints give
positions only, the missing derivatives are those of the interpolating spline of degree 9; where all of them give
velocities, those of the spline of degree 7 through the velocities, and with accelerations too, those of the spline of
degree 5 through these. The motion starts with the derivatives of the present reference (0 where unknown) and ends with
those of the last waypoint (0 where not given, so it ends at rest without a jump in any of them).

Such a spline overshoots if long and short segments alternate. A spline that leaves the joint limits, or is several
times faster than its waypoints require, is rejected.
"""
from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import RbdError
from ..model.robot_model import RobotModel
from .polynomial import polynomial
from .position_limits import AT_ONCE, limits
from .trajectory import Piece, Reference, Waypoint, Waypoints, with_start

Array = NDArray[np.float64]
ORDER = 4           # number of continuous derivatives
DEGREE = 2 * ORDER + 1
FASTER = 4.0        # largest ratio of speed to the mean speed of the fastest segment; from rest to rest it is 2.5
# derivative k of the power i at s = 0 and at s = 1, one row each: the conditions at both ends of a segment
_FALLING = np.array([[math.perm(i, k) for i in range(DEGREE + 1)] for k in range(ORDER + 1)], dtype=np.float64)
_CONDITIONS = np.concatenate([_FALLING * np.eye(ORDER + 1, DEGREE + 1), _FALLING])
# samples of a segment for checks of its speed, and of its position
_WAY, _FINE_WAY = (np.linspace(0.0, 1.0, count)[:, None] ** np.arange(DEGREE + 1) for count in (17, 65))
_SOLVE = np.round(np.linalg.inv(_CONDITIONS) * 24.0) / 24.0    # exact: the entries are multiples of 1/24


def load() -> None:
    """Import SciPy's interpolation, needed by motions through several waypoints, before a control loop begins: it takes
    0.3 s and 20 MB, which programs without such motions save.
    """
    import scipy.interpolate    # noqa: F401


class SmoothTrajectory:
    """C⁴ interpolation of waypoints with strictly increasing times, the first at or after 0.

    With a model of joints with one coordinate each, overshooting motions raise `RbdError`.
    """

    def __init__(self, waypoints: Waypoints | Sequence[Waypoint], start: Reference,
                 model: RobotModel | None = None) -> None:
        waypoints = Waypoints.of(waypoints)
        points = with_start(waypoints, start)
        self.times: Array = points.time
        self._times: list[float] = self.times.tolist()    # faster search in Python numbers
        self.duration = self._times[-1]
        self.begin, self.end = Reference.rest(start.q), Reference.rest(points.q[-1])
        first = np.zeros((ORDER + 1, len(start.q)))
        state = (start.q, start.v, start.a, start.jerk, start.snap) if waypoints.time[0] > 0.0 else (
            points.q[0], points.v[0], points.a[0])
        for row, value in zip(first, state, strict=False):
            row[:] = 0.0 if value is None else value
        distance = np.diff(self.times).min(initial=np.inf)
        try:
            if distance < 1e-9 * self.duration:    # too short for the precision of four derivatives
                raise ValueError
            self._coefficients = _segments(self.times, spline_derivatives(self.times, points, first))
        except (ValueError, np.linalg.LinAlgError):
            raise RbdError("trajectory: waypoints are too close in time for smooth interpolation: the smallest "
                           f"distance is {distance:.3g} s of {self.duration:.3g} s") from None
        if model is not None and len(points) > 1:
            self._check(model, points, first)

    def _check(self, model: RobotModel, points: Waypoints, first: Array) -> None:
        """Raise `RbdError` unless the motion stays within the limits, or the waypoints, and near the required speed."""
        points_q, T = points.q, np.diff(self.times)[:, None]
        start_speed = np.maximum(np.abs(first[1]) + T[0] * (np.abs(first[2]) + T[0] * (np.abs(first[3]) + T[0] * np.abs(
            first[4]))), np.abs(points.v).max(axis=0))
        speed = FASTER * (np.abs(np.diff(points_q, axis=0) / T).max(axis=0) + start_speed)
        speed = np.where(np.isfinite(model.velocity_limit), np.maximum(speed, model.velocity_limit), speed)
        lower, upper = limits(model)
        rates = self._coefficients[:, 1:] * np.arange(1, DEGREE + 1)[:, None] / T[:, None]
        for quantity, powers, pieces, low, high in (
                ("position", _FINE_WAY, self._coefficients, np.minimum(lower, points_q.min(axis=0)),
                 np.maximum(upper, points_q.max(axis=0))),
                ("velocity", _WAY[:, :-1], rates, -speed, speed)):
            largest = []    # by blocks of segments: ten thousand points at once would need hundreds of megabytes
            for begin in range(0, len(pieces), AT_ONCE):
                value = powers @ pieces[begin:begin + AT_ONCE]
                over = np.maximum(low - value, value - high)
                i, k, j = np.unravel_index(int(np.argmax(over)), over.shape)
                largest.append((over[i, k, j], begin + i, j, value[i, k, j]))
            over, i, j, value = largest[int(np.argmax([excess[0] for excess in largest]))]
            if not over <= 1e-6:
                raise RbdError(f"trajectory: between {self.times[i]:g} s and {self.times[i + 1]:g} s the smooth "
                               f"interpolation overshoots, to {quantity} {value:.3g} of joint "
                               f"'{model.joint_names[j]}': give velocities, or points at more even times")

    def sample(self, t: float) -> Reference:
        """The reference at time t (s) from the start, with jerk and snap; at rest before and after."""
        if t >= self.duration:
            return self.end
        if t < 0.0:
            return self.begin
        begin, _, T, c = self.piece(t)
        return Reference(*polynomial(c, (t - begin) / T, T, ORDER))

    def piece(self, t: float) -> Piece:
        """The polynomial piece at time t ≥ 0 (s)."""
        if t >= self.duration:
            return Piece.rest(self.duration, self.end.q)
        i = bisect_right(self._times, t) - 1
        begin, end = self._times[i:i + 2]
        return Piece(begin, end, end - begin, self._coefficients[i])


def spline_derivatives(times: Array, points: Waypoints, first: Array) -> Array:
    """Position and derivatives at every waypoint, (points, order + 1, nv), order 2 or 4; `first`: at the start
    (order + 1, nv). Those that not all points give are those of the spline of degree 2 order + 1 through the positions,
    or of 2 or 4 less through the highest that all give.
    """
    known, order = 0 if not points.has_v[1:].all() else 1 if not points.has_a[1:].all() else 2, len(first) - 1
    values = np.zeros((len(points), order + 1, first.shape[1]))
    for k, rows in enumerate((points.q, points.v, points.a)):
        values[0 if k <= known else -1:, k] = rows[0 if k <= known else -1:]
    values[0] = first
    if len(points) > 2 and known < order:
        from scipy.interpolate import make_interp_spline    # see `load`

        ends = range(known + 1, order + 1)
        spline = make_interp_spline(times, values[:, known], k=2 * (order - known) + 1, bc_type=(
            [(k - known, values[0, k]) for k in ends], [(k - known, values[-1, k]) for k in ends]))
        for k in ends:
            values[1:-1, k] = spline(times[1:-1], k - known)
    return values


def _segments(times: Array, values: Array) -> Array:
    """Coefficients (segments, 10, nv) of powers of the time since the segment's start over its length."""
    T = np.diff(times)[:, None, None] ** np.arange(ORDER + 1)[:, None]
    ends = np.concatenate([values[:-1] * T, values[1:] * T], axis=1)
    coefficients: Array = _SOLVE @ ends
    return coefficients
