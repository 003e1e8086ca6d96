"""The only small-angle switch: coefficients of exp, dexp and their derivatives as functions of x = θ².

All but the last two belong to one family, entire functions of x (θ = √x):

    a = sinθ/θ,   b = (1 − cosθ)/θ²,   c = (θ − sinθ)/θ³,

    a' = (cosθ − a)/2x,   b' = (a − 2b)/2x,   c' = (b − 3c)/2x,   b'' = (a' − 4b')/2x,   c'' = (b' − 5c')/2x

with ' = d/dx. The closed form of c' = −(2θ − 3 sinθ + θ cosθ)/2θ⁵, for instance, loses ten digits at θ = 0.01.
Below a switch value of x every coefficient is its Taylor series, above it the closed form; both have full double
precision at the switch. The derivatives suffer more cancellation, so their switch is at a larger x.

The end of the file has the power series in r̂ with such coefficients: s·1 + h r̂ + g r̂².

The argument may be complex (complex step): the switch depends on its real part only.
"""
from __future__ import annotations

from fractions import Fraction
from math import comb, factorial
from typing import Any

import numpy as np

from ..compiled.kernel import kernel

SWITCH = 4.0                # θ = 2: values
SWITCH_DERIVATIVE = 16.0    # θ = 4: derivatives with respect to x
SWITCH_ARCTANGENT = 0.01    # square of the tangent; no cancellation, the series is for smoothness
_TERMS = 14                 # at x = 4: next term of a below 1e-22
_TERMS_DERIVATIVE = 20      # at x = 16: next term of c'' below 1e-23 of its value


def _entire(first: int, derivative: int, terms: int) -> tuple[float, ...]:
    """Taylor coefficients in x of the `derivative`-th derivative of Σ (−x)ᵏ/(2k + first)!, lowest first."""
    return tuple(float(Fraction((-1) ** k * factorial(k), factorial(k - derivative) * factorial(2 * k + first)))
                 for k in range(derivative, derivative + terms))


def _bernoulli(count: int) -> list[Fraction]:
    """The Bernoulli numbers B₀ … B_count."""
    numbers = [Fraction(1)]
    for n in range(1, count + 1):
        numbers.append(-sum((comb(n + 1, k) * numbers[k] for k in range(n)), Fraction(0)) / (n + 1))
    return numbers


def _inverse(terms: int) -> tuple[float, ...]:
    """Taylor coefficients in x of (1 − (θ/2) cot(θ/2))/x: |B₂ₖ|/(2k)!, k = 1, 2, …; converges for θ < 2π."""
    numbers = _bernoulli(2 * terms)
    return tuple(float(abs(numbers[2 * k]) / factorial(2 * k)) for k in range(1, terms + 1))


_A = _entire(1, 0, _TERMS)
_B = _entire(2, 0, _TERMS)
_C = _entire(3, 0, _TERMS)
_A1 = _entire(1, 1, _TERMS_DERIVATIVE)
_B1 = _entire(2, 1, _TERMS_DERIVATIVE)
_C1 = _entire(3, 1, _TERMS_DERIVATIVE)
_B2 = _entire(2, 2, _TERMS_DERIVATIVE)
_C2 = _entire(3, 2, _TERMS_DERIVATIVE)
_INVERSE = _inverse(18)
_ARCTANGENT = tuple((-1) ** k / (2 * k + 1) for k in range(10))


@kernel
def _polynomial(coefficients: Any, x: Any) -> Any:
    """Σ coefficients[k] xᵏ by Horner's rule."""
    last = len(coefficients) - 1
    total = coefficients[last] + 0.0 * x
    for k in range(last):
        total = coefficients[last - 1 - k] + x * total
    return total


@kernel
def sine_ratio(x: Any) -> Any:
    """a(θ²) = sinθ/θ."""
    if x.real < SWITCH:
        return _polynomial(_A, x)
    angle = np.sqrt(x)
    return np.sin(angle) / angle


@kernel
def versine_ratio(x: Any) -> Any:
    """b(θ²) = (1 − cosθ)/θ² = 2 sin²(θ/2)/θ²."""
    if x.real < SWITCH:
        return _polynomial(_B, x)
    half = np.sin(0.5 * np.sqrt(x))
    return 2.0 * half * half / x


@kernel
def sine_defect_ratio(x: Any) -> Any:
    """c(θ²) = (θ − sinθ)/θ³."""
    if x.real < SWITCH:
        return _polynomial(_C, x)
    angle = np.sqrt(x)
    return (angle - np.sin(angle)) / (x * angle)


