"""Least weighted efforts within limits, over the null space of the constraints: a small quadratic programme.

`min ½ Σ w_i (τ_i − p_i)²` over τ = c + B s with `|τ_i| ≤ limit_i`: in coordinates of the range of √w B, least distance
programming (Lawson, Hanson, *Solving Least Squares Problems*, 1974, ch. 23). SciPy's non-negative least squares solves
it in finitely many steps, or proves infeasibility. The equations of the active rows are then solved exactly.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...model.inertia import Array

FLAT = 1e-12       # of the largest row of B, in coordinates of its range
CLOSE = 1e-9       # of the largest number: tolerance of the limits
_ROUNDS = 3        # exact solutions, when rounding activates further rows


class OutOfLimits(Exception):
    """No τ within the limits; `row`: of the least effort's largest `excess` over its limit."""

    def __init__(self, row: int, excess: float) -> None:
        super().__init__(row, excess)
        self.row, self.excess = row, excess


def least_effort(c: Array, B: Array, root: Array, preferred: Array, limit: Array, zero: float) -> Array:
    """s (k,) of least norm among those of least Σ root² (c + B s − preferred)², |c + B s| ≤ limit (n,), inf for none.

    zero: bound of singular values of √w B that are rounding. Raises `OutOfLimits` if infeasible.
    """
    U, S, Vt = np.linalg.svd(root[:, None] * B, full_matrices=False)
    is_regular = zero < S
    U, S, Vt = U[:, is_regular], S[is_regular], Vt[is_regular]
    y = U.T @ (root * (preferred - c))    # optimum without limits
    rows = U / root[:, None]              # τ = c + rows y
    best = c + rows @ y
    is_limited = np.isfinite(limit)
    G = np.concatenate([-rows[is_limited], rows[is_limited]])    # G z ≥ h for z = y − best y
    h = np.concatenate([best[is_limited] - limit[is_limited], -best[is_limited] - limit[is_limited]])
    size = max(float(np.abs(best).max(initial=0.0)), float(limit[is_limited].max(initial=0.0)), 1e-300)
    names = np.tile(np.flatnonzero(is_limited), 2).astype(np.int64)
    if (h > 0.0).any():
        y = y + _nearest(G, h, size, names, FLAT * float(np.linalg.norm(rows, axis=1).max(initial=0.0)))
    s: Array = Vt.T @ (y / S)
    return s


def _nearest(G: Array, h: Array, size: float, names: NDArray[np.int64], zero: float) -> Array:
    """z of least norm with G z ≥ h; size: order of h; zero: bound of norms of G's rows that are rounding."""
    from scipy.optimize import nnls    # imported only on use

    length = np.linalg.norm(G, axis=1)
    flat = length <= zero    # efforts that s does not change
    if (h[flat] > CLOSE * size).any():
        worst = int(np.argmax(np.where(flat, h, -np.inf)))
        raise OutOfLimits(int(names[worst]), float(h[worst]))
    if not (h[~flat] > 0.0).any():
        return np.zeros(G.shape[1])
    E = G[~flat] / length[~flat, None]
    f = h[~flat] / length[~flat]
    scale = float(np.abs(f).max(initial=0.0)) or 1.0
    stacked = np.concatenate([E.T, f[None] / scale])
    target = np.zeros(len(stacked))
    target[-1] = 1.0
    u, _ = nnls(stacked, target, maxiter=30 * len(f) + 100)
    r = stacked @ u - target
    if not -r[-1] > 1e-12:
        worst = int(np.argmax(h))
        raise OutOfLimits(int(names[worst]), float(h[worst]))
    z: Array = -scale * r[:-1] / r[-1]
    active = u > 1e-12 * u.max(initial=0.0)
    for _ in range(_ROUNDS):    # z = Eᵀν on the active rows
        exact = np.linalg.lstsq(E[active], f[active], rcond=1e-13)[0]
        short = f - E @ exact > 1e-12 * scale
        if np.linalg.norm(exact - z) <= 1e-5 * (np.linalg.norm(z) + scale):
            z = exact
        if not short.any():
            break
        active = active | short
    excess = (f - E @ z) * length[~flat]
    if excess.max(initial=0.0) > CLOSE * size:
        worst = int(np.argmax(excess))
        raise OutOfLimits(int(names[~flat][worst]), float(excess[worst]))
    return z
