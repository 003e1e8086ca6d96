"""The linear system of an iteration: a banded matrix, bordered by the duration and the equations."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .linearization import StepMatrix

Array = NDArray[np.float64]
MIN_DAMPING = 1e-13             # relative to the median of the diagonal, as all damping
FIRST_DAMPING = 1e-8            # if the matrix is indefinite with MIN_DAMPING
MAX_DAMPING = 1e12
RANK_TOLERANCE = 1e-10          # relative size of pivots of redundant equations
EIGENVALUE_TOLERANCE = 1e-12    # relative size of eigenvalues that count as zero


def newton_step(step: StepMatrix, gradient: Array, A: Array, equations: Array, damping: float,
                max_damping: float = MAX_DAMPING) -> tuple[Array, Array, float] | None:
    """dx, multipliers of the equations c = 0 (Aᵀ dx = −c), and the initial damping of the next step.

    The damping grows until the matrix is positive definite; None if it exceeds `max_damping`.
    """
    from scipy.linalg.lapack import dpbtrf, dpbtrs    # local import: saves 20 MB in nodes without planning

    n, m = step.band.shape[1], len(step.corner)
    diagonal_scale = float(np.sort(step.band[0])[n // 2]) or 1.0
    border = np.concatenate([step.border, A[:n]], axis=1)
    while damping <= max_damping:
        band = step.band.copy()
        band[0] += max(damping, MIN_DAMPING) * diagonal_scale
        factor, info = dpbtrf(band, lower=1)
        if info == 0 and not border.shape[1]:
            return dpbtrs(factor, -gradient, lower=1)[0], np.zeros(0), 0.1 * damping
        if info == 0:
            solution = _bordered(factor, border, step.corner, A[n:], gradient, equations)
            if solution is not None:
                return solution[:n + m], solution[n + m:], 0.1 * damping
        damping = max(10.0 * damping, FIRST_DAMPING)
    return None


def _bordered(factor: Array, border: Array, corner: Array, A_tail: Array, gradient: Array,
              equations: Array) -> Array | None:
    """dx and multipliers by the Schur complement of the band; None if the matrix is not positive definite."""
    from scipy.linalg.lapack import dpbtrs

    n, m, k = len(border), len(corner), border.shape[1]
    solved = dpbtrs(factor, np.concatenate([border, -gradient[:n, None]], axis=1), lower=1)[0]
    S = np.zeros((k, k))
    S[:m, :m] = corner
    S[:m, m:], S[m:, :m] = A_tail, A_tail.T
    S -= border.T @ solved[:, :k]
    if m and S[0, 0] <= 1e-12 * abs(corner[0, 0]):
        return None
    right_side = np.concatenate([-gradient[n:], -equations]) - border.T @ solved[:, k]
    if not (np.isfinite(S).all() and np.isfinite(right_side).all()):
        return None
    tail = np.linalg.lstsq(S, right_side, rcond=1e-14)[0]
    return np.concatenate([solved[:, k] - solved[:, :k] @ tail, tail])


def tangent_step(step: StepMatrix, gradient: Array, A: Array, equations: Array,
                 damping: float) -> tuple[Array, Array, float] | None:
    """`newton_step` for many equations, by a dense null-space method with the absolute values of the reduced Hessian's
    eigenvalues, so that dx is a descent direction in the null space. None for non-finite numbers.
    """
    from scipy.linalg import qr, solve_triangular

    n, m = step.band.shape[1], len(step.corner)
    H = np.zeros((n + m, n + m))
    for d in range(len(step.band)):
        rows = np.arange(n - d)
        H[rows + d, rows] = H[rows, rows + d] = step.band[d, :n - d]
    H[:n, n:], H[n:, :n], H[n:, n:] = step.border, step.border.T, step.corner
    if not (np.isfinite(H).all() and np.isfinite(A).all()):
        return None
    Q, R, order = qr(A, pivoting=True)
    pivots = np.abs(np.diagonal(R))
    rank = int(np.sum(pivots > RANK_TOLERANCE * pivots.max(initial=0.0)))
    Y, Z, R = Q[:, :rank], Q[:, rank:], R[:rank, :rank]
    dx = Y @ solve_triangular(R, -equations[order[:rank]], trans="T", check_finite=False)
    values, vectors = np.linalg.eigh(Z.T @ H @ Z)
    values = np.abs(values) + (EIGENVALUE_TOLERANCE + damping) * np.abs(values).max(initial=1e-300)
    dx += Z @ (vectors @ ((vectors.T @ (Z.T @ (-gradient - H @ dx))) / values))
    nu = np.zeros(len(equations))
    nu[order[:rank]] = solve_triangular(R, Y.T @ (-gradient - H @ dx), check_finite=False)
    return (dx, nu, 0.1 * damping) if np.isfinite(nu).all() and np.isfinite(dx).all() else None
