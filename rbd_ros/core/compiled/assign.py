"""Assigning arrays in kernels.

numba's `to[:] = x` has an error message with both shapes, which costs a second of compilation per pair of dimensions.
These functions check nothing: `to` must be at least as large as x.
"""
from __future__ import annotations

from .kernel import kernel


@kernel
def assign(to, x):
    """`to[:n] = x`, x (n,)."""
    for i in range(x.shape[0]):
        to[i] = x[i]


@kernel
def assign_rows(to, x):
    """`to[:m, :n] = x`, x (m, n)."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            to[i, j] = x[i, j]
