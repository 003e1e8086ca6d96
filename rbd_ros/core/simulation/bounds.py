"""Position and velocity limits of a simulated robot, as box constraints on impulses.

A stop has target velocity zero and a one-sided impulse (`impulses`). A velocity limit V has target ±V and brakes only,
as in DART: with u = v ∓ V, either u = 0, or the impulse is zero. Dry friction of a joint beyond its velocity limit acts
in full.
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
ROUNDING = 1e-12    # relative to a velocity limit


class Bounds:
    """Limits of a model's plain coordinates, whose velocity is the rate of their position: they can be held exactly.
    plain_q, plain_v: their indices; lower, upper: of their positions, infinite if disabled.

    resting, moving: whether there are limits of positions, and of velocities. tolerated (nv,): velocities that count as
    within their limits.
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
        limit = model.velocity_limit[self.plain_v]
        if velocities:
            self.fastest[self.plain_v] = np.where(limit > 0.0, limit, np.inf)
        self.moving = bool(np.isfinite(self.fastest).any())
        self.tolerated = (1.0 + ROUNDING) * self.fastest

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
        return self.moving and bool((np.abs(v) > self.tolerated).any())

    def fast(self, v: Array) -> tuple[Indices, Indices]:
        """Coordinates whose velocities lie below and above the limits."""
        if not self.any_fast(v):
            return NOWHERE, NOWHERE
        return np.flatnonzero(v < -self.tolerated), np.flatnonzero(v > self.tolerated)

    def left(self, q: Array, v: Array) -> bool:
        """Whether any limit is exceeded."""
        below, above = self.stops(q)
        return bool(below.size or above.size) or self.any_fast(v)


class Boxes:
    """Boxes of the impulses in a step or half step: low, high (nv,); `aim` (nv,): target velocity; all three as `rows`.
    Initially those of dry `friction` (nv,), N m s or N s.

    bounded: whether there are boxes besides friction; stopped: whether there is a stop.
    """

    def __init__(self, bounds: Bounds, friction: Array) -> None:
        self._bounds, self._friction = bounds, friction
        self.rows = np.stack([-friction, friction, np.zeros_like(friction)])
        self.low, self.high, self.aim = self.rows    # views
        self.bounded = self.stopped = False
        self._held = np.zeros(len(friction), dtype=bool)     # at stops
        self._braked = np.zeros(len(friction), dtype=bool)

    def add(self, q: Array, v: Array) -> bool:
        """Add boxes for the limits exceeded by this state; returns whether there is a new one."""
        below, above = (indices[~self._held[indices]] for indices in self._bounds.stops(q))
        slow, fast = (indices[~(self._held | self._braked)[indices]] for indices in self._bounds.fast(v))
        for indices, sign in ((slow, -1.0), (fast, 1.0)):
            self._braked[indices] = True
            self.aim[indices] = sign * self._bounds.fastest[indices]
        self.low[slow], self.high[slow] = self._friction[slow], np.inf
        self.low[fast], self.high[fast] = -np.inf, -self._friction[fast]
        for indices in (below, above):
            self._held[indices] = True
            self.aim[indices] = 0.0
            self.low[indices], self.high[indices] = -self._friction[indices], self._friction[indices]
        self.high[below], self.low[above] = np.inf, -np.inf
        stops = bool(below.size or above.size)
        self.stopped |= stops
        self.bounded |= stops or bool(slow.size or fast.size)
        return stops or bool(slow.size or fast.size)
