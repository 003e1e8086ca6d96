"""Validation of motion requests; `RbdError` names the field and the joint."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.dynamics.friction import Friction
from ...core.errors import RbdError, unknown_name
from ...core.model.payload import payload, with_payloads
from ...core.model.robot_model import RobotModel
from ...core.motion.collision.clearance import CLEARANCE
from ...core.motion.collision.collision_model import CollisionModel
from ...core.motion.optimal.limits import MotionLimits
from ...core.motion.places.body_goal import BodyGoal
from ...core.motion.optimal.arguments import WEIGHED
from ..service.naming import Coordinates, numbers, wrenches_by_body
from .planner_settings import PlannerSettings

Array = NDArray[np.float64]
LIMITS = {"lower_position": "position_lower", "upper_position": "position_upper", "max_velocity": "velocity",
          "max_acceleration": "acceleration", "max_jerk": "jerk", "max_effort": "effort",
          "max_effort_rate": "effort_rate"}    # field of the request → of `MotionLimits`
SHORTEST_PERIOD = 1e-3    # s
MOST_POINTS = 20_000
MOST_ALLOWED = 1000    # pairs
CALM = 0.1    # weight of jerk in the default objective: least effort alone folds arms and whirls light joints


class MotionWaypoint(NamedTuple):
    """Positions (n,) at a fraction of the duration."""

    fraction: float
    position: ArrayLike


@dataclass(frozen=True)
class MotionRequest:
    """Fields of rbd_interfaces/MotionRequest; arrays per joint in the order of `name`."""

    name: Sequence[str]
    goal: ArrayLike
    start: ArrayLike = ()
    waypoints: Sequence[MotionWaypoint] = ()
    duration: float = 0.0
    shortest_duration: float = 0.0
    longest_duration: float = 0.0
    objective: Sequence[str] = ()
    weight: ArrayLike = ()
    lower_position: ArrayLike = ()
    upper_position: ArrayLike = ()
    max_velocity: ArrayLike = ()
    max_acceleration: ArrayLike = ()
    max_jerk: ArrayLike = ()
    max_effort: ArrayLike = ()
    max_effort_rate: ArrayLike = ()
    payload_body: str = ""
    payload: tuple[float, ArrayLike, ArrayLike] = (0.0, (0.0, 0.0, 0.0), np.zeros((3, 3)))    # mass, com, tensor
    external_wrenches: Sequence[tuple[str, ArrayLike]] = ()
    clearance: float = 0.0
    allowed_pairs: Sequence[tuple[str, str]] = ()
    sample_period: float = 0.0
    time_limit: float = 0.0


@dataclass(frozen=True)
class PlanningTask:
    """Arguments of `optimize_motion`, in model order. names: of the answer; order: their indices in the model."""

    names: tuple[str, ...]
    order: NDArray[np.intp]
    model: RobotModel
    start: Array | BodyGoal
    goal: Array | BodyGoal
    duration: float | tuple[float, float] | None
    objective: Mapping[str, float]
    limits: MotionLimits
    waypoints: list[tuple[float, Array]]
    wrenches: dict[str, Array] | None
    friction: Friction
    sample_period: float
    time_limit: float
    actuated: tuple[str, ...] | None = None    # joints with motors; None: all
    memory_limit: float = np.inf    # MiB, of the worker process
    starts: int = 1
    collisions: CollisionModel | None = None
    clearance: float = CLEARANCE    # m, between its pairs


def check_sizes(request: Any, settings: PlannerSettings) -> None:
    """Raise `RbdError` for too long lists of a request, or of a message with its fields, before they are read. Other
    lists are bounded by the later checks.
    """
    for field, limit, remark in (
            ("waypoints", settings.most_waypoints, " (parameter 'waypoint_limit')"),
            ("allowed_pairs", MOST_ALLOWED, ""),
            ("external_wrenches", len(settings.model.body_names), ", the number of links")):
        count = len(getattr(request, field))
        if count > limit:
            raise RbdError(f"{field} has {count} entries, expected at most {limit:g}{remark}")


def planning_task(request: MotionRequest, settings: PlannerSettings, coordinates: Coordinates,
                  present: Callable[[], tuple[Array, Array]]) -> PlanningTask:
    """The request in model order; `present` returns the robot's (q, v), or raises `RbdError`."""
    names = tuple(request.name)
    order = coordinates.indices("name", names)
    missing = [name for name in coordinates.names if name not in names]
    if missing:
        raise RbdError(f"name: joint '{missing[0]}' is missing, expected every joint once: "
                       f"{', '.join(coordinates.names)}. Joints that never move belong in parameter 'locked.joints'")

    def in_model_order(field: str, values: ArrayLike) -> Array:
        out = np.empty(len(names))
        out[order] = numbers(field, names, values, needed=True)
        return out

    model = _loaded(request, settings)
    start = in_model_order("start", request.start) if np.size(request.start) else _at_rest(settings, *present())
    period = _time("sample_period", request.sample_period) or settings.sample_period
    if period < SHORTEST_PERIOD:
        raise RbdError(f"sample_period is {period:g} s, expected at least {SHORTEST_PERIOD:g} s, or 0 for the node's")
    duration = _duration(request)
    return PlanningTask(
        names, order, model, start, in_model_order("goal", request.goal), duration,
        _objective(request, duration is None), _limits(request, names, order, settings.limits),
        [(_fraction(i, point.fraction), in_model_order(f"waypoints[{i}].position", point.position))
         for i, point in enumerate(request.waypoints)],
        wrenches_by_body(model, request.external_wrenches), settings.friction, period,
        min(_time("time_limit", request.time_limit) or settings.time_limit, settings.time_limit), settings.actuated,
        settings.memory_limit, settings.starts)


