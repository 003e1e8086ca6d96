"""Second derivatives of λᵀτ by (q, v, a) at every node: what Newton's matrix has beyond Gauss's and Newton's.

With L = λᵀ(M a + h + g), A = ∂(Mλ)/∂q and V = ∂h/∂v at v = λ: ∂²L/∂a∂q = A, and ∂²L/∂v² = 2A − V from the Christoffel
symbols of M, both exact. Those by q and q or v are forward differences of the analytic first ones: the step is
inexact by 1e-7 of it, the gradient and so the solution are not.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...derivatives.inverse import inverse_dynamics_derivatives
from ...model.robot_model import RobotModel

Array = NDArray[np.float64]
STEP = 1e-6


def effort_curvature(model: RobotModel, q: Array, v: Array, a: Array, lam: Array, wrenches: Any, first: Array,
                     out: Array) -> None:
    """Add to out (N, nz, nz) the second derivatives of λᵀτ; first (N, nv, ≥ 2 nv): ∂τ by q and v here."""
    count, n = q.shape
    zero = np.zeros_like(q)
    moved = (q + STEP * np.eye(n)[:, None, :]).reshape(-1, n)
    by = inverse_dynamics_derivatives(model, moved, np.tile(v, (n, 1)), np.tile(a, (n, 1)), wrenches)
    base = np.matmul(lam[:, None, :], first[:, :, :2 * n])[:, 0]
    for k, part in enumerate((by.q, by.v)):
        slope = np.matmul(lam[None, :, None, :], part.reshape(n, count, n, n))[:, :, 0]    # (direction, node, by)
        second = ((slope - base[:, k * n:(k + 1) * n]) / STEP).transpose(1, 0, 2)
        if k == 0:
            out[:, :n, :n] += 0.5 * (second + second.transpose(0, 2, 1))
        else:
            out[:, :n, n:2 * n] += second
            out[:, n:2 * n, :n] += second.transpose(0, 2, 1)
    turning = inverse_dynamics_derivatives(model, q, zero, lam).q - inverse_dynamics_derivatives(model, q, zero, zero).q
    V = inverse_dynamics_derivatives(model, q, lam, zero).v
    out[:, 2 * n:3 * n, :n] += turning
    out[:, :n, 2 * n:3 * n] += turning.transpose(0, 2, 1)
    vv = 2.0 * turning - V
    out[:, n:2 * n, n:2 * n] += 0.5 * (vv + vv.transpose(0, 2, 1))
