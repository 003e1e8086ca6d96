"""Assigning arrays in kernels.

What numba makes of `to[:] = x` names both shapes where they differ: code for texts, a second of compilation for each
pair of dimensions. Here nothing is checked: callers see to it that `to` is at least as large as x.
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
