"""Validation of trajectories against the position limits of the robot description.

What begins beyond a limit may come back, but not go farther out. Joints whose limits are equal (0 and 0, where a
description leaves them out) count as without limits.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import RbdError
from ..model.robot_model import RobotModel
from .trajectory import Trajectory, Waypoint, segment

Array = NDArray[np.float64]
SLACK = 1e-3                  # rad or m: limits and points are rounded
ROUNDING = 1e-9               # of this program
SWING_V, SWING_A = 0.2, 0.02  # bounds of the Hermite polynomials of velocity and acceleration, cubic and quintic
AT_ONCE = 256                 # segments
_WAY = np.linspace(0.0, 1.0, 129)[1:-1, None, None]    # misses 5e-5 of a swing


def limits(model: RobotModel) -> tuple[Array, Array]:
    """Lower and upper limits (nv,), infinite where there are none."""
    given = model.position_lower != model.position_upper
    return np.where(given, model.position_lower, -np.inf), np.where(given, model.position_upper, np.inf)


def check_points(model: RobotModel, q: Array, start: Array | None) -> None:
    """`RbdError` that names joint, value and limit unless waypoints q (N, nv) are within the limits, or `start` (nv,).

    The last one may not be farther out than the start at all, else many short trajectories would lead out of any limit.
    """
    _check(model, q, *_allowed(model, start, SLACK), "")
    _check(model, q[-1:], *_allowed(model, start, ROUNDING), "")


def check_between(model: RobotModel, trajectory: Trajectory) -> None:
    """As `check_points` between the points, where polynomials of higher degree can overshoot."""
    points, start = trajectory.points, trajectory.begin.q
    q, v, a = points.q, points.v, points.a
    curved, fifth = (given[1:] & given[:-1] for given in (points.has_v, points.has_a))
    if not curved.any():
        return
    T = np.diff(trajectory.times)[:, None]
    with np.errstate(over="ignore", invalid="ignore"):    # what is not finite is refused
        swing = T * (SWING_V * (abs(v[1:]) + abs(v[:-1])) + SWING_A * T * (abs(a[1:]) + abs(a[:-1])))
        low, high = _allowed(model, start, SLACK)
        far = ((np.maximum(q[1:], q[:-1]) + swing > high) | (np.minimum(q[1:], q[:-1]) - swing < low)).any(axis=1)
        for quintic in (True, False):
            which = np.flatnonzero(far & curved & (fifth == quintic))
            for i in np.split(which, range(AT_ONCE, len(which), AT_ONCE)):
                first, last = (Waypoint(0.0, q[j], v[j], a[j] if quintic else None) for j in (i, i + 1))
                way, s = np.zeros(1), _WAY * T[i]
                for coefficient in segment(first, last, T[i])[::-1]:
                    way = way * s + coefficient
                _check(model, way.reshape(-1, len(start)), low, high, "between its points ")


def _allowed(model: RobotModel, start: Array | None, slack: float) -> tuple[Array, Array]:
    """The limits with all their slack, or `slack` beyond the start if that is farther out."""
    low, high = limits(model)
    low, high = low - SLACK, high + SLACK
    return (low, high) if start is None else (np.minimum(low, start - slack), np.maximum(high, start + slack))


def _check(model: RobotModel, q: Array, low: Array, high: Array, where: str) -> None:
    over = np.maximum(low - q, q - high)
    if len(q) and not over.max() <= 0.0:
        i, j = np.unravel_index(int(np.argmax(over)), over.shape)
        limit = (model.position_upper if q[i, j] > high[j] else model.position_lower)[j]
        raise RbdError(f"trajectory: {where}joint '{model.joint_names[j]}' at {q[i, j]:.4g} is beyond its limit "
                       f"{limit:.4g} (rad or m)")
