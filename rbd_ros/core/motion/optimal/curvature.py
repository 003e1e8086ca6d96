"""Second derivatives of λᵀτ by (q, v, a) at every node: what Newton's matrix has beyond Gauss's and Newton's.

By forward differences of the analytic first derivatives along q; ∂²τ/∂v² follows from ∂M/∂q by the Christoffel symbols.
A step is inexact by 1e-7 of it, the gradient and so the solution are not. They change little while λ changes much, so
they are kept for all λ until the motion has moved.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compile import entry
from ...derivatives.columns import COLUMN, NODE_SIZE, count_columns
from ...derivatives.inverse import inverse_derivatives
from ...model.block import node_count, size_v
from ...model.robot_model import RobotModel
from ...model.state import node_wrenches

Array = NDArray[np.float64]
STEP = 1e-6
LARGEST = 20_000_000    # numbers that are kept at most: those of larger robots are made anew, part by part


@entry("void(float64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1], "
       "float64[:, :, :, :, ::1])", nogil=True)
def effort_tensor(B, q, v, a, wrench, out):
    """out[node, effort, block, direction, by]: change per rad or m of ∂τ/∂q, ∂τ/∂v, ∂τ/∂a (blocks) along q."""
    n = size_v(B)
    nodes = node_count(B)
    columns = count_columns(B)
    work = (np.empty(NODE_SIZE * nodes), np.empty(COLUMN * columns), np.empty(2 * columns + nodes, np.int64))
    base = (np.empty((n, n)), np.empty((n, n)), np.empty((n, n)))
    moved = (np.empty((n, n)), np.empty((n, n)), np.empty((n, n)))
    x = np.empty(n)
    for s in range(q.shape[0]):
        x[:] = q[s]
        inverse_derivatives(B, x, 0, v[s], a[s], 0, (wrench, 6 * nodes * s), work, base)
        for c in range(n):
            x[c] = q[s, c] + STEP
            inverse_derivatives(B, x, 0, v[s], a[s], 0, (wrench, 6 * nodes * s), work, moved)
            x[c] = q[s, c]
            for i in range(n):
                for j in range(n):
                    out[s, i, 0, c, j] = (moved[0][i, j] - base[0][i, j]) / STEP
                    out[s, i, 1, c, j] = (moved[1][i, j] - base[1][i, j]) / STEP
                    out[s, i, 2, c, j] = (moved[2][i, j] - base[2][i, j]) / STEP


@entry("void(float64[:, :, :, :, ::1], float64[:, ::1], float64[:, :, ::1])", nogil=True)
def add_weighed(tensor, lam, out):
    """Add λᵀ times the second derivatives of τ by (q, v, a) to out (N, nz, nz)."""
    count, n = lam.shape
    sums = np.empty((3, n, n))
    along = np.empty((n, n))    # Σ_i λ_i ∂M/∂q_i
    for s in range(count):
        sums[:] = 0.0
        along[:] = 0.0
        for i in range(n):
            f = lam[s, i]
            for b in range(3):
                for c in range(n):
                    for j in range(n):
                        sums[b, c, j] += f * tensor[s, i, b, c, j]
            for c in range(n):
                for j in range(n):
                    along[i, j] += lam[s, c] * tensor[s, i, 2, c, j]
        for x in range(n):
            for y in range(n):
                out[s, x, y] += 0.5 * (sums[0, x, y] + sums[0, y, x])
                out[s, x, n + y] += sums[1, x, y]
                out[s, n + y, x] += sums[1, x, y]
                out[s, x, 2 * n + y] += sums[2, x, y]
                out[s, 2 * n + y, x] += sums[2, x, y]
                out[s, n + x, n + y] += sums[2, x, y] + sums[2, y, x] - 0.5 * (along[x, y] + along[y, x])


class EffortCurvature:
    """At states q, v, a (N, nv), contiguous."""

    def __init__(self, model: RobotModel, q: Array, v: Array, a: Array, wrenches: Any) -> None:
        n = model.nv
        self._count = len(q)
        self._part = max(1, LARGEST // (3 * n**3))
        wrench = node_wrenches(model, wrenches, len(q))
        size = len(wrench) // len(q)

        def make(begin: int, end: int) -> Array:
            tensor = np.empty((end - begin, n, 3, n, n))
            effort_tensor.call(model._block, q[begin:end], v[begin:end], a[begin:end],
                               wrench[size * begin:size * end], tensor)
            return tensor

        self._make = make
        self._kept = make(0, self._count) if self._count <= self._part else None

    def add(self, lam: Array, out: Array) -> None:
        """Add to out (N, nz, nz) the second derivatives of λᵀτ; λ (N, nv)."""
        for i in range(0, self._count, self._part):
            end = min(i + self._part, self._count)
            add_weighed.call(self._make(i, end) if self._kept is None else self._kept, lam[i:end], out[i:end])
