"""Linear equations within kernels."""
from __future__ import annotations

import numpy as np

from ..compiled.kernel import routine


@routine
def inverted(A):
    """A⁻¹ (n, n); NaN where A is singular, because compiled code cannot raise."""
    result = np.empty_like(A)
    try:
        result = np.linalg.inv(A)
    except Exception:    # numba catches no narrower class
        result[:] = np.nan
    return result


@routine
def solved_for(A, b):
    """A⁻¹ b (n,), NaN where A is singular."""
    result = np.empty_like(b)
    try:
        result = np.linalg.solve(A, b)
    except Exception:    # likewise
        result[:] = np.nan
    return result


@routine
def inverse_of_symmetric(A, n, out):
    """out (n·n): A⁻¹ of a positive definite A (n·n), which is overwritten; NaN or infinite where it is not definite."""
    for i in range(n):    # A = L Lᵀ
        for j in range(i + 1):
            x = A[n * i + j]
            for k in range(j):
                x -= A[n * i + k] * A[n * j + k]
            A[n * i + j] = np.sqrt(x) if i == j else x / A[n * j + j]
    for j in range(n):    # L⁻¹ into the lower half of out
        for i in range(j, n):
            x = 1.0 if i == j else 0.0
            for k in range(j, i):
                x -= A[n * i + k] * out[n * k + j]
            out[n * i + j] = x / A[n * i + i]
    for i in range(n):    # L⁻ᵀ L⁻¹: rows in order, as only those below are needed
        for j in range(i + 1):
            x = 0.0
            for k in range(i, n):
                x += out[n * k + i] * out[n * k + j]
            A[n * i + j] = x
    for i in range(n):
        for j in range(i + 1):
            out[n * i + j] = out[n * j + i] = A[n * i + j]
