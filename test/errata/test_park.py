"""Misprints of P."""

import numpy as np
import pytest
from support.robots import assert_close

from rbd_ros.core.lie import se3

mpmath = pytest.importorskip("mpmath")


def test_third_order_of_equation_4():
    """Its last term is [[A, B], B], the printed [[B, A], B] has the other sign: the error then falls with the third
    power of the size, not with the fourth."""
    rng = np.random.default_rng(1)
    A, B = (se3.hat(x) for x in rng.normal(size=(2, 6)))

    def commute(x, y):
        return x @ y - y @ x

    def error(size, last):
        x, y = size * A, size * B
        series = x + y + commute(x, y) / 2 + (commute(commute(y, x), x) + last(x, y)) / 12
        with mpmath.workdps(40):
            exact = mpmath.logm(mpmath.expm(mpmath.matrix(x)) * mpmath.expm(mpmath.matrix(y)))
            return np.abs(np.array((exact - mpmath.matrix(series)).tolist(), dtype=float)).max()

    def order(last):
        return np.log2(error(0.02, last) / error(0.01, last))

    assert order(lambda x, y: commute(commute(x, y), y)) == pytest.approx(4.0, abs=0.1)
    assert order(lambda x, y: commute(commute(y, x), y)) == pytest.approx(3.0, abs=0.1)


def test_geodesics_of_the_unit_metric_are_projected():
    """U̇ = [Uᵀ, U] leaves se(3); its projection is ω̇ = 0, v̇ = −ω × v."""
    V = np.random.default_rng(2).normal(size=6)
    U = se3.hat(V)
    bracket = U.T @ U - U @ U.T
    assert np.abs(bracket[3]).max() > 0.1 and np.abs(bracket[:3, :3] + bracket[:3, :3].T).max() > 0.1
    assert np.abs(bracket[:3, :3] - bracket[:3, :3].T).max() < 1e-14
    assert_close(bracket[:3, 3], -np.cross(V[:3], V[3:]), 1e-12)
