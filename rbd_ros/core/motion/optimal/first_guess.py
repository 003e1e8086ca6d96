"""First guesses: minimum-jerk motions through all waypoints, a duration within the speed limits, and the weight of
`jerk_share`.
"""
from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..rest_to_rest import PEAK_SPEED
from ..splines import SplineMotion
from .nodes import Nodes
from .problem import Problem
from .task import Task

Array = NDArray[np.float64]
DURATION_FACTOR = 1.5         # duration of the first guess over the one required by the speed limits
TOLERANCE = 1e-9              # of ends and waypoints, relative to their largest value
USUAL_SPEED = 1.0             # rad/s or m/s, assumed for joints without a velocity limit
COST_NODES = 100              # knots for comparing costs
MIN_DISTANCE = 1e-2           # rad or m per joint: smallest distance assumed for `jerk_share`
UNIT_JERK = 720.0             # ∫jerk² of the minimum-jerk motion by 1 in 1 s
DETOUR = 0.25                 # largest distance of a detour's waypoint, as a share of the joint's range
MAX_RANGE = 2.0 * np.pi       # rad or m: largest joint range assumed for detours
LIMIT_MARGIN = 0.02           # rad or m: distance of a detour's waypoint from position limits


def first_guess(task: Task, T: float, number: int) -> Array:
    """Control points (K, nv) of a first guess. Number 0 is the minimum-jerk motion; 1, 2, … are detours, minimum-jerk
    motions through a random waypoint in the middle of the longest part, which lead to other local minima.
    """
    control = minimum_jerk(task, T)
    if not number:
        return control
    rng = np.random.default_rng((1, number))
    times = np.concatenate([[0.0], task.via_times, [1.0]])
    i = int(np.argmax(np.diff(times)))
    middle = 0.5 * (times[i] + times[i + 1])
    q = SplineMotion(control, 1.0, task.basis.degree).derivatives(np.array([middle]), 0)[0][0]
    lower, upper = task.limits.position_lower[task.index], task.limits.position_upper[task.index]
    deviation = DETOUR * np.minimum(upper - lower, MAX_RANGE)
    margin = np.minimum(LIMIT_MARGIN, 0.5 * (upper - lower))
    point = np.clip(q + deviation * rng.uniform(-1.0, 1.0, size=len(q)), lower + margin, upper - margin)
    return minimum_jerk(replace(task, via_times=np.insert(task.via_times, i, middle),
                                via=np.insert(task.via, i, point, axis=0)), T)


def minimum_jerk(task: Task, T: float) -> Array:
    """Control points (K, nv) of least ∫jerk² between the ends and through the waypoints."""
    B = task.basis
    nodes = Nodes.of(B, 4 * B.intervals, 4)
    third = dense(nodes.interval, nodes.values[:, 3], B.count)
    H = third.T @ (nodes.weight[:, None] * third)
    intervals, way = B.values(task.via_times, 0)
    m = B.end_derivatives
    rows = np.concatenate([np.eye(B.count)[:m], dense(intervals, way[:, 0], B.count), np.eye(B.count)[B.count - m:]])
    first, last = task.ends(T)
    values = np.concatenate([first, task.via, last])
    k = len(rows)
    scale = np.abs(H).max()
    system = np.block([[H / scale, rows.T], [rows, np.zeros((k, k))]])
    right_side = np.concatenate([np.zeros((B.count, values.shape[1])), values])
    try:
        control: Array = np.linalg.solve(system, right_side)[:B.count]
    except np.linalg.LinAlgError:
        control = np.full_like(values, np.nan, shape=(B.count, values.shape[1]))
    reached = np.abs(rows @ control - values) <= TOLERANCE * np.abs(values).max(initial=1.0)
    if not reached.all():    # waypoints that the spline cannot pass accurately
        control = np.linalg.lstsq(system, right_side, rcond=None)[0][:B.count]
    control[:m], control[B.count - m:] = first, last
    return control


def dense(interval: NDArray[np.int64], values: Array, count: int) -> Array:
    """Dense collocation matrix (N, count) from the nonzero basis values (N, degree + 1) of each row's interval."""
    out = np.zeros((len(values), count))
    for row, i, value in zip(out, interval, values, strict=True):
        row[i:i + len(value)] = value
    return out


def first_duration(task: Task) -> float:
    """A duration (s) within the task's bounds, long enough for the speed limits of the minimum-jerk motion."""
    points = np.concatenate([task.start[:1], task.via, task.goal[:1]])
    fractions = np.diff(np.concatenate([[0.0], task.via_times, [1.0]]))
    limit = task.limits.velocity[task.index]
    speed = np.where(np.isfinite(limit), limit, USUAL_SPEED)
    needed = PEAK_SPEED * float((np.abs(np.diff(points, axis=0)) / speed / fractions[:, None]).max())
    low, high = task.durations
    return float(np.clip(DURATION_FACTOR * max(needed, 0.1), low * 1.01, high * 0.99))


def with_jerk_weight(task: Task) -> Task:
    """The task with `jerk_share` w replaced by a weight of `jerk` with which, on the minimum-jerk motion, jerk costs w
    times the other terms of the objective.
    """
    others = dict(task.objective)
    share = others.pop("jerk_share", None)
    if share is None:
        return task
    T = first_duration(task) if task.free_duration else task.duration
    control = minimum_jerk(task, T)

    def cost(objective: dict[str, Array]) -> float:
        weighed = replace(task, objective=objective)
        problem = Problem(weighed, weighed.nodes(COST_NODES))
        return problem.values(problem.unknowns(control, T)).cost

    ones = np.ones(task.model.nv)
    with np.errstate(over="ignore", invalid="ignore"):
        jerk = max(cost({"jerk": ones}), task.size * UNIT_JERK * MIN_DISTANCE**2 / T**5)
        weight = share * cost(others) / jerk
    if not np.isfinite(weight).all():    # costs overflow: the task is infeasible
        weight = np.zeros(task.model.nv)
    return replace(task, objective={**others, "jerk": others.get("jerk", 0.0) + weight})
