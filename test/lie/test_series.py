"""Coefficients against 120 digits, on both sides of every switch; their derivatives by complex step."""

from __future__ import annotations

from decimal import Decimal
from functools import cache

import numpy as np
import pytest
from lie_exact import arctangent, cosine, sine
from support.compiled import compiled

from rbd_ros.core.lie import series

TOLERANCE = 4e-15
sine, cosine = cache(sine), cache(cosine)    # of each angle once, for all that are made of them


def _closed(numerator, power, scale):
    """Function of x: numerator(θ, sinθ, cosθ)/(scale θ^power)."""
    def exact(x):
        angle = x.sqrt()
        return numerator(angle, sine(angle), cosine(angle)) / (scale * angle**power)
    return exact


EXACT = {
    "sine_ratio": _closed(lambda t, s, c: s, 1, 1),
    "versine_ratio": _closed(lambda t, s, c: 1 - c, 2, 1),
    "sine_defect_ratio": _closed(lambda t, s, c: t - s, 3, 1),
    "sine_ratio_slope": _closed(lambda t, s, c: t * c - s, 3, 2),
    "versine_ratio_slope": _closed(lambda t, s, c: t * s - 2 * (1 - c), 4, 2),
    "sine_defect_ratio_slope": _closed(lambda t, s, c: -(2 * t - 3 * s + t * c), 5, 2),
    "versine_ratio_curvature": _closed(lambda t, s, c: t * t * c - 5 * t * s + 8 - 8 * c, 6, 4),
    "sine_defect_ratio_curvature": _closed(lambda t, s, c: 8 * t + 7 * t * c + t * t * s - 15 * s, 7, 4),
    "inverse_ratio": _closed(lambda t, s, c: 1 - t * (1 + c) / (2 * s), 2, 1),
    "arctangent_ratio": lambda x: arctangent(x.sqrt()) / x.sqrt(),
}


@compiled
def values(x):
    """All of them, in the order of EXACT: compiled and cached together."""
    return (series.sine_ratio(x), series.versine_ratio(x), series.sine_defect_ratio(x), series.sine_ratio_slope(x),
            series.versine_ratio_slope(x), series.sine_defect_ratio_slope(x), series.versine_ratio_curvature(x),
            series.sine_defect_ratio_curvature(x), series.inverse_ratio(x), series.arctangent_ratio(x))


def named(name):
    place = [*EXACT].index(name)
    return lambda x: values(x)[place]


AT_ZERO = {
    "sine_ratio": 1, "versine_ratio": 1 / 2, "sine_defect_ratio": 1 / 6, "sine_ratio_slope": -1 / 6,
    "versine_ratio_slope": -1 / 24, "sine_defect_ratio_slope": -1 / 120, "versine_ratio_curvature": 1 / 360,
    "sine_defect_ratio_curvature": 1 / 2520, "inverse_ratio": 1 / 12, "arctangent_ratio": 1,
}
SLOPES = [
    ("sine_ratio", "sine_ratio_slope"), ("versine_ratio", "versine_ratio_slope"),
    ("sine_defect_ratio", "sine_defect_ratio_slope"), ("versine_ratio_slope", "versine_ratio_curvature"),
    ("sine_defect_ratio_slope", "sine_defect_ratio_curvature"),
]
SWITCHES = [0.1, 2.0, 4.0]
ANGLES = sorted([1e-12, 1e-8, 1e-4, 1e-3, 0.01, np.pi, 6.28, *np.linspace(0.05, 6.2, 80),
                 *(np.nextafter(s, d) for s in SWITCHES for d in (0.0, 9.0)), *SWITCHES])
SQUARES = sorted([*(t * t for t in ANGLES), *(np.nextafter(s * s, d) for s in SWITCHES for d in (0.0, 99.0))])


def test_the_switches_are_where_these_tests_look():
    assert {series.SWITCH, series.SWITCH_DERIVATIVE, series.SWITCH_ARCTANGENT} == {4.0, 16.0, 0.01}


@pytest.mark.parametrize("name", EXACT)
def test_full_precision_on_both_sides_of_the_switch(name):
    function, exact = named(name), EXACT[name]
    for x in SQUARES:
        x = float(x)
        reference = exact(Decimal(x))
        rounded = exact(Decimal(x) * (1 + Decimal("1e-30")))
        condition = abs(float((rounded - reference) / Decimal("1e-30")))    # |x f'|: what rounding of θ alone costs
        error = abs(float(Decimal(float(function(x))) - reference))
        assert error <= TOLERANCE * abs(float(reference)) + 2.3e-16 * condition, f"θ = {x**0.5}"


@pytest.mark.parametrize("name", AT_ZERO)
def test_exact_at_zero(name):
    assert float(named(name)(0.0)) == pytest.approx(AT_ZERO[name], rel=2e-16, abs=0.0)


@pytest.mark.parametrize(("name", "slope"), SLOPES)
def test_slope_is_the_complex_step_of_the_value(name, slope):
    function, derivative = named(name), named(slope)
    for x in [0.0, 1e-16, 1e-4, 0.3, 1.0, 3.999, 4.001, 9.0, 15.999, 16.001, 30.0]:
        step = complex(function(complex(x, 1e-30))).imag / 1e-30
        assert step == pytest.approx(float(derivative(x)), rel=2e-14, abs=1e-18), f"x = {x}"


@pytest.mark.parametrize("name", ["inverse_ratio", "arctangent_ratio"])
def test_complex_step_is_the_exact_slope(name):
    function, exact, step = named(name), EXACT[name], Decimal("1e-30")
    for x in [1e-8, 0.0099, 0.0101, 0.3, 3.99, 4.01, 9.0, 25.0]:
        slope = float((exact(Decimal(x) + step) - exact(Decimal(x) - step)) / (2 * step))
        assert complex(function(complex(x, 1e-30))).imag / 1e-30 == pytest.approx(slope, rel=1e-13), f"x = {x}"
