"""Cartesian impedance of one link as a law of a controller: `core.dynamics.impedance` with its settings."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.impedance import (
    JOINTS, KNOWN, NUMBERS, OFF, RATE, ROWS, SIZE, SMALL, TURNED, impedance_entry, slack_entry,
)
from ...core.errors import RbdError
from ...core.model.block import node_count
from ..damping_gains import STABLE
from .cartesian_settings import CartesianSettings

Array = NDArray[np.float64]
HEAVIEST = 2.0     # masses of the robot: where a direction of the link appears heavier, the pose is nearly singular


class Seen(NamedTuple):
    """Of the last effort: number of directions that the pose hides; distance to the target, m and rad; energy of the
    springs, J; number of directions whose damping the rate bounds.
    """

    hidden: float
    off: float
    turned: float
    energy: float
    bounded: float


class CartesianLaw:
    """The law for the link of these settings."""

    def __init__(self, settings: CartesianSettings) -> None:
        model, n = settings.model, settings.model.nv
        self.settings, self.model = settings, model
        self._link = model.body_index(settings.body)
        self._numbers = np.zeros(NUMBERS)
        self._numbers[:RATE] = (*settings.translation, *settings.rotation, settings.frame == "target",
                                settings.damping_ratio, settings.force, settings.moment, settings.posture_damping,
                                1.0 / (HEAVIEST * model.total_mass))
        self._joints = np.zeros((JOINTS, n))
        self._joints[1:] = (model.position_lower + settings.margin, model.position_upper - settings.margin,
                            settings.limit_stiffness)
        self._work = np.empty(SIZE * node_count(model._block))
        self._matrices, self._rows, self._small = np.empty((2 * n, n)), np.empty((ROWS, n)), np.empty((SMALL, 6))
        self._known, self._evaluated = np.zeros(KNOWN), False

    def effort(self, q: Array, v: Array, target: Array, posture: Array, rate: float = np.inf) -> Array:
        """The effort (nv,) without gravity. target (24,): as of `PoseFilter`; posture (nq,); rate: of the loop, Hz,
        which bounds the damping. Raises `RbdError`.
        """
        self._numbers[RATE] = STABLE * rate if rate > 0.0 else np.inf
        self._joints[0] = self.settings.posture_bandwidth**2 * self.model.difference(q, posture)
        tau = np.empty(self.model.nv)
        if not impedance_entry.call(self.model._block, q, v, self._link, target, self._numbers, self._joints,
                                    self._work, self._matrices, self._rows, self._small, self._known, tau):
            raise RbdError("Cartesian impedance: the effort would not be finite, or the mass matrix is singular")
        self._evaluated = True
        return tau

    def slack(self, q: Array, target: Array, goal: Array, leash: float, turn: float) -> float:
        """From 1, where the link follows the target, to 0 and less, where the target is a leash (m) or turn (rad) ahead
        of it on the way to its goal (12,).
        """
        if self._evaluated and self._known[OFF] < 0.4 * leash and self._known[TURNED] < 0.4 * turn:
            return 1.0    # as of the last effort, which saves a call
        return float(slack_entry.call(self.model._block, q, self._link, target, goal, self._numbers, leash, turn,
                                      self._rows))

    @property
    def seen(self) -> Seen:
        return Seen(*self._known.tolist())
