"""Validation of single arguments of `optimize_motion`: ends, objective, duration, waypoints."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import RbdError, shown, unknown_name
from ...model.robot_model import RobotModel
from ...model.scalars import positive
from ..splines import Basis
from ..trajectory import Reference
from .task import STATE

Array = NDArray[np.float64]
WEIGHED = ("effort", "power", "effort_rate", "velocity", "acceleration", "jerk", "jerk_share", "duration")
NO_JOINTS = ("duration", "jerk_share")    # objectives with a scalar weight
MIN_DURATION, MAX_DURATION = 1e-3, 1e3    # s, default bounds of a free duration
SHORTEST, LONGEST = 1e-6, 1e6             # s, bounds of durations in arguments


def end_state(model: RobotModel, value: Any, name: str, derivatives: int, size: int | None = None) -> Array:
    """Rows q, v, a, … (derivatives, size) of an end from positions (at rest) or a `Reference`. size: nv by default."""
    parts = list(value) if isinstance(value, Reference) else [value]
    size = size or model.nv
    rows = np.zeros((derivatives, size))
    for k, part in enumerate(parts[:derivatives]):
        if part is None:
            continue
        try:
            array = np.asarray(part, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise RbdError(f"{name}: expected positions ({size},) or a Reference, got {shown(value)}") from None
        if array.shape != (size,) or not np.isfinite(array).all():
            raise RbdError(f"{name}: {STATE[k]} must be {size} finite numbers, joints "
                           f"{', '.join(model.joint_names[:12])}; got {shown(part)}")
        rows[k] = array
    return rows


def checked_objective(model: RobotModel, objective: Any) -> dict[str, Array]:
    """Weights (nv,) by name from a name, or from names to weights (a number or (nv,))."""
    weights = {objective: 1.0} if isinstance(objective, str) else objective
    if not isinstance(weights, Mapping) or not weights:
        raise RbdError(f"objective: expected one of {', '.join(WEIGHED)}, or a dictionary of their weights, "
                       f"got {shown(objective)}")
    checked = {}
    for name, weight in weights.items():
        if name not in WEIGHED:
            raise unknown_name("objective", name, WEIGHED)
        try:
            array = np.array(np.broadcast_to(np.asarray(weight, dtype=np.float64), (model.nv,)))
        except (TypeError, ValueError, OverflowError):
            array = np.full(model.nv, np.nan)
        if not (np.isfinite(array).all() and array.min() >= 0.0):
            raise RbdError(f"objective: the weight of {name} must be one number or {model.nv}, finite and not "
                           f"negative, got {shown(weight)}")
        if name in NO_JOINTS and np.ptp(array):
            raise RbdError(f"objective: the weight of {name} must be one number, not one per joint, got "
                           f"{shown(weight)}")
        if array.any():
            checked[name] = array
    if not checked:
        raise RbdError("objective: all weights are 0")
    if [*checked] == ["jerk_share"]:
        raise RbdError("objective: jerk_share is a weight relative to other terms; expected at least one more term")
    return checked


def checked_duration(duration: Any) -> tuple[float | None, tuple[float, float]]:
    """The fixed duration (s), or None if free, and the bounds of the duration."""
    if duration is None:
        return None, (MIN_DURATION, MAX_DURATION)
    if isinstance(duration, Sequence) and not isinstance(duration, str):
        if len(duration) != 2:
            raise RbdError(f"duration: expected a time, (shortest, longest) or None, got {shown(duration)}")
        shortest, longest = (_time(x) for x in duration)
        if not shortest < longest:
            raise RbdError(f"duration: the shortest, {shortest:g} s, is not below the longest, {longest:g} s")
        return None, (shortest, longest)
    fixed = _time(duration)
    return fixed, (fixed, fixed)


def _time(value: Any) -> float:
    time = positive(value, "duration", "time")
    if not SHORTEST <= time <= LONGEST:
        raise RbdError(f"duration must be between {SHORTEST:g} and {LONGEST:g} s, got {time:g}")
    return time


def checked_waypoints(model: RobotModel, waypoints: Any, spline: Basis,
                      size: int | None = None) -> tuple[Array, Array]:
    """Fractions of the duration (W,) and positions (W, size) of the waypoints; raises `RbdError` for more than the
    spline can pass. size: nv by default.
    """
    max_points = spline.count - 2 * spline.end_derivatives
    times, points = [], []
    if not isinstance(waypoints, Iterable) or isinstance(waypoints, str | bytes | Mapping):
        raise RbdError(f"waypoints: expected pairs (fraction of the duration, q), got {shown(waypoints)}")
    for i, pair in enumerate(waypoints):
        if i == max_points:
            raise RbdError(f"waypoints: splines of {spline.count} control points can pass {max_points}, and there are "
                           "more: expected fewer, or more control_points")
        try:
            time, q = pair
            times.append(float(time))
        except (TypeError, ValueError, OverflowError):
            raise RbdError(f"waypoints[{i}]: expected (fraction of the duration, q), got {shown(pair)}") from None
        points.append(end_state(model, q, f"waypoints[{i}]", 1, size)[0])
    if not all(a < b for a, b in zip([0.0, *times], [*times, 1.0], strict=True)):
        raise RbdError(f"waypoints: the fractions of the duration must increase between 0 and 1, got {shown(times)}")
    return np.array(times), np.array(points).reshape(-1, size or model.nv)
