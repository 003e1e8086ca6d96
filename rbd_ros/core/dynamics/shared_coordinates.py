"""Forward and hybrid dynamics of trees whose bodies share coordinates (mimic joints), by the mass matrix: K eq. 33, 34.

Such joints couple distant bodies, which a recursion over the tree cannot represent. The packed model contains
q = G q_r + offset: RNEA and CRBA give Gᵀ of efforts and Gᵀ M G.
"""
from __future__ import annotations

import numpy as np

from ..compiled.kernel import kernel
from ..model.block import size_v, zero
from .inverse import inverse_dynamics_recursion
from .mass_matrix import mass_matrix_recursion
from .singular import INDEFINITE, SINGULAR


@kernel
def shared_recursion(B, q, k, v, tau, j, prescribed, wrenches, W, H, out, effort):
    """One state; arguments as of `articulated_recursion`, H: nv (nv + 1) numbers of workspace. Returns 0 or INDEFINITE.
    """
    mask, acc = prescribed
    wrench, e = wrenches
    nv = size_v(B)
    z = zero(B, v, j)
    hybrid = mask.shape[0] > 0
    residual = H[nv * nv:]
    for i in range(nv):
        out[j + i] = acc[j + i] if hybrid and mask[i] else z
    inverse_dynamics_recursion(B, q, k, v[j:], out[j:], 0, wrench, e, W, residual)
    mass_matrix_recursion(B, q, k, W, H, 0)
    for i in range(nv):
        if hybrid and mask[i]:    # removed from the lower triangle, the only part that is factorised
            effort[j + i] = residual[i]
            residual[i] = z
            for c in range(nv):
                H[max(i, c) * nv + min(i, c)] = z
            H[i * nv + i] = z + 1.0
        else:
            residual[i] = tau[j + i] - residual[i]
    if not cholesky_solve(H, nv, residual):
        return INDEFINITE
    for i in range(nv):
        out[j + i] += residual[i]
        if hybrid and mask[i]:
            for c in range(nv):
                effort[j + i] += H[min(i, c) * nv + max(i, c)] * residual[c]
        elif hybrid:
            effort[j + i] = tau[j + i]
    return 0


@kernel
def cholesky_factor(H, n):
    """H (row-major), symmetric positive definite, becomes its lower factor; False if it is not definite."""
    for i in range(n):
        least = SINGULAR * H[i * n + i]
        for j in range(i + 1):
            x = H[i * n + j]
            for k in range(j):
                x -= H[i * n + k] * H[j * n + k]
            if i != j:
                H[i * n + j] = x / H[j * n + j]
            elif x > least:
                H[i * n + i] = np.sqrt(x)
            else:
                return False
    return True


@kernel
def cholesky_substitute(H, n, b):
    """b := H⁻¹ b, of the factor of H."""
    for i in range(n):
        for k in range(i):
            b[i] -= H[i * n + k] * b[k]
        b[i] /= H[i * n + i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            b[i] -= H[k * n + i] * b[k]
        b[i] /= H[i * n + i]


@kernel
def cholesky_solve(H, n, b):
    """b := H⁻¹ b for symmetric positive definite H (row-major), replaced by its factor; False if not definite."""
    if not cholesky_factor(H, n):
        return False
    cholesky_substitute(H, n, b)
    return True
