"""Physically consistent fit: least squares plus the divergence of every body from the description's.

`½ ‖W^½ (X θ − y)‖² + γ Σ_i D(P_i, P₀_i) + ½ Σ_k ((s_k − s₀_k) / w_k)²` is convex in θ: bodies i stay consistent, joint
parameters s within their bounds, and directions without information keep the description's values. Rows are compressed
first, `‖W^½ (X θ − y)‖² = ‖R θ − z‖² + const`, so that the cost of a Newton step is independent of the recording's
length.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..errors import RbdError
from .consistency import IDENTITY, SIZE, divergence
from .linear_fit import Rows
from .unknowns import Unknowns

Array = NDArray[np.float64]
MOST = 3000          # steps at one weight of the divergence
LESS = 0.1           # factor by which the weight is lowered
DONE = 1e-7          # half the predicted decrease of a step, in units of the cost: standard deviations squared
SHORTEST = 1e-12     # smallest share of a step
REGULAR = 1e-13      # regularisation of the unit-scaled Hessian
CLOSE = 1e-3         # predicted decrease, relative to the cost, at which a stalled search is accepted


def compressed(rows: Rows, weights: Array) -> tuple[Array, Array]:
    """R (p, p) and z (p,) of the compressed rows."""
    root = np.sqrt(weights)
    A = np.concatenate([rows.X, rows.y[..., None]], axis=2) * root[..., None]
    R = np.linalg.qr(A.reshape(-1, A.shape[-1]), mode="r")
    p = rows.X.shape[-1]
    square = np.zeros((p, p + 1))
    square[:min(p, len(R))] = R[:p]
    return square[:, :p], square[:, p]


def consistent_fit(rows: Rows, weights: Array, unknown: Unknowns, prior: float) -> Array:
    """θ of the unknown columns. prior: γ, weight of the description; with 1, a change of a body by a factor of about e
    costs as much as one standard deviation of a single effort.
    """
    R, z = compressed(rows, weights)
    R = R @ unknown.matrix
    bodies = SIZE * len(unknown.bodies)
    pull = np.concatenate([np.zeros(bodies), prior / unknown.scalar_spread**2])
    start = np.concatenate([np.tile(IDENTITY, len(unknown.bodies)), unknown.start])
    lower = np.concatenate([np.full(bodies, -np.inf), unknown.lower])
    smallest_gamma = prior / unknown.spread**2
    fixed = R.T @ R + np.diag(pull)
    y = np.maximum(start, lower)

    def evaluate(y: Array, gamma: float) -> tuple[float, Array, Array]:
        r, dy = R @ y - z, y - start
        cost, gradient, hessian = 0.5 * float(r @ r + pull @ dy**2), R.T @ r + pull * dy, fixed.copy()
        for k in range(0, bodies, SIZE):
            part = slice(k, k + SIZE)
            value, slope, curvature = divergence(y[part])
            cost += gamma * value
            gradient[part] += gamma * slope
            hessian[part, part] += gamma * curvature
        return cost, gradient, hessian

    gamma = max(smallest_gamma, evaluate(y, 0.0)[0])    # large at first: near the boundary steps are short
    while True:
        y, ended = _descended(evaluate, y, lower, gamma)
        if gamma <= smallest_gamma or not bodies:
            break
        gamma = max(smallest_gamma, LESS * gamma)
    theta: Array = unknown.matrix @ y
    if not (ended and np.isfinite(theta).all()):
        raise RbdError("the consistent fit did not converge: is the recording of this robot?")
    return theta


def _descended(evaluate: Callable[[Array, float], tuple[float, Array, Array]], y: Array, lower: Array,
               gamma: float) -> tuple[Array, bool]:
    """Newton's method from y, and whether it converged. Each step minimises the quadratic model within the bounds,
    because a clipped step could ascend for similar columns, such as the friction of joints that move together.
    """
    cost, gradient, hessian = evaluate(y, gamma)
    for _ in range(MOST):
        step = _bounded_step(hessian, gradient, lower - y)
        slope = float(gradient @ step)
        if -slope < DONE * max(1.0, gamma):
            return y, True
        share = 1.0
        while share > SHORTEST:
            trial = np.maximum(y + share * step, lower)    # clips rounding errors only
            values = evaluate(trial, gamma)
            if values[0] < cost + 1e-4 * share * slope:
                break
            share *= 0.5
        else:
            break
        y, (cost, gradient, hessian) = trial, values
    return y, -slope < CLOSE * max(1.0, abs(cost))


def _bounded_step(hessian: Array, gradient: Array, lower: Array) -> Array:
    """Minimise `½ pᵀ H p + gᵀ p` over p ≥ lower: unbounded unknowns are eliminated, the others found by NNLS."""
    from scipy.linalg import cho_factor, cho_solve
    from scipy.optimize import nnls

    scale = 1.0 / np.sqrt(np.diag(hessian))
    H = hessian * np.outer(scale, scale) + REGULAR * np.eye(len(scale))
    g, low = scale * gradient, lower / scale
    bounded = np.isfinite(low)
    free = ~bounded
    p = np.zeros_like(g)
    factor = cho_factor(H[np.ix_(free, free)])
    if bounded.any():
        mixed = H[np.ix_(free, bounded)]
        S = H[np.ix_(bounded, bounded)] - mixed.T @ cho_solve(factor, mixed)
        values, V = np.linalg.eigh((S + S.T) / 2)
        root = np.sqrt(np.maximum(values, REGULAR))
        slope = g[bounded] - mixed.T @ cho_solve(factor, g[free]) + V @ (root**2 * (V.T @ low[bounded]))
        p[bounded] = low[bounded] + nnls(root[:, None] * V.T, -(V.T @ slope) / root, maxiter=50 * len(root))[0]
        p[free] = -cho_solve(factor, g[free] + mixed @ p[bounded])
    else:
        p[free] = -cho_solve(factor, g[free])
    return scale * p
