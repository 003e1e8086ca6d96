"""First guesses that hit nothing: along a path of random trees where the guess itself hits something."""
from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..collision.planned_path import search_path
from ..rest_to_rest import PEAK_SPEED
from ..splines import SplineMotion, basis
from .first_guess import DURATION_FACTOR, USUAL_SPEED, dense
from .task import Task

Array = NDArray[np.float64]
EACH_CORNER = 6         # control points per corner of a path, at least
CORNERED = 60           # control points at most for this
ITERATIONS = 3000       # random configurations


def free_guess(task: Task, control: Array, T: float, number: int) -> tuple[Task, Array, float, str]:
    """The task with rows for the pairs that come near, control points and duration of a guess, and why there is no way.

    The guess `control` itself if it keeps the clearance, otherwise one along a path, for which the spline may get more
    control points.
    """
    rows = task.distances
    assert rows is not None
    s = np.linspace(0.0, 1.0, 5 * task.basis.count)
    guess = SplineMotion(control, T, task.basis.degree)
    if rows.clear(guess):
        return replace(task, distances=rows.with_nearby(guess.states(s, 1)[:, 0])), control, T, ""
    points = [task.start[0], *task.via, task.goal[0]]
    legs, low, high = [], task.limits.position_lower, task.limits.position_upper
    for k, (begin, end) in enumerate(pairwise(points)):
        path = search_path(rows.sweeper, begin, end, rows.clearance, low, high, (number, k), ITERATIONS)
        if not path.found:
            return task, control, T, path.reason
        legs.append(path.points)
    corners = sum(len(leg) for leg in legs) - 2
    count = max(task.basis.count, min(EACH_CORNER * corners + 2 * task.basis.end_derivatives, CORNERED))
    task = replace(task, basis=basis(task.basis.degree, count))
    if task.free_duration:
        T = max(T, _duration(task, np.concatenate(legs)))
    control = _along(task, legs, T)
    near = SplineMotion(control, T, task.basis.degree).states(s, 1)[:, 0]
    return replace(task, distances=rows.with_nearby(near)), control, T, ""


def _duration(task: Task, points: Array) -> float:
    """A duration (s) within the bounds, long enough for the speed limits."""
    speed = np.where(np.isfinite(task.limits.velocity), task.limits.velocity, USUAL_SPEED)
    needed = PEAK_SPEED * float((np.abs(np.diff(points, axis=0)).sum(axis=0) / speed).max())
    low, high = task.durations
    return float(np.clip(DURATION_FACTOR * needed, 1.01 * low, 0.99 * high))


def _along(task: Task, legs: list[Array], T: float) -> Array:
    """Control points on the legs of a path, from one waypoint to the next each, at Greville's abscissae."""
    B = task.basis
    s = np.lib.stride_tricks.sliding_window_view(B.knots[1:-1], B.degree).mean(axis=1)
    if len(legs) == 1:
        s = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)    # from rest to rest
    times = np.concatenate([[0.0], task.via_times, [1.0]])
    where, points = [], []
    for leg, begin, end in zip(legs, times[:-1], times[1:], strict=True):
        lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(leg, axis=0), axis=1))])
        where.append(begin + (end - begin) * lengths / max(float(lengths[-1]), 1e-300))
        points.append(leg)
    place, path = np.concatenate(where), np.concatenate(points)
    control = np.stack([np.interp(s, place, path[:, j]) for j in range(path.shape[1])], axis=1)
    first, last = task.ends(T)
    control[:len(first)], control[len(control) - len(last):] = first, last
    if len(task.via_times):
        interval, values = B.values(task.via_times, 0)
        rows = dense(interval, values[:, 0], B.count)
        inner = slice(len(first), B.count - len(last))
        control[inner] += np.linalg.lstsq(rows[:, inner], task.via - rows @ control, rcond=None)[0]
    return control
