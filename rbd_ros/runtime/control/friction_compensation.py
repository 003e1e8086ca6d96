"""Friction compensation by the measured motion (`core.steady.compensation`), and its dither."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.friction import Friction
from ...core.model.robot_model import RobotModel
from ...core.steady.compensation import friction_compensation_entry

Array = NDArray[np.float64]
CREEP = 5e-4   # rad/s or m/s: mean speed over a period of dither that counts as motion
NONE = np.zeros(0)


class FrictionCompensation:
    """Compensates `share` of the friction of nv joints; None: nothing. parameters (8, nv): as in `Friction.packed`."""

    def __init__(self, friction: Friction | None, share: float, nv: int) -> None:
        self.share = 0.0 if friction is None else share
        self.parameters = np.zeros((8, nv))
        if friction is not None:
            self.parameters[:] = friction.packed

    def __bool__(self) -> bool:
        return self.share > 0.0

    def effort(self, v: Array, asked: Array, carried: Array, dither: Array | float) -> Array:
        """The effort (nv,). asked (nv,): effort of the law, in N m or N; carried (nv,): efforts without friction, for
        friction that depends on the load; dither: from −1 to 1, (nv,), added to the direction at rest; 0.0: none.
        """
        out = np.zeros_like(v)
        if self:
            friction_compensation_entry.call(self.parameters, self.share, v, asked, carried,
                                             dither if isinstance(dither, np.ndarray) else NONE, out)
        return out


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
