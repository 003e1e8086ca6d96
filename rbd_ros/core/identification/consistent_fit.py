"""The fit that real bodies can have: least squares over log-Cholesky coordinates, the description as a prior.

All rows are compressed to the triangle of their QR factorisation first: `‖W^½ (X θ − y)‖² = ‖R θ − z‖² + const`, so
that a step costs a matrix of the unknowns' size, however long the recording is.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import RbdError
from .linear_fit import Rows
from .unknowns import Unknowns

Array = NDArray[np.float64]
FARTHEST = 8.0     # of ξ: factors of e⁸ from the prior


def compressed(rows: Rows, weights: Array) -> tuple[Array, Array]:
    """R (p, p) and z (p,)."""
    root = np.sqrt(weights)
    A = np.concatenate([rows.X, rows.y[..., None]], axis=2) * root[..., None]
    R = np.linalg.qr(A.reshape(-1, A.shape[-1]), mode="r")
    p = rows.X.shape[-1]
    return R[:p, :p], R[:p, p]


def consistent_fit(rows: Rows, weights: Array, unknown: Unknowns, prior: float) -> Array:
    """θ of the unknown columns. prior: how much the description weighs, 1 is a standard deviation of a factor e in
    sizes and of one radius of gyration in places; what the data show clearly is not held back by it.
    """
    from scipy.optimize import least_squares

    R, z = compressed(rows, weights)
    bodies = 10 * len(unknown.bodies)
    pull = np.concatenate([np.full(bodies, np.sqrt(prior) / unknown.spread), np.sqrt(prior) / unknown.scalar_spread])
    start = np.concatenate([np.zeros(bodies), unknown.start])
    lower = np.concatenate([np.full(bodies, -FARTHEST), unknown.lower])
    upper = np.concatenate([np.full(bodies, FARTHEST), np.full(len(unknown.start), np.inf)])
    x0 = np.clip(start, lower + 1e-9, upper - 1e-9)

    def residual(x: Array) -> Array:
        return np.concatenate([R @ unknown.parameters(x)[0] - z, pull * (x - start)])

    def jacobian(x: Array) -> Array:
        return np.concatenate([R @ unknown.parameters(x)[1], np.diag(pull)])

    found = least_squares(residual, x0, jac=jacobian, bounds=(lower, upper), x_scale="jac", method="trf",
                          max_nfev=300, xtol=1e-10, ftol=1e-10, gtol=1e-10)
    if not np.isfinite(found.x).all():
        raise RbdError("the fit did not converge to finite parameters: is the recording of this robot?")
    return unknown.parameters(found.x)[0]
