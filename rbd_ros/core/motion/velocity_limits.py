"""Trajectories against the velocity limits of the robot description, V.

Joints whose limit is 0 or missing have one of 10 rad/s or 2 m/s. The way to the first point, due t
after the start, from the present reference or, as planners begin there, from where the robot is: |Δq| ≤ V t + START.
What of that is more than V t is a jump, of START at most. Between points and at them: |Δq| ≤ FASTER V Δt + ROUNDING,
|v| ≤ FASTER V.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import RbdError
from ..model.joints import is_length
from ..model.robot_model import RobotModel
from .trajectory import Waypoint

Array = NDArray[np.float64]
START = 0.02       # rad or m: twice what MoveIt lets a trajectory begin beside the robot (allowed_start_tolerance)
FASTER = 2.0       # planners round, and descriptions are careful
ROUNDING = 1e-3    # rad or m
UNLIMITED, UNLIMITED_LINEAR = 10.0, 2.0    # rad/s and m/s: the limit of joints whose description has none, or 0


def velocity_limits(model: RobotModel) -> Array:
    """Velocity limits (nv,) of the description, and what counts where it has none."""
    none = np.array([UNLIMITED_LINEAR if is_length(joint.type) else UNLIMITED
                     for joint in model.joints for _ in range(joint.nv)])
    limit = model.velocity_limit
    return np.where((limit > 0.0) & np.isfinite(limit), limit, none)


def must_jump(model: RobotModel, first: Waypoint, starts: Sequence[Array]) -> bool:
    """Whether the first point cannot be reached in time from the first one of `starts` (nv,), but is within `START` of
    one of them; `RbdError` if it is not.
    """
    limit = velocity_limits(model)
    gaps = [np.abs(first.q - start) for start in starts]
    if (gaps[0] <= limit * first.time).all():
        return False
    if any((gap <= limit * first.time + START).all() for gap in gaps):
        return True
    i = int(np.argmax(gaps[0] - limit * first.time))
    raise RbdError(f"trajectory: joint '{model.joint_names[i]}' would have to move by {gaps[0][i]:.3g} to the first "
                   f"point, {first.time:.3g} s after the start; at most {limit[i] * first.time + START:.3g} (rad or m, "
                   f"velocity limit {limit[i]:.3g})")


def check_speeds(model: RobotModel, waypoints: Sequence[Waypoint]) -> None:
    """`RbdError` that names joint, value and limit of a trajectory that is too fast between its points or at them."""
    most = FASTER * velocity_limits(model)
    q, t = np.array([point.q for point in waypoints]), np.array([point.time for point in waypoints])
    moved, time = np.abs(np.diff(q, axis=0)), np.diff(t)[:, None]
    over = moved - (most * time + ROUNDING)
    if over.size and not over.max() <= 0.0:
        i, j = np.unravel_index(int(np.argmax(over)), over.shape)
        raise RbdError(f"trajectory: joint '{model.joint_names[j]}' would have to move by {moved[i, j]:.3g} within "
                       f"{time[i, 0]:.3g} s, at most {FASTER:g} times its velocity limit, {most[j] / FASTER:.3g}")
    given = [point.v for point in waypoints if point.v is not None]
    if given and not (np.abs(v := np.array(given)) <= most).all():
        i, j = np.unravel_index(int(np.argmax(np.abs(v) - most)), v.shape)
        raise RbdError(f"trajectory: velocity {v[i, j]:.3g} of joint '{model.joint_names[j]}' is more than {FASTER:g} "
                       f"times its limit, {most[j] / FASTER:.3g} (rad/s or m/s)")
