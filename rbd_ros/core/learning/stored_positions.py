"""Derivatives by stored positions q, quaternions included, from those along the tangent of `integrate`.

Poses depend on the direction of a quaternion, not on its norm r: with its tangent `q̇ = ½ q ∘ (ω, 0) = E(q) ω` and
`EᵀE = r²/4`, functions of it change by `ω = 4/r² Eᵀ dq`, and not at all along q itself. The position p of a floating
base changes by `Rᵀ dp`. `P(q)` (nv, nq) is this map of all coordinates, the identity but for these.
"""
from __future__ import annotations

import numpy as np

from ..lie import so3
from ..model import block
from ..model.inertia import Array
from ..model.robot_model import RobotModel

# E of the quaternions e_k (4, 4, 3), of which that of q = (x, w) is the sum: ½ (w 1 + x̂, above −xᵀ)
_TURN = 0.5 * np.array([*(np.vstack([so3.hat(x), -x]) for x in np.eye(3)), np.eye(4)[:, :3]])


class StoredPositions:
    """P(q) of a model and its slope; `plain`: P = 1, as the model has no quaternions."""

    def __init__(self, model: RobotModel) -> None:
        self._size = model.nv, model.nq
        self.plain = not model._quaternions
        quaternions = [(row, kind) for row, kind in model._kinds if kind.quaternion is not None]
        self._places = [(int(row[block.IQ]), int(row[block.IQ]) + int(kind.quaternion or 0), int(row[block.IV]))
                        for row, kind in quaternions]
        self._ones = np.zeros(self._size)    # of coordinates that add up
        for row, kind in model._kinds:
            if kind.quaternion is None and row[block.OWNER]:
                at = int(row[block.IV]), int(row[block.IQ])
                self._ones[at[0]:at[0] + kind.nv, at[1]:at[1] + kind.nv] = np.eye(kind.nv)

    def map(self, q: Array) -> Array:
        """P (N, nv, nq) at q (N, nq)."""
        P = np.array(np.broadcast_to(self._ones, (len(q), *self._size)))
        for first, at, v in self._places:
            x = q[:, at:at + 4]
            P[:, v:v + 3, at:at + 4] = _pull(x)
            if first < at:
                P[:, v + 3:v + 6, first:at] = so3.from_quaternion(x).swapaxes(1, 2)
        return P

    def slope(self, q: Array) -> Array:
        """∂P/∂q (N, nv, nq, nq), the last axis that by which it is derived."""
        dP = np.zeros((len(q), *self._size, self._size[1]))
        for first, at, v in self._places:
            x = q[:, at:at + 4]
            square, pull = np.sum(x * x, axis=1)[:, None, None], _pull(x)
            inverse = so3.from_quaternion(x).swapaxes(1, 2)
            for k in range(4):
                dP[:, v:v + 3, at:at + 4, at + k] = (4.0 * _TURN[k].T - 2.0 * x[:, k, None, None] * pull) / square
                if first < at:    # ∂R = R ω̂
                    dP[:, v + 3:v + 6, first:at, at + k] = -so3.hat(pull[:, :, k]) @ inverse
        return dP


def _pull(x: Array) -> Array:
    """4/r² Eᵀ (N, 3, 4) of quaternions (N, 4)."""
    return np.asarray(np.einsum("sk,kci->sic", x * (4.0 / np.sum(x * x, axis=1))[:, None], _TURN))
