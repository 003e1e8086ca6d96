"""Trajectories of a pose through points, twice continuously differentiable, at rest or in motion where they begin.

Between two points the origin is a quintic polynomial, and the axes are `R_i exp(x)` with x one from 0 to
log(R_iᵀ R_{i+1}): `ω = J(x) ẋ`, `ω̇ = J ẍ + J̇ ẋ` in axes of the pose (`lie/so3.py`). Both have the twists and rates of
the two points. Where points do not say them, they are those of the spline through origins and summed rotation vectors
(`spline_derivatives`), which is exact for rotations about one axis, and close for others.
"""
from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled.entry import quick_entry
from ..compiled.kernel import routine
from ..errors import RbdError
from ..lie import so3
from ..lie.spatial import add, compose, rotate
from ..model.block import matrix, put, put_matrix, vector
from .polynomial import polynomial_rows
from .pose_filter import A, B, P, R, V, W, lead, timed
from .smooth_trajectory import spline_derivatives
from .trajectory import Waypoint, Waypoints, segment

Array = NDArray[np.float64]
LIMITS = (("m/s", "target.speed"), ("rad/s", "target.angular_speed"), ("m/s²", "target.acceleration"),
          ("rad/s²", "target.angular_acceleration"))
FASTER = 1.01     # of the largest speeds: rounding, and what is between the samples
TURN = 3.0        # rad, largest one between two points
_WAY = np.linspace(0.0, 1.0, 17)


class PosePoints(NamedTuple):
    """Points of a trajectory: times from its begin (N,), s; axes (N, 3, 3), origins (N, 3); twists and their rates (N,
    6), angular first, in axes of the root; None where they are not given.
    """

    time: Array
    axes: Array
    origin: Array
    twist: Array | None = None
    rate: Array | None = None

    def seen_from(self, T: Array) -> PosePoints:
        """The points, given in a frame whose pose is T (4, 4)."""
        Q = T[:3, :3]
        both = [None if x is None else np.concatenate([x[:, :3] @ Q.T, x[:, 3:] @ Q.T], axis=1)
                for x in (self.twist, self.rate)]
        return PosePoints(self.time, Q @ self.axes, self.origin @ Q.T + T[:3, 3], *both)

    def after(self, count: int, delay: float) -> PosePoints:
        """Without the first ones, and later by a delay (s)."""
        rest = PosePoints(*(None if x is None else x[count:] for x in self))    # type: ignore[arg-type]
        return rest._replace(time=rest.time + delay)


@routine
def piece_at(c, axes, t, pace, slope, rows, state, goal, target):
    """State, goal and target, as of `pose_filter.filtered`, at t (s) of a piece: coefficients (6, 6) of x and origin
    from these axes (9,). rows (3, 6): workspace.
    """
    polynomial_rows(c, t, 1.0, rows)
    x, x_dot, x_ddot = vector(rows[0], 0), vector(rows[1], 0), vector(rows[2], 0)
    J = so3.right_jacobian(x)
    put_matrix(state, R, compose(matrix(axes, 0), so3.exp_map(x)))
    put(state, P, vector(rows[0], 3))
    put(state, W, rotate(J, x_dot))
    put(state, V, vector(rows[1], 3))
    put(state, B, add(rotate(J, x_ddot), rotate(so3.right_jacobian_dot(x, x_dot), x_dot)))
    put(state, A, vector(rows[2], 3))
    lead(state, vector(state, W), vector(state, V), goal)
    return timed(state, pace, slope, target)


@quick_entry("boolean(float64[:, ::1], float64[::1], float64, float64, float64, float64[:, ::1], float64[::1], "
             "float64[::1], float64[::1])")
def pose_piece_entry(c, axes, t, pace, slope, rows, state, goal, target):
    """`piece_at` of one time."""
    return piece_at(c, axes, t, pace, slope, rows, state, goal, target)


