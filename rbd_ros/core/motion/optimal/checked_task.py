"""Validation of `optimize_motion`'s arguments: the task of an open chain or of a closed-loop mechanism."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dynamics.friction import Friction, fitting, joint_friction
from ...dynamics.constrained.mechanism import Mechanism
from ...errors import RbdError
from ...model.constraints import ConstraintSet
from ...model.scalars import at_least
from ...model.state import node_wrenches, not_a_model
from ..closed.closed_chain import ClosedChain, closed_chain
from ..collision.clearance import CLEARANCE
from ..collision.distance_rows import DistanceRows, check_apart, checked_collisions
from ..places.plane_limit import Planes
from ..splines import basis
from .arguments import checked_duration, checked_objective, checked_waypoints
from ..places.ends import CONSISTENT, ends
from .limits import checked_limits
from .passive import without_motors
from .springs import links_and_springs
from .task import PLACES, ROUNDING, Task

Array = NDArray[np.float64]


def checked_task(model: Any, start: Any, goal: Any, duration: Any, objective: Any, limits: Any, waypoints: Any,
                 wrenches: Any, smoothing: float, degree: int, control_points: int, constraints: Any = None,
                 actuated: Any = None, minimize: str = "effort", planes: Any = (), actuation: Any = None,
                 passive_tolerance: Any = 1e-3, collisions: Any = None, clearance: Any = CLEARANCE,
                 deadline: float = np.inf, friction: Friction | None = None) -> Task:
    """The checked task of `optimize_motion`; raises `RbdError` for malformed or contradictory arguments. deadline: of
    the inverse kinematics of `BodyGoal`s (`computing_time`).
    """
    check_model(model, constraints)
    springs = None
    if actuation is not None:
        model, springs = links_and_springs(model, actuation)
    B = basis(degree, control_points)
    node_wrenches(model, wrenches, None)
    fixed_duration, bounds = checked_duration(duration)
    weights, motion_limits = checked_objective(model, objective), checked_limits(model, limits)
    if springs is None and np.isfinite(motion_limits.motor_velocity).any():
        raise RbdError("limits: motor_velocity applies to motors behind springs: give their actuation")
    if springs is not None:
        motion_limits = replace(motion_limits, effort=np.minimum(motion_limits.effort, springs.max_effort))
    friction = joint_friction(model, smoothing) if friction is None else fitting(model, friction)
    half_spaces = Planes(model, planes)
    apart = None
    if collisions is not None:
        if constraints is not None:
            raise RbdError("collisions: not supported with constraints")
        apart = DistanceRows(checked_collisions(model, collisions), at_least(0.0, clearance, "clearance", "m"),
                             np.zeros(0, dtype=np.int64))
    loops = constraints if constraints is not None else ConstraintSet()

    def mechanism(posture: Array) -> Mechanism:
        if constraints is None:
            return Mechanism(model, loops, np.arange(model.nv))
        friction.without_load("optimize_motion with loops")
        return closed_chain(model, loops, actuated, minimize, weights.get("effort", np.ones(model.nv)), friction,
                            wrenches, posture)

    times, points = checked_waypoints(model, waypoints, B, model.nq)
    chain, postures, first, last, poses = ends(model, loops, mechanism, B, start, goal, points, motion_limits, deadline)
    task = Task(model, B, first, last, fixed_duration, bounds, weights, motion_limits, times, postures[2:, chain.own],
                wrenches, friction, planes=half_spaces if len(half_spaces) else None, distances=apart, springs=springs,
                poses=poses)
    if isinstance(chain, ClosedChain):
        task = replace(task, chain=replace(chain, start=postures[0]), postures=postures)
    elif actuated is not None:
        task = without_motors(task, actuated, passive_tolerance)
    check_ends(task)
    return task


def check_first_guess(task: Task, u: Array) -> None:
    """Raise `RbdError` if the loops cannot be closed along a first guess u (N, n), or close in another posture at its
    end.
    """
    assert task.chain is not None and task.postures is not None
    chain, N = task.chain, len(u)
    q = chain.along(u, chain.start)
    open_loops = ~np.isfinite(q).all(axis=1)
    if open_loops.any():
        raise RbdError(f"on the minimum-jerk motion, the loops of '{task.model.name}' cannot be closed at "
                       f"{int(np.argmax(open_loops)) / (N - 1):.3g} of the duration: give waypoints around that, or a "
                       "nearer goal")
    deviation = np.abs(task.model.difference(task.postures[1], q[-1]))
    if deviation.max() > CONSISTENT:
        j = int(np.argmax(deviation))
        raise RbdError("goal: the minimum-jerk motion ends in another posture of the mechanism, "
                       f"'{task.model.velocity_names[j]}' differs by {deviation[j]:.3g}: give waypoints, or "
                       "that posture")


def check_model(model: Any, constraints: Any = None) -> None:
    """Raise `RbdError` unless the argument is a movable robot model with vector positions."""
    if not hasattr(model, "_block"):
        raise not_a_model(model)
    if constraints is None and (model.nq != model.nv or model._quaternions):
        raise RbdError(f"model '{model.name}' has spherical or floating joints, whose positions are no vector: splines "
                       "of them are not supported")
    if not model.nv:
        raise RbdError(f"model '{model.name}' has no joint that moves")


def check_ends(task: Task) -> None:
    """Raise `RbdError`, naming joint, limit and time, if an end or a waypoint is beyond a limit."""
    model = task.model
    for name, values in task.end_columns.items():
        if name in PLACES:
            if name == "clearance":
                _check_clearance(task, values)
            continue
        lower, upper = task.limits.of(name)
        excess = np.maximum(lower - values, values - upper) - ROUNDING * np.maximum(1.0, np.abs(values))
        if len(values) and excess.max() > 0.0:
            i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
            limit = upper[j] if values[i, j] > upper[j] else lower[j]
            point = _point_name(task, int(i))
            raise RbdError(f"{point}: the {name} of joint '{model.velocity_names[j]}' is {values[i, j]:.6g}, beyond "
                           f"its limit {limit:.6g}")
    if task.distances is not None:
        for place, q in enumerate(task.end_columns["position"]):
            check_apart(task.distances.collisions, _point_name(task, place), q, task.distances.clearance)
    if task.duration_or_none is not None:
        _check_speed(task, task.duration)
    elif np.isfinite(task.durations[1]):
        _check_speed(task, task.durations[1])


def _point_name(task: Task, i: int) -> str:
    """Name of row i of `end_columns`: "start", "goal" or "waypoints[k]"."""
    ends = task.prescribed_postures
    return ends[i] if i < len(ends) else f"waypoints[{i - len(ends)}]"


def _check_clearance(task: Task, values: Array) -> None:
    assert task.planes is not None
    if values.min() < -ROUNDING:
        i, j = np.unravel_index(int(np.argmin(values)), values.shape)
        raise RbdError(f"{_point_name(task, int(i))}: point '{task.planes.names[j]}' is {-values[i, j]:.4g} m beyond "
                       "its plane")


def _check_speed(task: Task, T: float) -> None:
    """Raise `RbdError` if a joint's mean velocity would exceed its limit."""
    first, last = (slice(0, 1 if pose is None else 0) for pose in task.poses)    # poses leave the distances open
    times = np.concatenate([np.zeros(1)[first], task.via_times, np.ones(1)[last]]) * T
    distance = np.diff(np.concatenate([task.start[first], task.via, task.goal[last]]), axis=0)
    speed = np.abs(distance) / np.diff(times)[:, None]
    limit = task.limits.velocity[task.index]
    excess = speed - limit
    if excess.max(initial=0.0) > 0.0:
        i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
        raise RbdError(f"duration: from {times[i]:.4g} s to {times[i + 1]:.4g} s joint "
                       f"'{task.model.velocity_names[task.index[j]]}' would move at {speed[i, j]:.4g} on average, "
                       f"beyond its velocity limit {limit[j]:.4g}")
