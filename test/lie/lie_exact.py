"""References with 120 digits, by definition only (power series of matrices and scalars), and samples for the tests."""

from __future__ import annotations

from decimal import Decimal, getcontext

import numpy as np
from hypothesis import strategies as st

getcontext().prec = 120
PI = np.pi


def sine(x):
    """Sine by its power series."""
    term, total, k = x, x, 1
    while abs(term) > Decimal("1e-130"):
        term = -term * x * x / ((k + 1) * (k + 2))
        total, k = total + term, k + 2
    return total


def cosine(x):
    """Cosine by its power series."""
    term, total, k = Decimal(1), Decimal(1), 0
    while abs(term) > Decimal("1e-130"):
        term = -term * x * x / ((k + 1) * (k + 2))
        total, k = total + term, k + 2
    return total


def arctangent(s):
    """Arctangent by its power series, after four halvings of the angle."""
    for _ in range(4):
        s = s / (1 + (1 + s * s).sqrt())
    term, total, k = s, s, 1
    while abs(term) > Decimal("1e-130"):
        term, k = -term * s * s, k + 2
        total += term / k
    return 16 * total


def power_series(matrix, coefficient, terms=60):
    """Σ coefficient(k) matrixᵏ as a float array; coefficients are `Decimal` or integers of the exact series."""
    exact = np.vectorize(Decimal, otypes=[object])(np.asarray(matrix, float))
    power = np.vectorize(Decimal, otypes=[object])(np.eye(len(exact)))
    total = power * coefficient(0)
    for k in range(1, terms):
        power = power.dot(exact)
        total = total + power * coefficient(k)
    return total.astype(float)


def factorials(sign, shift):
    """Coefficient signᵏ/(k + shift)! as a function of k."""
    def coefficient(k):
        value = Decimal(1)
        for n in range(2, k + shift + 1):
            value /= n
        return value * sign**k
    return coefficient


def expm(matrix):
    """Matrix exponential, rounded once."""
    return power_series(matrix, factorials(1, 0))


def skew(r):
    """r̂, written anew."""
    return np.array([[0.0, -r[2], r[1]], [r[2], 0.0, -r[0]], [-r[1], r[0], 0.0]])


def adjoint(V):
    """ad_V of K eq. 27, written anew."""
    return np.block([[skew(V[:3]), np.zeros((3, 3))], [skew(V[3:]), skew(V[:3])]])


ANGLES = st.one_of(
    st.just(0.0), st.just(PI), st.floats(0.0, PI),
    st.integers(-12, -1).map(lambda k: 10.0**k),
    st.integers(-12, -1).map(lambda k: PI - 10.0**k),
)
SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def vectors(draw, size=3, scale=1.0):
    """Random vectors of `size`, some of whose components are exactly zero."""
    rng = np.random.default_rng(draw(SEEDS))
    return scale * rng.normal(size=size) * (rng.random(size) < 0.85)


@st.composite
def rotation_vectors(draw, angles=ANGLES):
    """Rotation vectors: uniform, 1e-12 … 1e-1 from 0 and from π, exactly 0 and exactly π; along axes, too."""
    axis = draw(vectors())
    if not axis.any():
        axis = np.eye(3)[draw(st.integers(0, 2))]
    return draw(angles) * axis / np.linalg.norm(axis)


@st.composite
def screws(draw, angles=ANGLES):
    """Screws (ω, v), ω as in `rotation_vectors`."""
    return np.concatenate([draw(rotation_vectors(angles)), draw(vectors())])


def complex_step(function, point, direction, step=1e-30):
    """Derivative of the kernel `function` at the tuple `point` along `direction`, to rounding error."""
    value = function(tuple(complex(p, step * d) for p, d in zip(point, direction, strict=True)))
    return np.array(value).imag / step
