"""The checked task of a motion: ends, waypoints, duration, objective, limits."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...dynamics.friction import Friction
from ...dynamics.inverse import inverse_dynamics
from ...model.robot_model import RobotModel
from ..closed.closed_chain import ClosedChain
from ..collision.distance_rows import DistanceRows
from ..places.body_goal import EndPose
from ..places.plane_limit import Planes
from ..splines import Basis
from .limits import CheckedLimits
from .nodes import Nodes
from .springs import Springs

Array = NDArray[np.float64]
Index = NDArray[np.int64]
STATE = ("position", "velocity", "acceleration", "jerk")    # columns of a knot's state, by derivative
MARGIN = 1e-3      # margin to limits, as a share of half their range, for violations between knots
CLEAR = 1e-4       # m, margin of clearances
APART = 1e-3       # m, margin of distances of collision shapes
PLACES = ("clearance", "distance")    # columns of points and of pairs, not of coordinates
ROUNDING = 1e-9    # tolerated relative violation of limits, for rounding errors


class Column(NamedTuple):
    """A quantity of k joints or points: labels, limits, weights in the objective, margins of the limits (k,)."""

    name: str
    labels: tuple[str, ...]
    lower: Array
    upper: Array
    weight: Array
    margin: Array


@dataclass(frozen=True, eq=False)
class Task:
    """A checked task. Ends are rows q, v, a(, jerk) (m, n) of the splines' coordinates: all of an open chain, the
    independent ones of a closed chain. duration: None if free within `durations`.
    """

    model: RobotModel
    basis: Basis
    start: Array
    goal: Array
    duration_or_none: float | None
    durations: tuple[float, float]
    objective: Mapping[str, Array]
    limits: CheckedLimits
    via_times: Array
    via: Array
    wrenches: Any
    friction: Friction
    chain: ClosedChain | None = None
    postures: Array | None = None    # of a closed chain: q (2 + W, nq) of ends and waypoints
    planes: Planes | None = None
    distances: DistanceRows | None = None    # of collision shapes
    springs: Springs | None = None   # between motors and joints
    # coordinates of an open chain without motors; their effort limit is the tolerance between collocation points
    passive: Index = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    tolerated: float = 0.0           # relative tolerance of their efforts
    # body poses at start and goal, at rest; `start` or `goal` is then a first guess
    poses: tuple[EndPose | None, EndPose | None] = (None, None)
    position_only: tuple[bool, bool] = (False, False)    # ends with prescribed position only
    specialized: RobotModel | None = None   # the model specialized for batches

    def rows(self) -> Any:
        """Dynamics rows of a subclass (a path task); None for open and closed chains."""
        return None

    @property
    def size(self) -> int:
        """n, number of the splines' coordinates."""
        return self.model.nv if self.chain is None else self.chain.size

    @cached_property
    def prescribed_postures(self) -> tuple[str, ...]:
        """Names of the ends with a prescribed posture: "start", "goal"."""
        return tuple(name for name, pose in zip(("start", "goal"), self.poses, strict=True) if pose is None)

    @cached_property
    def index(self) -> Index:
        """Indices of the splines' coordinates among the velocity coordinates (n,)."""
        return np.arange(self.model.nv) if self.chain is None else self.chain.independent

    @property
    def free_duration(self) -> bool:
        return self.duration_or_none is None

    @property
    def duration(self) -> float:
        return self.durations[0] if self.duration_or_none is None else self.duration_or_none

    @cached_property
    def has_friction(self) -> bool:
        return bool(np.any(self.friction.damping) or np.any(self.friction.coulomb)
                    or np.any(self.friction.breakaway) or self.friction.by_load)

    def _uses(self, name: str) -> bool:
        limited = name != "power" and name != "duration" and bool(np.isfinite(self.limits.of(name)[1]).any())
        return limited or name in self.objective

    @cached_property
    def uses_effort(self) -> bool:
        return self._uses("effort") or self.uses_power or self.uses_rate or len(self.passive) > 0

    @cached_property
    def uses_power(self) -> bool:
        return self._uses("power")

    @cached_property
    def uses_rate(self) -> bool:
        return self._uses("effort_rate") or self.uses_motor

    @cached_property
    def uses_motor(self) -> bool:
        return self._uses("motor_velocity")

    @cached_property
    def orders(self) -> int:
        """Number of derivatives in a knot's state, including the position."""
        return 4 if self.uses_rate or self._uses("jerk") else 3

    @cached_property
    def dense(self) -> tuple[tuple[str, Index], ...]:
        """Blocks of dynamics rows: quantity and its velocity coordinates."""
        actuated = self.index if self.chain is None else self.chain.actuated
        rows = [(name, actuated) for name, used in (("effort", self.uses_effort), ("power", self.uses_power),
                                                  ("effort_rate", self.uses_rate),
                                                  ("motor_velocity", self.uses_motor)) if used]
        if self.chain is not None:
            for name in STATE[:3]:
                used = np.isfinite(self._limits(name)[1]) | np.isfinite(self._limits(name)[0])
                used |= self.objective.get(name, np.zeros(self.model.nv)) > 0.0
                index = self.chain.dependent[used[self.chain.dependent]]
                rows += [(name, index)] if len(index) else []
        return tuple(rows)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """All weighted or limited quantities: dynamics rows, then the state of the splines."""
        dense_columns = [self._column(name, index) for name, index in self.dense]
        if self.planes is not None:
            k = len(self.planes)
            dense_columns.append(Column("clearance", self.planes.names, np.zeros(k), np.full(k, np.inf), np.zeros(k),
                                np.full(k, CLEAR)))
        if self.distances is not None and len(self.distances):
            k = len(self.distances)
            dense_columns.append(Column("distance", self.distances.names, np.full(k, self.distances.clearance),
                                        np.full(k, np.inf), np.zeros(k), np.full(k, APART)))
        return (*dense_columns, *(self._column(name, self.index) for name in STATE[:self.orders]))

    def _column(self, name: str, index: Index) -> Column:
        lower, upper = (limit[index] for limit in self._limits(name))
        weight = self.objective.get(name, np.zeros(self.model.nv))[index]
        margin = MARGIN * 0.5 * np.where(np.isfinite(upper - lower), upper - lower, 0.0)
        return Column(name, tuple(self.model.velocity_names[j] for j in index), lower, upper, weight, margin)

    @cached_property
    def scale(self) -> Array:
        """Divisor per column: half the range of its limits, or 1."""
        half = np.concatenate([0.5 * (column.upper - column.lower) for column in self.columns])
        return np.where(np.isfinite(half), half, 1.0)

    def _limits(self, name: str) -> tuple[Array, Array]:
        if name == "power":
            return np.full(self.model.nv, -np.inf), np.full(self.model.nv, np.inf)
        return self.limits.of(name)

    def nodes(self, count: int, more: Array | None = None) -> Nodes:
        """At least `count` knots, further knots `more` (M,), and the collocation points of unactuated joints."""
        further = [] if more is None else [more]
        return Nodes.of(self.basis, count, self.orders, np.concatenate(
            [*further, self.basis.collocation if len(self.passive) else np.zeros(0)]))

    @cached_property
    def omega(self) -> Array:
        """Weights of the squared scaled columns."""
        return np.concatenate([column.weight for column in self.columns]) * self.scale**2

    @cached_property
    def omega_duration(self) -> float:
        return float(self.objective["duration"][0]) if "duration" in self.objective else 0.0

    @cached_property
    def end_columns(self) -> dict[str, Array]:
        """Values (≥ 2, nv) at the ends and waypoints with prescribed postures, by quantity."""
        ends = {"start": self.start, "goal": self.goal}
        prescribed = [np.array([ends[name][d] for name in self.prescribed_postures]).reshape(-1, self.size)
                      for d in range(len(self.start))]
        empty = np.zeros((0, self.model.nv))
        if self.chain is None:
            tau = self.friction.add(prescribed[1], inverse_dynamics(
                self.model, prescribed[0], prescribed[1], prescribed[2], self.wrenches))
            values = {**dict(zip(STATE, [*prescribed, empty], strict=False)), "effort": tau}
            q = values["position"] = np.concatenate([prescribed[0], self.via])
        else:
            assert self.postures is not None
            at_rest = [i for i, pose in enumerate(self.poses) if pose is not None]
            q = np.delete(self.postures, at_rest, axis=0)
            tau = np.zeros((len(prescribed[0]), self.model.nv))
            values = {"position": self.chain.coordinates(q), "velocity": tau, "acceleration": tau, "effort": tau}
            if len(tau):
                lifted = self.chain.lifted(q[:len(tau)], prescribed[1], prescribed[2])
                tau[:, self.chain.actuated] = self.chain.efforts(lifted).effort
                values.update(velocity=lifted.v, acceleration=lifted.a)
        if self.planes is not None:
            values["clearance"] = self.planes.values(q)
        if self.distances is not None:
            values["distance"] = self.distances.values(q)
        return values

    def arrival(self, u: Array) -> Array | None:
        """Final posture (nq,) of a mechanism with loops for its last control point u (n,)."""
        pose = self.poses[1]
        if self.postures is None:
            return None
        return self.postures[1] if pose is None else pose.closed(u)

    def bounds(self, s: Array) -> tuple[Array, Array]:
        """Lower and upper bounds of the scaled columns (N, columns): limits minus a margin, but at least the values at
        the ends.
        """
        low, high = [], []
        names = self.model.velocity_names
        for name, labels, lower, upper, _, margin in self.columns:
            ends = self.end_columns.get(name, np.zeros((0, len(names))))
            if name not in PLACES:
                ends = ends[:, [names.index(label) for label in labels]]
            low.append(np.maximum(lower, np.minimum(lower + margin, ends.min(axis=0, initial=np.inf))))
            high.append(np.minimum(upper, np.maximum(upper - margin, ends.max(axis=0, initial=-np.inf))))
            if name == "effort":    # unactuated joints have equations instead of limits
                low[-1][self.passive], high[-1][self.passive] = -np.inf, np.inf
        shape = (len(s), len(self.scale))
        return (np.broadcast_to(np.concatenate(low) / self.scale, shape),
                np.broadcast_to(np.concatenate(high) / self.scale, shape))

    def ends(self, T: float) -> tuple[Array, Array]:
        """Control points prescribed by start and goal (m, n) for the duration T."""
        return self.basis.end(self.start, T, False), self.basis.end(self.goal, T, True)

    def ends_by_duration(self, T: float) -> tuple[Array, Array]:
        """Derivatives of the prescribed control points by T."""
        k = np.arange(len(self.start))[:, None] / T
        return self.basis.end(self.start * k, T, False), self.basis.end(self.goal * k, T, True)
