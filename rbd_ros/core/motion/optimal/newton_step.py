"""One linear system per iteration: a band, bordered by the duration and by equations."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .linearised import Step

Array = NDArray[np.float64]
LEAST = 1e-13       # damping, of the median of the diagonal
FIRST = 1e-8        # where the least is not enough
MOST = 1e12


def newton_step(step: Step, gradient: Array, A: Array, equations: Array, damping: float,
                most: float = MOST) -> tuple[Array, Array, float] | None:
    """dx, multipliers of the equations c = 0 (Aᵀ dx = −c), and the damping to begin with next time.

    The diagonal grows until the matrix is positive definite; None where `most` is not enough.
    """
    from scipy.linalg.lapack import dpbtrf, dpbtrs    # here: nodes that plan nothing need 20 MB less

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
            found = _bordered(factor, border, step.corner, A[n:], gradient, equations)
            if found is not None:
                return found[:n + m], found[n + m:], 0.1 * damping
        damping = max(10.0 * damping, FIRST)
    return None


def _bordered(factor: Array, border: Array, corner: Array, A_tail: Array, gradient: Array,
              equations: Array) -> Array | None:
    """The whole solution by the Schur complement of the band; None where the matrix is not positive definite."""
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
