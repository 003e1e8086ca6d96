"""Hand guiding: axes of the controlled link that have no stiffness, a guard against drift, and what was taught."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...core.errors import RbdError
from ...core.lie import so3

Array = NDArray[np.float64]
AXES = ("tx", "ty", "tz", "rx", "ry", "rz")    # not x, y, z: YAML reads y as true
FADE = 0.3               # s in which stiffness goes and comes
SLOW = (0.01, 0.05)      # m/s, rad/s: slower motion, by no hand or a very calm one, is drift
PATIENCE = 2.0           # s of it
MOVED = (3e-3, 1.5e-2)   # m, rad: least displacement of a drift; with less the link rests, and stays free
LEVER = 0.1              # m: a moment frees a link that is held as a force at this lever does
SPACING = 0.01           # s between recorded positions
LONGEST = 600.0          # s of a recording


def free_axes(names: Sequence[str]) -> Array:
    """(6,) with 1 for these of `AXES`. Raises `RbdError` without any."""
    if not names:
        raise RbdError(f"parameter 'guide.free' is empty, expected some of {', '.join(AXES)}")
    return np.array([name in names for name in AXES], dtype=np.float64)


class Guide:
    """A link that is guided by hand from the target pose at which it begins. free (6,): 1 for free axes, translation
    first, along the root's axes or, `in_target`, the target's; stiffness (6,), likewise, of the others and of a link
    that is held; release: N with which the springs of a link that is held must be drawn to free it again; motion (12,):
    twist of the target and its rate, angular first, in axes of the root, from which it comes to rest within `FADE`.

    `share` (6,): of the stiffness that is gone. A link that drifts, slowly for some time, is `held`.
    """

    def __init__(self, free: Array, in_target: bool, stiffness: Array, release: float, motion: Array) -> None:
        self.in_target = in_target
        self._free, self._stiffness, self._release, self._motion = free, stiffness, release, motion
        self.on, self.held = True, False
        self.gone = 0.0    # share of the fade
        self._slow = 0.0    # s
        self._stopped = 0.0 if motion.any() else 1.0    # share of the stop of the target
        self._began: tuple[Array, Array] | None = None
        self.share = np.zeros(6)

    @property
    def over(self) -> bool:
        """Whether all stiffness is back, and the target has come to rest."""
        return not self.on and self.gone == 0.0 and self._stopped == 1.0

    @property
    def moves(self) -> bool:
        """Whether free axes have no stiffness at all."""
        return self.gone == 1.0

    def advance(self, dt: float, axes: Array, origin: Array, target: Array) -> tuple[Array, Array, Array]:
        """Axes (3, 3), origin (3,) and motion (12,) of the target after dt (s): that of before, target (24,), dragged
        along free axes by the link, whose axes and origin are given.
        """
        R_d, p_d = target[:9].reshape(3, 3), target[9:12]
        A = R_d if self.in_target else np.eye(3)
        way, turn = A.T @ (origin - p_d), A.T @ so3.log(axes @ R_d.T)
        self._watch(dt, axes, origin, way, turn)
        step = dt / FADE
        self.gone = min(max(self.gone + (step if self.on and not self.held else -step), 0.0), 1.0)
        self.share = self.gone * self._free
        if self.moves:
            p_d = p_d + A @ (self._free[:3] * way)
            R_d = so3.exp(A @ (self._free[3:] * turn)) @ R_d
        motion = self._stop(step) if self._stopped < 1.0 else np.zeros(12)
        return so3.exp(dt * motion[:3]) @ R_d, p_d + dt * motion[3:6], motion

    def _stop(self, step: float) -> Array:
        """The motion on the way to rest, a cubic step in time, without a step of the twist's rate."""
        self._stopped = s = min(self._stopped + step, 1.0)
        rest = (1.0 - s) ** 2 * (1.0 + 2.0 * s)
        return rest * self._motion - np.concatenate([np.zeros(6), 6.0 * s * (1.0 - s) / FADE * self._motion[:6]])

    def _watch(self, dt: float, axes: Array, origin: Array, way: Array, turn: Array) -> None:
        if self.held:
            force = np.linalg.norm(self._free[:3] * self._stiffness[:3] * way)
            moment = np.linalg.norm(self._free[3:] * self._stiffness[3:] * turn)
            self.held = bool(force < self._release and moment < LEVER * self._release)
            self._began = None
            return
        if self._began is None:
            self._began, self._slow = (axes, origin), 0.0
        self._slow += dt
        moved, turned = origin - self._began[1], so3.log(axes @ self._began[0].T)
        far, wide = np.linalg.norm(moved), np.linalg.norm(turned)
        if far > SLOW[0] * max(self._slow, 0.5) or wide > SLOW[1] * max(self._slow, 0.5):    # a hand
            self._began = None
        elif self._slow >= PATIENCE:
            self.held = bool(far > MOVED[0] or wide > MOVED[1])
            self._began = None


class Taught:
    """Positions (nq,) of a guided arm, at most every `SPACING` s and `LONGEST` s long; `on`: until the guiding ends."""

    def __init__(self) -> None:
        self.on, self.duration = True, 0.0
        self.last: Array | None = None
        self._recorded = -np.inf
        self._positions: list[Array] = []

    def record(self, dt: float, q: Array) -> bool:
        """Record the position after dt (s); whether there is place for more."""
        self.duration += dt
        if self.duration - self._recorded > 0.999 * SPACING:
            self._recorded, self.last = self.duration, np.array(q)
            self._positions.append(self.last)
        self.on = self.duration < LONGEST
        return self.on

    @property
    def positions(self) -> Array:
        """(N, nq)."""
        return np.array(self._positions)
