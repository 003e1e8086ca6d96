"""Taylor coefficients in time of the body angular velocity of R = exp(r(t)), order by order, to any order.

With x = r·r the rate is s = ṙ − b r × ṙ + c r × (r × ṙ), where b = c₂(x), c = c₃(x) belong to the family

    c_i(x) = Σ (−x)ᵏ/(2k + i)!,    dc_i/dx = ½ (i c_{i+2} − c_{i+1}),    c_i = 1/i! − x c_{i+2}

(c₀ = cos √x, c₁ = a of `series`). The derivative rule never divides by x, so it is regular at r = 0: the
coefficients of c₂, c₃ up to order K follow from the values of c₂ … c_{2K+3} at t = 0. Its terms cancel for large x:
above `FAR` the rule is instead `d_i = dc_i/dx = (c_{i−1} − i c_i)/2x`, which needs c₀ … c₃ and d₁ … d₃ only.
"""
from __future__ import annotations

import numpy as np

from ..compiled.kernel import kernel, routine
from . import series
from .spatial import add, cross, dot, scale

# Record of one rotation, per order: r, r × ṙ, r × (r × ṙ), n, r × n, r × (r × n), x, then a row for each c_i.
_ROWS = 19
FAR = 100.0    # x = |r|²: ten radians


@kernel
def record_size(K):
    """Length of the record of one rotation for orders 0 … K."""
    return (_ROWS + 2 * K + 5) * (K + 1)


@kernel
def entire(i, x):
    """`c_i(x)` from its power series, for i² ≥ |x|: the terms decrease."""
    term = 1.0
    for k in range(1, i + 1):
        term = term / k
    z = term + 0.0 * x
    total = z
    k = i
    for _ in range(40):
        z = -x * z / ((k + 1.0) * (k + 2.0))
        total = total + z
        k += 2
        if abs(z) <= 1e-18 * term:
            break
    return total


@routine
def entire_values(x, C, offset, step, count):
    """`c_i(x)` into C[offset + i·step], i < count: upward recursion from cos and sin for i² < x, else power series."""
    for i in range(count):
        if i * i >= x.real:
            value = entire(i, x)
        elif i == 0:
            value = np.cos(np.sqrt(x))
        elif i == 1:
            value = series.sine_ratio(x)
        elif i == 2:
            value = series.versine_ratio(x)
        elif i == 3:
            value = series.sine_defect_ratio(x)
        else:
            factorial = 1.0
            for k in range(1, i - 1):
                factorial = factorial * k
            value = (1.0 / factorial - C[offset + (i - 2) * step]) / x
        C[offset + i * step] = value


@kernel
def vector_at(C, offset):
    return (C[offset], C[offset + 1], C[offset + 2])


@routine
def exponential_rate(q, k, v, j, stride, order, K, C, offset):
    """Coefficient `order` of the body angular velocity, from r = q[k:k+3] and coefficients v[j + m·stride:] of ṙ,
    m ≤ order. Calls for orders 0 … K in turn fill the record C[offset:]; the last one may be repeated with another v.
    """
    n = K + 1
    R, Y, X, B = offset, offset + 3 * n, offset + 18 * n, offset + _ROWS * n
    if order == 0:
        r = vector_at(q, k)
    else:
        r = scale(1.0 / order, vector_at(v, j + (order - 1) * stride))
    for c in range(3):
        C[R + 3 * order + c] = r[c]
    x = 0.0 * r[0]
    for m in range(order + 1):
        x = x + dot(vector_at(C, R + 3 * m), vector_at(C, R + 3 * (order - m)))
    C[X + order] = x
    if order == 0:
        entire_values(x, C, B, n, 2 * K + 4)
    if C[X].real > FAR:
        far_order(order, C, B, X, n)
    elif order > 0:
        for i in range(2, 4 + 2 * (K - order)):    # (order) c_i = ½ Σ (m ẋ) (i c_{i+2} − c_{i+1})
            total = 0.0 * x
            for m in range(1, order + 1):
                total = total + m * C[X + m] * (i * C[B + (i + 2) * n + order - m] - C[B + (i + 1) * n + order - m])
            C[B + i * n + order] = 0.5 * total / order
    rate = vector_at(v, j + order * stride)
    y = (0.0 * x, 0.0 * x, 0.0 * x)
    for m in range(order + 1):
        y = add(y, cross(vector_at(C, R + 3 * m), vector_at(v, j + (order - m) * stride)))
    for c in range(3):
        C[Y + 3 * order + c] = y[c]
    return add(rate, twisted(order, K, C, offset, Y, -1.0))


@routine
def far_order(order, C, B, X, n):
    """Coefficient `order` of c₀ … c₃ (rows of n numbers at B) and d₁ … d₃ (the next rows), from those of x at X."""
    if order > 0:
        for i in range(4):    # (order) c_i = Σ (m ẋ) d_i, d₀ = −½ c₁
            total = 0.0 * C[X]
            for m in range(1, order + 1):
                slope = -0.5 * C[B + n + order - m] if i == 0 else C[B + (3 + i) * n + order - m]
                total = total + m * C[X + m] * slope
            C[B + i * n + order] = total / order
    for i in range(1, 4):
        slope = 0.5 * (C[B + (i - 1) * n + order] - i * C[B + i * n + order])
        for m in range(1, order + 1):
            slope = slope - C[X + m] * C[B + (3 + i) * n + order - m]
        C[B + (3 + i) * n + order] = slope / C[X]


@routine
def exponential_dual(moment, order, K, C, offset):
    """Coefficient `order` of `Jᵀ n = n + b r × n + c r × (r × n)` from that of n, after calls for all lower orders."""
    n = K + 1
    N, Y = offset + 9 * n, offset + 12 * n
    y = (0.0 * moment[0], 0.0 * moment[0], 0.0 * moment[0])
    for c in range(3):
        C[N + 3 * order + c] = moment[c]
    for m in range(order + 1):
        y = add(y, cross(vector_at(C, offset + 3 * m), vector_at(C, N + 3 * (order - m))))
    for c in range(3):
        C[Y + 3 * order + c] = y[c]
    return add(moment, twisted(order, K, C, offset, Y, 1.0))


@kernel
def twisted(order, K, C, offset, Y, sign):
    """Coefficient `order` of `sign · b Y + c r × Y` for the vectors at Y; r × Y is stored after them."""
    n = K + 1
    B = offset + _ROWS * n
    Z = Y + 3 * n
    z = (0.0 * C[offset], 0.0 * C[offset], 0.0 * C[offset])
    for m in range(order + 1):
        z = add(z, cross(vector_at(C, offset + 3 * m), vector_at(C, Y + 3 * (order - m))))
    for c in range(3):
        C[Z + 3 * order + c] = z[c]
    total = (0.0 * C[offset], 0.0 * C[offset], 0.0 * C[offset])
    for m in range(order + 1):
        total = add(total, add(scale(sign * C[B + 2 * n + m], vector_at(C, Y + 3 * (order - m))),
                               scale(C[B + 3 * n + m], vector_at(C, Z + 3 * (order - m)))))
    return total