def _at_rest(settings: PlannerSettings, q: Array, v: Array) -> Array:
    fastest = int(np.argmax(np.abs(v)))
    if abs(v[fastest]) > settings.rest_velocity:
        raise RbdError(f"start is empty, which means the present state, but joint "
                       f"'{settings.model.joint_names[fastest]}' moves at {v[fastest]:.3g}, expected at most "
                       f"{settings.rest_velocity:g} (parameter 'rest_velocity'): wait until the robot stands still")
    return np.array(q)


def _loaded(request: MotionRequest, settings: PlannerSettings) -> RobotModel:
    mass, com, tensor = request.payload
    if not request.payload_body:
        if mass != 0.0:
            raise RbdError(f"payload has a mass of {mass:g} kg, but payload_body names no link that carries it")
        return settings.model
    if request.payload_body not in settings.unloaded.body_names:
        raise unknown_name("link in `payload_body`:", request.payload_body, settings.unloaded.body_names)
    if mass == 0.0:
        return settings.unloaded
    try:
        load = payload(mass, com, tensor)
    except RbdError as error:
        raise RbdError(f"payload: {error}") from None
    return with_payloads(settings.unloaded, {request.payload_body: load})


def _duration(request: MotionRequest) -> float | tuple[float, float] | None:
    duration, low, high = (_time(field, getattr(request, field)) for field in (
        "duration", "shortest_duration", "longest_duration"))
    if duration:
        if low or high:
            field = "shortest_duration" if low else "longest_duration"
            raise RbdError(f"duration is {duration:g} s, so {field} is not read: expected 0 for one of them")
        return duration
    if not low and not high:
        return None
    if high and not low < high:
        raise RbdError(f"shortest_duration is {low:g} s, expected less than longest_duration, {high:g} s")
    return low or min(1e-3, 0.5 * high), high or max(1e3, 2.0 * low)


def _objective(request: MotionRequest, free: bool) -> dict[str, float]:
    names = list(request.objective)
    if not names:
        if np.size(request.weight):
            raise RbdError("weight has numbers, but objective is empty: expected one number per objective")
        return {"duration" if free else "effort": 1.0, "jerk_share": CALM}
    for i, name in enumerate(names):
        if name not in WEIGHED:
            raise unknown_name("name in `objective`:", name, WEIGHED)
        if name in names[:i]:
            raise RbdError(f"objective: '{name}' is listed twice, expected each name once")
    weights = numbers("weight", names, request.weight) if np.size(request.weight) else np.ones(len(names))
    if weights.min() < 0.0 or not weights.any():
        raise RbdError(f"weight is {weights.tolist()}, expected numbers that are not negative, one of them positive")
    return dict(zip(names, weights.tolist(), strict=True))


def _limits(request: MotionRequest, names: Sequence[str], order: NDArray[np.intp], own: MotionLimits) -> MotionLimits:
    """The narrower of the request's and the node's limits."""
    narrowed: dict[str, Any] = {}
    for field, kind in LIMITS.items():
        wanted = np.asarray(getattr(request, field), dtype=np.float64)
        present = getattr(own, kind)
        if not wanted.size:
            narrowed[kind] = present
            continue
        if wanted.shape != (len(names),):
            raise RbdError(f"{field} has {wanted.size} numbers for {len(names)} names, expected one per name (or none, "
                           "for the node's limits)")
        signed = kind.startswith("position")
        wrong = np.isnan(wanted) if signed else ~(wanted > 0.0)
        if wrong.any():
            i = int(np.argmax(wrong))
            raise RbdError(f"{field} of joint '{names[i]}' is {wanted[i]:g}, expected a "
                           + ("number, inf where there is no limit" if signed else "positive number"))
        values = np.empty(len(names))
        values[order] = wanted
        narrower = np.maximum if kind == "position_lower" else np.minimum
        narrowed[kind] = values if present is None else narrower(values, present)
    return MotionLimits(**narrowed)


def _fraction(i: int, value: float) -> float:
    if not 0.0 < value < 1.0:
        raise RbdError(f"waypoints[{i}].fraction is {value:g}, expected a part of the duration between 0 and 1")
    return float(value)


def _time(field: str, value: float) -> float:
    if not (np.isfinite(value) and value >= 0.0):
        raise RbdError(f"{field} is {value:g}, expected a finite time in s that is not negative (0: open)")
    return float(value)
