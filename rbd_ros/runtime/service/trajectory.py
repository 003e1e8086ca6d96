"""Inverse dynamics of a whole joint trajectory, as one batch."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...core.dynamics.friction import Friction
from ...core.dynamics.inverse import inverse_dynamics
from ...core.errors import RbdError, unknown_name
from ...core.model.inertia import Array
from ...core.model.robot_model import RobotModel
from .naming import Coordinates


class TrajectoryPoint(NamedTuple):
    """One point: time (s) and arrays in the order of the trajectory's joints."""

    time: float
    position: Sequence[float]
    velocity: Sequence[float]
    acceleration: Sequence[float]


def trajectory_efforts(model: RobotModel, coordinates: Coordinates, names: Sequence[str],
                       points: Sequence[TrajectoryPoint], friction: Friction | None = None) -> Array:
    """Efforts (N, number of names) of N points, in the order of `names`: all joints of the model, in any order.

    Mimic joints may be included; their effort is 0, because the effort of the source joint moves both. Raises
    `RbdError`, naming the point and the joint.
    """
    if coordinates.floating:
        raise RbdError("a joint trajectory says nothing about the floating base: use service inverse_dynamics per "
                       "point")
    order = _order(coordinates, names)
    if not points:
        raise RbdError("trajectory.points is empty, expected at least one point")
    last = -np.inf
    for i, point in enumerate(points):
        if not point.time > last:
            raise RbdError(f"point {i}: time_from_start is {point.time:g} s, expected later than that of point {i - 1} "
                           f"({last:g} s)")
        last = point.time
    q, v, a = (_gather(kind, names, [point[k] for point in points])[:, order]
               for k, kind in enumerate(("positions", "velocities", "accelerations"), start=1))
    try:
        tau = inverse_dynamics(model, q, v, a, friction=friction)
    except RbdError as error:    # overflow
        raise RbdError(f"point {_first_refused(model, q, v, a, friction)}: {error}") from None
    out = np.zeros((len(points), len(names)))
    out[:, order] = tau
    return out


def _first_refused(model: RobotModel, q: Array, v: Array, a: Array, friction: Friction | None) -> int:
    for i in range(len(q)):
        try:
            inverse_dynamics(model, q[i], v[i], a[i], friction=friction)
        except RbdError:
            return i
    return 0


def _order(coordinates: Coordinates, names: Sequence[str]) -> list[int]:
    for i, name in enumerate(names):
        if name not in coordinates.joints and name not in coordinates.mimics:
            raise unknown_name("joint in `trajectory.joint_names`:", name, coordinates.joints)
        if name in names[:i]:
            raise RbdError(f"trajectory.joint_names: joint '{name}' is listed twice, expected every joint once")
    missing = [name for name in coordinates.joints if name not in names]
    if missing:
        raise RbdError(f"trajectory.joint_names: joint '{missing[0]}' is missing, expected every joint once: "
                       f"{', '.join(coordinates.joints)}. Joints that never move belong in parameter 'locked.joints'")
    return [list(names).index(name) for name in coordinates.joints]


def _gather(kind: str, names: Sequence[str], rows: Sequence[ArrayLike]) -> Array:
    for i, row in enumerate(rows):
        if np.size(row) != len(names):
            raise RbdError(f"point {i} has {np.size(row)} {kind}, expected {len(names)}: one per joint")
    out = np.array(rows, dtype=np.float64)
    finite = np.isfinite(out)
    if not finite.all():
        i, k = np.argwhere(~finite)[0]
        raise RbdError(f"point {i}: {kind} of joint '{names[k]}' is {out[i, k]}, expected a finite number")
    return out
