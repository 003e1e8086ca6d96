"""Trajectories against the position limits of the robot description.

What begins beyond a limit may come back, but not go farther out. Joints whose limits are equal (0 and 0, where a
description leaves them out) count as without limits.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import RbdError
from ..model.robot_model import RobotModel
from .trajectory import Trajectory, Waypoint

Array = NDArray[np.float64]
SLACK = 1e-3                  # rad or m: limits and points are rounded
SWING_V, SWING_A = 0.2, 0.02  # bounds of the Hermite polynomials of velocity and acceleration, cubic and quintic
_WAY = np.linspace(0.0, 1.0, 17)


def check_points(model: RobotModel, waypoints: Sequence[Waypoint], start: Array | None) -> None:
    """`RbdError` that names joint, value and limit unless the waypoints are within the limits, or `start` (nv,)."""
    _check(model, np.array([point.q for point in waypoints]), start, "")


def check_between(model: RobotModel, trajectory: Trajectory) -> None:
    """The same between the points, where polynomials of higher degree swing out."""
    points, start = trajectory.points, trajectory.begin.q
    if all(point.v is None for point in points):
        return
    zero = np.zeros_like(start)
    q, v, a = (np.array([zero if x is None else x for x in rows]) for rows in zip(
        *((point.q, point.v, point.a) for point in points), strict=True))
    T = np.diff(trajectory.times)[:, None]
    v, a = np.abs(v), np.abs(a)
    swing = T * (SWING_V * (v[1:] + v[:-1]) + SWING_A * T * (a[1:] + a[:-1]))
    low, high = _limits(model, start)
    far = (np.maximum(q[1:], q[:-1]) + swing > high) | (np.minimum(q[1:], q[:-1]) - swing < low)
    for i in np.flatnonzero(far.any(axis=1)):
        s = _WAY * T[i]
        _check(model, np.array([trajectory.sample(t).q for t in trajectory.times[i] + s[:-1]]), start,
               "between its points ")


def _limits(model: RobotModel, start: Array | None) -> tuple[Array, Array]:
    given = model.position_lower != model.position_upper
    low, high = np.where(given, model.position_lower, -np.inf), np.where(given, model.position_upper, np.inf)
    return (low, high) if start is None else (np.minimum(low, start), np.maximum(high, start))


def _check(model: RobotModel, q: Array, start: Array | None, where: str) -> None:
    low, high = _limits(model, start)
    over = np.maximum(low - q, q - high)
    if over.max() > SLACK:
        i, j = np.unravel_index(int(np.argmax(over)), over.shape)
        limit = (model.position_upper if q[i, j] > high[j] else model.position_lower)[j]
        raise RbdError(f"trajectory: {where}joint '{model.joint_names[j]}' at {q[i, j]:.4g} is beyond its limit "
                       f"{limit:.4g} (rad or m)")
