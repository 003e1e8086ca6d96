"""One linear system per iteration: a band, bordered by the duration and by equations."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .linearised import Step

Array = NDArray[np.float64]
LEAST = 1e-13       # smallest damping, relative to the median of the diagonal
FIRST = 1e-8        # first larger damping
MOST = 1e12
DEPENDENT = 1e-10   # relative size of redundant equations
FLAT = 1e-12        # relative size of eigenvalues that count as zero


def newton_step(step: Step, gradient: Array, A: Array, equations: Array, damping: float,
                most: float = MOST) -> tuple[Array, Array, float] | None:
    """dx, multipliers of the equations c = 0 (Aᵀ dx = −c), and the initial damping of the next step.

    The damping grows until the matrix is positive definite; None if it exceeds `most`.
    """
    from scipy.linalg.lapack import dpbtrf, dpbtrs    # local import: saves 20 MB in nodes without planning

    n, m = step.band.shape[1], len(step.corner)
    unit = float(np.sort(step.band[0])[n // 2]) or 1.0
    border = np.concatenate([step.border, A[:n]], axis=1)
    while damping <= most:
        band = step.band.copy()
        band[0] += max(damping, LEAST) * unit
        factor, info = dpbtrf(band, lower=1)
        if info == 0 and not border.shape[1]:
            return dpbtrs(factor, -gradient, lower=1)[0], np.zeros(0), 0.1 * damping
        if info == 0:
            solution = _bordered(factor, border, step.corner, A[n:], gradient, equations)
            if solution is not None:
                return solution[:n + m], solution[n + m:], 0.1 * damping
        damping = max(10.0 * damping, FIRST)
    return None


def _bordered(factor: Array, border: Array, corner: Array, A_tail: Array, gradient: Array,
              equations: Array) -> Array | None:
    """The complete solution by the Schur complement of the band; None if the matrix is not positive definite."""
    from scipy.linalg.lapack import dpbtrs

    n, m, k = len(border), len(corner), border.shape[1]
    solved = dpbtrs(factor, np.concatenate([border, -gradient[:n, None]], axis=1), lower=1)[0]
    S = np.zeros((k, k))
    S[:m, :m] = corner
    S[:m, m:], S[m:, :m] = A_tail, A_tail.T
    S -= border.T @ solved[:, :k]
    if m and S[0, 0] <= 1e-12 * abs(corner[0, 0]):
        return None
    right = np.concatenate([-gradient[n:], -equations]) - border.T @ solved[:, k]
    if not (np.isfinite(S).all() and np.isfinite(right).all()):
        return None
    tail = np.linalg.lstsq(S, right, rcond=1e-14)[0]
    return np.concatenate([solved[:, k] - solved[:, :k] @ tail, tail])


def tangent_step(step: Step, gradient: Array, A: Array, equations: Array,
                 damping: float) -> tuple[Array, Array, float] | None:
    """`newton_step` for many equations: in their null space, with absolute values of negative eigenvalues, so that dx
    is a descent direction there. None for non-finite numbers.
    """
    from scipy.linalg import qr, solve_triangular

    n, m = step.band.shape[1], len(step.corner)
    H = np.zeros((n + m, n + m))
    for d in range(len(step.band)):
        row = np.arange(n - d)
        H[row + d, row] = H[row, row + d] = step.band[d, :n - d]
    H[:n, n:], H[n:, :n], H[n:, n:] = step.border, step.border.T, step.corner
    if not (np.isfinite(H).all() and np.isfinite(A).all()):
        return None
    Q, R, order = qr(A, pivoting=True)
    size = np.abs(np.diagonal(R))
    rank = int(np.sum(size > DEPENDENT * size.max(initial=0.0)))
    Y, Z, R = Q[:, :rank], Q[:, rank:], R[:rank, :rank]
    dx = Y @ solve_triangular(R, -equations[order[:rank]], trans="T", check_finite=False)
    values, ways = np.linalg.eigh(Z.T @ H @ Z)
    values = np.abs(values) + (FLAT + damping) * np.abs(values).max(initial=1e-300)
    dx += Z @ (ways @ ((ways.T @ (Z.T @ (-gradient - H @ dx))) / values))
    nu = np.zeros(len(equations))
    nu[order[:rank]] = solve_triangular(R, Y.T @ (-gradient - H @ dx), check_finite=False)
    return (dx, nu, 0.1 * damping) if np.isfinite(nu).all() and np.isfinite(dx).all() else None
