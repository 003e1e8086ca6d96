"""Validation of trajectories against the position limits of the robot description.

A motion that starts beyond a limit may return, but not move farther out. Joints with equal limits (0 and 0 if missing
in the description) count as unlimited.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..dynamics.constrained.mechanism import places
from ..errors import RbdError
from ..model.robot_model import RobotModel
from .trajectory import Trajectory, Waypoint, segment

Array = NDArray[np.float64]
SLACK = 1e-3                  # rad or m: tolerance for rounded limits and points
ROUNDING = 1e-9               # rad or m: rounding of this program
SWING_V, SWING_A = 0.2, 0.02  # bounds of the Hermite polynomials of velocity and acceleration, cubic and quintic
AT_ONCE = 256                 # segments evaluated at once
_WAY = np.linspace(0.0, 1.0, 129)[1:-1, None, None]    # error of an extremum: 5e-5


def limits(model: RobotModel) -> tuple[Array, Array]:
    """Lower and upper limits (nq,), infinite for unlimited joints."""
    limited = model.position_lower != model.position_upper
    return np.where(limited, model.position_lower, -np.inf), np.where(limited, model.position_upper, np.inf)


def coordinate_limits(model: RobotModel) -> tuple[Array, Array]:
    """Lower and upper limits (nv,) by velocity coordinate; quaternions have none."""
    index = places(model)
    low, high = limits(model)
    return np.where(index >= 0, low[index], -np.inf), np.where(index >= 0, high[index], np.inf)


def check_points(model: RobotModel, q: Array, start: Array | None) -> None:
    """Raise `RbdError`, naming joint, value and limit, unless waypoints q (N, nv) are within the limits, or no farther
    out than `start` (nv,).

    The last waypoint has no slack beyond the start; otherwise many short trajectories could leave any limit.
    """
    _check(model, q, *_allowed(model, start, SLACK), "")
    _check(model, q[-1:], *_allowed(model, start, ROUNDING), "")


def check_between(model: RobotModel, trajectory: Trajectory) -> None:
    """`check_points` between the points, where polynomials of higher degree can overshoot."""
    points, start = trajectory.points, trajectory.begin.q
    q, v, a = points.q, points.v, points.a
    curved, fifth = (has[1:] & has[:-1] for has in (points.has_v, points.has_a))
    if not curved.any():
        return
    T = np.diff(trajectory.times)[:, None]
    with np.errstate(over="ignore", invalid="ignore"):    # non-finite values are rejected
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
    """The limits with their slack, or the start with `slack` if that is farther out."""
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
