"""Second derivatives of λᵀτ by (q, v, a) at every node: what Newton's matrix has beyond Gauss's and Newton's.

By forward differences of the analytic first derivatives along q; ∂²τ/∂v² follows from ∂M/∂q by the Christoffel symbols.
A step is inexact by 1e-7 of it, the gradient and so the solution are not. They change little while λ changes much, so
they are kept for all λ until the motion has moved.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...derivatives.inverse import inverse_dynamics_derivatives
from ...model.robot_model import RobotModel

Array = NDArray[np.float64]
STEP = 1e-6
LARGEST = 20_000_000    # numbers that are kept at most: those of larger robots are contracted node by node


class EffortCurvature:
    """At states q, v, a (N, nv): derivatives of ∂τ/∂(q, v, a), [node, effort, (q, v, a), direction of q, by]."""

    def __init__(self, model: RobotModel, q: Array, v: Array, a: Array, wrenches: Any) -> None:
        count, n = q.shape
        self._n = n
        self._part = max(1, LARGEST // (4 * n**3))
        self._make = lambda k: _tensor(model, q[k], v[k], a[k], wrenches)
        self._kept = self._make(slice(None)) if count <= self._part else None
        self._count = count

    def add(self, lam: Array, out: Array) -> None:
        """Add to out (N, nz, nz) the second derivatives of λᵀτ; λ (N, nv)."""
        for i in range(0, self._count, self._part):
            k = slice(i, i + self._part)
            _contract(self._kept if self._kept is not None else self._make(k), lam[k], out[k], self._n)


def _tensor(model: RobotModel, q: Array, v: Array, a: Array, wrenches: Any) -> tuple[Array, Array]:
    """The derivatives, and those of M once more by themselves."""
    count, n = q.shape
    steps = np.concatenate([np.zeros((1, n)), STEP * np.eye(n)])
    by = inverse_dynamics_derivatives(model, (q + steps[:, None, :]).reshape(-1, n), np.tile(v, (n + 1, 1)),
                                      np.tile(a, (n + 1, 1)), wrenches)
    whole = np.stack(by, axis=1).reshape(n + 1, count, 3, n, n)
    change = (whole[1:] - whole[0]) / STEP    # direction, node, block, effort, by
    tensor = np.ascontiguousarray(change.transpose(1, 3, 2, 0, 4))
    return tensor.reshape(count, n, 3 * n * n), np.ascontiguousarray(tensor[:, :, 2])


def _contract(tensors: tuple[Array, Array], lam: Array, out: Array, n: int) -> None:
    tensor, mass = tensors
    found = np.matmul(lam[:, None, :], tensor).reshape(len(lam), 3, n, n)
    qq, qv, qa = found[:, 0], found[:, 1], found[:, 2]
    out[:, :n, :n] += 0.5 * (qq + qq.transpose(0, 2, 1))
    out[:, :n, n:2 * n] += qv
    out[:, n:2 * n, :n] += qv.transpose(0, 2, 1)
    out[:, :n, 2 * n:3 * n] += qa
    out[:, 2 * n:3 * n, :n] += qa.transpose(0, 2, 1)
    along = np.matmul(lam[:, None, None, :], mass)[:, :, 0]    # Σ_i λ_i ∂M/∂q_i
    out[:, n:2 * n, n:2 * n] += qa + qa.transpose(0, 2, 1) - 0.5 * (along + along.transpose(0, 2, 1))
