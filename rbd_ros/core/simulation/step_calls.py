"""`ManySteps`: many steps of a robot in one call of a kernel (`many_steps`, `discrete_mechanics`)."""
from __future__ import annotations

import numpy as np

from ..dynamics.forward import forward_dynamics
from ..dynamics.friction import Friction
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from .bounds import Bounds
from .discrete_mechanics import variational_steps
from .joint_data import BRAKES, BREAKAWAY, COULOMB, DAMPING, FASTEST, ROWS, STRIBECK
from .many_steps import runge_kutta_steps, semi_implicit_steps
from .variational import Variational


class ManySteps:
    """Steps of h (s) of one robot. method: `semi_implicit`, `rk4`, or a `Variational`, whose momentum is updated."""

    def __init__(self, model: RobotModel, method: str | Variational, friction: Friction, bounds: Bounds,
                 h: float) -> None:
        self._method, self._h, self._model = method, h, model
        self._block = model._block
        self._regular = False    # whether the mass matrix was found regular, without the armature of damping
        if method == "semi_implicit":
            self._block = model.with_(armature=model.armature + h * model.damping)._block
        self._limits = np.stack([np.full(model.nq, -np.inf), np.full(model.nq, np.inf)])
        self._limits[:, bounds.plain_q] = bounds.lower, bounds.upper
        self._joints = np.zeros((ROWS, model.nv))
        self._joints[DAMPING] = model.damping
        self._joints[COULOMB], self._joints[BREAKAWAY] = friction.coulomb, friction.breakaway
        self._joints[STRIBECK], self._joints[FASTEST] = friction.stribeck_velocity, bounds.tolerated

    def brake(self, brakes: Array) -> None:
        """Set the friction of brakes (nv,), N m or N."""
        self._joints[BRAKES] = brakes

    @property
    def possible(self) -> bool:
        """False with rk4 and dry friction, whose modes change at events."""
        return self._method != "rk4" or not (self._joints[BREAKAWAY] + self._joints[BRAKES]).any()

    def advance(self, q: Array, v: Array, efforts: Array, wrench: Array, steps: int) -> int:
        """Advance q, v in place by at most `steps` steps; returns the number made. efforts (1 or steps, nv); wrench: in
        node frames, or empty.
        """
        limits, joints, method = self._limits, self._joints, self._method
        if isinstance(method, Variational):
            known = method.momentum is not None
            p, frame = method.momentum or (np.zeros_like(v), np.zeros(9 if method.central else 0))
            p, frame = p.copy(), frame.copy()
            done = int(variational_steps.call(
                method.block, q, v, p, frame, known, efforts, wrench, method.damping, method.gravity, limits,
                joints, self._h, steps))
            if done:
                method.momentum = p, frame
            return done
        if not self._regular:
            forward_dynamics(self._model, q, v, np.zeros_like(v))    # raises if singular
            self._regular = True
        kernel = runge_kutta_steps if method == "rk4" else semi_implicit_steps
        return int(kernel.call(self._block, q, v, efforts, wrench, limits, joints, self._h, steps))
