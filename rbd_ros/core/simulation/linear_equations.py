"""Linear equations within kernels."""
from __future__ import annotations

import numpy as np

from ..compiled.kernel import kernel, routine


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


@kernel
def times(A, x, out):
    """`out = A x`, A (n, n)."""
    for i in range(x.shape[0]):
        y = A[i, 0] * x[0]
        for k in range(1, x.shape[0]):
            y += A[i, k] * x[k]
        out[i] = y


@kernel
def first_entry(A, n, i):
    """First column of row i of A (n·n) with an entry: before it rows of a factor have none, either."""
    j = 0
    while j < i and A[n * i + j] == 0.0:
        j += 1
    return j


@routine
def factor(A, n):
    """The lower half of A (n·n), positive definite, becomes L and D of A = L D Lᵀ; NaN where it is not definite."""
    for i in range(n):
        first = first_entry(A, n, i)
        for j in range(first, i):    # L D so far
            for k in range(first, j):
                A[n * i + j] -= A[n * i + k] * A[n * j + k]
        for j in range(first, i):
            x = A[n * i + j] / A[n * j + j]
            A[n * i + i] -= x * A[n * i + j]
            A[n * i + j] = x
        if not A[n * i + i] > 0.0:
            A[n * i + i] = np.nan


@routine
def solve_symmetric(A, n, x):
    """x (n,) becomes A⁻¹ x of a positive definite A (n·n), which is overwritten; NaN where it is not definite."""
    factor(A, n)
    substitute(A, n, x)


@routine
def substitute(A, n, x):
    """x (n,) becomes A⁻¹ x, of the `factor` of A (n·n)."""
    for i in range(n):
        for k in range(first_entry(A, n, i), i):
            x[i] -= A[n * i + k] * x[k]
    for i in range(n - 1, -1, -1):
        x[i] /= A[n * i + i]
    for i in range(n - 1, -1, -1):
        for k in range(first_entry(A, n, i), i):
            x[k] -= A[n * i + k] * x[i]


@routine
def inverse_of_symmetric(A, n, out):
    """out (n·n): A⁻¹ of a positive definite A (n·n), which is overwritten; NaN where it is not definite."""
    factor(A, n)
    for i in range(n):    # L⁻¹ into the lower half of out
        first = first_entry(A, n, i)
        for j in range(i):
            x = -A[n * i + j]
            for k in range(max(j + 1, first), i):
                x -= A[n * i + k] * out[n * k + j]
            out[n * i + j] = x
        for j in range(i + 1):
            out[n * j + i] = 0.0
    for k in range(n):    # L⁻ᵀ D⁻¹ L⁻¹ into the upper half, row by row of L⁻¹, whose diagonal is 1
        first = first_entry(out, n, k)
        for i in range(first, k):
            x = out[n * k + i] / A[n * k + k]
            for j in range(first, i + 1):
                out[n * j + i] += x * out[n * k + j]
        for j in range(first, k):
            out[n * j + k] += out[n * k + j] / A[n * k + k]
        out[n * k + k] += 1.0 / A[n * k + k]
    for i in range(n):
        for j in range(i):
            out[n * i + j] = out[n * j + i]


@routine
def symmetric_inverse(A):
    """A⁻¹ (n, n) of a positive definite A (n, n); NaN where it is not definite."""
    result = np.empty_like(A)
    inverse_of_symmetric(A.copy().reshape(-1), A.shape[0], result.reshape(-1))
    return result
