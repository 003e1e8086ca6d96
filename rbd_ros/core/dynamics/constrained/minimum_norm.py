"""`ZᵀZ λ = −c` by a rank-revealing factorisation: the minimum-norm λ for any rank of Z.

Z (n, m) = Q T by Gram–Schmidt with pivoting, T (r, m) of full row rank; T = L P by Gram–Schmidt again, P (r, m) with
orthonormal rows. Then ZᵀZ = Pᵀ LᵀL P, and λ = −Pᵀ (LᵀL)⁻¹ P c: a pseudoinverse without the product ZᵀZ, which would
halve the digits for the rank. Parts of c outside the range of Zᵀ are ignored: the residual contains them.
"""
from __future__ import annotations

import numpy as np

from ...compiled.entry import entry
from ...compiled.kernel import sweep

RANK_TOLERANCE = 1e-8    # of the largest column of Z: directions below it count as unconstrained


@sweep
def row_dot(X, a, b, n):
    """Inner product in four partial sums, for vectorisation."""
    s0 = s1 = s2 = s3 = 0.0
    whole = n - n % 4
    for i in range(0, whole, 4):
        s0 += X[a + i] * X[b + i]
        s1 += X[a + i + 1] * X[b + i + 1]
        s2 += X[a + i + 2] * X[b + i + 2]
        s3 += X[a + i + 3] * X[b + i + 3]
    for i in range(whole, n):
        s0 += X[a + i] * X[b + i]
    return (s0 + s1) + (s2 + s3)


@sweep
def minimum_norm(Z, n, m, c, offset, damping, T, P, y, out, start):
    """λ into out[start:] (m) for c[offset:] (m); returns the rank and the ratio of largest to smallest pivot used.

    Z: m columns of n numbers in turn, overwritten. T, P: m·m workspace, y: 2 m. damping: 0, or μ relative to
    the largest pivot, for `(ZᵀZ + μ² max) λ = −c` (Levenberg–Marquardt: bounded λ near a loss of rank).
    """
    rank, first, last = row_space(Z, n, m, T, P, y)
    within(T, P, m, rank, damping * damping * first * first, c, offset, y, Z, out, start)    # Z as workspace
    return rank, first / last if rank > 0 else 1.0


@sweep
def row_space(Z, n, m, T, P, y):
    """P and, in T, L (each m·m) of Z, overwritten as by `basis`; y: 2 m. Returns rank, largest and smallest pivot."""
    rank, first, last = basis(Z, n, m, T, y)
    # rows of P from those of T, orthogonalised twice against earlier ones; L overwrites T
    for r in range(rank):
        for i in range(m):
            P[r * m + i] = T[r * m + i]
        for i in range(rank):
            T[r * m + i] = 0.0
        for _ in range(2):
            for i in range(r):
                s = row_dot(P, r * m, i * m, m)
                T[r * m + i] += s
                for k in range(m):
                    P[r * m + k] -= s * P[i * m + k]
        norm = np.sqrt(row_dot(P, r * m, r * m, m))
        T[r * m + r] = norm
        for k in range(m):
            P[r * m + k] /= norm
    return rank, first, last


@sweep
def basis(Z, n, m, T, y):
    """T of Z (m·n), whose rows i with y[i] = −1 become Q, an orthonormal basis; y: 2 m. Returns as `row_space`."""
    rank = 0
    first = 0.0
    last = 1.0
    for i in range(m):    # downdate of squared norms; recomputed after cancellation
        y[i] = row_dot(Z, n * i, n * i, n)
        y[m + i] = 1e-4 * y[i]
    for r in range(m):
        best = 0
        for i in range(m):
            if y[i] > y[best]:
                best = i
        pivot = np.sqrt(row_dot(Z, n * best, n * best, n))
        if r == 0:
            first = pivot
        if y[best] <= 0.0 or not pivot > RANK_TOLERANCE * first:
            break
        for i in range(m):
            T[r * m + i] = 0.0
        T[r * m + best] = pivot
        y[best] = -1.0
        for k in range(n):
            Z[n * best + k] /= pivot
        for i in range(m):
            if y[i] >= 0.0:
                s = row_dot(Z, n * best, n * i, n)
                T[r * m + i] = s
                for k in range(n):
                    Z[n * i + k] -= s * Z[n * best + k]
                y[i] -= s * s
                if y[i] < y[m + i]:
                    y[i] = row_dot(Z, n * i, n * i, n)
                    y[m + i] = 1e-4 * y[i]
        last = pivot
        rank += 1
    return rank, first, last


@sweep
def within(T, P, m, rank, mu, c, offset, y, G, out, start):
    """out[start:] (m): `minimum_norm` of the `row_space` T, P with mu = (μ max)²; y: m, G: rank² workspace for mu."""
    for r in range(rank):
        s = 0.0
        for k in range(m):
            s -= P[r * m + k] * c[offset + k]
        y[r] = s
    if mu > 0.0:
        damped(T, m, rank, mu, y, G)
    else:
        for r in range(rank - 1, -1, -1):       # Lᵀ w = −P c
            for i in range(r + 1, rank):
                y[r] -= T[i * m + r] * y[i]
            y[r] /= T[r * m + r]
        for r in range(rank):                   # L z = w
            for i in range(r):
                y[r] -= T[r * m + i] * y[i]
            y[r] /= T[r * m + r]
    for k in range(m):
        s = 0.0
        for r in range(rank):
            s += P[r * m + k] * y[r]
        out[start + k] = s


@sweep
def damped(L, m, rank, mu, y, G):
    """`(LᵀL + μ 1)⁻¹ y` in place, by Cholesky; G: rank² workspace."""
    for r in range(rank):
        for i in range(r + 1):
            s = mu if i == r else 0.0
            for k in range(r, rank):
                s += L[k * m + r] * L[k * m + i]
            for k in range(i):
                s -= G[r * rank + k] * G[i * rank + k]
            G[r * rank + i] = np.sqrt(s) if i == r else s / G[i * rank + i]
    for r in range(rank):
        for i in range(r):
            y[r] -= G[r * rank + i] * y[i]
        y[r] /= G[r * rank + r]
    for r in range(rank - 1, -1, -1):
        for i in range(r + 1, rank):
            y[r] -= G[i * rank + r] * y[i]
        y[r] /= G[r * rank + r]


@entry("float64(float64[:, ::1], float64[::1], float64, float64[::1], float64[::1])")
def minimum_norm_entry(Z, c, damping, out, condition):
    """`minimum_norm` for Zᵀ (m, n), not overwritten; returns the rank, ratio of pivots into condition[0]."""
    m, n = Z.shape
    rank, condition[0] = minimum_norm(Z.copy().reshape(-1), n, m, c, 0, damping, np.empty(m * m), np.empty(m * m),
                                      np.empty(2 * m), out, 0)
    return float(rank)
