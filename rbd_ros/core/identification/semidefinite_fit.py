"""The problem of `consistent_fit` solved by the conic interior-point solver Clarabel.

With S = L₀⁻¹ P L₀⁻ᵀ of a body, `log det S ≥ Σ t_i` if `[[S, Z], [Zᵀ, diag Z]] ⪰ 0` for a lower triangular Z and
`t_i ≤ log Z_ii` (Boyd, Vandenberghe 2004; Nesterov, Nemirovskii 1994): a positive semidefinite cone of size eight and
four exponential cones per body.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import RbdError
from .consistency import BASIS, IDENTITY, SIZE
from .consistent_fit import compressed
from .linear_fit import Rows
from .unknowns import Unknowns

Array = NDArray[np.float64]
PRECISION = 1e-7
BLOCK = 8
_ROWS, _COLUMNS = np.tril_indices(4)
_DIAGONAL = np.flatnonzero(_ROWS == _COLUMNS)


def semidefinite_fit(rows: Rows, weights: Array, unknown: Unknowns, prior: float) -> Array:
    """θ of the unknown columns, as `consistent_fit`. Raises `RbdError` without the package, or if it finds no optimum.
    """
    try:
        import clarabel
    except ImportError:
        raise RbdError("the solver \"semidefinite\" needs the package clarabel (`pip install clarabel`); \"newton\" "
                       "needs nothing") from None
    from scipy.sparse import csc_matrix

    R, z = compressed(rows, weights)
    R = R @ unknown.matrix
    count = len(unknown.bodies)
    y, size = SIZE * count, SIZE * count + len(unknown.scalars)
    smallest_gamma = prior / unknown.spread**2
    n = size + 14 * count    # per body ten of Z and four of t
    pull = np.concatenate([np.zeros(y), prior / unknown.scalar_spread**2])
    start = np.concatenate([np.tile(IDENTITY, count), unknown.start])
    P, c = np.zeros((n, n)), np.zeros(n)
    square = R.T @ R + np.diag(pull)
    # Unknowns relative to the quadratic optimum, scaled by its standard deviations, for conditioning.
    even = square + np.diag(np.concatenate([np.full(y, smallest_gamma), np.zeros(size - y)]))
    y0 = start - np.linalg.solve(even, R.T @ (R @ start - z))
    T = np.eye(n)
    T[:size, :size] = np.linalg.inv(np.linalg.cholesky(even)).T
    P[:size, :size] = square
    c[:size] = R.T @ (R @ y0 - z) + pull * (y0 - start)
    origin = np.concatenate([y0, np.zeros(n - size)])
    parts: list[tuple[Array, Array]] = []
    cones: list[Any] = []
    bounded = y + np.flatnonzero(np.isfinite(unknown.lower))
    if len(bounded):
        parts.append((-np.eye(n)[bounded], -unknown.lower[bounded - y]))
        cones.append(clarabel.NonnegativeConeT(len(bounded)))
    for k in range(count):
        body, Z, t = SIZE * k + np.arange(SIZE), size + 14 * k + np.arange(10), size + 14 * k + 10 + np.arange(4)
        c[body] += smallest_gamma * IDENTITY
        c[t] = -smallest_gamma
        parts.append((-_block(n, body, Z), np.zeros(BLOCK * (BLOCK + 1) // 2)))
        cones.append(clarabel.PSDTriangleConeT(BLOCK))
        for i in range(4):    # (t, 1, Z_ii): exp(t) ≤ Z_ii
            A, b = np.zeros((3, n)), np.array([0.0, 1.0, 0.0])
            A[0, t[i]], A[2, Z[_DIAGONAL[i]]] = -1.0, -1.0
            parts.append((A, b))
            cones.append(clarabel.ExponentialConeT())
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = PRECISION
    A = np.concatenate([part[0] for part in parts])
    b = np.concatenate([part[1] for part in parts]) - A @ origin
    solver = clarabel.DefaultSolver(csc_matrix(np.triu(T.T @ P @ T)), T.T @ c, csc_matrix(A @ T), b, cones, settings)
    solution = solver.solve()
    if str(solution.status) not in ("Solved", "AlmostSolved"):
        raise RbdError(f"the semidefinite programme has no solution: {solution.status}; try the solver \"newton\"")
    theta: Array = unknown.matrix @ (origin + T @ np.array(solution.x))[:size]
    return theta


def _block(n: int, body: NDArray[np.int64], Z: NDArray[np.int64]) -> Array:
    """`[[S, Z], [Zᵀ, diag Z]]` of the unknowns (n,), its upper triangle by columns, entries beside the diagonal √2."""
    matrix = np.zeros((BLOCK, BLOCK, n))
    matrix[:4, :4, body] = BASIS.transpose(1, 2, 0)
    matrix[_ROWS, 4 + _COLUMNS, Z] = 1.0
    for i in range(4):
        matrix[4 + i, 4 + i, Z[_DIAGONAL[i]]] = 1.0
    columns, rows = np.tril_indices(BLOCK)    # of the upper triangle, column after column
    factor = np.where(rows == columns, 1.0, np.sqrt(2.0))
    packed: Array = matrix[rows, columns] * factor[:, None]
    return packed