@kernel
def sine_ratio_slope(x: Any) -> Any:
    """a'(θ²) = (θ cosθ − sinθ)/2θ³."""
    if x.real < SWITCH_DERIVATIVE:
        return _polynomial(_A1, x)
    angle = np.sqrt(x)
    return 0.5 * (np.cos(angle) - np.sin(angle) / angle) / x


@kernel
def versine_ratio_slope(x: Any) -> Any:
    """b'(θ²) = (θ sinθ − 2(1 − cosθ))/2θ⁴."""
    if x.real < SWITCH_DERIVATIVE:
        return _polynomial(_B1, x)
    return 0.5 * (sine_ratio(x) - 2.0 * versine_ratio(x)) / x


@kernel
def sine_defect_ratio_slope(x: Any) -> Any:
    """c'(θ²) = −(2θ − 3 sinθ + θ cosθ)/2θ⁵."""
    if x.real < SWITCH_DERIVATIVE:
        return _polynomial(_C1, x)
    return 0.5 * (versine_ratio(x) - 3.0 * sine_defect_ratio(x)) / x


@kernel
def versine_ratio_curvature(x: Any) -> Any:
    """b''(θ²) = (a' − 4b')/2θ²."""
    if x.real < SWITCH_DERIVATIVE:
        return _polynomial(_B2, x)
    return 0.5 * (sine_ratio_slope(x) - 4.0 * versine_ratio_slope(x)) / x


@kernel
def sine_defect_ratio_curvature(x: Any) -> Any:
    """c''(θ²) = (b' − 5c')/2θ²."""
    if x.real < SWITCH_DERIVATIVE:
        return _polynomial(_C2, x)
    return 0.5 * (versine_ratio_slope(x) - 5.0 * sine_defect_ratio_slope(x)) / x


@kernel
def inverse_ratio(x: Any) -> Any:
    """Coefficient of dexp⁻¹: 1/θ² − (1 + cosθ)/(2θ sinθ) = (1 − (θ/2) cot(θ/2))/θ², regular at π."""
    if x.real < SWITCH:
        return _polynomial(_INVERSE, x)
    half = 0.5 * np.sqrt(x)
    return (1.0 - half * np.cos(half) / np.sin(half)) / x


@kernel
def arctangent_ratio(x: Any) -> Any:
    """arctan(s)/s as a function of x = s²."""
    if x.real < SWITCH_ARCTANGENT:
        return _polynomial(_ARCTANGENT, x)
    tangent = np.sqrt(x)
    return np.arctan(tangent) / tangent


@kernel
def skew_polynomial(s: Any, h: Any, g: Any, r: Any) -> Any:
    """s·1 + h r̂ + g r̂² (9-tuple): every power series in r̂ has this form."""
    x, y, z = r
    return (s - g * (y * y + z * z), g * x * y - h * z, g * x * z + h * y,
            g * x * y + h * z, s - g * (x * x + z * z), g * y * z - h * x,
            g * x * z - h * y, g * y * z + h * x, s - g * (x * x + y * y))


@kernel
def skew_polynomial_slope(h: Any, g: Any, u: Any, w: Any) -> Any:
    """h û + g (ûŵ + ŵû) (9-tuple): with w = r the slope of h r̂ + g r̂² along u."""
    ux, uy, uz = u
    wx, wy, wz = w
    xy, xz, yz = g * (ux * wy + uy * wx), g * (ux * wz + uz * wx), g * (uy * wz + uz * wy)
    xx, yy, zz = 2.0 * g * ux * wx, 2.0 * g * uy * wy, 2.0 * g * uz * wz
    return (-yy - zz, xy - h * uz, xz + h * uy,
            xy + h * uz, -xx - zz, yz - h * ux,
            xz - h * uy, yz + h * ux, -xx - yy)


@kernel
def dot(u: Any, w: Any) -> Any:
    """Scalar product of 3-tuples."""
    return u[0] * w[0] + u[1] * w[1] + u[2] * w[2]


@kernel
def matrix_sum(m: Any, n: Any) -> Any:
    """Sum of 9-tuples."""
    return (m[0] + n[0], m[1] + n[1], m[2] + n[2], m[3] + n[3], m[4] + n[4], m[5] + n[5],
            m[6] + n[6], m[7] + n[7], m[8] + n[8])
