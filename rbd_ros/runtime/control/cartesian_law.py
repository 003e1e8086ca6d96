"""Cartesian impedance of one link as a law of a controller: `core.dynamics.impedance` with its settings."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.impedance import (
    DRAG, JOINTS, KNOWN, NUMBERS, OFF, RATE, ROWS, SHARE, SIZE, SMALL, TURNED, WALL_STIFFNESS, impedance_entry,
    slack_entry,
)
from ...core.dynamics.kinematics import jacobian
from ...core.dynamics.mass_matrix import mass_matrix
from ...core.dynamics.walls import RECESS
from ...core.errors import RbdError
from ...core.steady import cartesian_cycle as cycle
from ...core.model.robot_model import RobotModel
from ..damping_gains import SAMPLES, STABLE
from .cartesian_settings import CartesianSettings

Array = NDArray[np.float64]
NEAR = 0.4         # of a leash or turn: a target that is less ahead goes on
HEAVIEST = 2.0     # masses of the robot: where a direction of the link appears heavier, the pose is nearly singular


class Seen(NamedTuple):
    """Of the last effort: number of directions that the pose hides; distance to the target, m and rad; energy of all
    springs, J; number of directions whose damping the rate bounds; energy of the whole springs to the target, J; depth
    behind a wall, m; power that the damper takes from the link, and power of an applied wrench, W.
    """

    hidden: float
    off: float
    turned: float
    energy: float
    bounded: float
    springs: float
    depth: float
    damped: float
    applied: float


class CartesianLaw:
    """The law for the link of these settings. share: of the springs to the target that acts, from 0 to 1."""

    def __init__(self, settings: CartesianSettings) -> None:
        model, n = settings.model, settings.model.nv
        self.settings, self.model = settings, model
        self._link = model.body_index(settings.body)
        self._numbers = np.zeros(NUMBERS)
        self._numbers[:RATE] = (*settings.translation, *settings.rotation, settings.frame == "target",
                                settings.damping_ratio, settings.force, settings.moment, settings.posture_damping,
                                1.0 / (HEAVIEST * model.total_mass), settings.walls_force, settings.forces.contact)
        self._stiffness = self._numbers[:6].copy()
        self._free: Any = None    # of the stiffness in use
        self._lightest = lightest(model, settings.body) if len(settings.walls) else 0.0
        self.walls, self.share = settings.walls.copy(), 1.0
        self._joints = np.zeros((JOINTS, n))
        self._joints[1:] = (model.position_lower + settings.margin, model.position_upper - settings.margin,
                            settings.limit_stiffness)
        self._work = np.empty(SIZE * len(model._node_rows))
        self._matrices, self._rows, self._small = np.empty((2 * n, n)), np.empty((ROWS, n)), np.empty((SMALL, 6))
        self.known, self._nothing, self._evaluated = np.zeros(KNOWN), np.zeros(12), False

    def forget(self) -> None:
        """Walls in front of which the link is not are from now on where it is when the law acts next."""
        self.walls[:, RECESS] = np.inf

    def replace(self, other: CartesianLaw) -> None:
        """Take over where the walls are from the law that this one replaces."""
        for wall in self.walls:
            for known in other.walls:
                if np.array_equal(wall[:RECESS], known[:RECESS]):
                    wall[RECESS] = known[RECESS]

    def effort(self, q: Array, v: Array, target: Array, posture: Array, rate: float = np.inf,
               applied: Array | None = None, free: Array | float = 0.0, drag: float = 0.0) -> Array:
        """The effort (nv,) without gravity. target (24,): as of `PoseFilter`; posture (nq,); rate: of the loop, Hz,
        which bounds damping and walls. applied (12,): a wrench on the link, and its setpoint, moments first, in axes of
        the root link about the link's origin; free (6,): share, from 0 to 1, of the stiffness that is gone, translation
        first; drag: least rate of damping, 1/s. Raises `RbdError`.
        """
        if free is not self._free:
            self._numbers[:6], self._free = self._stiffness * (1.0 - free), free
        self._numbers[DRAG] = drag
        self._numbers[RATE] = limit = STABLE * rate if rate > 0.0 else np.inf
        stiffness, half = self.settings.walls_stiffness, 0.5 * limit
        self._numbers[WALL_STIFFNESS] = min(stiffness, half * half * self._lightest) if stiffness > 0.0 else 0.0
        self._numbers[SHARE] = self.share
        np.subtract(posture, q, out=self._joints[0])    # joints of one coordinate each, on the same turn
        self._joints[0] *= self.settings.posture_bandwidth**2
        tau = np.empty(self.model.nv)
        if not impedance_entry.call(self.model._block, q, v, self._link, target,
                                    self._nothing if applied is None else applied, self._numbers,
                                    self.walls.reshape(-1), self._joints, self._work, self._matrices, self._rows,
                                    self._small, self.known, tau):
            raise RbdError("Cartesian impedance: the effort would not be finite, or the mass matrix is singular")
        self._evaluated = True
        return tau

    def slack(self, q: Array, target: Array, goal: Array, leash: float, turn: float) -> float:
        """From 1, where the link follows the target, to 0 and less, where the target is a leash (m) or turn (rad) ahead
        of it on the way to its goal (12,).
        """
        if self._evaluated and self.known[OFF] < NEAR * leash and self.known[TURNED] < NEAR * turn:
            return 1.0    # as of the last effort, which saves a call
        return float(slack_entry.call(self.model._block, q, self._link, target, goal, self._numbers, leash, turn,
                                      self._rows))

    def arrays(self, numbers: Array) -> tuple[Array, ...]:
        """Arguments of the steady cycle (`core.steady.cartesian_cycle`): workspace of the model; the law, two copies of
        the walls, joints, workspaces. numbers: C there, of which those of the law are set.
        """
        settings = self.settings
        numbers[cycle.LINK], numbers[cycle.STABLE], numbers[cycle.LIGHTEST] = self._link, STABLE, self._lightest
        numbers[cycle.WALLS], numbers[cycle.POSTURE_GAIN] = settings.walls_stiffness, settings.posture_bandwidth**2
        both = np.concatenate([self.walls, self.walls])
        self.walls = both[:len(self.walls)]
        return (self._work, self._numbers, both.reshape(-1), self._joints, self._matrices, self._rows, self._small)

    @property
    def whole(self) -> bool:
        """Whether the whole springs acted in the last effort, without hand guiding."""
        return self._evaluated and self.share >= 1.0 and self._numbers[DRAG] == 0.0 and not np.any(self._free)

    @property
    def seen(self) -> Seen:
        return Seen(*self.known.tolist())


def lightest(model: RobotModel, body: str) -> float:
    """Smallest mass (kg) that a force on the origin of this link feels in any direction, over sampled poses."""
    rng, least = np.random.default_rng(0), np.inf
    for q in (model.neutral(), *(model.random_configuration(rng) for _ in range(SAMPLES))):
        J = jacobian(model, q, body, "aligned")[3:]
        least = min(least, 1.0 / max(float(np.linalg.eigvalsh(J @ np.linalg.solve(mass_matrix(model, q), J.T))[-1]),
                                     1e-12))
    return float(least)