class PoseTrajectory:
    """The motion through points at times after 0 from a state (24,) of a `PoseFilter`. Raises `RbdError` where it is
    faster than speed, m/s, or angular_speed, rad/s, or accelerates more than acceleration, m/s², or
    angular_acceleration, rad/s². first: number of the first point, for messages.
    """

    def __init__(self, points: PosePoints, state: Array, speed: float, angular_speed: float, first: int = 0,
                 acceleration: float = np.inf, angular_acceleration: float = np.inf) -> None:
        self._most, self._first = (speed, angular_speed, acceleration, angular_acceleration), first
        self._times = np.append(0.0, points.time)
        self._axes = np.concatenate([state[None, R:P].reshape(1, 3, 3), points.axes])
        self.duration, self._rows = float(self._times[-1]), np.empty((3, 6))
        self._turns = self._turned(slice(None))
        y = np.concatenate([np.zeros((len(self._times), 3)), np.concatenate([state[None, P:W], points.origin])], axis=1)
        y[1:, :3] = np.cumsum(self._turns, axis=0)
        v, a = np.zeros((2, *y.shape))
        for rows, rates in ((v, points.twist), (a, points.rate)):
            if rates is not None:
                rows[1:] = rates
                rows[1:, :3] = np.einsum("nji,nj->ni", points.axes, rates[:, :3])    # in axes of the pose
        known = [np.full(len(y), each is not None) for each in (points.twist, points.rate)]
        try:
            if np.diff(self._times).min() < 1e-9 * self.duration:    # too short for the precision of derivatives
                raise ValueError
            self._values = spline_derivatives(self._times, Waypoints(self._times, y, v, a, *known), np.stack(
                [y[0], state[W:B], state[B:]]))
        except (ValueError, np.linalg.LinAlgError):
            raise RbdError("trajectory: points are too close in time") from None
        self._pieces = self._made(slice(None))
        self._knots: list[float] = self._times.tolist()    # faster search in Python numbers

    def begin(self, state: Array, t: float) -> None:
        """Begin from another state, at t (s), before the first point."""
        if t >= self._times[1]:
            raise RbdError("trajectory: its first point has passed while it was checked")
        self._times[0], self._axes[0], self._values[0] = t, state[R:P].reshape(3, 3), [
            np.append(np.zeros(3), state[P:W]), state[W:B], state[B:]]
        self._knots[0] = t
        self._turns[:1] = self._turned(slice(1))
        self._pieces[:1] = self._made(slice(1))

    def _turned(self, which: slice) -> Array:
        """Rotation vectors (pieces, 3) of these pieces."""
        turns = so3.log(np.swapaxes(self._axes[:-1][which], 1, 2) @ self._axes[1:][which])
        angles = np.linalg.norm(turns, axis=1)
        i = int(np.argmax(angles))
        if not angles[i] <= TURN:
            raise RbdError(f"trajectory: the pose turns by {angles[i]:.3g} rad until point {self._first + i}, at most "
                           f"{TURN:g} between two: give points between")
        return turns

    def _made(self, which: slice) -> Array:
        """Coefficients (pieces, 6, 6) of these pieces, which are slow enough."""
        turns, T = self._turns[which], np.diff(self._times)[which][:, None]
        first, last = self._values[:-1][which].copy(), self._values[1:][which].copy()
        back = so3.dexp_inv(turns)
        first[:, 0, :3], last[:, 0, :3] = 0.0, turns
        last[:, 1, :3] = np.einsum("nij,nj->ni", back, last[:, 1, :3])
        slope = np.einsum("nij,nj->ni", so3.dexp_dot(turns, last[:, 1, :3]), last[:, 1, :3])
        last[:, 2, :3] = np.einsum("nij,nj->ni", back, last[:, 2, :3] - slope)
        c = segment(Waypoint(0.0, *np.moveaxis(first, 1, 0)), Waypoint(0.0, *np.moveaxis(last, 1, 0)), T)
        self._check(c, T)
        return np.ascontiguousarray(np.swapaxes(c, 0, 1))

    def _check(self, c: Array, T: Array) -> None:
        x, rate, bend = np.zeros((3, len(_WAY), *c.shape[1:]))
        s = _WAY[:, None, None] * T
        for k in range(5, -1, -1):
            bend = bend * s + 2.0 * rate
            rate = rate * s + x
            x = x * s + c[k]
        x, turning, swinging = (y[..., :3] for y in (x, rate, bend))
        if np.isfinite(x).all():
            J, J_dot = so3.dexp(x), so3.dexp_dot(x, turning)
            swinging = (J @ swinging[..., None] + J_dot @ turning[..., None])[..., 0]
            turning = (J @ turning[..., None])[..., 0]
        for rates, most, (unit, name) in zip((rate[..., 3:], turning, bend[..., 3:], swinging), self._most, LIMITS,
                                             strict=True):
            fastest = np.linalg.norm(rates, axis=-1).max(axis=0)
            i = int(np.argmax(fastest))
            if not fastest[i] <= FASTER * most:
                raise RbdError(f"trajectory: until point {self._first + i}, {self._times[i + 1]:.3g} s after its "
                               f"start, it moves at {fastest[i]:.3g} {unit}, at most {most:g} ('{name}')")

    def sample(self, t: float, pace: float, slope: float, state: Array, goal: Array, target: Array) -> None:
        """State, goal and target, as of `pose_filter.filtered`, at time t (s)."""
        t = min(t, self.duration)
        begin, _, c, axes = self.piece(t)
        pose_piece_entry.call(c, axes, t - begin, pace, slope, self._rows, state, goal, target)

    def piece(self, t: float) -> tuple[float, float, Array, Array]:
        """The piece at time t (s): where it begins and ends, s; coefficients (6, 6) and axes (9,), as of `piece_at`."""
        i = min(bisect_right(self._knots, t), len(self._pieces)) - 1
        return self._knots[i], self._knots[i + 1], self._pieces[i], self._axes[i].reshape(-1)
