"""Polynomials in arrays: derivatives, and Taylor coefficients in time of `d/dt f(x(t))`, order by order, to any order.

With f⁽ⁱ⁾ along the motion as series g_i, ġ_i = g_{i+1} ẋ: coefficient m of g_i is Σ k x_k g_{i+1, m−k} / m, and the
last derivative is constant: each order follows from the lower ones, as in `exponential_series`.
"""
from __future__ import annotations

from ..compiled.kernel import kernel, routine

# Record of one polynomial f of n coefficients, per order: x, the argument y of `polynomial_dual`, g_1 … g_{n−1}.


@kernel
def record_size(n, K):
    """Length of the record of one polynomial of n coefficients for orders 0 … K."""
    return (n + 1) * (K + 1)


@kernel
def polynomial(A, offset, i, x):
    """Derivative i of the polynomial at x; A[offset:] holds the number of its coefficients, then those of x⁰, x¹, …."""
    total = 0.0 * x
    for c in range(int(A[offset].real) - 1, i - 1, -1):
        factor = 1.0
        for k in range(i):
            factor *= c - k
        total = total * x + factor * A[offset + 1 + c]
    return total


@routine
def polynomial_rate(A, offset, x, ratio, v, j, stride, order, K, C, record):
    """Coefficient `order` of `d/dt f`, from x at t = 0 and the coefficients v[j + m·stride:] of ẋ/ratio, m ≤ order.

    Calls for orders 0 … K in turn fill the record C[record:]; the last one may be repeated with another v.
    """
    n = int(A[offset].real)
    G = record + 2 * (K + 1)    # g_1, g_2, … row by row
    C[record + order] = x if order == 0 else ratio * v[j + (order - 1) * stride] / order
    for i in range(n - 1, 0, -1):
        g = G + (i - 1) * (K + 1)
        if order == 0:
            C[g] = polynomial(A, offset, i, x)
            continue
        C[g + order] = 0.0 * x
        if i < n - 1:
            for m in range(1, order + 1):
                C[g + order] += m * C[record + m] * C[g + K + 1 + order - m] / order
    total = 0.0 * x
    for m in range(order + 1):
        total += ratio * v[j + m * stride] * C[G + order - m]
    return total


@routine
def polynomial_dual(y, order, K, C, record):
    """Coefficient `order` of `f'(x(t)) y(t)` from that of y, after calls for all lower orders."""
    Y = record + K + 1
    C[Y + order] = y
    total = 0.0 * y
    for m in range(order + 1):
        total += C[Y + K + 1 + m] * C[Y + order - m]
    return total
