"""Linear equations within kernels."""
from __future__ import annotations

import numpy as np

from ..compiled.kernel import kernel, routine, sweep


@sweep
def eliminate(A, X):
    """X (n, m) becomes A⁻¹ X, NaN where A (n, n), which is overwritten, is singular: by Gauss, with partial pivoting.

    `np.linalg.solve` and `inv` take as long to compile as twenty functions.
    """
    n = A.shape[0]
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        if not abs(A[best, k]) > 0.0:
            X[:] = np.nan
            return
        if best != k:
            for j in range(k, n):
                A[k, j], A[best, j] = A[best, j], A[k, j]
            for j in range(X.shape[1]):
                X[k, j], X[best, j] = X[best, j], X[k, j]
        for i in range(k + 1, n):
            x = A[i, k] / A[k, k]
            if x != 0.0:
                for j in range(k + 1, n):
                    A[i, j] -= x * A[k, j]
                for j in range(X.shape[1]):
                    X[i, j] -= x * X[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(X.shape[1]):
            X[k, j] /= A[k, k]
        for i in range(k):
            if A[i, k] != 0.0:
                for j in range(X.shape[1]):
                    X[i, j] -= A[i, k] * X[k, j]


@kernel
def times(A, x, out):
    """`out = A x`, A (n, n)."""
    for i in range(x.shape[0]):
        y = A[i, 0] * x[0]
        for k in range(1, x.shape[0]):
            y += A[i, k] * x[k]
        out[i] = y


@kernel
def add_times(scale, A, x, out):
    """`out += scale A x`, A (n, n)."""
    for i in range(x.shape[0]):
        y = A[i, 0] * x[0]
        for k in range(1, x.shape[0]):
            y += A[i, k] * x[k]
        out[i] += scale * y


@sweep
def add_product(scale, A, X, out):
    """`out += scale A X`, of (n, n)."""
    n = A.shape[0]
    for i in range(n):
        for k in range(n):
            x = scale * A[i, k]
            if x != 0.0:
                for j in range(n):
                    out[i, j] += x * X[k, j]


@sweep
def factor(A, n):
    """The lower half of A (n·n), positive definite, becomes L and D⁻¹ of A = Lᵀ D L; NaN where it is not definite. From
    the last row on, by which zeros of the mass matrix of a tree remain zeros (Featherstone 2005).
    """
    for k in range(n - 1, -1, -1):
        inverse = 1.0 / A[n * k + k] if A[n * k + k] > 0.0 else np.nan
        for i in range(k):
            x = A[n * k + i] * inverse
            if x != 0.0:
                for j in range(i + 1):
                    A[n * i + j] -= x * A[n * k + j]
        for i in range(k):
            A[n * k + i] *= inverse
        A[n * k + k] = inverse


@sweep
def substitute(A, n, x):
    """x (n,) becomes A⁻¹ x, of the `factor` of A (n·n)."""
    for k in range(n - 1, -1, -1):
        for i in range(k):
            x[i] -= A[n * k + i] * x[k]
    for k in range(n):
        y = x[k] * A[n * k + k]
        for i in range(k):
            y -= A[n * k + i] * x[i]
        x[k] = y


@sweep
def solve_symmetric(A, n, x):
    """x (n,) becomes A⁻¹ x of a positive definite A (n·n), which is overwritten; NaN where it is not definite."""
    factor(A, n)
    substitute(A, n, x)


@sweep
def inverse_of_symmetric(A, n, out):
    """out (n·n): A⁻¹ of a positive definite A (n·n), which is overwritten; NaN where it is not definite."""
    factor(A, n)
    inverse_of_factor(A, n, out)


@sweep
def inverse_of_factor(A, n, out):
    """out (n·n): A⁻¹, of the `factor` of A (n·n). L A⁻¹ = D⁻¹ L⁻ᵀ, of which the lower half is D⁻¹: row by row."""
    for i in range(n):
        for j in range(i):
            out[n * i + j] = 0.0
        for k in range(i):
            x = A[n * i + k]
            if x != 0.0:
                for j in range(i):
                    out[n * i + j] -= x * out[n * k + j]
        y = A[n * i + i]
        for k in range(i):
            y -= A[n * i + k] * out[n * i + k]
            out[n * k + i] = out[n * i + k]
        out[n * i + i] = y


@routine
def symmetric_inverse(A):
    """A⁻¹ (n, n) of a positive definite A (n, n); NaN where it is not definite."""
    result = np.empty_like(A)
    inverse_of_symmetric(A.copy().reshape(-1), A.shape[0], result.reshape(-1))
    return result
