"""What is asked of a motion, checked once: ends, waypoints, duration, objective, limits."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...actuation.friction import Friction
from ...dynamics.inverse import inverse_dynamics
from ...errors import RbdError, shown, unknown_name
from ...model.robot_model import RobotModel
from ...model.scalars import positive
from ...model.state import not_a_model
from ..splines import Basis
from ..trajectory import Reference
from .limits import CheckedLimits

Array = NDArray[np.float64]
STATE = ("position", "velocity", "acceleration", "jerk")    # columns of a node's state, by derivative
WEIGHED = ("effort", "power", "effort_rate", "velocity", "acceleration", "jerk", "duration")
MARGIN = 1e-3      # of each limit, kept free between nodes
ROUNDING = 1e-9    # of a limit
SLOWEST = 1e3      # s; and FASTEST: bounds of a free duration
FASTEST = 1e-3
SHORTEST, LONGEST = 1e-6, 1e6    # s, of a given one


@dataclass(frozen=True, eq=False)
class Task:
    """Checked; ends are rows q, v, a(, jerk) (m, nv), duration None where it is free within `durations`."""

    model: RobotModel
    basis: Basis
    start: Array
    goal: Array
    duration_or_none: float | None
    durations: tuple[float, float]
    objective: Mapping[str, Array]
    limits: CheckedLimits
    via_times: Array
    via: Array
    wrenches: Any
    friction: Friction

    @property
    def free_duration(self) -> bool:
        return self.duration_or_none is None

    @property
    def duration(self) -> float:
        return self.durations[0] if self.duration_or_none is None else self.duration_or_none

    @cached_property
    def has_friction(self) -> bool:
        return bool(np.any(self.friction.damping) or np.any(self.friction.coulomb))

    def _uses(self, name: str) -> bool:
        limited = name != "power" and name != "duration" and bool(np.isfinite(self.limits.of(name)[1]).any())
        return limited or name in self.objective

    @cached_property
    def uses_effort(self) -> bool:
        return self._uses("effort") or self.uses_power or self.uses_rate    # which are made of it

    @cached_property
    def uses_power(self) -> bool:
        return self._uses("power")

    @cached_property
    def uses_rate(self) -> bool:
        return self._uses("effort_rate")

    @cached_property
    def orders(self) -> int:
        """Of derivatives in a node's state, position included."""
        return 4 if self.uses_rate or self._uses("jerk") else 3

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """What the columns are, nv of each."""
        rows = [name for name, used in (("effort", self.uses_effort), ("power", self.uses_power),
                                        ("effort_rate", self.uses_rate)) if used]
        return (*rows, *STATE[:self.orders])

    @cached_property
    def scale(self) -> Array:
        """Per column what it is divided by: its limit, or 1."""
        parts = []
        for name in self.column_names:
            lower, upper = self._limits(name)
            half = 0.5 * (upper - lower)
            parts.append(np.where(np.isfinite(half), half, 1.0))
        return np.concatenate(parts)

    def _limits(self, name: str) -> tuple[Array, Array]:
        if name == "power":
            return np.full(self.model.nv, -np.inf), np.full(self.model.nv, np.inf)
        return self.limits.of(name)

    @cached_property
    def omega(self) -> Array:
        """Weights of the squared scaled columns."""
        nothing = np.zeros(self.model.nv)
        return np.concatenate([self.objective.get(name, nothing) for name in self.column_names]) * self.scale**2

    @cached_property
    def omega_duration(self) -> float:
        return float(self.objective["duration"][0]) if "duration" in self.objective else 0.0

    @cached_property
    def end_columns(self) -> dict[str, Array]:
        """Values (2 or more, nv) that the ends and waypoints have whatever the motion is, by column."""
        found = {name: np.stack([self.start[d], self.goal[d]]) if d < len(self.start) else np.zeros((0, self.model.nv))
                 for d, name in enumerate(STATE)}
        found["position"] = np.concatenate([found["position"], self.via])
        ends = [found[name][:2] for name in STATE[:3]]
        found["effort"] = self.friction.effort(ends[1]) + inverse_dynamics(
            self.model, ends[0], ends[1], ends[2], self.wrenches)
        return found

    def bounds(self, s: Array) -> tuple[Array, Array]:
        """Lower and upper bounds of the scaled columns (N, columns): limits less a margin, or what the ends need."""
        low, high = [], []
        for name in self.column_names:
            lower, upper = self._limits(name)
            margin = MARGIN * 0.5 * np.where(np.isfinite(upper - lower), upper - lower, 0.0)
            ends = self.end_columns.get(name, np.zeros((0, self.model.nv)))
            low.append(np.maximum(lower, np.minimum(lower + margin, ends.min(axis=0, initial=np.inf))))
            high.append(np.minimum(upper, np.maximum(upper - margin, ends.max(axis=0, initial=-np.inf))))
        shape = (len(s), len(self.scale))
        return (np.broadcast_to(np.concatenate(low) / self.scale, shape),
                np.broadcast_to(np.concatenate(high) / self.scale, shape))

    def ends(self, T: float) -> tuple[Array, Array]:
        """The control points that the ends fix."""
        return self.basis.end(self.start, T, False), self.basis.end(self.goal, T, True)

    def ends_by_duration(self, T: float) -> tuple[Array, Array]:
        """Their derivatives by T."""
        k = np.arange(len(self.start))[:, None] / T
        return self.basis.end(self.start * k, T, False), self.basis.end(self.goal * k, T, True)


