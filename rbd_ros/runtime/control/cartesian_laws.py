"""What acts under Cartesian control: the impedance of a link, or springs of the joints, with friction and gravity."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.inverse import inverse_dynamics
from ...core.dynamics.mass_matrix import mass_matrix
from ..safety.hold import HoldGains
from .cartesian_law import CartesianLaw
from .cartesian_settings import CartesianSettings
from .friction_compensation import FrictionCompensation
from .loop_rate import LoopRate
from .torque_controller import SLIP, Laws

Array = NDArray[np.float64]
UNFORCED, WHOLE = np.zeros(12), np.zeros(6)


class Aim(NamedTuple):
    """What the laws aim at: the target (24,), as of `PoseFilter`, and the posture (nq,); of law joint, positions and
    velocities (2, nv). applied (12,): a wrench and its setpoint. Of hand guiding: free (6,), share of the stiffness
    that is gone; drag, share of `guide.damping` that acts; brake, 1/s, damping beside it; dither, number or (nv,), of
    friction compensation.
    """

    target: Array
    posture: Array
    held: Array
    applied: Array = UNFORCED
    free: Array = WHOLE
    drag: float = 0.0
    brake: float = 0.0
    dither: Array | float = 0.0


class CartesianLaws(Laws):
    """Impedance or springs of the joints, and gravity where the robot does not add it itself."""

    settings: CartesianSettings

    def __init__(self, settings: CartesianSettings) -> None:
        super().__init__(settings)
        self.law = CartesianLaw(settings)
        self.compensation = FrictionCompensation(
            None if "friction" in settings.compensates else settings.friction.law(settings.model),
            settings.compensation, settings.model.nv)
        self._hold_gains = self.bounded(settings.kp, settings.kd, settings.safety.effort_limit)

    @property
    def of_joints(self) -> bool:
        """Whether springs of the joints act, not of the link."""
        return self.settings.law == "joint"

    def hold_gains(self, q: Array) -> HoldGains | None:
        return self._hold_gains

    def effort(self, q: Array, v: Array, aim: Aim, loop: LoopRate) -> Array:
        """The effort (nv,); the loop's share is a factor of all but gravity."""
        compensates = self.settings.compensates
        own = self._zero if "gravity" in compensates else self.gravity(q)
        if loop.share <= 0.0:
            return own
        effort = self._joint_springs(q, v, aim.held) if self.of_joints else self.impedance(q, v, aim, loop)
        if self.compensation:
            gravity = self.gravity(q) if own is self._zero else own
            effort += self.compensation.effort(v, effort, gravity + effort, aim.dither)
        if "coriolis" in compensates:
            effort += self.gravity(q) - inverse_dynamics(self.model, q, v, self._zero)
        return own + loop.share * effort

    def impedance(self, q: Array, v: Array, aim: Aim, loop: LoopRate) -> Array:
        """The effort (nv,) of the link's springs, walls and dampers alone."""
        period = max(loop.period, loop.step)    # as expected or learnt, or slower
        return self.law.effort(q, v, aim.target, aim.posture, 1.0 / period if period > 0.0 else np.inf, aim.applied,
                               aim.free, aim.drag * self.settings.guide_damping + aim.brake)

    def _joint_springs(self, q: Array, v: Array, held: Array) -> Array:
        off, slow = np.clip(self.model.difference(q, held[0]), -SLIP, SLIP), held[1] - v
        settings = self.settings
        return np.asarray(settings.kp * off + settings.kd * slow
                          + settings.posture_damping * (mass_matrix(self.model, q) @ slow))
