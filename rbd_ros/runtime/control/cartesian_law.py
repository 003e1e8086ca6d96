"""Cartesian impedance of one link as a law of a controller: `core.dynamics.impedance` with its settings."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.impedance import (
    BOUNDED, ENERGY, HIDDEN, JOINTS, KNOWN, OFF, RATE, SIZE, TURNED, impedance_entry,
)
from ...core.errors import RbdError
from ...core.model.block import node_count
from ...core.model.robot_model import RobotModel
from ..damping_gains import STABLE

Array = NDArray[np.float64]
HEAVIEST = 2.0     # masses of the robot: where a direction of the link appears heavier, the pose is nearly singular


@dataclass(frozen=True)
class Impedance:
    """translation (3,), N/m, and rotation (3,), N m/rad: stiffness along the axes of the root link, or of the target
    if `in_target`; damping_ratio; largest force, N, and moment, N m, of the springs. posture_bandwidth and
    posture_damping, 1/s: return to the posture, in what the link's pose leaves open. limit_margin (nv,), rad or m, and
    limit_stiffness (nv,): springs near the limits of positions.
    """

    translation: Array
    rotation: Array
    in_target: bool
    damping_ratio: float
    largest_force: float
    largest_moment: float
    posture_bandwidth: float
    posture_damping: float
    limit_margin: Array
    limit_stiffness: Array


class CartesianLaw:
    """The law for one link of a model with joints of one coordinate each.

    After `effort`: hidden, the number of directions that the pose hides; bounded, of those whose damping the rate
    bounds; off (m) and turned (rad), the distance to the target; energy of the springs (J).
    """

    def __init__(self, model: RobotModel, body: str, impedance: Impedance) -> None:
        n, z = model.nv, impedance
        self.model, self.body, self.impedance = model, body, impedance
        self._index = model.body_index(body)
        self._numbers = np.array([*z.translation, *z.rotation, float(z.in_target), z.damping_ratio, z.largest_force,
                                  z.largest_moment, z.posture_damping, 1.0 / (HEAVIEST * model.total_mass), np.inf])
        self._joints = np.zeros((JOINTS, n))
        self._joints[1:] = (model.position_lower + z.limit_margin, model.position_upper - z.limit_margin,
                            np.broadcast_to(z.limit_stiffness, n))
        self._work = np.empty(SIZE * node_count(model._block))
        self._matrices, self._rows, self._small = np.empty((2 * n, n)), np.empty((16, n)), np.empty((42, 6))
        self._known = np.zeros(KNOWN)

    def effort(self, q: Array, v: Array, target: Array, posture: Array, rate: float = np.inf) -> Array:
        """The effort (nv,) without gravity. target (24,): as of `PoseFilter`; posture (nq,); rate: of the loop, Hz,
        which bounds the damping. Raises `RbdError`.
        """
        self._numbers[RATE] = STABLE * rate if rate > 0.0 else np.inf
        self._joints[0] = self.impedance.posture_bandwidth**2 * self.model.difference(q, posture)
        tau = np.empty(self.model.nv)
        if not impedance_entry.call(self.model._block, q, v, self._index, target, self._numbers, self._joints,
                                    self._work, self._matrices, self._rows, self._small, self._known, tau):
            raise RbdError("Cartesian impedance: the effort would not be finite, or the mass matrix is singular")
        return tau

    @property
    def hidden(self) -> int:
        return int(self._known[HIDDEN])

    @property
    def bounded(self) -> int:
        return int(self._known[BOUNDED])

    @property
    def off(self) -> float:
        return float(self._known[OFF])

    @property
    def turned(self) -> float:
        return float(self._known[TURNED])

    @property
    def energy(self) -> float:
        return float(self._known[ENERGY])
