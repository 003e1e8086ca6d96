"""Validation of trajectories and streamed references against the velocity limits V of the robot description.

Joints whose limit is 0 or missing have one of 10 rad/s or 2 m/s. For the first point, due t after the start, from the
present reference or (as planners begin there) from the measured position: |Δq| ≤ V t + START. The part beyond V t is a
jump, of START at most; less than NOTHING is rounding. Between points and at them:
|Δq| ≤ FASTER V Δt + ROUNDING, |v| ≤ FASTER V, |a| ≤ FASTER V/EAGER.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import RbdError
from ..model.joints import is_length
from ..model.robot_model import RobotModel
from .trajectory import Waypoint, Waypoints, segment

Array = NDArray[np.float64]
START = 0.02       # rad or m: twice MoveIt's allowed_start_tolerance
FASTER = 2.0       # tolerance for rounding planners and conservative descriptions
EAGER = 0.01       # s: no motor brings a joint from rest to its fastest in less
ROUNDING = 1e-3    # rad or m
NOTHING = 1e-6     # rad or m: smaller steps count as rounding by planners and messages
SWING, SWING_A = 1.875, 0.1    # bounds of the slopes of the Hermite polynomials of position and acceleration
_WAY = np.linspace(0.0, 1.0, 33)[:, None, None]
UNLIMITED, UNLIMITED_LINEAR = 10.0, 2.0    # rad/s and m/s: the limit of joints whose description has none, or 0


def velocity_limits(model: RobotModel) -> Array:
    """Velocity limits (nv,) of the description, with defaults for missing ones."""
    default = np.array([UNLIMITED_LINEAR if is_length(joint.type) else UNLIMITED
                     for joint in model.joints for _ in range(joint.nv)])
    limit = model.velocity_limit
    return np.where((limit > 0.0) & np.isfinite(limit), limit, default)


def must_jump(model: RobotModel, first: Waypoint, starts: Sequence[Array]) -> bool:
    """Whether the first point cannot be reached in time from the first of `starts` (nv,), but is within `START` of one
    of them; raises `RbdError` if it is neither.
    """
    limit = velocity_limits(model)
    gaps = [np.abs(first.q - start) for start in starts]
    if (gaps[0] <= limit * first.time + NOTHING).all():
        return False
    if any((gap <= limit * first.time + START).all() for gap in gaps):
        return True
    i = int(np.argmax(gaps[0] - limit * first.time))
    raise RbdError(f"trajectory: joint '{model.joint_names[i]}' would have to move by {gaps[0][i]:.3g} to the first "
                   f"point, {first.time:.3g} s after the start; at most {limit[i] * first.time + START:.3g} (rad or m, "
                   f"velocity limit {limit[i]:.3g})")


def check_speeds(model: RobotModel, points: Waypoints) -> None:
    """Raise `RbdError`, naming joint, value and limit, if a trajectory is too fast at or between its points."""
    fastest = FASTER * velocity_limits(model)
    moved, time = np.abs(np.diff(points.q, axis=0)), np.diff(points.time)[:, None]
    over = moved - (fastest * time + ROUNDING)
    if over.size and not over.max() <= 0.0:
        i, j = np.unravel_index(int(np.argmax(over)), over.shape)
        raise RbdError(f"trajectory: joint '{model.joint_names[j]}' would have to move by {moved[i, j]:.3g} within "
                       f"{time[i, 0]:.3g} s, at most {FASTER:g} times its velocity limit, {fastest[j] / FASTER:.3g}")
    check_rates(model, "trajectory", points.v, points.a, fastest / FASTER)


def check_rates(model: RobotModel, what: str, v: Array, a: Array, limit: Array) -> None:
    """Raise `RbdError`, naming joint, value and limit, for velocities or accelerations (…, nv) that no motion within
    the velocity limits (nv,) has.
    """
    for name, values, most, unit in (("velocity", v, FASTER * limit, "s"), ("acceleration", a, FASTER / EAGER * limit,
                                                                            "s²")):
        over = np.abs(values) - most
        if over.size and not over.max() <= 0.0:
            *_, j = place = np.unravel_index(int(np.argmax(over)), over.shape)
            raise RbdError(f"{what}: {name} {values[place]:.3g} of joint '{model.joint_names[j]}' is more than "
                           f"{most[j]:.3g} (rad/{unit} or m/{unit}): {FASTER:g} times its velocity limit"
                           f"{f', reached within {EAGER:g} s' if unit == 's²' else ''}")


def above_limits(model: RobotModel, points: Waypoints) -> str:
    """Warning, empty if none, for an accepted motion through these points that a robot with enforced velocity limits
    (e.g. in Gazebo) cannot follow. Joints without a limit are ignored.
    """
    limit = np.where(model.velocity_limit > 0.0, model.velocity_limit, np.inf)
    fastest = (1.0 + ROUNDING) * limit
    if len(points) < 2 or not np.isfinite(limit).any():
        return ""
    speed = np.zeros_like(limit)
    has_v, has_a = points.has_v, points.has_v & points.has_a
    kind = np.where(has_a[1:] & has_a[:-1], 2, np.where(has_v[1:] & has_v[:-1], 1, 0))
    T, v, a = np.diff(points.time)[:, None], np.abs(points.v), np.abs(points.a)
    with np.errstate(over="ignore"):
        bound = (SWING * np.abs(np.diff(points.q, axis=0)) / T + v[1:] + v[:-1] + SWING_A * T * (a[1:] + a[:-1]))
    near = (bound > fastest).any(axis=1)
    for order in (0, 1, 2):
        for i in np.array_split(segments := np.flatnonzero(near & (kind == order)), len(segments) // 256 + 1):
            if not len(i):
                continue
            first, last = (Waypoint(0.0, points.q[j], points.v[j] if order > 0 else None,
                                    points.a[j] if order > 1 else None) for j in (i, i + 1))
            T = (points.time[i + 1] - points.time[i])[:, None]
            c = segment(first, last, T)
            rate = sum(k * c[k] * (_WAY * T) ** (k - 1) for k in range(1, len(c)))
            speed = np.maximum(speed, np.abs(rate).max(axis=(0, 1)))
    if (speed <= fastest).all():
        return ""
    j = int(np.argmax(speed / limit))
    return (f"trajectory: joint '{model.joint_names[j]}' reaches {speed[j]:.3g} (rad/s or m/s), above its velocity "
            f"limit {limit[j]:.3g}: a robot that keeps it, as in Gazebo, falls behind")

