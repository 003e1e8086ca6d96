"""Retiming of a trajectory, so that the efforts along its path stay within their limits.

The path is interpolated as by joint_trajectory_controller. The fastest timing is that of `time_optimal` with the
velocity limits, the effort limits, and each joint's largest velocity and acceleration in the trajectory. Its
acceleration jumps, which points cannot represent: the path parameter is therefore averaged over `WINDOW` s, and the
whole motion is slowed down if a limit is still exceeded between the points.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.friction import Friction
from ...core.dynamics.inverse import inverse_dynamics
from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...core.motion.optimal.limits import MotionLimits
from ...core.motion.time_optimal import TimedPath, time_optimal
from ...core.motion.trajectory import Waypoint, segment
from .sampled import interpolated

Array = NDArray[np.float64]
PERIOD = 0.01          # s between points
WINDOW = 4 * PERIOD    # s, averaging window of the path parameter
REST = 1e-3            # rad/s or m/s: largest velocity at both ends
AWAY = 2e-3            # rad or m: largest deviation from a path with corners
STEPS = 400            # parts of the path
SLOWEST = 20.0         # largest slowdown relative to the fastest timing
KEPT = 1.0 - 1e-4      # used share of a limit
ROUNDING = 1e-6        # share of a limit, for rounding
STILL = 1e-6           # rad/s, m/s and per s: smaller values count as no motion


class Timed(NamedTuple):
    """Points of a trajectory: times (N,), positions, velocities, accelerations (N, nv)."""

    time: Array
    q: Array
    v: Array
    a: Array


def exceeds(model: RobotModel, effort: Array, points: Timed, friction: Friction) -> bool:
    """Whether velocities or efforts (limits: `effort` (nv,)) exceed their limits, at the points or between them."""
    _, _, v, _ = interpolated(*points)
    fastest = np.where(model.velocity_limit > 0.0, model.velocity_limit, np.inf)
    return bool(np.any(np.abs(v) > fastest * (1.0 + ROUNDING))) or worst_share(model, effort, points,
                                                                              friction) > 1.0 + ROUNDING


def worst_share(model: RobotModel, effort: Array, points: Timed, friction: Friction) -> float:
    """Largest ratio of effort to its limit (nv,), with friction, at the points and between them."""
    _, q, v, a = interpolated(*points)
    tau = friction.add(v, inverse_dynamics(model, q, v, a))
    return float((np.abs(tau) / effort).max())


def retimed(model: RobotModel, effort: Array, points: Timed, friction: Friction, faster: bool) -> Timed:
    """The path timed within the effort limits (nv,), from rest to rest. faster: as fast as possible; else at least as
    long as before. Raises `RbdError` if impossible, or if the trajectory does not start and end at rest.
    """
    if len(points.time) < 2:
        raise RbdError("it has one point only")
    for where, v in (("start", points.v[0]), ("end", points.v[-1])):
        if np.abs(v).max() > REST:
            raise RbdError(f"it is not at rest at its {where}")
    _, _, v, a = interpolated(*points)
    fastest = np.where(model.velocity_limit > 0.0, model.velocity_limit, np.inf)
    most_v, most_a = np.abs(v).max(axis=0), np.abs(a).max(axis=0)
    limits = MotionLimits(velocity=np.minimum(fastest, np.where(most_v > STILL, most_v, np.inf)),
                          acceleration=np.where(most_a > STILL, most_a, np.inf), effort=effort)
    timed = time_optimal(model, _evenly(points), limits=limits, friction=friction, grid=STEPS)
    _check_path(timed, points)
    smooth = _smooth(timed)
    slower = 1.0 if faster else max((points.time[-1] - points.time[0]) / smooth.time[-1], 1.0)
    allowed = limits.checked(model)
    while True:
        candidate = _slowed(smooth, slower)
        _, _, v, a = interpolated(*candidate)
        over = max(worst_share(model, effort, candidate, friction), float((np.abs(v) / allowed.velocity).max()))
        if over <= KEPT:
            return candidate._replace(time=candidate.time + points.time[0])
        slower *= float(np.clip(np.sqrt(over), 1.003, 1.1))
        if slower > SLOWEST:
            raise RbdError("its path takes all of an effort limit even when moving slowly")


def _evenly(points: Timed) -> Array:
    """Positions on the path, about equally spaced."""
    t, q, _, _ = interpolated(*points)
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(q, axis=0), axis=1))])
    if way[-1] <= STILL:
        raise RbdError("it does not move")
    way, first = np.unique(way, return_index=True)    # without segments at rest
    return _positions(points, np.interp(np.linspace(0.0, way[-1], STEPS // 2 + 1), way, t[first]))


def _positions(points: Timed, t: Array) -> Array:
    i = np.clip(np.searchsorted(points.time, t, side="right") - 1, 0, len(points.time) - 2)
    first, last = (Waypoint(0.0, points.q[k], points.v[k], points.a[k]) for k in (i, i + 1))
    c = segment(first, last, (points.time[i + 1] - points.time[i])[:, None])
    tau = (t - points.time[i])[:, None]
    values = c[-1]
    for row in c[-2::-1]:
        values = values * tau + row
    return np.asarray(values)


def _check_path(timed: TimedPath, points: Timed) -> None:
    """Raise `RbdError` if the smooth path deviates from the given one, at corners and reversals."""
    _, original, _, _ = interpolated(*points)
    smooth = timed.along(np.linspace(0.0, 1.0, 4 * STEPS + 1))[0]
    for part in np.array_split(original, max(len(original) // 200, 1)):
        nearest = np.linalg.norm(part[:, None] - smooth, axis=2).argmin(axis=1)
        distance = np.minimum(*(_to_segment(part, smooth[k], smooth[k + 1]) for k in (
            np.maximum(nearest - 1, 0), np.minimum(nearest, len(smooth) - 2))))
        if distance.max() > AWAY:
            raise RbdError("its path has a corner")


def _to_segment(p: Array, a: Array, b: Array) -> Array:
    """Distances (N,) of points p from the segments a–b, (N, nv) each."""
    way = b - a
    share = np.clip(((p - a) * way).sum(axis=1) / np.maximum((way**2).sum(axis=1), 1e-300), 0.0, 1.0)
    distance: Array = np.linalg.norm(p - a - share[:, None] * way, axis=1)
    return distance


def _smooth(timed: TimedPath) -> Timed:
    """Points of the timing, averaged over `WINDOW`, which is added to the duration."""
    from scipy.interpolate import CubicHermiteSpline    # local import: saves 20 MB in nodes without planning

    T = timed.duration
    s = CubicHermiteSpline(timed.times, np.linspace(0.0, 1.0, len(timed.times)), timed.speeds)    # exact: parabolas
    integral, rate = s.antiderivative(), s.derivative()
    count = max(int(np.ceil((T + WINDOW) / PERIOD)), 4) + 1
    t = np.linspace(0.0, T + WINDOW, count)

    def spread(function: object, after: float, order: int, at: Array) -> Array:
        inside: Array = np.asarray(function(np.clip(at, 0.0, T)))    # type: ignore[operator]
        if order == 0:    # ∫s, which continues with 1 after the end
            return inside + np.maximum(at - T, 0.0)
        return np.where(at > T, after, np.where(at < 0.0, 0.0, inside))

    def mean(function: object, after: float, order: int) -> Array:
        return (spread(function, after, order, t) - spread(function, after, order, t - WINDOW)) / WINDOW

    way, speed, acceleration = mean(integral, 1.0, 0), mean(s, 1.0, 1), mean(rate, 0.0, 2)
    q, first, second = timed.along(way)
    v = first * speed[:, None]
    a = first * acceleration[:, None] + second * (speed**2)[:, None]
    v[0], v[-1] = 0.0, 0.0
    return Timed(t, q, v, a)


def _slowed(points: Timed, factor: float) -> Timed:
    """The motion slowed down by `factor`; its points are farther apart in time."""
    return Timed(points.time * factor, points.q, points.v / factor, points.a / factor**2)
