"""Open chains with unactuated joints: their effort equations and tolerance, refinement of the spline."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...dynamics.hybrid import prescribed_mask
from ...dynamics.inverse import inverse_dynamics
from ...dynamics.mass_matrix import mass_matrix
from ...errors import RbdError
from ...model.scalars import positive
from ..splines import MOST_POINTS, SplineMotion, basis
from .certificate import PASSIVE, Certificate
from .first_guess import dense, first_duration, minimum_jerk
from .task import Task

Array = NDArray[np.float64]
NODES = 200    # knots for evaluating the minimum-jerk motion
MIN_REFINEMENT, MAX_REFINEMENT = 1.5, 2.5    # factor of the number of intervals of a too coarse spline
ORDER = 4      # order of the efforts between collocation points in the interval length


def without_motors(task: Task, actuated: Any, tolerance: Any) -> Task:
    """The task with zero efforts, at collocation points, of joints that are not `actuated` (mask or names). tolerance:
    largest effort in between, relative to the largest effort on the minimum-jerk motion or, if larger, the effort for
    1 rad (m) in its duration.
    """
    tolerated = positive(tolerance, "passive_tolerance", "number")
    model = task.model
    actuated_mask = prescribed_mask(model, actuated)
    passive = np.flatnonzero(~actuated_mask)
    if not len(passive):
        return task
    if not actuated_mask.any():
        raise RbdError(f"actuated: no joint of '{model.name}' has a motor")
    for name, pose in zip(("start", "goal"), task.poses, strict=True):
        if pose is not None:
            raise RbdError(f"{name}: a BodyGoal is not supported with joints without motors; give a posture")
    points = len(task.basis.collocation)
    free = (task.basis.count - 2 * task.basis.end_derivatives - len(task.via_times)) * model.nv + task.free_duration
    if points * len(passive) >= free:
        raise RbdError(f"control_points: {task.basis.count} leave {free} numbers free, fewer than the "
                       f"{points * len(passive)} equations of {len(passive)} joints without motors")
    T = first_duration(task) if task.free_duration else task.duration
    nodes = task.nodes(NODES)
    control = minimum_jerk(task, T)
    windows = control[nodes.interval[:, None] + np.arange(task.basis.degree + 1)]
    q, v, a = (np.einsum("nk,nkj->nj", nodes.values[:, d] / T**d, windows) for d in range(3))
    tau = task.friction.add(v, inverse_dynamics(model, q, v, a, task.wrenches))
    unit = np.maximum(np.abs(tau).max(axis=0), np.diagonal(mass_matrix(model, task.start[0])) / T**2)[passive]
    for name, (q0, v0, a0) in (("start", task.start[:3]), ("goal", task.goal[:3])):
        effort = task.friction.add(v0, inverse_dynamics(model, q0, v0, a0, task.wrenches))[passive]
        excess = np.abs(effort) - tolerated * unit
        if excess.max() > 0.0:
            j = int(np.argmax(excess))
            raise RbdError(f"{name}: joint '{model.velocity_names[passive[j]]}' has no motor, and needs an effort of "
                           f"{effort[j]:.6g} there; a Reference may have an acceleration with which it needs none")
    no_limit = np.full(len(passive), np.inf)
    limits = {name: getattr(task.limits, name).copy() for name in ("effort", "effort_rate", "motor_velocity")}
    for name, limit in limits.items():
        limit[passive] = tolerated * unit if name == "effort" else no_limit
    weights = {name: weight.copy() for name, weight in task.objective.items()}
    for name in ("effort", "effort_rate", "power"):
        if name in weights:
            weights[name][passive] = 0.0
    if not any(weight.any() for weight in weights.values()):
        raise RbdError("objective: all weights are those of efforts of joints without motors")
    return replace(task, limits=replace(task.limits, **limits), objective=weights, passive=passive, tolerated=tolerated)


def finer_spline(task: Task, motion: SplineMotion, certificate: Certificate) -> tuple[Task, Array] | None:
    """The task with a finer spline and the control points of `motion` on it; None if the efforts of unactuated joints
    are within the tolerance, or if the spline has the largest number of control points.
    """
    usage = certificate.usage.get(PASSIVE)
    coarse = task.basis
    if usage is None or usage.ratio <= 1.0 or coarse.count == MOST_POINTS:
        return None
    factor = np.clip((2.0 * usage.ratio) ** (1.0 / ORDER), MIN_REFINEMENT, MAX_REFINEMENT)
    B = basis(coarse.degree, min(coarse.degree + int(np.ceil(factor * coarse.intervals)), MOST_POINTS))
    s = np.linspace(0.0, 1.0, 4 * B.count)
    interval, values = B.values(s, 0)
    rows = dense(interval, values[:, 0], B.count)
    control: Array = np.linalg.lstsq(rows, motion.derivatives(s * motion.duration, 0)[0], rcond=None)[0]
    return replace(task, basis=B), control
