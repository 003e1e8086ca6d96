"""Distances of near pairs as rows of an optimisation, with their gradients; and the check of its arguments."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import RbdError, shown
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.scalars import at_least
from ..usage import Usage
from .clearance import RESOLUTION, Clearance, Sweeper, certify, contact, polynomials
from .collision_model import CollisionModel
from .sweeping import CLEAR

JOINED = " – "    # between the names of a pair
FAR = 0.05        # m beyond the clearance, from which on a distance is constant for the search
NEARBY = 0.05     # m beyond the clearance: pairs that come nearer along the first guess have rows
STEP = 1e-4       # rad or m, of differences of gradients
MOST_BENT = 5.0   # 1/m, largest curvature of a distance that is used: at edges it is infinite


def checked_collisions(model: RobotModel, collisions: Any) -> CollisionModel:
    """The argument; raises `RbdError` unless it is a collision model of this model, with joints that are supported."""
    if not isinstance(collisions, CollisionModel):
        raise RbdError(f"collisions: expected a CollisionModel, got {shown(collisions)}")
    own = collisions.model
    if own.joint_names != model.joint_names or own.body_names != model.body_names:
        raise RbdError(f"collisions: a CollisionModel of '{own.name}', whose joints and links are not those of "
                       f"'{model.name}'")
    collisions.sweeper.check()
    return collisions


def check_apart(collisions: CollisionModel, name: str, q: Array, clearance: float) -> None:
    """Raise `RbdError`, naming pair and depth, if a configuration is not clear."""
    distances = collisions.distances(q)
    if len(distances) and distances.min() <= clearance:
        k = int(np.argmin(distances))
        raise RbdError(f"{name}: {contact(collisions.pairs[k], float(distances[k]), clearance)}")


@dataclass(frozen=True, eq=False)
class DistanceRows:
    """Distances of the pairs `index`, as `Planes` of points; constant where they are farther than `within`."""

    collisions: CollisionModel
    clearance: float
    index: NDArray[np.int64]

    @classmethod
    def of_all(cls, model: RobotModel, collisions: Any, clearance: Any) -> DistanceRows:
        """Of all pairs; raises `RbdError` for wrong arguments."""
        checked = checked_collisions(model, collisions)
        return cls(checked, at_least(0.0, clearance, "clearance", "m"), np.arange(len(checked.pairs)))

    def usage(self, motion: Any, q: Array, t: Array) -> Usage:
        """1 minus the smallest distance (m) beyond the clearance: at samples q (N, nq) at t (N,) of a motion that is
        certified for all times, and elsewhere where it is not.
        """
        apart = self.certificate(motion)
        if not apart.clear:
            return self.excess(apart)
        distances = self.values(np.ascontiguousarray(q))
        if not distances.size:
            return Usage(1.0 - FAR, "", 0.0)
        s, k = np.unravel_index(int(np.argmin(distances)), distances.shape)
        return Usage(min(1.0, 1.0 + self.clearance - float(distances[s, k])), self.names[k], float(t[s]))

    def excess(self, apart: Clearance) -> Usage:
        """1 plus what a motion without a certificate lacks to the clearance (m), with pair and time."""
        return Usage(1.0 + max(self.clearance - apart.distance, RESOLUTION), JOINED.join(apart.pair or ()), apart.time)

    def __len__(self) -> int:
        return len(self.index)

    @property
    def names(self) -> tuple[str, ...]:
        """"first – second" of each pair."""
        return tuple(JOINED.join(self.collisions.pairs[k]) for k in self.index)

    @property
    def sweeper(self) -> Sweeper:
        """The packed pieces, for random trees."""
        return self.collisions.sweeper

    @property
    def within(self) -> float:
        return self.clearance + FAR

    def values(self, q: Array) -> Array:
        """Distances (N, P) at q (N, nq)."""
        return self.collisions._near(q, self.within, self.index)[0]

    def jacobian(self, q: Array) -> Array:
        """Derivatives (N, P, nv) of the distances."""
        return self.collisions._near(q, self.within, self.index, True)[1]

    def bends(self, q: Array) -> Array:
        """Second derivatives (N, P, nv, nv) of the distances, by differences, without those of edges."""
        slope = self.jacobian(q)
        out = np.empty((*slope.shape, q.shape[1]))
        for j in range(q.shape[1]):
            moved = q.copy()
            moved[:, j] += STEP
            np.clip((self.jacobian(moved) - slope) / STEP, -MOST_BENT, MOST_BENT, out=out[..., j])
        return 0.5 * (out + np.swapaxes(out, 2, 3))

    def with_nearby(self, q: Array) -> DistanceRows:
        """With the pairs that come near at one of these configurations (N, nq)."""
        distances = self.sweeper.near(np.ascontiguousarray(q), self.clearance + NEARBY)[0]
        return self.with_pairs(np.flatnonzero(distances.min(axis=0, initial=np.inf) < self.clearance + NEARBY))

    def with_pairs(self, more: NDArray[np.int64]) -> DistanceRows:
        return replace(self, index=np.union1d(self.index, more).astype(np.int64))

    def clear(self, motion: Any) -> bool:
        """Whether a motion of splines keeps the clearance, found out sooner where it does not."""
        breaks, powers, _ = polynomials(self.collisions.model, motion)
        return self.sweeper.sweep(breaks, powers, self.clearance)[0] == CLEAR

    def certificate(self, motion: Any) -> Clearance:
        """Whether a motion keeps the clearance."""
        return certify(self.collisions, motion, self.clearance)
