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
from ..closed.closed_goal import ClosedGoal
from ..places.body_goal import BodyGoal
from ..places.plane_limit import Planes
from ..splines import Basis
from .limits import CheckedLimits
from .nodes import Nodes
from .springs import Springs

Array = NDArray[np.float64]
Index = NDArray[np.int64]
STATE = ("position", "velocity", "acceleration", "jerk")    # columns of a node's state, by derivative
MARGIN = 1e-3      # of each limit, kept free between nodes
CLEAR = 1e-4       # m, likewise, before planes
ROUNDING = 1e-9    # of a limit


class Column(NamedTuple):
    """One quantity, of joints or points: limits, weights, and what of the limits is kept free between nodes (k,)."""

    name: str
    labels: tuple[str, ...]
    lower: Array
    upper: Array
    weight: Array
    margin: Array


@dataclass(frozen=True, eq=False)
class Task:
    """Checked; ends are rows q, v, a(, jerk) (m, n) of the coordinates that splines have: all of an open chain, the
    independent ones of a closed one. duration: None where it is free within `durations`.
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
    springs: Springs | None = None   # between motors and joints
    passive: Index = field(default_factory=lambda: np.zeros(0, dtype=np.int64))    # coordinates without motors, in an
    # open chain; their limit of effort is what is tolerated between the points where it is 0
    tolerated: float = 0.0           # of a unit of their efforts: that limit
    # where the motion starts and ends, at rest; `start` or `goal` is a first guess then
    poses: tuple[BodyGoal | ClosedGoal | None, BodyGoal | ClosedGoal | None] = (None, None)
    loose: tuple[bool, bool] = (False, False)    # ends of which only the position is given
    fast: RobotModel | None = None   # the model with code of its own for batches

    def rows(self) -> Any:
        """Rows of a special task (a path's); None for open and closed chains."""
        return None

    @property
    def size(self) -> int:
        """n, of coordinates that splines have."""
        return self.model.nv if self.chain is None else self.chain.size

    @cached_property
    def postures_given(self) -> tuple[str, ...]:
        """Which of "start" and "goal" are no poses."""
        return tuple(name for name, pose in zip(("start", "goal"), self.poses, strict=True) if pose is None)

    @cached_property
    def index(self) -> Index:
        """Which of the velocity coordinates these are (n,)."""
        return np.arange(self.model.nv) if self.chain is None else self.chain.independent

    @property
    def free_duration(self) -> bool:
        return self.duration_or_none is None

    @property
    def duration(self) -> float:
        return self.durations[0] if self.duration_or_none is None else self.duration_or_none

    @cached_property
    def has_friction(self) -> bool:
        return bool(np.any(self.friction.damping) or np.any(self.friction.coulomb))

    def _uses(self, name: str) -> bool:
        limited = name != "power" and name != "duration" and bool(np.isfinite(self.limits.of(name)[1]).any())
        return limited or name in self.objective

    @cached_property
    def uses_effort(self) -> bool:
        return self._uses("effort") or self.uses_power or self.uses_rate or len(self.passive) > 0    # made of it

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
        """Of derivatives in a node's state, position included."""
        return 4 if self.uses_rate or self._uses("jerk") else 3

    @cached_property
    def dense(self) -> tuple[tuple[str, Index], ...]:
        """Rows of the dynamics: quantities, and their velocity coordinates."""
        whole = self.index if self.chain is None else self.chain.actuated
        found = [(name, whole) for name, used in (("effort", self.uses_effort), ("power", self.uses_power),
                                                  ("effort_rate", self.uses_rate),
                                                  ("motor_velocity", self.uses_motor)) if used]
        if self.chain is not None:
            for name in STATE[:3]:
                used = np.isfinite(self._limits(name)[1]) | np.isfinite(self._limits(name)[0])
                used |= self.objective.get(name, np.zeros(self.model.nv)) > 0.0
                which = self.chain.dependent[used[self.chain.dependent]]
                found += [(name, which)] if len(which) else []
        return tuple(found)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Everything that is weighed or limited: dense rows, then the state of the splines."""
        found = [self._column(name, which) for name, which in self.dense]
        if self.planes is not None:
            k = len(self.planes)
            found.append(Column("clearance", self.planes.names, np.zeros(k), np.full(k, np.inf), np.zeros(k),
                                np.full(k, CLEAR)))
        return (*found, *(self._column(name, self.index) for name in STATE[:self.orders]))

    def _column(self, name: str, which: Index) -> Column:
        lower, upper = (limit[which] for limit in self._limits(name))
        weight = self.objective.get(name, np.zeros(self.model.nv))[which]
        margin = MARGIN * 0.5 * np.where(np.isfinite(upper - lower), upper - lower, 0.0)
        return Column(name, tuple(self.model.velocity_names[j] for j in which), lower, upper, weight, margin)

    @cached_property
    def scale(self) -> Array:
        """Per column what it is divided by: its limit, or 1."""
        half = np.concatenate([0.5 * (column.upper - column.lower) for column in self.columns])    # inf: no limit
        return np.where(np.isfinite(half), half, 1.0)

    def _limits(self, name: str) -> tuple[Array, Array]:
        if name == "power":
            return np.full(self.model.nv, -np.inf), np.full(self.model.nv, np.inf)
        return self.limits.of(name)

    def nodes(self, count: int, more: Array | None = None) -> Nodes:
        """At least `count` nodes, `more` (M,), and those where efforts of joints without motors are 0."""
        given = [] if more is None else [more]
        return Nodes.of(self.basis, count, self.orders, np.concatenate(
            [*given, self.basis.collocation if len(self.passive) else np.zeros(0)]))

    @cached_property
    def omega(self) -> Array:
        """Weights of the squared scaled columns."""
        return np.concatenate([column.weight for column in self.columns]) * self.scale**2

    @cached_property
    def omega_duration(self) -> float:
        return float(self.objective["duration"][0]) if "duration" in self.objective else 0.0

    @cached_property
    def end_columns(self) -> dict[str, Array]:
        """Values (2 or more, nv) that the ends and waypoints have whatever the motion is, by quantity."""
        ends = {"start": self.start, "goal": self.goal}
        known = [np.array([ends[name][d] for name in self.postures_given]).reshape(-1, self.size)
                 for d in range(len(self.start))]
        nothing = np.zeros((0, self.model.nv))
        if self.chain is None:
            tau = self.friction.effort(known[1]) + inverse_dynamics(
                self.model, known[0], known[1], known[2], self.wrenches)
            found = {**dict(zip(STATE, [*known, nothing], strict=False)), "effort": tau}
            q = found["position"] = np.concatenate([known[0], self.via])
        else:
            assert self.postures is not None
            at_rest = [i for i, pose in enumerate(self.poses) if pose is not None]
            q = np.delete(self.postures, at_rest, axis=0)
            tau = np.zeros((len(known[0]), self.model.nv))
            found = {"position": self.chain.coordinates(q), "velocity": tau, "acceleration": tau, "effort": tau}
            if len(tau):
                at = self.chain.lifted(q[:len(tau)], known[1], known[2])
                tau[:, self.chain.actuated] = self.chain.efforts(at).effort
                found.update(velocity=at.v, acceleration=at.a)
        if self.planes is not None:
            found["clearance"] = self.planes.values(q)
        return found

    def arrival(self, u: Array) -> Array | None:
        """Final posture (nq,) of a mechanism with loops for its last control point u (n,)."""
        pose = self.poses[1]
        if isinstance(pose, ClosedGoal):
            return pose.closed(u)
        return None if self.postures is None else self.postures[1]

    def bounds(self, s: Array) -> tuple[Array, Array]:
        """Lower and upper bounds of the scaled columns (N, columns): limits less a margin, or what the ends need."""
        low, high = [], []
        names = self.model.velocity_names
        for name, labels, lower, upper, _, margin in self.columns:
            ends = self.end_columns.get(name, np.zeros((0, len(names))))
            if name != "clearance":
                ends = ends[:, [names.index(label) for label in labels]]
            low.append(np.maximum(lower, np.minimum(lower + margin, ends.min(axis=0, initial=np.inf))))
            high.append(np.minimum(upper, np.maximum(upper - margin, ends.max(axis=0, initial=-np.inf))))
            if name == "effort":    # no limit: an equation
                low[-1][self.passive], high[-1][self.passive] = -np.inf, np.inf
        shape = (len(s), len(self.scale))
        return (np.broadcast_to(np.concatenate(low) / self.scale, shape),
                np.broadcast_to(np.concatenate(high) / self.scale, shape))

    def ends(self, T: float) -> tuple[Array, Array]:
        """The control points that the ends fix."""
        return self.basis.end(self.start, T, False), self.basis.end(self.goal, T, True)

    def ends_by_duration(self, T: float) -> tuple[Array, Array]:
        """Their derivatives by T."""
        k = np.arange(len(self.start))[:, None] / T
        return self.basis.end(self.start * k, T, False), self.basis.end(self.goal * k, T, True)
