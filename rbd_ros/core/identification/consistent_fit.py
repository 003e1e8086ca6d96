"""The fit that real bodies can have: least squares over log-Cholesky coordinates, the description as a prior.

All rows are compressed to the triangle of their QR factorisation first: `‖W^½ (X θ − y)‖² = ‖R θ − z‖² + const`, so
that a step costs a matrix of the unknowns' size, however long the recording is. Steps are Levenberg and Marquardt's;
numbers with a lower bound that they would cross stop there.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import RbdError
from .linear_fit import Rows
from .unknowns import Unknowns

Array = NDArray[np.float64]
FARTHEST = 8.0       # of ξ: factors of e⁸ from the prior
LONGEST = 1.0        # of a step in any ξ
MOST = 400           # steps
DONE = 1e-6          # of the cost, twice in a row


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
    """θ of the unknown columns. prior: how much the description weighs, 1 is a standard deviation of a factor e in
    sizes and of one radius of gyration in places; what the data show clearly is not held back by it.
    """
    R, z = compressed(rows, weights)
    bodies = 10 * len(unknown.bodies)
    pull = np.sqrt(prior) / np.concatenate([np.full(bodies, unknown.spread), unknown.scalar_spread])
    start = np.concatenate([np.zeros(bodies), unknown.start])
    lower = np.concatenate([np.full(bodies, -FARTHEST), unknown.lower])
    upper = np.concatenate([np.full(bodies, FARTHEST), np.full(len(unknown.start), np.inf)])
    x = np.clip(start, lower, upper)

    def evaluate(x: Array) -> tuple[float, Array, Array, Array]:
        theta, slope = unknown.parameters(x)
        r, J = R @ theta - z, R @ slope
        off = pull * (x - start)
        return float(r @ r + off @ off), J.T @ r + pull * off, J.T @ J + np.diag(pull**2), theta

    cost, gradient, hessian, theta = evaluate(x)
    damping, small = 1e-3, 0
    for _ in range(MOST):
        free = ~(((x <= lower) & (gradient > 0.0)) | ((x >= upper) & (gradient < 0.0)))
        H = hessian[np.ix_(free, free)]
        scale = np.sqrt(np.diag(H))
        try:
            step = np.linalg.solve(H / np.outer(scale, scale) + damping * np.eye(len(scale)), -gradient[free] / scale)
        except np.linalg.LinAlgError:
            damping *= 10.0
            continue
        dx = np.zeros_like(x)
        dx[free] = step / scale
        longest = np.abs(dx[:bodies]).max(initial=0.0)
        trial = np.clip(x + dx * min(1.0, LONGEST / max(longest, 1e-300)), lower, upper)
        found = evaluate(trial)
        if found[0] < cost:
            small = small + 1 if cost - found[0] < DONE * max(cost, 1.0) else 0
            x, (cost, gradient, hessian, theta) = trial, found
            damping = max(damping / 5.0, 1e-14)
        else:
            damping *= 4.0
            small += damping > 1e6
        if small >= 2:
            break
    if not np.isfinite(theta).all():
        raise RbdError("the fit did not converge to finite parameters: is the recording of this robot?")
    return theta
