"""`MotionPlanner`: logic of node `motion_planner`, without ROS."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.inverse import inverse_dynamics
from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...core.model.scalars import at_least
from ...core.motion.collision.collision_model import CollisionModel
from ...core.motion.collision.distance_rows import JOINED, DistanceRows
from ...core.motion.optimal.limits import MotionLimits
from ...core.motion.optimization import Progress, optimize_motion
from ...core.motion.places.body_goal import BodyGoal
from ...core.motion.usage import Usage
from ..service.naming import Coordinates
from ..service.robot_state import RobotStates
from .motion_request import MOST_POINTS, MotionRequest, PlanningTask, check_sizes, planning_task
from .planner_settings import PlannerSettings
from .robot_collisions import UNAWARE
from .sampled import Points, interpolated, sampled
from .surroundings import Surroundings

Array = NDArray[np.float64]
FEWEST, PER_WAYPOINT = 20, 3    # control points
BETWEEN_POINTS = 1e-6    # share of a limit, or m of the clearance, by which the interpolation may exceed it: rounding


class Figures(NamedTuple):
    """Figures of a motion: fields of `OptimalMotion`."""

    duration: float = 0.0
    cost: float = 0.0
    violation: float = 0.0
    kkt_residual: float = 0.0
    iterations: int = 0
    seconds: float = 0.0
    usage: Mapping[str, Usage] = MappingProxyType({})

    @staticmethod
    def of(motion: Any) -> Figures:
        return Figures(*(getattr(motion, field) for field in Figures._fields))


class Plan(NamedTuple):
    """Result of a search. `points`, in the order of `names`, only for a good motion; else `reason` explains."""

    good: bool
    reason: str
    cancelled: bool
    names: tuple[str, ...]
    points: Points | None
    motion: Any    # OptimalMotion, or its Figures from another process


CANCELLED = Plan(False, "cancelled", True, (), None, Figures())


def warm_up(model: RobotModel, collisions: CollisionModel | None = None) -> None:
    """Load or compile the code of a search, by a search with any outcome."""
    q = model.neutral()
    optimize_motion(model, q, q + 0.1, 1.0, {"effort": 1.0, "effort_rate": 1e-6}, starts=1, time_limit=0.3,
                    control_points=8, nodes=20, limits=MotionLimits(-np.inf, np.inf, np.inf, effort=np.inf))
    if collisions is not None:
        collisions.certify(np.stack([q, q + 0.1]))
        collisions.closest(q)
        DistanceRows.of_all(model, collisions, 1.0).jacobian(q[None])


def pieces_of_plan(plan: Plan) -> tuple[str, ...]:
    """Names of the two pieces that are too near in the best motion of a search, none if it keeps the clearance."""
    used = plan.motion.usage.get("distance")
    return tuple(used.joint.split(JOINED)) if used is not None and used.ratio > 1.0 else ()


def pieces_in_touch(task: PlanningTask) -> set[str]:
    """Names of the pieces that are too near at an end of the motion."""
    if task.collisions is None:
        return set()
    near = [task.collisions.touching(q, task.clearance) for q in (task.start, task.goal) if isinstance(q, np.ndarray)]
    return {name for touching in near for k in np.flatnonzero(touching) for name in task.collisions.pairs[k]}


class MotionPlanner:
    """Computes motions for requests by joint name; `RbdError` names the invalid field and the expected value.

    `prepare` reads the present state and settings, quickly; `search` needs neither, and takes long.
    """

    def __init__(self, model: RobotModel, settings: PlannerSettings, collisions: CollisionModel | None = None) -> None:
        self.coordinates = Coordinates(model)
        self.states = RobotStates(model, self.coordinates, settings.state_timeout, settings.velocity_cutoff)
        self.settings = settings
        self.surroundings = Surroundings(collisions, settings.frame, settings.voxel_size)

    def apply(self, settings: PlannerSettings) -> None:
        """Change the settings for later requests."""
        self.settings = settings
        self.states.latest.timeout, self.states.latest.cutoff = settings.state_timeout, settings.velocity_cutoff

    def prepare(self, request: Any, now: float, read: Callable[[Any], MotionRequest] = lambda it: it) -> PlanningTask:
        """Check a request. now: s, of the clock of joint-state reception. read: converts the request to a
        `MotionRequest` after the check of its size.
        """
        check_sizes(request, self.settings)
        asked = read(request)
        task = planning_task(asked, self.settings, self.coordinates, lambda: self.states.present(now, "start"))
        clearance = at_least(0.0, asked.clearance, "clearance", "m")
        if self.surroundings.collisions is None and (clearance or asked.allowed_pairs):
            raise RbdError(f"{'clearance' if clearance else 'allowed_pairs'}: {UNAWARE}: expected none")
        return replace(task, collisions=self.surroundings.without_pairs(asked.allowed_pairs),
                       clearance=max(clearance, self.settings.clearance))

    @staticmethod
    def search(task: PlanningTask, progress: Callable[[Progress], Any] | None = None) -> Plan:
        """Find the optimal motion; a true result of `progress` ends the search, and the plan is `cancelled`."""
        stopped = False

        def asked(now: Progress) -> bool:
            nonlocal stopped
            stopped = progress is not None and bool(progress(now))
            return stopped

        motion = optimize_motion(task.model, task.start, task.goal, task.duration, task.objective, limits=task.limits,
                                 waypoints=task.waypoints, external_wrenches=task.wrenches, friction=task.friction,
                                 time_limit=task.time_limit, starts=task.starts, progress=asked,
                                 actuated=task.actuated, collisions=task.collisions, clearance=task.clearance,
                                 control_points=max(FEWEST, PER_WAYPOINT * len(task.waypoints)))
        if stopped and not motion.good:    # `motion` may be the finished result of an earlier guess
            return Plan(False, "cancelled", True, task.names, None, motion)
        if not motion.good:
            return Plan(False, f"no optimal motion within the limits was found: {motion.reason}", False, task.names,
                        None, motion)
        if motion.duration / task.sample_period > MOST_POINTS:
            raise RbdError(f"sample_period is {task.sample_period:g} s, too little for a motion of "
                           f"{motion.duration:.4g} s: expected at most {MOST_POINTS} points")
        points = sampled(motion, task.sample_period)
        for place, end in ((0, task.start), (-1, task.goal)):
            if not isinstance(end, BodyGoal):
                points.q[place] = end    # without rounding
        _check_between(task, points)
        return Plan(True, "", False, task.names, Points(points.time, *(x[:, task.order] for x in points[1:])), motion)


def _check_between(task: PlanningTask, points: Points) -> None:
    """Raise `RbdError` if a controller's interpolation between the points would exceed the limits."""
    limits = task.limits.checked(task.model)
    _, q, v, a = interpolated(*points[:4])
    tau = task.friction.add(v, inverse_dynamics(task.model, q, v, a, task.wrenches))
    for name, values in (("position", q), ("velocity", v), ("acceleration", a), ("effort", tau)):
        lower, upper = limits.of(name)
        finite = np.where(np.isfinite(upper - lower), upper - lower, 0.0)
        over = np.maximum(values - upper, lower - values) - BETWEEN_POINTS * np.maximum(finite, 1e-3)
        if name == "effort" and task.actuated is not None:
            over[:, [joint not in task.actuated for joint in task.model.joint_names]] = -np.inf
        if over.max() > 0.0:
            j = int(np.argmax(over.max(axis=0)))
            raise RbdError(f"sample_period is {task.sample_period:g} s, too long: between the points the {name} of "
                           f"joint '{task.model.joint_names[j]}' would leave its limit")
    if task.collisions is not None:
        apart = task.collisions.certify(points, max(task.clearance - BETWEEN_POINTS, 0.0))
        if not apart.clear:
            raise RbdError(f"sample_period is {task.sample_period:g} s, too long: between the points, {apart.reason} "
                           f"at {apart.time:.4g} s")