def check_model(model: Any) -> None:
    """`RbdError` for what is no robot model, or one whose positions are no vector, or that cannot move."""
    if not hasattr(model, "_block"):
        raise not_a_model(model)
    if model.nq != model.nv or model._quaternions:
        raise RbdError(f"model '{model.name}' has joints that turn about no fixed axis (spherical or floating): their "
                       "positions are no vector, and splines of them are not supported")
    if not model.nv:
        raise RbdError(f"model '{model.name}' has no joint that moves")


def end_state(model: RobotModel, value: Any, name: str, derivatives: int) -> Array:
    """Rows q, v, a, … (derivatives, nv) of an end: positions alone are at rest, a `Reference` has derivatives."""
    given = list(value) if isinstance(value, Reference) else [value]
    rows = np.zeros((derivatives, model.nv))
    for k, part in enumerate(given[:derivatives]):
        if part is None:
            continue
        try:
            array = np.asarray(part, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise RbdError(f"{name}: expected positions ({model.nv},) or a Reference, got {shown(value)}") from None
        if array.shape != (model.nv,) or not np.isfinite(array).all():
            raise RbdError(f"{name}: {STATE[k]} must be {model.nv} finite numbers, joints "
                           f"{', '.join(model.joint_names[:12])}; got {shown(part)}")
        rows[k] = array
    return rows


def checked_objective(model: RobotModel, objective: Any) -> dict[str, Array]:
    """Weights (nv,) by name from a name, or from names to weights (a number or (nv,))."""
    given = {objective: 1.0} if isinstance(objective, str) else objective
    if not isinstance(given, Mapping) or not given:
        raise RbdError(f"objective: expected one of {', '.join(WEIGHED)}, or a dictionary of their weights, "
                       f"got {shown(objective)}")
    found = {}
    for name, weight in given.items():
        if name not in WEIGHED:
            raise unknown_name("objective", name, WEIGHED)
        try:
            array = np.array(np.broadcast_to(np.asarray(weight, dtype=np.float64), (model.nv,)))
        except (TypeError, ValueError, OverflowError):
            array = np.full(model.nv, np.nan)
        if not (np.isfinite(array).all() and array.min() >= 0.0):
            raise RbdError(f"objective: the weight of {name} must be one number or {model.nv}, finite and not "
                           f"negative, got {shown(weight)}")
        if array.any():
            found[name] = array
    if not found:
        raise RbdError("objective: all weights are 0")
    return found


def checked_duration(duration: Any) -> tuple[float | None, tuple[float, float]]:
    """A fixed duration, or None and its bounds."""
    if duration is None:
        return None, (FASTEST, SLOWEST)
    if isinstance(duration, Sequence) and not isinstance(duration, str):
        if len(duration) != 2:
            raise RbdError(f"duration: expected a time, (shortest, longest) or None, got {shown(duration)}")
        low, high = (_time(x) for x in duration)
        if not low < high:
            raise RbdError(f"duration: the shortest, {low:g} s, is not below the longest, {high:g} s")
        return None, (low, high)
    fixed = _time(duration)
    return fixed, (fixed, fixed)


def _time(value: Any) -> float:
    time = positive(value, "duration", "time")
    if not SHORTEST <= time <= LONGEST:
        raise RbdError(f"duration must be between {SHORTEST:g} and {LONGEST:g} s, got {time:g}")
    return time


def checked_waypoints(model: RobotModel, waypoints: Any) -> tuple[Array, Array]:
    """Fractions of the duration (W,) and positions (W, nv) from pairs of them."""
    times, points = [], []
    if not isinstance(waypoints, Iterable) or isinstance(waypoints, str | bytes | Mapping):
        raise RbdError(f"waypoints: expected pairs (fraction of the duration, q), got {shown(waypoints)}")
    for i, pair in enumerate(waypoints):
        try:
            time, q = pair
            times.append(float(time))
        except (TypeError, ValueError, OverflowError):
            raise RbdError(f"waypoints[{i}]: expected (fraction of the duration, q), got {shown(pair)}") from None
        points.append(end_state(model, q, f"waypoints[{i}]", 1)[0])
    if not all(a < b for a, b in zip([0.0, *times], [*times, 1.0], strict=True)):
        raise RbdError(f"waypoints: the fractions of the duration must increase between 0 and 1, got {shown(times)}")
    return np.array(times), np.array(points).reshape(-1, model.nv)


def check_ends(task: Task) -> None:
    """`RbdError` where an end or a waypoint is beyond a limit: joint, limit and time."""
    model = task.model
    for name, values in task.end_columns.items():
        lower, upper = task.limits.of(name)
        over = np.maximum(lower - values, values - upper) - ROUNDING * np.maximum(1.0, np.abs(values))
        if len(values) and over.max() > 0.0:
            i, j = np.unravel_index(int(np.argmax(over)), over.shape)
            limit = upper[j] if values[i, j] > upper[j] else lower[j]
            where = ("start", "goal")[i] if i < 2 else f"waypoints[{i - 2}]"
            raise RbdError(f"{where}: the {name} of joint '{model.velocity_names[j]}' is {values[i, j]:.6g}, beyond "
                           f"its limit {limit:.6g}")
    if task.duration_or_none is not None:
        _check_speed(task, task.duration)
    elif np.isfinite(task.durations[1]):
        _check_speed(task, task.durations[1])


def _check_speed(task: Task, T: float) -> None:
    """`RbdError` where a joint would have to be faster on average than its limit."""
    times = np.concatenate([[0.0], task.via_times, [1.0]]) * T
    way = np.diff(np.concatenate([task.start[:1], task.via, task.goal[:1]]), axis=0)
    speed = np.abs(way) / np.diff(times)[:, None]
    over = speed - task.limits.velocity
    if over.max() > 0.0:
        i, j = np.unravel_index(int(np.argmax(over)), over.shape)
        raise RbdError(f"duration: from {times[i]:.4g} s to {times[i + 1]:.4g} s joint "
                       f"'{task.model.velocity_names[j]}' would move at {speed[i, j]:.4g} on average, beyond its "
                       f"velocity limit {task.limits.velocity[j]:.4g}")
