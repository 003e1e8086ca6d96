"""Sine and cosine against 120 digits: every quadrant, near its borders, up to the limit and beyond."""
from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from lie_exact import arctangent, cosine, sine

from rbd_ros.core.lie.sincos import LIMIT, sincos

TURN = 8 * arctangent(Decimal(1))


def angles():
    rng = np.random.default_rng(4)
    yield from (0.0, -0.0, 5e-324, 1e-300, 1e-8, np.pi, -np.pi, 2 * np.pi, LIMIT, -LIMIT, 1e9, np.nextafter(LIMIT, 0.0))
    yield from rng.uniform(-np.pi, np.pi, 200)
    yield from rng.uniform(-LIMIT, LIMIT, 200)
    yield from 10.0 ** rng.uniform(-12.0, 9.0, 100)
    for count in (1, 2, 3, 4, 5, 101, 1000, 12345, 509295):    # quarters: borders of the reduction, and its middles
        for x in (count * np.pi / 2, (count - 0.5) * np.pi / 2):
            yield from (x, np.nextafter(x, 0.0), np.nextafter(x, np.inf), -x)


def units(found, exact):
    """Error in units in the last place of the exact number."""
    return float(abs(Decimal(found) - exact)) / np.spacing(abs(float(exact)))


def test_errors_are_below_one_unit_in_the_last_place():
    worst = 0.0
    for x in angles():
        s, c = sincos(x)
        exact = Decimal(float(x)).remainder_near(TURN)
        worst = max(worst, units(s, sine(exact)), units(c, cosine(exact)))
    assert worst < 0.8


@pytest.mark.parametrize("x", [0.3 + 1e-30j, -2.0 + 0.5j, 4e6 + 1e-30j, 0.7 + 0j])
def test_complex_angles(x):
    np.testing.assert_allclose(sincos(x), (np.sin(x), np.cos(x)), rtol=1e-15)


@pytest.mark.parametrize("x", [np.nan, np.inf])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_no_angle(x):
    assert np.isnan(sincos(x)).all()
