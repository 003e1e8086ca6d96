"""A pose of a body as start or end of a motion: its equations, and an initial posture."""
from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...dynamics.kinematics import forward_kinematics, jacobian
from ...errors import RbdError
from ...lie import se3
from ...model.inertia import finite
from ...model.robot_model import RobotModel

Array = NDArray[np.float64]
RESTORATIONS, RESTORED = 6, 1e-12
RESTARTS, STEPS = 30, 60
ENOUGH = 3          # number of postures, of which the nearest is taken
REACHED = 1e-9      # m, rad: tolerance of a posture
HELD = 1e-5         # m, rad: tolerance at an end of a motion
STEP = 1e-6         # rad, m, for finite differences
LONGEST = 0.3       # rad, m: longest step
DAMPING = 1e-4
INSIDE = 1e-2       # margin, relative to the position limits


@dataclass(frozen=True, eq=False)
class BodyGoal:
    """Goal pose of a body: position (3,) of its frame's origin, or of the point `offset` (3,) in its frame, in m, world
    axes; orientation (3, 3), world from body, or None: any.

        >>> goal = rbd.BodyGoal("link_7", [0.4, 0.2, 0.6])    # the origin of this link, m
        >>> goal.size
        3
    """

    body: str
    position: ArrayLike
    orientation: ArrayLike | None = None
    offset: ArrayLike = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", finite(self.position, (3,), "BodyGoal: position"))
        object.__setattr__(self, "offset", finite(self.offset, (3,), "BodyGoal: offset"))
        if self.orientation is not None:
            pose = np.eye(4)
            pose[:3, :3] = finite(self.orientation, (3, 3), "BodyGoal: orientation")
            object.__setattr__(self, "orientation", se3.checked_pose("BodyGoal: orientation", pose)[:3, :3])

    @property
    def size(self) -> int:
        """Number of equations: 3 or 6."""
        return 3 if self.orientation is None else 6

    def equations(self, model: RobotModel, q: Array) -> Array:
        """Position error (m), then the vector of half the skew part of goal orientationᵀ · orientation; 0 at the goal.
        """
        pose = forward_kinematics(model, q)[model.body_index(self.body)]
        off = pose[:3, :3] @ np.asarray(self.offset) + pose[:3, 3] - np.asarray(self.position)
        if self.orientation is None:
            return off
        E = np.asarray(self.orientation).T @ pose[:3, :3]
        return np.concatenate([off, 0.5 * np.array([E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]])])

    def jacobian(self, model: RobotModel, q: Array) -> Array:
        """Derivatives (size, nv) of the equations."""
        J = jacobian(model, q, self.body)
        R = forward_kinematics(model, q)[model.body_index(self.body), :3, :3]
        moved = R @ (J[3:] + np.cross(J[:3], np.asarray(self.offset), axisa=0, axisc=0))
        if self.orientation is None:
            return np.asarray(moved)
        E = np.asarray(self.orientation).T @ R
        return np.concatenate([moved, 0.5 * (np.trace(E) * np.eye(3) - E.T) @ J[:3]])

    def curvature(self, model: RobotModel, q: Array, weights: Array) -> Array:
        """Second derivatives (nv, nv) of weights · equations, by differences of first derivatives."""
        slope = weights @ self.jacobian(model, q)
        out = np.array([(weights @ self.jacobian(model, q + STEP * e) - slope) / STEP for e in np.eye(model.nv)])
        return 0.5 * (out + out.T)

    def reached(self, model: RobotModel, q: Array) -> Array:
        """A posture close to q (nv,) that satisfies the equations, at least nearly."""
        for _ in range(RESTORATIONS):
            c = self.equations(model, q)
            if np.abs(c).max() <= RESTORED:
                break
            q = q - np.linalg.lstsq(self.jacobian(model, q), c, rcond=1e-8)[0]
        return q

    def posture(self, model: RobotModel, start: Array, lower: Array, upper: Array, until: float = np.inf,
                name: str = "goal") -> Array:
        """A posture (nv,) at the goal within limits, the nearest of several to `start`; raises `RbdError` if none is
        found by the time `until` (`time.perf_counter`).
        """
        low, high = np.where(np.isfinite(lower), lower, -np.pi), np.where(np.isfinite(upper), upper, np.pi)
        room = INSIDE * np.where(np.isfinite(lower) & np.isfinite(upper), upper - lower, 0.0)
        rng = np.random.default_rng(2)
        postures: list[Array] = []
        best = np.inf
        for attempt in range(RESTARTS):
            q = start.copy() if not attempt else rng.uniform(low, high)
            for _ in range(STEPS):
                c = self.equations(model, q)
                J = self.jacobian(model, q)
                if np.abs(c).max() <= REACHED:
                    break
                step = -J.T @ np.linalg.solve(J @ J.T + DAMPING * np.abs(c).max() * np.eye(len(c)), c)
                step *= min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
                q = np.clip(q + step, lower + room, upper - room)
            off = float(np.abs(self.equations(model, q)).max())
            best = min(best, off)
            if off <= 1e3 * REACHED and self._upright(model, q):
                postures.append(q)
            if len(postures) >= ENOUGH or time.perf_counter() > until:
                break
        if not postures:
            raise RbdError(f"{name}: no posture within the position limits was found that brings '{self.body}' to "
                           f"{np.array2string(np.asarray(self.position), precision=4)}; the best is off by {best:.3g}")
        return min(postures, key=lambda q: float(np.abs(q - start).max()))

    def holds(self, model: RobotModel, q: Array) -> bool:
        """Whether the body is at the goal, to `HELD`, and not rotated by half a turn."""
        return bool(np.abs(self.equations(model, q)).max() <= HELD) and self._upright(model, q)

    def _upright(self, model: RobotModel, q: Array) -> bool:
        """Whether the body is not rotated by half a turn, which also satisfies the equations."""
        if self.orientation is None:
            return True
        R = forward_kinematics(model, q)[model.body_index(self.body), :3, :3]
        return bool(np.trace(np.asarray(self.orientation).T @ R) > 2.0)
