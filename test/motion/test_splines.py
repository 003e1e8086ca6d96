"""B-splines against SciPy's, end conditions, polynomials reproduced, continuity."""
from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from scipy.interpolate import BSpline, PPoly

from rbd_ros.core.errors import RbdError
from rbd_ros.core.motion.splines import SplineMotion, basis

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("degree", [5, 7])
@pytest.mark.parametrize("count", [9, 20, 57])
def test_motion_and_derivatives_are_scipys(degree, count):
    control, T = RNG.normal(size=(count, 3)), 1.7
    motion = SplineMotion(control, T, degree)
    t = np.concatenate([[0.0, T], RNG.uniform(0.0, T, 50)])
    intervals = count - degree
    knots = np.concatenate([np.zeros(degree), np.linspace(0.0, T, intervals + 1), np.full(degree, T)])
    peer = BSpline(knots, control, degree)
    for k, value in enumerate(motion(t)):
        expected = peer(t, nu=k)
        np.testing.assert_allclose(value, expected, rtol=0.0, atol=1e-11 * np.abs(expected).max())
        np.testing.assert_array_equal(motion(t[5])[k], value[5])
    breaks, powers = motion.polynomials()
    pieces = PPoly(powers.swapaxes(0, 1)[::-1], breaks)
    for k, value in enumerate(motion(t)):
        np.testing.assert_allclose(pieces(t, nu=k), value, rtol=0.0, atol=1e-11 * np.abs(value).max())


@pytest.mark.parametrize("degree", [5, 7])
def test_bases_sum_to_one_and_their_derivatives_to_nothing(degree):
    found = basis(degree, 13).values(np.linspace(0.0, 1.0, 101), 4)[1].sum(axis=2)
    np.testing.assert_allclose(found[:, 0], 1.0, atol=1e-12)
    np.testing.assert_allclose(found[:, 1:], 0.0, atol=1e-8)


@pytest.mark.parametrize("degree", [5, 7])
@pytest.mark.parametrize("last", [False, True])
def test_ends_have_the_given_derivatives(degree, last):
    B, T = basis(degree, 15), 2.3
    wanted = RNG.normal(size=(B.end_derivatives, 4))
    control = RNG.normal(size=(15, 4))
    points = B.end(wanted, T, last)
    if last:
        control[-len(points):] = points
    else:
        control[:len(points)] = points
    motion = SplineMotion(control, T, degree)
    np.testing.assert_allclose(motion.derivatives(T if last else 0.0, len(wanted) - 1)[:, 0], wanted, atol=1e-10)


@pytest.mark.parametrize("degree", [5, 7])
def test_a_polynomial_of_the_degree_is_reproduced(degree):
    exact = Polynomial(RNG.normal(size=degree + 1))
    B, T = basis(degree, 14), 1.3
    s = np.linspace(0.0, 1.0, 60)
    at, values = B.values(s, 0)
    matrix = np.zeros((60, 14))
    for row, (i, value) in enumerate(zip(at, values[:, 0], strict=True)):
        matrix[row, i:i + degree + 1] = value
    control = np.linalg.lstsq(matrix, exact(s * T)[:, None], rcond=None)[0]
    t = np.linspace(0.0, T, 37)
    for k, value in enumerate(SplineMotion(control, T, degree)(t)):
        np.testing.assert_allclose(value[:, 0], exact.deriv(k)(t) if k else exact(t), atol=1e-6)


def test_stands_still_outside():
    motion = SplineMotion(RNG.normal(size=(12, 2)), 1.0)
    for t, q in ((-0.1, motion.control[0]), (1.1, motion.control[-1])):
        found = motion(t)
        np.testing.assert_allclose(found.q, q, atol=1e-14)
        assert not np.any(found[1:])


@pytest.mark.parametrize(("control", "duration", "degree", "what"), [
    (np.zeros((12, 2)), 1.0, 4, "degree"), (np.zeros((6, 2)), 1.0, 5, "control_points"),
    (np.zeros((12, 2)), 0.0, 5, "duration"), (np.full((12, 2), np.nan), 1.0, 5, "control"),
    (np.zeros(12), 1.0, 5, "control")])
def test_malformed_splines_are_refused(control, duration, degree, what):
    with pytest.raises(RbdError, match=what):
        SplineMotion(control, duration, degree)
