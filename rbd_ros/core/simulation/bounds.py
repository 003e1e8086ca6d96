"""Limits of a simulated robot, and the boxes of impulses in a step that come from them (`joint_data`)."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..dynamics.friction import Friction
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from .joint_data import (
    ASYMMETRY, BOX_ROWS, BREAKAWAY, COULOMB, DAMPING, FASTEST, LOAD, LOWER, POSITION, ROUNDING, ROWS, STRIBECK, UPPER,
    friction_boxes_entry, limit_boxes_entry,
)


class Bounds:
    """Limits of a model's plain coordinates, whose velocity is the rate of their position: they can be held exactly.
    plain_q, plain_v: their indices; lower, upper: of their positions, infinite if disabled; fastest (nv,).

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
        limit = model.velocity_limit[self.plain_v]
        if velocities:
            self.fastest[self.plain_v] = np.where(limit > 0.0, limit, np.inf)
        self.moving = bool(np.isfinite(self.fastest).any())

    @property
    def positions(self) -> Iterator[tuple[int, float, float]]:
        """Index in q, lower and upper limit."""
        return zip(self.plain_q.tolist(), self.lower.tolist(), self.upper.tolist(), strict=True)

    def inside(self, q: Array) -> Array:
        """The nearest positions within the limits, in place."""
        q[self.plain_q] = np.clip(q[self.plain_q], self.lower, self.upper)
        return q

    def any_fast(self, v: Array) -> bool:
        """Whether a velocity is beyond its limit."""
        return self.moving and bool((np.abs(v) > (1.0 + ROUNDING) * self.fastest).any())

    def joints(self, model: RobotModel, friction: Friction) -> Array:
        """What kernels take (ROWS, nv), with brakes released."""
        rows = np.zeros((ROWS, model.nv))
        rows[DAMPING], rows[FASTEST] = model.damping, self.fastest
        rows[COULOMB], rows[BREAKAWAY] = friction.coulomb, friction.breakaway
        rows[STRIBECK], rows[ASYMMETRY], rows[LOAD] = friction.stribeck_velocity, friction.asymmetry, friction.load
        rows[POSITION] = -1.0
        rows[POSITION, self.plain_v], rows[LOWER, self.plain_v], rows[UPPER, self.plain_v] = (
            self.plain_q, self.lower, self.upper)
        return rows


class Boxes:
    """Boxes of the impulses in a step or half step: `rows` (`joint_data`), initially those of the dry friction in
    `scale` s at velocities v and efforts of the drives.

    bounded: whether there is a box; stopped: whether there is one of a stop.
    """

    def __init__(self, joints: Array, v: Array, effort: Array, scale: float) -> None:
        self._joints = joints
        self.rows = np.empty((BOX_ROWS, joints.shape[1]))
        self.bounded, self.stopped = bool(friction_boxes_entry(joints, v, effort, scale, self.rows)), False

    def add(self, q: Array, v: Array) -> bool:
        """Add boxes for the limits exceeded by this state; returns whether there is a new one."""
        new = limit_boxes_entry(self._joints, q, v, self.rows)
        self.bounded |= new > 0
        self.stopped |= new > 1
        return bool(new)
