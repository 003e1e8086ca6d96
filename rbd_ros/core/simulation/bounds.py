"""Position and velocity limits of a simulated robot, as box constraints on impulses.

A stop aims at velocity zero and pushes only (`impulses`). A velocity limit V aims at ±V and brakes only, as DART's do:
with u = v ∓ V, either u = 0, or the impulse is zero. Dry friction of a joint that is so fast opposes it in full.
"""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..model.inertia import Array
from ..model.robot_model import RobotModel

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
NOWHERE = np.empty(0, dtype=np.intp)
ROUNDING = 1e-12    # of a velocity limit


class Bounds:
    """Limits of the coordinates of a model that are plain numbers, whose velocity is their rate: they can stop, and be
    held exactly. plain_q, plain_v: their indices; lower, upper: of their positions, infinite where they do not count.

    resting, moving: whether there are limits of positions, and of velocities.
    """

    def __init__(self, model: RobotModel, positions: bool, velocities: bool) -> None:
        plain = [(joint.idx_q + k, joint.idx_v + k) for joint in model.joints if joint.nq == joint.nv
                 for k in range(joint.nq)]
        self.plain_q = np.array([i for i, _ in plain], dtype=np.intp)
        self.plain_v = np.array([i for _, i in plain], dtype=np.intp)
        self.lower = model.position_lower[self.plain_q] if positions else np.full(len(plain), -np.inf)
        self.upper = model.position_upper[self.plain_q] if positions else np.full(len(plain), np.inf)
        self.resting = bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())
        self.fastest = np.full(model.nv, np.inf)
        given = model.velocity_limit[self.plain_v]
        if velocities:
            self.fastest[self.plain_v] = np.where(given > 0.0, given, np.inf)
        self.moving = bool(np.isfinite(self.fastest).any())
        self._tolerated = (1.0 + ROUNDING) * self.fastest

    @property
    def positions(self) -> Iterator[tuple[int, float, float]]:
        """Index in q, lower and upper limit."""
        return zip(self.plain_q.tolist(), self.lower.tolist(), self.upper.tolist(), strict=True)

    def inside(self, q: Array) -> Array:
        """The nearest positions within the limits, in place."""
        q[self.plain_q] = np.clip(q[self.plain_q], self.lower, self.upper)
        return q

    def stops(self, q: Array) -> tuple[Indices, Indices]:
        """Velocity coordinates whose positions lie below and above the limits."""
        if not self.resting:
            return NOWHERE, NOWHERE
        plain = q[self.plain_q]
        return self.plain_v[plain < self.lower], self.plain_v[plain > self.upper]

    def any_fast(self, v: Array) -> bool:
        """Whether a velocity is beyond its limit."""
        return self.moving and bool((np.abs(v) > self._tolerated).any())

    def fast(self, v: Array) -> tuple[Indices, Indices]:
        """Coordinates whose velocities lie below and above the limits."""
        if not self.any_fast(v):
            return NOWHERE, NOWHERE
        return np.flatnonzero(v < -self._tolerated), np.flatnonzero(v > self._tolerated)

    def left(self, q: Array, v: Array) -> bool:
        """Whether any limit is passed."""
        below, above = self.stops(q)
        return bool(below.size or above.size) or self.any_fast(v)


class Boxes:
    """Of the impulses in one step, or half of it: low, high (nv,); `aim` (nv,): the velocity at which they end; all
    three as `rows`. At first those of dry `friction` (nv,), N m s or N s.

    bounded: whether there is more than friction; stopped: whether there is a stop.
    """

    def __init__(self, bounds: Bounds, friction: Array) -> None:
        self._bounds, self._friction = bounds, friction
        self.rows = np.stack([-friction, friction, np.zeros_like(friction)])
        self.low, self.high, self.aim = self.rows    # views
        self.bounded = self.stopped = False
        self._held = np.zeros(len(friction), dtype=bool)     # at stops
        self._braked = np.zeros(len(friction), dtype=bool)

    def add(self, q: Array, v: Array) -> bool:
        """Boxes for the limits that this state passes; whether there is a new one."""
        below, above = (at[~self._held[at]] for at in self._bounds.stops(q))
        slow, fast = (at[~(self._held | self._braked)[at]] for at in self._bounds.fast(v))
        for at, sign in ((slow, -1.0), (fast, 1.0)):
            self._braked[at] = True
            self.aim[at] = sign * self._bounds.fastest[at]
        self.low[slow], self.high[slow] = self._friction[slow], np.inf
        self.low[fast], self.high[fast] = -np.inf, -self._friction[fast]
        for at in (below, above):
            self._held[at] = True
            self.aim[at] = 0.0
            self.low[at], self.high[at] = -self._friction[at], self._friction[at]
        self.high[below], self.low[above] = np.inf, -np.inf
        stops = bool(below.size or above.size)
        self.stopped |= stops
        self.bounded |= stops or bool(slow.size or fast.size)
        return stops or bool(slow.size or fast.size)
