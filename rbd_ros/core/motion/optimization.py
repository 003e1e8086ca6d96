"""Trajectory optimisation of open chains between two states: least effort, jerk, power or time, within all limits."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuation.actuation import Actuation
from ..batch import Executors, batch
from ..dynamics.friction import SMOOTHING
from ..dynamics.inverse import inverse_dynamics
from ..errors import RbdError
from ..model.constraints import ConstraintSet
from ..model.robot_model import RobotModel
from ..model.scalars import positive, whole_number
from .closed.closed_motion import ClosedMotion
from .optimal.asked import asked, check_way
from .optimal.certificate import PASSIVE, Certificate, Usage, certify
from .optimal.first_guess import first_duration, minimum_jerk, with_jerk
from .interior_point.search import STOPPED, Solution
from .optimal.limits import MotionLimits
from .own_code import own_code, remember
from .optimal.passive import finer
from .optimal.problem import Problem
from .optimal.refinement import FINE, refined
from .optimal.task import ROUNDING, Task
from .places.body_goal import BodyGoal
from .places.plane_limit import PlaneLimit
from .splines import SplineMotion
from .trajectory import Reference

Array = NDArray[np.float64]
TOLERANCE = 1e-6
LEFT = 0.05         # of the time limit, for what follows the iterations, besides the certificate
SEEKING = 0.5       # of the time, at most, for a posture of a pose
MOST_NODES = 100_000


class Progress(NamedTuple):
    """Of a search: iterations so far, cost relative to that of the first guess, the worst violation of a limit relative
    to it at the nodes (not above 0 where all are kept), and seconds since the start.
    """

    iterations: int
    cost: float
    violation: float
    seconds: float


@dataclass(frozen=True, eq=False)
class OptimalMotion:
    """A motion with its certificate: `motion(t)` has .q, .v, .a, .jerk, .snap, at rest before and after.

    usage: by limit the largest ratio to it, sampled at 1 kHz or finer, with joint and time. cost: of the objective, in
    its units. kkt_residual: relative to the cost of the first guess. A motion is `good` if it converged and keeps all
    limits; any other is the best that was found, and `reason` says why.
    """

    spline: SplineMotion
    cost: float
    converged: bool
    kkt_residual: float
    iterations: int
    usage: Mapping[str, Usage]
    reason: str
    ended: str    # how the search did: "converged", "time limit", …
    seconds: float
    _task: Task

    @property
    def duration(self) -> float:
        """s."""
        return self.spline.duration

    @property
    def violation(self) -> float:
        """The worst ratio to a limit, less 1: not above 0 where all limits are kept."""
        return max((usage.ratio for usage in self.usage.values()), default=0.0) - 1.0

    @property
    def feasible(self) -> bool:
        """Whether all limits are kept, at all samples."""
        return self.violation <= ROUNDING

    @property
    def good(self) -> bool:
        """Whether it is optimal (locally), and keeps all limits."""
        return self.converged and self.feasible

    @cached_property
    def _closed(self) -> ClosedMotion | None:
        return None if self._task.chain is None else ClosedMotion(self.spline, self._task.chain)

    def __call__(self, t: ArrayLike) -> Reference:
        return self.spline(t) if self._closed is None else self._closed(t)

    def sample(self, t: float) -> Reference:
        """As calling it."""
        return self(t)

    def effort(self, t: ArrayLike) -> Array:
        """Efforts with friction and external wrenches (nv,) or (N, nv) at t, N m or N; 0 without a motor."""
        if self._closed is not None:
            return self._closed.effort(t)
        at, task = self.spline(t), self._task
        efforts: Array = inverse_dynamics(task.model, at.q, at.v, at.a, task.wrenches) + task.friction.effort(at.v)
        efforts[..., task.passive] = 0.0
        return efforts

    def check(self) -> OptimalMotion:
        """The motion itself if it is good; otherwise raises `RbdError` with the reason."""
        if not self.good:
            raise RbdError(f"no optimal motion within the limits was found: {self.reason}")
        return self

    def __repr__(self) -> str:
        used = ", ".join(f"{name} {u.ratio:.4g} ({u.joint}, {u.time:.3g} s)" for name, u in self.usage.items())
        return (f"OptimalMotion, {'good' if self.good else 'NOT GOOD'}: {self.reason}; {self.duration:.4g} s, cost "
                f"{self.cost:.6g}, KKT residual {self.kkt_residual:.1e}, {self.iterations} iterations\n  used: {used}")


def optimize_motion(model: RobotModel, start: ArrayLike | Reference | BodyGoal,
                    goal: ArrayLike | Reference | BodyGoal,
                    duration: float | Sequence[float] | None = None,
                    objective: str | Mapping[str, ArrayLike] = "effort", *, limits: MotionLimits | None = None,
                    waypoints: Iterable[tuple[float, ArrayLike]] = (), external_wrenches: Any = None,
                    constraints: ConstraintSet | None = None, actuated: ArrayLike | Sequence[str] | None = None,
                    minimize: str = "effort", passive_tolerance: float = 1e-3, planes: Iterable[PlaneLimit] = (),
                    actuation: Actuation | None = None,
                    smoothing: float = SMOOTHING, degree: int = 5, control_points: int = 20, nodes: int = 100,
                    tolerance: float = TOLERANCE, time_limit: float = 10.0, starts: int = 3, executor: Executors = None,
                    progress: Callable[[Progress], Any] | None = None) -> OptimalMotion:
    """The motion of least cost from start to goal that keeps all limits, as a B-spline.

    start, goal: positions (nq,) at rest, a `Reference` with derivatives, or a `BodyGoal`, a pose of a body, at rest:
    which posture brings it there is found as well. duration: s, or (shortest, longest), or None:
    free. objective: "effort" ∫Σ τ², "effort_rate" ∫Σ τ̇², "power" ∫Σ (τ v)², "velocity", "acceleration", "jerk"
    likewise, "duration"; or a dictionary of such names and weights, a number or (nv,) each, of which the sum is taken.
    "jerk_share" in it is jerk whose weight is relative: 0.1 costs a tenth of what the rest does on the motion of least
    jerk, which keeps arms from folding and light joints from whirling.
    limits: the model's unless given. actuation: with springs, for limits of `motor_velocity`; inertia and efforts are
    those of the links then, efforts within what springs carry. planes: that points stay before. waypoints: pairs of a
    fraction of the duration and positions (nq,). external_wrenches: as of `inverse_dynamics`, the same all along.
    Friction is the model's, smoothed as in `friction_effort`. degree 5 or 7, control_points per joint, nodes where cost
    and limits are looked at; there are more where one is broken between them. time_limit: s; starts: guesses, until one
    leads to a good motion; with an executor, as of `rbd.batch`, all of them at once, of which the best motion counts,
    each with time_limit. progress: called at each iteration; where it answers something true, the search ends there
    ("stopped"); not with an executor.

    constraints: loops, which are closed along the whole motion; actuated (mask or names) are then the joints with
    motors, of which redundant ones share the load by minimize: "effort", with the objective's weights, or
    "multipliers", as in `constrained_inverse_dynamics`. Postures have all joints (nq,), loops closed to 1e-6; efforts,
    their weights and limits are those of motors, jerk that of the coordinates that the splines have.

    Without loops, joints that are not `actuated` have no motor: their effort is 0 at as many points as the splines
    leave free, and at most passive_tolerance in between, of what it is on the motion of least jerk ("passive_effort").

    Without loops, for joints of one coordinate each. `RbdError` for malformed input, and where an end is beyond a
    limit; where no good motion is found, the least violating one is returned, and is not `good`. Method: docs/motion.md

        >>> model = rbd.sample("two_link")
        >>> motion = rbd.optimize_motion(model, [0.0, 0.0], [1.0, -0.5], 1.5)
        >>> motion.good, motion(1.5).q.round(3)
        (True, array([ 1. , -0.5]))
    """
    ask = partial(asked, model, start, goal, duration, objective, limits, waypoints, external_wrenches, smoothing,
                  degree, control_points, constraints, actuated, minimize, planes, actuation, passive_tolerance)
    search = partial(_search, ask, positive(time_limit, "time_limit", "time"), nodes, tolerance)
    count = whole_number(starts, "starts")
    if executor is None:
        return search(range(count), progress)
    if progress is not None:
        raise RbdError("progress: not with an executor, whose workers cannot call it")
    return max(batch(partial(_one_start, search), range(count), executor), key=_rank)


def _one_start(search: Callable[[Sequence[int]], OptimalMotion], guess: int, _random: Any) -> OptimalMotion:
    return search([guess])


def _search(ask: Callable[[float], Task], time_limit: float, nodes: int, tolerance: float, guesses: Sequence[int],
            progress: Callable[[Progress], Any] | None = None) -> OptimalMotion:
    """The first good motion that one of the guesses leads to, else the best."""
    begin = time.perf_counter()
    deadline = begin + (1.0 - LEFT) * time_limit
    task = with_jerk(ask(begin + SEEKING * (deadline - begin)))
    fast = task.model if task.chain is not None else own_code(task.model, deadline)
    task = replace(task, fast=fast)
    tolerance = positive(tolerance, "tolerance", "number")
    count = whole_number(nodes, "nodes", most=MOST_NODES)
    best: OptimalMotion | None = None
    iterations = 0

    def stop(spent: int, cost: float, violation: float) -> bool:
        return progress is not None and bool(progress(Progress(
            iterations + spent, cost, violation, time.perf_counter() - begin)))

    for guess in guesses:
        T = task.duration if not task.free_duration else first_duration(task)
        control = minimum_jerk(task, T)
        if task.chain is not None and not guess:
            s = np.linspace(0.0, T, count + 1)
            check_way(task, SplineMotion(control, T, task.basis.degree).derivatives(s, 0)[0])
        if guess:
            rng = np.random.default_rng((1, guess))
            free = control[task.basis.end_derivatives:len(control) - task.basis.end_derivatives]
            free += 0.3 * (np.abs(np.ptp(control, axis=0)).max() + 0.1) * rng.normal(size=free.shape)
        found, spent = refined(task, control, T, count, tolerance, deadline, stop)
        iterations += spent
        while found[1].converged and (more := finer(task, found[2], found[3])) is not None:
            task, control = more
            found, spent = refined(task, control, found[2].duration, count, tolerance, deadline, stop, found)
            iterations += spent
        made = _motion(task, *found, iterations, begin)
        if best is None or _rank(made) > _rank(best):
            best = made
        if best.good or made.ended in ("time limit", STOPPED):
            break
    assert best is not None
    if fast is task.model and task.chain is None:
        remember(task.model, time.perf_counter() - begin)
    return best if best.feasible else max(best, _straight(task, count, best.ended, iterations, begin), key=_rank)


def _rank(motion: OptimalMotion) -> tuple[bool, float, float]:
    """Good ones first, then those that break limits least, then the cheapest."""
    return motion.good, -max(motion.violation, 0.0), -motion.cost


def _straight(task: Task, count: int, ended: str, iterations: int, begin: float) -> OptimalMotion:
    """The minimum-jerk motion, a fallback that may break limits less."""
    T = first_duration(task) if task.free_duration else task.duration
    problem = Problem(task, task.nodes(count))
    x = problem.unknowns(minimum_jerk(task, T), T)
    spline = SplineMotion(problem.control(x), T, task.basis.degree)
    solution = Solution(x, np.zeros(0), np.inf, np.inf, False, 0,
                        f"{ended}; this is the motion of least jerk", 0.0, 0.0)
    return _motion(task, problem, solution, spline, certify(task, spline), iterations, begin)


def _motion(task: Task, problem: Problem, solution: Solution, spline: SplineMotion, certificate: Certificate,
            iterations: int, begin: float) -> OptimalMotion:
    reason = solution.reason
    missed = [(name, pose.body) for name, pose, q in zip(("start", "goal"), task.poses, spline.control[[0, -1]],
                                                         strict=True) if pose and not pose.holds(task.model, q)]
    converged = solution.converged and not missed
    if solution.converged and missed:
        name, body = missed[0]
        verb = "starts" if name == "start" else "ends"
        reason = f"{reason}, but body '{body}' {verb} in another pose than the {name}'s"
    elif max((used.ratio for used in certificate.usage.values()), default=0.0) > 1.0 + ROUNDING:
        name, used = max(certificate.usage.items(), key=lambda item: item[1].ratio)
        if name == PASSIVE and solution.converged:
            reason = "more control_points help"
        amount = (f"point '{used.joint}' is {used.ratio - 1.0:.4g} m beyond its plane" if name == "clearance" else
                  f"the {name} of joint '{used.joint}' is {used.ratio:.4g} times "
                  + ("what is tolerated" if name == PASSIVE else "its limit"))
        reason = f"infeasible ({reason}), at best {amount} at {used.time:.4g} s"
    elif not solution.converged:
        reason = f"not optimal ({reason}), KKT residual {solution.residual:.1e}"
    fine = Problem(task, task.nodes(FINE * len(problem.nodes.s)))
    return OptimalMotion(spline, fine.values(solution.x).cost, converged, solution.residual, iterations,
                         certificate.usage, reason, solution.reason, time.perf_counter() - begin, task)
