"""Distances of near pairs as rows of an optimisation, with their gradients; and the check of its arguments."""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import RbdError, shown
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.scalars import at_least
from ..usage import Usage
from .clearance import RESOLUTION, Clearance, Sweeper, certify, contact, polynomials
from .collision_model import CollisionModel
from .contacts import CONTACT
from .sweeping import CLEAR

JOINED = " – "    # between the names of a pair
FAR = 0.06        # m beyond the clearance, from which on a distance is constant for the search
NEARBY = 0.05     # m beyond the clearance: pairs that come nearer along the first guess have rows
SOME = 20         # of so many samples one, for a bound of the least distance
IGNORED = 1e-2    # of the largest weight, in second derivatives


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


class _Near(NamedTuple):
    """At q (N, nq): flattened distances with their first two derivatives by the distances (N, P), gradients of the
    distances (N, P, nv), and contacts.
    """

    q: Array
    values: Array
    slope: Array
    bend: Array
    gradients: Array
    contacts: Array


def _flattened(distances: Array, clearance: float) -> tuple[Array, Array, Array]:
    """Distances, beyond half of FAR with a slope that falls smoothly to 0 at FAR; and the first two derivatives."""
    half = 0.5 * FAR
    t = np.clip((distances - clearance) / half - 1.0, 0.0, 1.0)
    return (np.minimum(distances, clearance + half) + half * (t - t**3 + 0.5 * t**4),
            1.0 - 3.0 * t**2 + 2.0 * t**3, (6.0 * t**2 - 6.0 * t) / half)


@dataclass(frozen=True, eq=False)
class DistanceRows:
    """Distances of the pairs `index`, as `Planes` of points; constant where they are farther than `within`."""

    collisions: CollisionModel
    clearance: float
    index: NDArray[np.int64]
    _latest: list[_Near] = field(default_factory=list, init=False)

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
        distances = self.samples(1.0).values(np.ascontiguousarray(q))
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
        """Distances (N, P) at q (N, nq), as `_flattened`."""
        return self._near(q).values

    def jacobian(self, q: Array) -> Array:
        """Derivatives (N, P, nv) of the values."""
        near = self._near(q)
        return np.asarray(near.slope[..., None] * near.gradients)

    def curvature(self, q: Array, weights: Array) -> Array:
        """Second derivatives (N, nv, nv) of Σ weights (N, P) · values."""
        near = self._near(q)
        weights = np.where(np.abs(weights) > IGNORED * np.abs(weights).max(initial=0.0), weights, 0.0)
        return self.sweeper.curvature(q, self.index, near.contacts, weights * near.slope, weights * near.bend)

    def _near(self, q: Array) -> _Near:
        """What is near at q; kept until the next q."""
        if not self._latest or not np.array_equal(self._latest[0].q, q):
            contacts = np.zeros((len(q), len(self), CONTACT))
            distances, gradients = self.collisions._near(q, self.within, self.index, True, contacts)
            self._latest[:] = [_Near(q, *_flattened(distances, self.clearance), gradients, contacts)]
        return self._latest[0]

    def samples(self, threshold: float) -> Samples:
        """The distances at many samples, for a certificate with peaks above `threshold`."""
        return Samples(self, self.clearance + max(1.0 - threshold, 0.0))

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


@dataclass(frozen=True, eq=False)
class Samples:
    """Distances at samples of a motion, exact up to the least one and up to `within` (m): more is not looked at."""

    rows: DistanceRows
    within: float

    def __len__(self) -> int:
        return len(self.rows)

    def values(self, q: Array) -> Array:
        """Distances (N, P) at q (N, nq)."""
        near, index = self.rows.collisions._near, self.rows.index
        some = near(np.ascontiguousarray(q[::SOME]), self.rows.within, index)[0]
        return near(q, max(self.within, float(some.min(initial=self.rows.within))), index)[0]
