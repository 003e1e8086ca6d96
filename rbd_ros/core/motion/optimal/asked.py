"""Validation of `optimize_motion`'s arguments: the task of an open chain or of a closed-loop mechanism."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dynamics.friction import joint_friction
from ...dynamics.constrained.mechanism import Mechanism
from ...errors import RbdError
from ...model.constraints import ConstraintSet
from ...model.state import node_wrenches, not_a_model
from ..closed.closed_chain import ClosedChain, closed_chain
from ..places.plane_limit import Planes
from ..splines import basis
from .checked import checked_duration, checked_objective, checked_waypoints
from ..places.ends import CONSISTENT, ends
from .limits import checked_limits
from .passive import without_motors
from .springs import links_and_springs
from .task import ROUNDING, Task

Array = NDArray[np.float64]


def asked(model: Any, start: Any, goal: Any, duration: Any, objective: Any, limits: Any, waypoints: Any, wrenches: Any,
          smoothing: float, degree: int, control_points: int, constraints: Any = None, actuated: Any = None,
          minimize: str = "effort", planes: Any = (), actuation: Any = None, passive_tolerance: Any = 1e-3,
          until: float = np.inf) -> Task:
    """The checked task of `optimize_motion`; raises `RbdError` for malformed or contradictory arguments. until:
    deadline of the search for postures of poses (`time.perf_counter`).
    """
    check_model(model, constraints)
    springs = None
    if actuation is not None:
        model, springs = links_and_springs(model, actuation)
    B = basis(degree, control_points)
    node_wrenches(model, wrenches, None)
    fixed, bounds = checked_duration(duration)
    weights, kept = checked_objective(model, objective), checked_limits(model, limits)
    if springs is None and np.isfinite(kept.motor_velocity).any():
        raise RbdError("limits: motor_velocity is that of motors behind springs: give their actuation")
    if springs is not None:
        kept = replace(kept, effort=np.minimum(kept.effort, springs.reach))
    friction, apart = joint_friction(model, smoothing), Planes(model, planes)
    loops = constraints if constraints is not None else ConstraintSet()

    def mechanism(posture: Array) -> Mechanism:
        if constraints is None:
            return Mechanism(model, loops, np.arange(model.nv))
        return closed_chain(model, loops, actuated, minimize, weights.get("effort", np.ones(model.nv)), friction,
                            wrenches, posture)

    times, points = checked_waypoints(model, waypoints, B, model.nq)
    chain, postures, first, last, poses = ends(model, loops, mechanism, B, start, goal, points, kept, until)
    task = Task(model, B, first, last, fixed, bounds, weights, kept, times, postures[2:, chain.own], wrenches, friction,
                planes=apart if len(apart) else None, springs=springs, poses=poses)
    if isinstance(chain, ClosedChain):
        task = replace(task, chain=replace(chain, start=postures[0]), postures=postures)
    elif actuated is not None:
        task = without_motors(task, actuated, passive_tolerance)
    check_ends(task)
    return task


def check_way(task: Task, u: Array) -> None:
    """Raise `RbdError` if the loops cannot be closed along a first guess u (N, n), or if it ends in another posture."""
    assert task.chain is not None and task.postures is not None
    chain, N = task.chain, len(u)
    q = chain.along(u, chain.start)
    bad = ~np.isfinite(q).all(axis=1)
    if bad.any():
        raise RbdError(f"on the way of least jerk, the loops of '{task.model.name}' cannot be closed at "
                       f"{int(np.argmax(bad)) / (N - 1):.3g} of the duration: give waypoints around, or a goal nearer")
    apart = np.abs(task.model.difference(task.postures[1], q[-1]))
    if apart.max() > CONSISTENT:
        j = int(np.argmax(apart))
        raise RbdError("goal: on the way there the mechanism comes to another posture, "
                       f"'{task.model.velocity_names[j]}' differs by {apart[j]:.3g}: give waypoints, or that posture")


def check_model(model: Any, constraints: Any = None) -> None:
    """Raise `RbdError` unless the argument is a movable robot model with vector positions."""
    if not hasattr(model, "_block"):
        raise not_a_model(model)
    if constraints is None and (model.nq != model.nv or model._quaternions):
        raise RbdError(f"model '{model.name}' has joints that turn about no fixed axis (spherical or floating): their "
                       "positions are no vector, and splines of them are not supported")
    if not model.nv:
        raise RbdError(f"model '{model.name}' has no joint that moves")


def check_ends(task: Task) -> None:
    """Raise `RbdError`, naming joint, limit and time, if an end or a waypoint is beyond a limit."""
    model = task.model
    for name, values in task.end_columns.items():
        if name == "clearance":
            _check_clearance(task, values)
            continue
        lower, upper = task.limits.of(name)
        over = np.maximum(lower - values, values - upper) - ROUNDING * np.maximum(1.0, np.abs(values))
        if len(values) and over.max() > 0.0:
            i, j = np.unravel_index(int(np.argmax(over)), over.shape)
            limit = upper[j] if values[i, j] > upper[j] else lower[j]
            where = _where(task, int(i))
            raise RbdError(f"{where}: the {name} of joint '{model.velocity_names[j]}' is {values[i, j]:.6g}, beyond "
                           f"its limit {limit:.6g}")
    if task.duration_or_none is not None:
        _check_speed(task, task.duration)
    elif np.isfinite(task.durations[1]):
        _check_speed(task, task.durations[1])


def _where(task: Task, i: int) -> str:
    """The name of a row of the ends' columns."""
    ends = task.postures_given
    return ends[i] if i < len(ends) else f"waypoints[{i - len(ends)}]"


def _check_clearance(task: Task, values: Array) -> None:
    assert task.planes is not None
    if values.min() < -ROUNDING:
        i, j = np.unravel_index(int(np.argmin(values)), values.shape)
        raise RbdError(f"{_where(task, int(i))}: point '{task.planes.names[j]}' is {-values[i, j]:.4g} m beyond its "
                       "plane")


def _check_speed(task: Task, T: float) -> None:
    """Raise `RbdError` if a joint's mean velocity would exceed its limit."""
    first, last = (slice(0, 1 if pose is None else 0) for pose in task.poses)    # poses leave the distances open
    times = np.concatenate([np.zeros(1)[first], task.via_times, np.ones(1)[last]]) * T
    way = np.diff(np.concatenate([task.start[first], task.via, task.goal[last]]), axis=0)
    speed = np.abs(way) / np.diff(times)[:, None]
    limit = task.limits.velocity[task.index]
    over = speed - limit
    if over.max(initial=0.0) > 0.0:
        i, j = np.unravel_index(int(np.argmax(over)), over.shape)
        raise RbdError(f"duration: from {times[i]:.4g} s to {times[i + 1]:.4g} s joint "
                       f"'{task.model.velocity_names[task.index[j]]}' would move at {speed[i, j]:.4g} on average, "
                       f"beyond its velocity limit {limit[j]:.4g}")
