"""Second derivatives of λᵀτ by (q, v, a) at every knot: the part of the Hessian beyond Gauss–Newton.

Forward differences of the analytic first derivatives along q; ∂²τ/∂v² follows from ∂M/∂q by the Christoffel symbols.
The error of 1e-7 affects the Newton step, but neither the gradient nor the solution. The tensor is independent of λ and
changes slowly with the motion, so that it serves several iterations.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compiled.entry import entry
from ...derivatives.inverse import inverse_dynamics_derivatives
from ...model.robot_model import RobotModel

Array = NDArray[np.float64]
STEP = 1e-6
INVERSE_STEP = 1.0 / STEP
MAX_CACHED = 20_000_000    # largest number of cached values; for larger robots they are recomputed part by part


@entry("void(float64[:, :, :], float64[:, :, :], float64[:, :, :], float64[:, :, :, :, ::1])", nogil=True)
def difference_tensor(by_q, by_v, by_a, out):
    """out[node, effort, block, direction, by]: change per rad or m of ∂τ/∂q, ∂τ/∂v, ∂τ/∂a (blocks) along q.

    The derivatives (N (1 + n), n, n): of each knot, followed by its displacements by `STEP` in each direction.
    """
    n = by_q.shape[1]
    for s in range(out.shape[0]):
        base = s * (n + 1)
        for i in range(n):
            for c in range(n):
                for j in range(n):
                    out[s, i, 0, c, j] = (by_q[base + 1 + c, i, j] - by_q[base, i, j]) * INVERSE_STEP
                    out[s, i, 1, c, j] = (by_v[base + 1 + c, i, j] - by_v[base, i, j]) * INVERSE_STEP
                    out[s, i, 2, c, j] = (by_a[base + 1 + c, i, j] - by_a[base, i, j]) * INVERSE_STEP


@entry("void(float64[:, :, :, :, ::1], float64[:, ::1], float64[:, :, ::1])", nogil=True)
def add_weighed(tensor, lam, out):
    """Add λᵀ times the second derivatives of τ by (q, v, a) to out (N, nz, nz)."""
    count, n = lam.shape
    sums = np.empty(3 * n * n)
    along = np.empty((n, n))    # Σ_i λ_i ∂M/∂q_i
    flat = tensor.reshape(count, n, 3 * n * n)    # contiguous rows for vector instructions
    for s in range(count):
        sums[:] = 0.0
        along[:] = 0.0
        for i in range(n):
            f = lam[s, i]
            for x in range(3 * n * n):
                sums[x] += f * flat[s, i, x]
            for c in range(n):
                f = lam[s, c]
                for j in range(n):
                    along[i, j] += f * tensor[s, i, 2, c, j]
        by_q, by_v, by_a = 0, n * n, 2 * n * n
        for x in range(n):
            for y in range(n):
                entry, transposed = n * x + y, n * y + x
                out[s, x, y] += 0.5 * (sums[by_q + entry] + sums[by_q + transposed])
                out[s, x, n + y] += sums[by_v + entry]
                out[s, n + y, x] += sums[by_v + entry]
                out[s, x, 2 * n + y] += sums[by_a + entry]
                out[s, 2 * n + y, x] += sums[by_a + entry]
                out[s, n + x, n + y] += sums[by_a + entry] + sums[by_a + transposed] - 0.5 * (along[x, y] + along[y, x])


class EffortCurvature:
    """Second derivatives of efforts at states q, v, a (N, nv), contiguous."""

    def __init__(self, model: RobotModel, q: Array, v: Array, a: Array, wrenches: Any) -> None:
        n = model.nv
        self._count = len(q)
        self._part = max(1, MAX_CACHED // (3 * n**3))
        steps = np.concatenate([np.zeros((1, n)), STEP * np.eye(n)])

        def tensors(begin: int, end: int) -> Array:
            displaced = (q[begin:end, None] + steps).reshape(-1, n)
            speed, acceleration = (np.repeat(x[begin:end], n + 1, axis=0) for x in (v, a))
            derivatives = inverse_dynamics_derivatives(model, displaced, speed, acceleration, wrenches)
            tensor = np.empty((end - begin, n, 3, n, n))
            difference_tensor.call(*derivatives, tensor)
            return tensor

        self._tensors = tensors
        self._cached = tensors(0, self._count) if self._count <= self._part else None

    def add(self, lam: Array, out: Array) -> None:
        """Add the second derivatives of λᵀτ to out (N, nz, nz); lam (N, nv)."""
        for i in range(0, self._count, self._part):
            end = min(i + self._part, self._count)
            add_weighed.call(self._tensors(i, end) if self._cached is None else self._cached, lam[i:end], out[i:end])
