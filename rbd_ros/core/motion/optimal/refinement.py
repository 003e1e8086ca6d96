"""Search with refinement: from a first guess to a motion within its limits, with knots added at violated limits."""
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
SOFT = 0.1          # rad/s or m/s: smoothing of friction during the first search
INSIDE = 1e-5       # barrier parameter at which knots are added first
AGAIN = 1e-3        # initial barrier parameter of a finer spline
NEAR = 0.95         # ratio to a limit above which peaks get a knot
AFTERWARDS, IN_LOOPS = 2.0, 3.0    # safety factors of the estimated time for certificate and cost, open and closed loop
RESERVED = 0.8      # largest share of the remaining time reserved for them
LONGER = 20.0       # largest duration in that estimate, relative to the first guess
REFINEMENTS = 8
FINE = 5            # factor of knots for the reported cost
Found = tuple[Problem, Solution, SplineMotion, Certificate]


def refined(task: Task, control: Array, T: float, count: int, tolerance: float, deadline: float,
             stop: Stop, before: Found | None = None) -> tuple[Found, int]:
    """Approach the limits, add knots at near ones, solve and sample; repeat while a limit is violated between knots.
    before: result of a coarser spline.
    """

    def spline(problem: Problem, x: Array) -> SplineMotion:
        return SplineMotion(problem.control(x), problem.duration(x), task.basis.degree)

    friction = task.friction    # first smoother friction, which is less stiff
    soft = replace(friction, smoothing=np.maximum(SOFT, friction.smoothing))
    first = replace(task, friction=soft) if np.any(friction.coulomb) else task
    # limits apply at partly prescribed ends, too
    more: Array = np.array([float(end) for end in (0, 1) if task.poses[end] is not None or task.loose[end]])
    problem = Problem(first, task.nodes(count, more))
    x = problem.unknowns(control, T)
    unit = problem.unit = max(problem.values(x).cost, 1e-12) if before is None else before[0].unit
    if not np.isfinite(unit):
        raise RbdError("start and goal are beyond what can be planned: the cost of a first guess is not finite")
    begin = time.perf_counter()
    problem.values(x)    # second call: the first one may have compiled
    now = time.perf_counter()
    longest = min(LONGER * T, task.durations[1])    # longest duration for the certificate
    afterwards = (now - begin) * AFTERWARDS * (FINE + samples(task, longest) / len(problem.nodes.s))
    afterwards *= 1.0 if task.chain is None else IN_LOOPS
    deadline -= min(afterwards, RESERVED * max(deadline - now, 0.0))
    solution = solve(problem, x, tolerance, deadline, None if before is None else before[1]._replace(barrier=AGAIN),
                  INSIDE, stop)
    iterations, near, inside = solution.iterations, NEAR, solution
    for _ in range(REFINEMENTS):
        if solution.reason not in ("inside", "converged") or (
                solution is not inside and solution.violation > 10.0 * tolerance):
            break
        certificate = certify(task, motion := spline(problem, solution.x), near, 0.0)    # coarsely
        if certificate.worst <= 1.0 + ROUNDING and solution.converged:
            certificate = certify(task, motion, near)
            if certificate.worst <= 1.0 + ROUNDING and solution is not inside:
                return (problem, solution, motion, certificate), iterations
        more = apart(np.sort(np.concatenate([more, certificate.peaks])), 0.1 / count)
        problem = Problem(task, task.nodes(count, more), unit)
        solution = solve(problem, solution.x, tolerance, deadline, solution, stop=_after(iterations, stop))
        iterations += solution.iterations
        near = 1.0 - 0.5 * MARGIN
    motion = spline(problem, solution.x)
    return (problem, solution, motion, certify(task, motion)), iterations


def _after(iterations: int, stop: Stop) -> Stop:
    """`stop` with its iteration count shifted by `iterations`."""
    return lambda spent, cost, violation: stop(iterations + spent, cost, violation)
