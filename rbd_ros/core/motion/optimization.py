"""Trajectory optimisation of open chains between two states: least effort, jerk, power or time, within all limits."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuation.actuation import Actuation
from ..batch import Executors, batch
from ..compiled.computing_time import computing_time
from ..dynamics.friction import SMOOTHING, Friction
from ..dynamics.inverse import inverse_dynamics
from ..errors import RbdError
from ..model.constraints import ConstraintSet
from ..model.robot_model import RobotModel
from ..model.scalars import positive, whole_number
from .closed.closed_motion import ClosedMotion
from .collision.clearance import CLEARANCE, Clearance
from .collision.collision_model import CollisionModel
from .optimal.checked_task import checked_task, check_first_guess
from .optimal.certificate import PASSIVE, Certificate, certify
from .optimal.first_guess import first_duration, first_guess, minimum_jerk, with_jerk_weight
from .optimal.free_guess import free_guess
from .interior_point.search import STOPPED, Solution
from .optimal.limits import MotionLimits
from .own_code import own_code, remember
from .optimal.passive import finer_spline
from .optimal.problem import Problem
from .optimal.refinement import FINE, refined
from .optimal.task import ROUNDING, Task
from .places.body_goal import BodyGoal
from .places.plane_limit import PlaneLimit
from .splines import SplineMotion
from .trajectory import Reference
from .usage import Usage

Array = NDArray[np.float64]
TOLERANCE = 1e-6
LEFT = 0.05         # share of the time limit for work after the iterations, besides the certificate
SEEKING = 0.5       # largest share of the time for finding the posture of a pose
MOST_NODES = 100_000
STARTS = 3          # number of first guesses by default, and of those tried if no motion is good


class Progress(NamedTuple):
    """Progress of a search: iterations, cost relative to that of the first guess, the worst relative violation of a
    limit at the knots (at most 0 if feasible), and seconds since the start.
    """

    iterations: int
    cost: float
    violation: float
    seconds: float


@dataclass(frozen=True, eq=False)
class OptimalMotion:
    """A motion with its certificate: `motion(t)` has .q, .v, .a, .jerk, .snap, at rest before and after.

    usage: largest ratio to each limit, sampled at 1 kHz or finer, with joint and time. cost: of the objective, in its
    units. kkt_residual: relative to the cost of the first guess. A motion is `good` if it converged and keeps all
    limits; otherwise it is the best one found, and `reason` explains.
    """

    spline: SplineMotion
    cost: float
    converged: bool
    kkt_residual: float
    iterations: int
    usage: Mapping[str, Usage]
    reason: str
    ended: str    # reason of the search's end: "converged", "time limit", …
    seconds: float
    _task: Task

    @property
    def duration(self) -> float:
        """Duration, s."""
        return self.spline.duration

    @property
    def violation(self) -> float:
        """The worst ratio to a limit, minus 1: at most 0 if all limits are kept."""
        return max((usage.ratio for usage in self.usage.values()), default=0.0) - 1.0

    @property
    def feasible(self) -> bool:
        """Whether all limits are kept at all samples."""
        return self.violation <= ROUNDING

    @property
    def good(self) -> bool:
        """Whether the motion is locally optimal and keeps all limits."""
        return self.converged and self.feasible

    @cached_property
    def _closed(self) -> ClosedMotion | None:
        return None if self._task.chain is None else ClosedMotion(self.spline, self._task.chain)

    def __call__(self, t: ArrayLike) -> Reference:
        return self.spline(t) if self._closed is None else self._closed(t)

    def polynomials(self) -> tuple[Array, Array]:
        """`SplineMotion.polynomials`; raises `RbdError` for a motion with loops."""
        if self._closed is not None:
            raise RbdError("a motion with loops is not of polynomials")
        return self.spline.polynomials()

    def sample(self, t: float) -> Reference:
        """The reference at time t (s), as by calling the motion."""
        return self(t)

    def effort(self, t: ArrayLike) -> Array:
        """Efforts with friction and external wrenches (nv,) or (N, nv) at t, N m or N; 0 without a motor."""
        if self._closed is not None:
            return self._closed.effort(t)
        z, task = self.spline(t), self._task
        efforts = task.friction.add(z.v, inverse_dynamics(task.model, z.q, z.v, z.a, task.wrenches))
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
                    collisions: CollisionModel | None = None, clearance: float = CLEARANCE,
                    actuation: Actuation | None = None,
                    smoothing: float = SMOOTHING, friction: Friction | None = None,
                    degree: int = 5, control_points: int = 20, nodes: int = 100,
                    tolerance: float = TOLERANCE, time_limit: float = 10.0, starts: int | None = None,
                    executor: Executors = None, progress: Callable[[Progress], Any] | None = None) -> OptimalMotion:
    """The motion of least cost from start to goal that keeps all limits, as a B-spline.

    start, goal: positions (nq,) at rest, a `Reference` with derivatives, or a `BodyGoal`, a pose of a body at rest,
    whose posture is part of the optimisation. duration: s, or (shortest, longest), or None: free.

    objective: "effort" ∫Σ τ², "effort_rate" ∫Σ τ̇², "power" ∫Σ (τ v)², "velocity", "acceleration", "jerk" likewise,
    "duration"; or a dictionary of these names and weights, a number or (nv,) each, for a weighted sum. "jerk_share" in
    it is jerk with a relative weight: 0.1 costs a tenth of the other terms on the minimum-jerk motion, which keeps arms
    from folding and light joints from whirling.

    limits: the model's by default. actuation: with springs, for limits of `motor_velocity`; inertia and efforts are
    then those of the links, efforts within the springs' range. planes: half-space limits of points. collisions: no pair
    of its pieces comes nearer than the clearance (m), at any time of a `good` motion; a first guess that hits something
    is replaced by a path as of `plan_path`. waypoints: pairs of a fraction of the duration and positions (nq,).
    external_wrenches: as of `inverse_dynamics`, constant. friction: a law, by default the model's, smoothed as in
    `friction_effort`; load-dependent friction is supported only without loops and effort rates. degree: 5 or 7.
    control_points: per joint. nodes: knots for cost and limits, half as many with collisions; more are added at
    violated limits. time_limit: s, of all starts together. starts: number of first guesses, the best of whose motions
    is returned (default: 3, but 1 with loops or joints without motors, where a search takes seconds); up to 3 are tried
    if no motion is good. With an executor, as of `rbd.batch`, they run in parallel, each with time_limit. progress:
    called at each iteration, not with an executor; a true result ends the search ("stopped").

    constraints: loops, closed along the whole motion. actuated (mask or names): joints with motors; redundant motors
    share the load by minimize: "effort", with the objective's weights, or "multipliers", as in
    `constrained_inverse_dynamics`. Postures have all joints (nq,), loops closed to 1e-6; efforts, their weights and
    limits are those of motors, jerk that of the splines' coordinates.

    Without constraints, joints that are not `actuated` have no motor: their effort is 0 at collocation points, and at
    most passive_tolerance in between, relative to the minimum-jerk motion ("passive_effort").

    Without constraints, for joints of one coordinate each. Raises `RbdError` for malformed input, and for an end beyond
    a limit; if no good motion is found, the least violating one is returned, which is not `good`. Method:
    docs/motion.md

        >>> model = rbd.sample("two_link")
        >>> motion = rbd.optimize_motion(model, [0.0, 0.0], [1.0, -0.5], 1.5)
        >>> motion.good, motion(1.5).q.round(3)
        (True, array([ 1. , -0.5]))
    """
    ask = partial(checked_task, model, start, goal, duration, objective, limits, waypoints, external_wrenches,
                  smoothing, degree, control_points, constraints, actuated, minimize, planes, actuation,
                  passive_tolerance, collisions, clearance, friction=friction)
    search = partial(_search, ask, positive(time_limit, "time_limit", "time"), nodes, tolerance)
    count = None if starts is None else whole_number(starts, "starts")
    if executor is None:
        return search(count, progress=progress)
    if progress is not None:
        raise RbdError("progress: not with an executor, whose workers cannot call it")
    return max(batch(partial(_one_start, search), range(count or STARTS), executor), key=_rank)


def _one_start(search: Callable[..., OptimalMotion], guess: int, _random: Any) -> OptimalMotion:
    return search(1, (guess,))


def _search(ask: Callable[[float], Task], time_limit: float, nodes: int, tolerance: float, starts: int | None,
            guesses: Sequence[int] = (), progress: Callable[[Progress], Any] | None = None) -> OptimalMotion:
    """The best motion of `starts` first guesses, and of further ones as long as none is good; or of `guesses`."""
    begin = computing_time()
    deadline = begin + (1.0 - LEFT) * time_limit
    task = with_jerk_weight(ask(begin + SEEKING * (deadline - begin)))
    specialized = task.model if task.chain is not None else own_code(task.model, deadline)
    task = replace(task, specialized=specialized)
    tolerance = positive(tolerance, "tolerance", "number")
    count = whole_number(nodes, "nodes", most=MOST_NODES)
    if task.distances is not None:
        count = (count + 1) // 2
    if starts is None:
        starts = 1 if task.chain is not None or len(task.passive) else STARTS
    best: OptimalMotion | None = None
    iterations, whole = 0, task

    def stop(spent: int, cost: float, violation: float) -> bool:
        return progress is not None and bool(progress(Progress(
            iterations + spent, cost, violation, computing_time() - begin)))

    for i, guess in enumerate(guesses or range(max(starts, STARTS))):
        if i >= starts and best is not None and best.good:
            break
        T = task.duration if not task.free_duration else first_duration(task)
        control = first_guess(whole, T, guess)
        if whole.distances is not None:
            task, control, T, blocked = free_guess(whole, control, T, guess)
            if blocked:
                candidate = _straight(task, count, blocked, iterations, begin)
                best = candidate if best is None else best
                break
        if task.chain is not None and not guess:
            s = np.linspace(0.0, T, count + 1)
            check_first_guess(task, SplineMotion(control, T, task.basis.degree).derivatives(s, 0)[0])
        result, spent = refined(task, control, T, count, tolerance, deadline, stop)
        iterations += spent
        while result[1].converged and (more := finer_spline(task, result[2], result[3])) is not None:
            task, control = more
            result, spent = refined(task, control, result[2].duration, count, tolerance, deadline, stop, result)
            iterations += spent
        apart = None
        if task.distances is not None:    # with the pairs that came near
            task = replace(task, distances=result[0].task.distances)
        while task.distances is not None and result[1].converged:
            apart = task.distances.certificate(result[2])
            if apart.clear:
                break
            near = task.distances.with_nearby(result[2].states(np.linspace(0.0, 1.0, count), 1)[:, 0])
            if len(near) == len(task.distances):
                break
            task, apart = replace(task, distances=near), None
            result, spent = refined(task, result[2].control, result[2].duration, count, tolerance, deadline, stop,
                                    result)
            iterations += spent
        candidate = _motion(task, *result, iterations, begin, apart)
        if best is None or _rank(candidate) > _rank(best):
            best = candidate
        if candidate.ended in ("time limit", STOPPED):
            break
    assert best is not None
    best = replace(best, iterations=iterations, seconds=computing_time() - begin)
    if specialized is task.model and task.chain is None:
        remember(task.model, computing_time() - begin)
    return best if best.feasible else max(best, _straight(task, count, best.ended, iterations, begin), key=_rank)


def _rank(motion: OptimalMotion) -> tuple[bool, float, float]:
    """Sort key: good motions first, then least violation, then least cost."""
    return motion.good, 0.0 if motion.feasible else -motion.violation, -motion.cost


def _straight(task: Task, count: int, ended: str, iterations: int, begin: float) -> OptimalMotion:
    """The minimum-jerk motion, a fallback that may violate limits less."""
    T = first_duration(task) if task.free_duration else task.duration
    problem = Problem(task, task.nodes(count))
    x = problem.unknowns(minimum_jerk(task, T), T)
    spline = SplineMotion(problem.control(x), T, task.basis.degree)
    solution = Solution(x, np.zeros(0), np.inf, np.inf, False, 0,
                        f"{ended}; this is the motion of least jerk", 0.0, 0.0)
    return _motion(task, problem, solution, spline, certify(task, spline), iterations, begin)


def _motion(task: Task, problem: Problem, solution: Solution, spline: SplineMotion, certificate: Certificate,
            iterations: int, begin: float, apart: Clearance | None = None) -> OptimalMotion:
    reason, usage = solution.reason, dict(certificate.usage)
    if task.distances is not None:
        apart = apart or task.distances.certificate(spline)
        if not apart.clear:
            usage["distance"] = task.distances.excess(apart)
    missed = [(name, pose.body) for name, pose, q in zip(("start", "goal"), task.poses, spline.control[[0, -1]],
                                                         strict=True) if pose and not pose.holds(q)]
    converged = solution.converged and not missed
    if solution.converged and missed:
        name, body = missed[0]
        verb = "starts" if name == "start" else "ends"
        reason = f"{reason}, but body '{body}' {verb} in another pose than the {name}'s"
    elif max((used.ratio for used in usage.values()), default=0.0) > 1.0 + ROUNDING:
        name, used = max(usage.items(), key=lambda item: item[1].ratio)
        if name == PASSIVE and solution.converged:
            reason = "more control_points help"
        amount = (f"point '{used.joint}' is {used.ratio - 1.0:.4g} m beyond its plane" if name == "clearance" else
                  apart.reason if name == "distance" and apart is not None else
                  f"the {name} of joint '{used.joint}' is {used.ratio:.4g} times "
                  + ("what is tolerated" if name == PASSIVE else "its limit"))
        reason = f"infeasible ({reason}), at best {amount} at {used.time:.4g} s"
    elif not solution.converged:
        reason = f"not optimal ({reason}), KKT residual {solution.residual:.1e}"
    fine = Problem(task, task.nodes(FINE * len(problem.nodes.s)))
    return OptimalMotion(spline, fine.values(solution.x).cost, converged, solution.residual, iterations,
                         usage, reason, solution.reason, computing_time() - begin, task)
