"""Polynomials in arrays: derivatives, and Taylor coefficients in time of `d/dt f(x(t))`, order by order, to any order.

With f⁽ⁱ⁾ along the motion as series g_i, ġ_i = g_{i+1} ẋ: coefficient m of g_i is Σ k x_k g_{i+1, m−k} / m, and the
last derivative is constant. So lower orders give the next one, as in `exponential_series`.
"""
from __future__ import annotations

from ..compiled.kernel import kernel, routine

# Record of one polynomial f of n coefficients, per order: x, what was given to `polynomial_dual`, g_1 … g_{n−1}.


@kernel
def record_size(n, K):
    """Numbers that one polynomial of n coefficients needs for orders 0 … K."""
    return (n + 1) * (K + 1)


@kernel
def polynomial(A, at, i, x):
    """Derivative i of the polynomial at x; A[at:] holds the number of its coefficients, then those of x⁰, x¹, …."""
    total = 0.0 * x
    for c in range(int(A[at].real) - 1, i - 1, -1):
        factor = 1.0
        for k in range(i):
            factor *= c - k
        total = total * x + factor * A[at + 1 + c]
    return total


@routine
def polynomial_rate(A, at, x, ratio, v, j, stride, order, K, C, to):
    """Coefficient `order` of `d/dt f`, from x at the start and the coefficients v[j + m·stride:] of ẋ/ratio, m ≤ order.

    Orders 0 … K one after another fill the record C[to:]; the last one may be asked for again with another v.
    """
    n = int(A[at].real)
    G = to + 2 * (K + 1)    # g_1, g_2, … row by row
    C[to + order] = x if order == 0 else ratio * v[j + (order - 1) * stride] / order
    for i in range(n - 1, 0, -1):
        g = G + (i - 1) * (K + 1)
        if order == 0:
            C[g] = polynomial(A, at, i, x)
            continue
        C[g + order] = 0.0 * x
        if i < n - 1:
            for m in range(1, order + 1):
                C[g + order] += m * C[to + m] * C[g + K + 1 + order - m] / order
    total = 0.0 * x
    for m in range(order + 1):
        total += ratio * v[j + m * stride] * C[G + order - m]
    return total


@routine
def polynomial_dual(y, order, K, C, to):
    """Coefficient `order` of `f'(x(t)) y(t)` from that of y; lower orders were given before."""
    Y = to + K + 1
    C[Y + order] = y
    total = 0.0 * y
    for m in range(order + 1):
        total += C[Y + K + 1 + m] * C[Y + order - m]
    return total
