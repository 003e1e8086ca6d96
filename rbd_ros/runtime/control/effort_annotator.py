"""Efforts for the points of a joint trajectory, by inverse dynamics, for joint_trajectory_controller's feed-forward.

Missing velocities and accelerations of a point are those of the interpolation (`trajectory`), averaged over the
adjacent halves of its two neighbouring segments, because a message has one effort per point:

| given             | velocity                         | acceleration                                              |
|-------------------|----------------------------------|-----------------------------------------------------------|
| q, v, a           | given                            | given                                                     |
| q, v              | given                            | mean of both cubics                                       |
| q                 | slopes, weighted by the segments | change of slope over the halves of both segments          |

A trajectory of positions is at rest at its end, and at its start if that is at time 0; the motion towards a later
first point is unknown. With T the duration and D the displacement of a segment, its cubic has the accelerations
6 D/T² − (4 v₀ + 2 v₁)/T and −6 D/T² + (2 v₀ + 4 v₁)/T at its ends.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.friction import Friction
from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...core.motion.collision.collision_model import CollisionModel
from ...core.motion.position_limits import limits
from ...core.motion.trajectory import Reference
from ..friction_terms import FrictionTerms, drive_friction_rows, friction_rows
from ..inputs.finite import all_finite
from ..inputs.joint_map import JointMap, as_array
from ..inputs.rejections import Rejected, Rejections, Verdict
from ..inputs.trajectory_points import MOST_POINTS, Point
from ..parameters import Parameter, Table, parameter, table_of, taken, validate
from ..planning.collision_settings import CollisionSettings
from ..planning.retiming import Timed, exceeds, retimed
from ..planning.sampled import GivenPoints
from ..planning.surroundings import Surroundings
from ..robot import PAYLOAD_TABLE, ROBOT_TABLE, joint_order, joints_row, loaded
from .tracking_law import ROBOT_COMPENSATES, TrackingLaw, TrackingLawSettings
from .torque_settings import EFFORT_LIMITS, effort_limits

Array = NDArray[np.float64]
RETIME = ("never", "if_needed", "always")
ACTION = Parameter("action.controller", "string", "", "Controller whose action <controller>/follow_joint_trajectory "
                   "gets the goals of ~/follow_joint_trajectory, with efforts. Empty: no action. Needs control_msgs.",
                   read_only=True)


@dataclass(frozen=True, kw_only=True)
class AnnotatorSettings(CollisionSettings):
    """Validated parameters; `effort_limit` (nv,) in model order, N m or N."""

    model: RobotModel
    law: TrackingLawSettings
    effort_limit: Array
    retime: str = parameter("never", "Time trajectories anew, along the same path, so that efforts and velocities keep "
                            "their limits. if_needed: those that do not, to last no less than before; always: all, as "
                            "fast as possible, but no joint faster than before.", choices=RETIME)
    clearance: float = parameter(0.0, "Distance between links, and to obstacles, below which a trajectory hits, m.",
                                 name="collisions.clearance", lower=0.0, upper=10.0)
    reject: bool = parameter(False, "Reject trajectories and goals that hit. false: they are logged and counted, and "
                             "pass.", name="collisions.reject")
    clip: bool = parameter(True, "Clip efforts to their limits. Efforts beyond them are reported in either case.")

    @staticmethod
    def from_values(values: Mapping[str, Any], model: RobotModel) -> AnnotatorSettings:
        """Validate parameter values by name; missing ones get their defaults. Raises `RbdError`."""
        values = validate(ANNOTATOR_TABLE, values)
        zero = np.zeros(model.nv)
        order = joint_order(values["joints"], model)[2]
        law = TrackingLawSettings(kp=zero, kd=zero, friction=FrictionTerms.from_values(values, order),
                                  compensates=values["robot_compensates"])
        limit = effort_limits(values, model, order)
        return AnnotatorSettings(model=loaded(model, values), law=law, effort_limit=limit,
                                 **taken(AnnotatorSettings, values))


ANNOTATOR_TABLE: Table = (
    *ROBOT_TABLE, joints_row("all lists with one entry per joint, and of the published effort"), *PAYLOAD_TABLE,
    ROBOT_COMPENSATES, *EFFORT_LIMITS, MOST_POINTS, *friction_rows("Compensate"), *drive_friction_rows(),
    *table_of(AnnotatorSettings), ACTION,
)


class Excess(NamedTuple):
    """A point beyond a limit. `kind`: effort, velocity or position; `value` and `limit` of the worst joint."""

    point: int
    joint: str
    kind: str
    value: float
    limit: float

    def __str__(self) -> str:
        return f"point {self.point}: {self.kind} {self.value:.4g} of joint '{self.joint}', limit {self.limit:.4g}"


class Annotation(NamedTuple):
    """Clipped efforts (N, number of names) in the order of the names, and the points beyond a limit before clipping.
    retimed: times (N,), positions, velocities and accelerations that replace the received ones; None if not retimed.
    kept: reason why a trajectory was not retimed although requested.
    """

    effort: Array
    excesses: list[Excess]
    retimed: tuple[Array, Array, Array, Array] | None = None
    kept: str = ""


class Hit(NamedTuple):
    """Which pieces a trajectory brings too near, and in words how much and when; empty if none."""

    words: str = ""
    pieces: tuple[str, ...] = ()


class EffortAnnotator:
    """Annotates trajectories with efforts; invalid trajectories are counted in `rejections`."""

    def __init__(self, model: RobotModel, settings: AnnotatorSettings,
                 collisions: CollisionModel | None = None) -> None:
        self.rejections = Rejections()
        self.surroundings = Surroundings(collisions, settings.frame, settings.voxel_size)
        self.hit = Hit()    # of the latest trajectory
        self.counts = Counter({"trajectories": 0, "points": 0, "points_over_effort_limit": 0,
                               "points_over_velocity_limit": 0, "points_over_position_limit": 0, "retimed": 0,
                               "not_retimed": 0, "hitting": 0})
        self._map = JointMap(model, extra=False)
        if collisions is not None:    # compiled before the first trajectory
            collisions.certify(np.stack([model.neutral()] * 2))
        self.apply(settings)

    def apply(self, settings: AnnotatorSettings) -> None:
        """Use these settings from now on."""
        self.settings, self.model, self._law = settings, settings.model, TrackingLaw(settings.model, settings.law)

    def annotate(self, names: Sequence[str], points: Sequence[Point]) -> Annotation | Verdict:
        """Efforts of all points, unless the trajectory is rejected."""
        self.hit = Hit()
        try:
            return self._annotate(names, points)
        except Rejected as error:
            return self.rejections.add(error)
        except RbdError as error:
            return self.rejections.add(Rejected("bad_trajectory", str(error)))

    def _annotate(self, names: Sequence[str], points: Sequence[Point]) -> Annotation:
        if not points:
            raise Rejected("bad_trajectory", "trajectory has no points")
        if not self._map.update(names):
            raise Rejected("unknown_joint", f"none of the joints {list(names)} belongs to the model; its joints: "
                                            f"{', '.join(self.model.joint_names)}")
        times = np.array([point.time for point in points])
        if not (np.isfinite(times).all() and times[0] >= 0.0 and (np.diff(times) > 0.0).all()):
            raise Rejected("bad_trajectory", "times from start must be at least 0 and strictly increase, got "
                                             f"{times.tolist()}")
        q, v, a = (np.array(rows) for rows in zip(*map(self._read, range(len(points)), points), strict=True))
        with np.errstate(all="ignore"):
            timed, kept = self._retimed(times, q, v, a)
            if timed is not None:
                times, q, v, a = timed
            given = GivenPoints(times, q, v, a)
            v, a = derive(self.model, times, q, v, a)
            tau = self._efforts(q, v, a)
        excesses = self._excesses(q, v, tau)
        self._check(given)
        self.counts.update(trajectories=1, points=len(q), retimed=timed is not None, not_retimed=bool(kept))
        self.counts.update(f"points_over_{kind}_limit" for kind, _ in {(e.kind, e.point) for e in excesses})
        if self.settings.clip:
            tau = np.clip(tau, -self.settings.effort_limit, self.settings.effort_limit)
        effort = self._by_name(names, tau, 0.0, 0.0)    # a mimic joint's effort is its source's
        if timed is None:
            return Annotation(effort, excesses, kept=kept)
        return Annotation(effort, excesses, (times, self._by_name(names, q, 1.0, 1.0),
                                             self._by_name(names, v, 1.0, 0.0), self._by_name(names, a, 1.0, 0.0)))

    def _by_name(self, names: Sequence[str], values: Array, rate: float, offset: float) -> Array:
        """Values (N, nv) as (N, number of names). rate, offset: factors of a mimic joint's multiplier and offset."""
        out = np.zeros((len(values), len(names)))
        mimics = {mimic.name: mimic for mimic in self.model.mimics}
        for i, name in enumerate(names):
            if name in mimics:
                mimic = mimics[name]
                source = values[:, self.model.joint_names.index(mimic.source)]
                out[:, i] = rate * mimic.multiplier * source + offset * mimic.offset
            else:
                out[:, i] = values[:, self.model.joint_names.index(name)]
        return out

    def _check(self, given: GivenPoints) -> None:
        """Find what the trajectory hits, as the controller interpolates it, certified for all times between its points;
        raises `Rejected` if that is refused.
        """
        collisions = self.surroundings.collisions
        if collisions is None:
            return
        alone = len(given.time) == 1
        found = collisions.certify(np.repeat(given.q, 2, axis=0) if alone else given, self.settings.clearance)
        time = given.time[0] if alone else found.time
        if not found.clear:
            self.hit = Hit(f"{found.reason} at {time:.4g} s", found.pair or ())
            self.counts["hitting"] += 1
            if self.settings.reject:
                raise Rejected("hitting", self.hit.words)

    def _retimed(self, times: Array, q: Array, v: Array, a: Array) -> tuple[Timed | None, str]:
        """The path retimed within the limits, if requested; else the reason why not."""
        mode, law = self.settings.retime, self.settings.law
        if mode == "never":
            return None, ""
        model, friction = self.model, law.friction.law(self.model) or Friction()
        try:
            if not np.isfinite(v).all():
                raise RbdError("its points have no velocities, so its path has corners")
            _, full = derive(self.model, times, q, v, a)
            points = Timed(times, q, v, full)
            if mode == "if_needed" and not exceeds(model, self.settings.effort_limit, points, friction):
                return None, ""
            return retimed(model, self.settings.effort_limit, points, friction, mode == "always"), ""
        except RbdError as error:
            return None, f"not timed anew: {error}"

    def _efforts(self, q: Array, v: Array, a: Array) -> Array:
        efforts = np.empty_like(q)
        for i, state in enumerate(zip(q, v, a, strict=True)):
            if not np.isfinite(state).all():
                raise Rejected("bad_trajectory", f"point {i} is so close to its neighbours in time that its velocity "
                                                 "or acceleration is not finite")
            efforts[i] = self._law.effort(*state[:2], Reference(*state))
            if not all_finite(efforts[i]):
                raise Rejected("non_finite", f"effort of point {i} is not finite: its velocity or acceleration is too "
                                             "large")
        return efforts

    def _read(self, index: int, point: Point) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration in model order, NaN where missing."""
        where = f"in trajectory point {index}"
        missing = np.full(self.model.nv, np.nan)
        return (self._map.positions(f"position {where}", point.position),
                self._map.rates(f"velocity {where}", point.velocity) if len(as_array(point.velocity)) else missing,
                self._map.rates(f"acceleration {where}", point.acceleration)
                if len(as_array(point.acceleration)) else missing)

    def _excesses(self, q: Array, v: Array, tau: Array) -> list[Excess]:
        model, effort = self.model, self.settings.effort_limit
        excesses = []
        for kind, values, lower, upper in (("effort", tau, -effort, effort),
                                           ("velocity", v, -model.velocity_limit, model.velocity_limit),
                                           ("position", q, *limits(model))):
            over = np.maximum(values - upper, lower - values)
            for i in np.flatnonzero((over > 1e-9).any(axis=1)):
                j = int(np.argmax(over[i]))
                limit = upper[j] if values[i, j] > upper[j] else lower[j]
                excesses.append(Excess(int(i), model.joint_names[j], kind, float(values[i, j]), float(limit)))
        return sorted(excesses)


def derive(model: RobotModel, times: Array, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
    """Velocities and accelerations (N, nv), with NaN replaced according to the module's table."""
    if len(times) == 1:
        return np.nan_to_num(v, nan=0.0), np.nan_to_num(a, nan=0.0)
    T = np.diff(times)[:, None]
    D = np.array([model.difference(a, b) for a, b in pairwise(q)])
    none = np.zeros((1, model.nv))
    begins_at_rest = times[0] == 0.0
    slope = np.vstack([none if begins_at_rest else D[:1] / T[:1], D / T, none])    # before, of, after the segments
    length = np.vstack([T[:1] if not begins_at_rest else 0.0 * T[:1], T, 0.0 * T[:1]])
    left, right = length[:-1], length[1:]
    smooth_v = (right * slope[:-1] + left * slope[1:]) / (left + right)
    bend = 2.0 * (slope[1:] - slope[:-1]) / (left + right)
    measured = np.isfinite(v)
    v = np.where(measured, v, smooth_v)
    begin = 6.0 * D / T**2 - (4.0 * v[:-1] + 2.0 * v[1:]) / T
    end = -6.0 * D / T**2 + (2.0 * v[:-1] + 4.0 * v[1:]) / T
    cubic = np.vstack([begin[:1], (end[:-1] + begin[1:]) / 2.0, end[-1:]])
    return v, np.where(np.isfinite(a), a, np.where(measured, cubic, bend))
