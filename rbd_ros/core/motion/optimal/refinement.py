"""Search with refinement: from a first guess to a motion within its limits, with more knots where limits are broken.
"""
from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...errors import RbdError
from ..interior_point.search import Solution, Stop, solve
from ..splines import SplineMotion
from .certificate import Certificate, certify, samples
from .nodes import apart
from .problem import Problem
from .task import MARGIN, ROUNDING, Task

Array = NDArray[np.float64]
SOFT = 0.1          # rad/s or m/s: smoothing of friction on the way
INSIDE = 1e-5       # barrier parameter at which nodes are added first
AGAIN = 1e-3        # with which a finer spline begins
NEAR = 0.95         # of a limit: peaks beyond get a node then
AFTERWARDS, IN_LOOPS = 2.0, 3.0    # times what the certificate and the cost take; loops are followed from the start
RESERVED = 0.8      # of the time that is left, at most
LONGER = 20.0       # than the first guess, at most, in that estimate
REFINEMENTS = 8
FINE = 5            # times the nodes, for the cost that is told
Found = tuple[Problem, Solution, SplineMotion, Certificate]


def refined(task: Task, control: Array, T: float, count: int, tolerance: float, deadline: float,
             stop: Stop, before: Found | None = None) -> tuple[Found, int]:
    """Approach the limits, add nodes where they are near, solve and sample; again while one is broken between nodes.
    `before`: what a coarser spline led to.
    """

    def spline(problem: Problem, x: Array) -> SplineMotion:
        return SplineMotion(problem.control(x), problem.duration(x), task.basis.degree)

    friction = task.friction    # first a softer one, which is far less stiff
    soft = replace(friction, smoothing=np.maximum(SOFT, friction.smoothing))
    first = replace(task, friction=soft) if np.any(friction.coulomb) else task
    # limits hold at ends that are not given whole, too
    more: Array = np.array([float(end) for end in (0, 1) if task.poses[end] is not None or task.loose[end]])
    problem = Problem(first, task.nodes(count, more))
    x = problem.unknowns(control, T)
    unit = problem.unit = max(problem.values(x).cost, 1e-12) if before is None else before[0].unit
    if not np.isfinite(unit):
        raise RbdError("start and goal are beyond what can be planned: the cost of a first guess is not finite")
    begin = time.perf_counter()
    problem.values(x)    # once more: the first call may have compiled
    now = time.perf_counter()
    longest = min(LONGER * T, task.durations[1])    # that the certificate may be of
    afterwards = (now - begin) * AFTERWARDS * (FINE + samples(task, longest) / len(problem.nodes.s))
    afterwards *= 1.0 if task.chain is None else IN_LOOPS
    deadline -= min(afterwards, RESERVED * max(deadline - now, 0.0))
    found = solve(problem, x, tolerance, deadline, None if before is None else before[1]._replace(barrier=AGAIN),
                  INSIDE, stop)
    iterations, near, inside = found.iterations, NEAR, found
    for _ in range(REFINEMENTS):
        if found.reason not in ("inside", "converged") or (
                found is not inside and found.violation > 10.0 * tolerance):
            break
        certificate = certify(task, motion := spline(problem, found.x), near, 0.0)    # coarsely
        if certificate.worst <= 1.0 + ROUNDING and found.converged:
            certificate = certify(task, motion, near)
            if certificate.worst <= 1.0 + ROUNDING and found is not inside:
                return (problem, found, motion, certificate), iterations
        more = apart(np.sort(np.concatenate([more, certificate.peaks])), 0.1 / count)
        problem = Problem(task, task.nodes(count, more), unit)
        found = solve(problem, found.x, tolerance, deadline, found, stop=_after(iterations, stop))
        iterations += found.iterations
        near = 1.0 - 0.5 * MARGIN
    motion = spline(problem, found.x)
    return (problem, found, motion, certify(task, motion)), iterations


def _after(iterations: int, stop: Stop) -> Stop:
    """The same, for a search that begins after so many iterations."""
    return lambda spent, cost, violation: stop(iterations + spent, cost, violation)
