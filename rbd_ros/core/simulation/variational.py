"""Variational integrator with friction, stops, springs and constraints: one step of `Simulator`.

`discrete_mechanics` has its equations. Non-conservative efforts enter them as impulses of the two halves of the step:

- Viscous damping D takes `h D ξ` in all, so that energy lost is work done. The second half takes half of `h D v_1`:
  order 2, and v_1 = v_0/(1 + x + x²/2), x = h d/m, of a mass alone, which decays however stiff D is.
- Friction, stops and velocity limits have boxes in each half: the first acts on ξ, the second on v_1, so nothing
  creeps.
- Springs act at the middle. Springs too stiff for the step get additional damping `½ h K h²(4 M + h² K)⁻¹ K`, of third
  order in h, by which the stiffest act as at the end of the step: their modes decay, others are hardly affected.
- Constraints enforce `A(q_m) ξ = 0`, with equal impulses in both halves; then the state is projected onto them.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dynamics.forward import forward_dynamics
from ..dynamics.mass_matrix import mass_matrix
from ..model.block import GRAVITY, MASS, PARENT, TYPE
from ..model.inertia import Array
from ..model.joints import kind_of
from ..model.robot_model import RobotModel
from ..model.state import node_wrenches
from .bounds import Boxes
from .constrained_motion import ConstrainedMotion
from .discrete_mechanics import CARRIED, FITTING, SPRING_TURNS, finish_entry, prepare_entry, solve_entry
from .joint_data import BREAKAWAY, LOAD
from .springs import ArmSprings

HALVINGS = 8        # largest number of halvings of a step without convergence, at absurd speeds
NONE = np.empty((0, 0))


class Unsolved(Exception):
    """The equations of a step have no nearby solution."""


class Variational:
    """Steps of one robot. joints: friction and limits (`joint_data`). dissipates: whether there is additional damping.

    block, central, gravity, damping: what kernels take (`discrete_mechanics`). momentum: after the last step, with its
    frame; set it to restore a state (None: that of the velocities).
    """

    def __init__(self, model: RobotModel, joints: Array, springs: ArmSprings | None,
                 constrained: ConstrainedMotion | None, dissipates: bool = False) -> None:
        self.model, self.joints = model, joints
        self._springs, self._constrained = springs, constrained
        damping = np.diag(model.damping)
        if springs is not None:
            damping = damping + springs.damping
        self.damping = np.ascontiguousarray(damping) if damping.any() else NONE
        self.block, self.gravity = model._block, np.zeros(3)
        self.central = constrained is None and not dissipates and _floats_alone(model, joints)
        if self.central:    # no gravity relative to the centre of mass
            self.block = model._block.copy()
            self.gravity = model._block[GRAVITY:GRAVITY + 3].copy()
            self.block[GRAVITY:GRAVITY + 3] = 0.0
        self.forget()

    def forget(self) -> None:
        """Reset the momentum to that of the velocities, after the state was set."""
        self.momentum: tuple[Array, Array] | None = None

    def begin(self) -> tuple[bool, Array, Array]:
        """Whether the momentum is known, and copies of it (CARRIED·nv,) and of the frame, for kernels to advance."""
        if self.momentum is None:
            return False, np.zeros(CARRIED * self.model.nv), np.zeros(9 if self.central else 0)
        p, frame = self.momentum
        return True, p.copy(), frame.copy()

    def advance(self, q: Array, v: Array, h: float, effort: Array, wrenches: Any,
                damping: Array = NONE) -> tuple[Array, Array]:
        """The state after h (s) under an effort (nv,) and wrenches, with damping (nv, nv) in addition to the model's;
        raises `Unsolved` without a solution.
        """
        wrench = node_wrenches(self.model, wrenches, None)
        return self._halved(q, v, h, effort, wrench, damping, HALVINGS)

    def _halved(self, q: Array, v: Array, h: float, effort: Array, wrench: Array, damping: Array,
                left: int) -> tuple[Array, Array]:
        known = self.momentum
        try:
            return self._step(q, v, h, effort, wrench, damping)
        except (Unsolved, np.linalg.LinAlgError) as error:
            if not left:
                forward_dynamics(self.model, q, v, effort)    # names the joint where the mass matrix is singular
                raise Unsolved from error
        self.momentum = known
        q, v = self._halved(q, v, 0.5 * h, effort, wrench, damping, left - 1)
        return self._halved(q, v, 0.5 * h, effort, wrench, damping, left - 1)

    def _step(self, q: Array, v: Array, h: float, effort: Array, wrench: Array,
              more: Array) -> tuple[Array, Array]:
        n, block = self.model.nv, self.block
        springs, constrained = self._springs, self._constrained
        damping, stiffness, offset = self.damping, NONE, np.zeros(0)
        if more.size:
            damping = np.ascontiguousarray(more + damping if damping.size else more)
        if springs is not None:
            offset = 0.5 * h * v
            stiffness = np.ascontiguousarray(springs.stiffness(q + offset))
            damping = np.ascontiguousarray((damping if damping.size else 0.0) + _stiff_damping(
                mass_matrix(self.model, q), stiffness, h))
        known, p, frame = self.begin()
        p = p[:n]
        guess, given = np.empty(n), np.empty((4, n, n))
        prepare_entry(block, q, v, h, damping, stiffness, p, guess, given, frame, known)
        free = NONE
        if constrained is not None:
            A = constrained.jacobian(q, v, h)
            free, given[1] = constrained.projector(A, given[1])
        boxes = Boxes(self.joints, v, effort, 0.5 * h)
        ends, out, v1 = np.stack([q, q]), np.empty((4, n)), np.empty(n)
        q1, xi = ends[1], out[0]
        loads = np.empty((3, n))
        loads[0] = p
        while True:    # repeat with added boxes until no further limit is exceeded
            rows = boxes.rows if boxes.bounded else NONE
            xi[:] = guess
            loads[1] = effort
            for _ in range(SPRING_TURNS):
                if springs is not None:
                    loads[1] = effort + springs.effort(q + offset, None)
                    loads[2] = offset
                if not solve_entry(block, ends, h, loads, wrench, damping, stiffness, given, free, rows, out, frame):
                    raise Unsolved
                if springs is None:
                    break
                moved = 0.5 * h * xi - offset
                gap = springs.effort(q + offset + moved, None) - springs.effort(q + offset, None) + stiffness @ moved
                offset = offset + moved
                if np.abs(gap).max() <= FITTING * (1.0 + np.abs(loads[1]).max()):
                    break
            if boxes.add(q1, xi):
                continue
            p1, end = out[1], frame.copy()
            if end.size:
                end[6:] += self.gravity
            finish_entry(block, q1, p1, h, rows, v1, end)
            if not boxes.add(q1, v1):
                break
        if not math.isfinite(q1 @ q1 + v1 @ v1):
            raise Unsolved
        if constrained is None:
            self.momentum = np.concatenate([p1, np.full((CARRIED - 1) * n, np.nan)]), end
            return q1, v1
        constrained.multipliers = constrained.multipliers_of(A, out[3] / (0.5 * h))
        return constrained.back(q1, v1, mass_weighted=True)


def _floats_alone(model: RobotModel, joints: Array) -> bool:
    """Whether the robot has one floating base with mass, and is subject to wrenches and efforts only."""
    rows = model._node_rows
    roots = [row for row in rows if row[PARENT] < 0]
    if len(roots) != 1 or not kind_of(int(roots[0][TYPE])).free or rows[:, MASS].sum() <= 0.0:
        return False
    return not (joints[[BREAKAWAY, LOAD], :6].any() or model.damping[:6].any() or np.asarray(model.armature)[:6].any())


def _stiff_damping(M: Array, K: Array, h: float) -> Array:
    X = h * h * K
    matrix = 0.5 / h * X @ np.linalg.solve(4.0 * M + X, X)
    return np.asarray(0.5 * (matrix + matrix.T))
