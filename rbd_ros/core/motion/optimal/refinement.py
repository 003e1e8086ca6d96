"""Search with refinement: from a first guess to a motion within its limits, with knots added at violated limits."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...compiled.computing_time import computing_time
from ...errors import RbdError
from ..interior_point.search import KINK, Solution, Stop, solve
from ..splines import SplineMotion
from .certificate import Certificate, certify, samples
from .nodes import thinned
from .problem import Problem
from .task import MARGIN, ROUNDING, Task

Array = NDArray[np.float64]
FIRST_SMOOTHING = 0.1              # rad/s or m/s: smoothing of friction in the first solution
FIRST_REFINEMENT_BARRIER = 1e-5    # barrier parameter at which the first knots are added
RESTART_BARRIER = 1e-3             # initial barrier parameter with a finer spline
FAR_BEYOND = 1e-2                  # m, or of a half range: violation at new knots and pairs after which µ rises again
SHARES = (0.9, 0.7, 0.5, 0.3, 0.1)    # of the way from the first guess, tried then
SPACING = 0.1                      # between added knots, relative to the mean one of the others
SPACING_APART = 0.01               # likewise where they keep shapes apart, whose distances bend at corners
PEAK_THRESHOLD = 0.95              # ratio to a limit above which a peak gets a knot
RESERVE_FACTOR = 2.0               # safety factor of the estimated time for certificate and cost
RESERVE_FACTOR_IN_LOOPS = 3.0      # likewise with loops, on top
MAX_RESERVED = 0.8                 # largest share of the remaining time reserved for certificate and cost
DURATION_GROWTH = 20.0             # largest duration in this estimate, relative to the first guess
DURATION_GROWTH_APART = 3.0        # likewise of one that hits nothing, which is long enough for a way around
REFINEMENTS = 8
FINE = 5                           # factor of the number of knots for the reported cost
Refined = tuple[Problem, Solution, SplineMotion, Certificate]


def refined(task: Task, control: Array, T: float, count: int, tolerance: float, deadline: float,
            stop: Stop, previous: Refined | None = None) -> tuple[Refined, int]:
    """Result of the search from the first guess `control`, T, with `count` knots and more at peaks near limits, and its
    number of iterations. Solves again while a limit is violated between knots. previous: result with a coarser spline.
    """

    def spline(problem: Problem, x: Array) -> SplineMotion:
        return SplineMotion(problem.control(x), problem.duration(x), task.basis.degree)

    friction = task.friction    # smoothed more at first: less stiff
    smoothed = replace(friction, smoothing=np.maximum(FIRST_SMOOTHING, friction.smoothing))
    first_task = replace(task, friction=smoothed) if np.any(friction.coulomb) or friction.by_load else task
    # limits apply at partly prescribed ends, too
    added: Array = np.array([float(end) for end in (0, 1) if task.poses[end] is not None or task.position_only[end]])
    problem = Problem(first_task, task.nodes(count, added))
    x = problem.unknowns(control, T)
    unit = problem.unit = max(problem.values(x).cost, 1e-12) if previous is None else previous[0].unit
    if not np.isfinite(unit):
        raise RbdError("start and goal are out of range: the cost of a first guess is not finite")
    begin = computing_time()
    problem.values(x * (1.0 + 1e-12))    # elsewhere, without kept distances: the first one may have compiled
    now = computing_time()
    growth = DURATION_GROWTH if task.distances is None else DURATION_GROWTH_APART
    longest = min(growth * T, task.durations[1])    # longest duration for the certificate
    reserve = (now - begin) * RESERVE_FACTOR * (FINE + samples(task, longest) / len(problem.nodes.s))
    reserve *= 1.0 if task.chain is None else RESERVE_FACTOR_IN_LOOPS
    deadline -= min(reserve, MAX_RESERVED * max(deadline - now, 0.0))
    warm_start = None if previous is None else previous[1]._replace(barrier=RESTART_BARRIER)
    solution = solve(problem, x, tolerance, deadline, warm_start, FIRST_REFINEMENT_BARRIER, stop)
    iterations, threshold, first_solution, guess = solution.iterations, PEAK_THRESHOLD, solution, x
    for _ in range(REFINEMENTS):
        if solution.reason not in ("inside", "converged", KINK) or (
                solution is not first_solution and solution.violation > 10.0 * tolerance):
            break
        certificate = certify(task, motion := spline(problem, solution.x), threshold, 0.0)    # with the fewest samples
        if certificate.worst <= 1.0 + ROUNDING and solution.converged:
            certificate = certify(task, motion, threshold)
            if certificate.worst <= 1.0 + ROUNDING and solution is not first_solution:
                return (problem, solution, motion, certificate), iterations
        spacing = SPACING if task.distances is None else SPACING_APART
        added = thinned(np.sort(np.concatenate([added, certificate.peaks])), spacing / count)
        if task.distances is not None:    # pairs that have come near on the way
            q = motion.states(np.linspace(0.0, 1.0, count), 1)[:, 0]
            task = replace(task, distances=task.distances.with_nearby(q))
        problem = Problem(task, task.nodes(count, added), unit)
        if task.distances is not None and problem.values(solution.x).rows.max() > FAR_BEYOND:
            solution = solution._replace(x=_towards(problem, guess, solution.x),
                                         barrier=max(solution.barrier, RESTART_BARRIER))
        solution = solve(problem, solution.x, tolerance, deadline, solution, stop=_counted(iterations, stop))
        iterations += solution.iterations
        threshold = 1.0 - 0.5 * MARGIN
    motion = spline(problem, solution.x)
    return (problem, solution, motion, certify(task, motion)), iterations


def _towards(problem: Problem, guess: Array, x: Array) -> Array:
    """On the way from the first guess to x, the farthest place that is not far beyond a limit, or the guess."""
    ways = (guess + share * (x - guess) for share in SHARES)
    return next((way for way in ways if problem.values(way).rows.max() <= FAR_BEYOND), guess)


def _counted(iterations: int, stop: Stop) -> Stop:
    """`stop` with its iteration count shifted by `iterations`."""
    return lambda spent, cost, violation: stop(iterations + spent, cost, violation)
