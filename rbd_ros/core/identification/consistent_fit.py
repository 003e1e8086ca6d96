"""The fit that real bodies can have: least squares plus the divergence of every body from the description's.

`½ ‖W^½ (X θ − y)‖² + γ Σ_i D(P_i, P₀_i) + ½ Σ_k ((s_k − s₀_k) / w_k)²` is convex in θ: bodies i stay within what bodies
can be, numbers per joint s within their bounds, and what the recording does not show is the description's. Rows are
compressed first, `‖W^½ (X θ − y)‖² = ‖R θ − z‖² + const`, so that a step of Newton's method costs a matrix of the
unknowns' size however long the recording is.
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
MOST = 50            # steps at one weight of the divergence
LESS = 0.1           # which is lowered by this factor
DONE = 1e-7          # half the decrease that a step promises, in units of the cost: standard deviations squared
SHORTEST = 1e-12     # of a step, as a share


def compressed(rows: Rows, weights: Array) -> tuple[Array, Array]:
    """R (p, p) and z (p,)."""
    root = np.sqrt(weights)
    A = np.concatenate([rows.X, rows.y[..., None]], axis=2) * root[..., None]
    R = np.linalg.qr(A.reshape(-1, A.shape[-1]), mode="r")
    p = rows.X.shape[-1]
    square = np.zeros((p, p + 1))
    square[:min(p, len(R))] = R[:p]
    return square[:, :p], square[:, p]


def consistent_fit(rows: Rows, weights: Array, unknown: Unknowns, prior: float) -> Array:
    """θ of the unknown columns. prior: γ, how much the description weighs; 1 holds a body back as much as one standard
    deviation of a single effort holds back a change by a factor of about e.
    """
    R, z = compressed(rows, weights)
    R = R @ unknown.matrix
    bodies = SIZE * len(unknown.bodies)
    pull = np.concatenate([np.zeros(bodies), prior / unknown.scalar_spread**2])
    start = np.concatenate([np.tile(IDENTITY, len(unknown.bodies)), unknown.start])
    lower = np.concatenate([np.full(bodies, -np.inf), unknown.lower])
    least = prior / unknown.spread**2
    fixed = R.T @ R + np.diag(pull)
    y = np.maximum(start, lower)

    def evaluate(y: Array, gamma: float) -> tuple[float, Array, Array]:
        r, off = R @ y - z, y - start
        cost, gradient, hessian = 0.5 * float(r @ r + pull @ off**2), R.T @ r + pull * off, fixed.copy()
        for k in range(0, bodies, SIZE):
            part = slice(k, k + SIZE)
            more, slope, curvature = divergence(y[part])
            cost += gamma * more
            gradient[part] += gamma * slope
            hessian[part, part] += gamma * curvature
        return cost, gradient, hessian

    gamma = max(least, evaluate(y, 0.0)[0])    # far from the border at first: near it steps are short
    while True:
        y = _descended(evaluate, y, lower, gamma)
        if gamma <= least or not bodies:
            break
        gamma = max(least, LESS * gamma)
    theta: Array = unknown.matrix @ y
    if not np.isfinite(theta).all():
        raise RbdError("the fit did not converge to finite parameters: is the recording of this robot?")
    return theta


def _descended(evaluate: Callable[[Array, float], tuple[float, Array, Array]], y: Array, lower: Array,
               gamma: float) -> Array:
    """Newton's method from y, with numbers that would cross their bounds stopped there."""
    cost, gradient, hessian = evaluate(y, gamma)
    for _ in range(MOST):
        free = ~((y <= lower) & (gradient > 0.0))
        scale = 1.0 / np.sqrt(np.diag(hessian))[free]
        H = hessian[np.ix_(free, free)] * np.outer(scale, scale)
        step = np.zeros_like(y)
        step[free] = -scale * np.linalg.solve(H + 1e-13 * np.eye(len(H)), scale * gradient[free])
        if -float(gradient @ step) < DONE * max(1.0, gamma):
            break
        share = 1.0
        while share > SHORTEST:
            trial = np.maximum(y + share * step, lower)
            found = evaluate(trial, gamma)
            if found[0] < cost + 1e-4 * float(gradient @ (trial - y)):
                break
            share *= 0.5
        else:
            break
        y, (cost, gradient, hessian) = trial, found
    return y
