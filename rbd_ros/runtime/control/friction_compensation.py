"""Friction compensation by the measured motion that never drives: a share of friction, in the direction of motion.

    τ = γ f(v, c),      c = tanh(v/s) + (1 − |tanh(v/s)|) r,      γ < 1

f is the friction of a joint at its speed in the direction c, from −1 to 1, s a speed above the noise of velocities. At
rest the direction r is that of the effort asked for, in proportion up to where effort and compensation together
overcome friction: r = τ_law / ((1 − γ) f), at most 1. Where no effort is asked for, as in hand guiding, r alternates
(dither): a push then has to overcome 1 − γ of the friction alone, and where a joint creeps in the half periods that
suit it, r turns that way (Stolt, Carlson, Ardakani, Lundberg, Robertsson and Johansson 2015). As |τ| ≤ γ f, friction
that is over-estimated by less than 1/γ still takes more power than this gives.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.friction import Friction
from ...core.model.robot_model import RobotModel

Array = NDArray[np.float64]
CREEP = 5e-4   # rad/s or m/s: mean speed over a period of dither that counts as motion
LEVEL = 3.0    # smoothings: least speed at which Coulomb friction is evaluated


class FrictionCompensation:
    """Compensates `share` of the friction; None: nothing."""

    def __init__(self, friction: Friction | None, share: float) -> None:
        self._friction = friction if share > 0.0 else None
        self._share = share

    def __bool__(self) -> bool:
        return self._friction is not None

    def effort(self, v: Array, asked: Array, carried: Array, dither: Array | float) -> Array:
        """The effort (nv,). asked (nv,): effort of the law, in N m or N; carried (nv,): efforts without friction, for
        friction that depends on the load; dither: from −1 to 1, number or (nv,), added to the direction at rest.
        """
        law = self._friction
        if law is None:
            return np.zeros_like(v)
        fast = np.maximum(np.abs(v), LEVEL * law.smoothing)
        slower = fast - np.abs(v)    # viscous friction is that at the joint's own speed
        forward = law.effort(fast, carried) - (law.damping + law.viscous_asymmetry) * slower
        backward = -law.effort(-fast, carried) - (law.damping - law.viscous_asymmetry) * slower
        level = np.minimum(forward, backward)
        moving = np.tanh(v / law.smoothing)
        rest = np.divide(asked, (1.0 - self._share) * level, out=np.zeros_like(v), where=level > 0.0)
        direction = moving + (1.0 - np.abs(moving)) * np.clip(np.clip(rest, -1.0, 1.0) + dither, -1.0, 1.0)
        return self._share * direction * np.where(direction > 0.0, forward, backward)


class Dither:
    """The direction that alternates. frequency: Hz, positive; now: s."""

    def __init__(self, frequency: float, now: float, q: Array) -> None:
        self._frequency, self._began, self._before = frequency, now, q
        self._creep = np.zeros(0)

    def direction(self, now: float, q: Array, model: RobotModel) -> Array:
        """(nv,), from −1 to 1, at positions q (nq,)."""
        elapsed = now - self._began
        if elapsed * self._frequency >= 1.0 or not len(self._creep):
            moved = model.difference(self._before, q)
            self._creep = 2.0 * np.tanh(moved / (max(elapsed, 1.0 / self._frequency) * CREEP))
            self._began, self._before, elapsed = now, np.array(q), 0.0
        return np.clip(self._creep + (1.0 if elapsed * self._frequency < 0.5 else -1.0), -1.0, 1.0)
