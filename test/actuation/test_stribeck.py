"""Friction with Stribeck's effect."""

import numpy as np
import pytest
from actuation.drives import iiwa

import rbd_ros as rbd
from rbd_ros.core.dynamics.friction import Friction, friction_effort, friction_effort_derivatives

LAW = Friction(np.array([0.5, 0.0]), np.array([2.0, 1.0]), np.array([3.0, 1.5]), np.array([0.1, 0.05]),
               np.array([0.01, 0.02]))


def test_it_is_the_law_of_the_docstring():
    v = np.array([0.03, -0.04])
    level = LAW.coulomb + (LAW.breakaway - LAW.coulomb) * np.exp(-(v / LAW.stribeck_velocity)**2)
    np.testing.assert_allclose(LAW.effort(v), LAW.damping * v + level * np.tanh(v / LAW.smoothing), rtol=1e-15)
    np.testing.assert_allclose(LAW.effort(np.array([5.0, -5.0])), [4.5, -1.0])
    assert LAW.effort(np.array([0.03, 0.03]))[0] > LAW.effort(np.array([0.3, 0.3]))[0]


def test_slope_and_curvature_by_complex_step():
    v = np.random.default_rng(1).normal(size=(50, 2)) * 0.05
    v[0] = 0.0
    np.testing.assert_allclose(LAW.slope(v), LAW.effort(v + 1e-30j).imag / 1e-30, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(LAW.curvature(v), LAW.slope(v + 1e-30j).imag / 1e-30, rtol=1e-11, atol=1e-9)


def test_of_a_model_with_its_time_derivatives():
    model = iiwa().with_(damping=0.3, friction=2.0)
    rng = np.random.default_rng(2)
    v, a, jerk = 0.05 * rng.normal(size=(3, 7))
    law = Friction(model.damping, model.friction, 2.5, 0.2, 0.01)
    np.testing.assert_allclose(friction_effort(model, v, 0.01, 2.5, 0.2), law.effort(v), rtol=1e-14)
    first, second = friction_effort_derivatives(model, v, a, jerk, 0.01, 2.5, 0.2)
    t = 1e-30j
    np.testing.assert_allclose(first, law.effort(v + t * a).imag / 1e-30, rtol=1e-12)
    rate = law.slope(v + t * a) * (a + t * jerk)
    np.testing.assert_allclose(second, rate.imag / 1e-30, rtol=1e-11)


@pytest.mark.parametrize(("options", "words"), [
    ({"breakaway": 1.0}, "breakaway must be"), ({"breakaway": [3.0, 3.0]}, "one number or 7"),
    ({"breakaway": 3.0, "stribeck_velocity": 0.0}, "stribeck_velocity must be a positive speed"),
    ({"breakaway": np.inf}, "breakaway")])
def test_wrong_numbers_are_named(options, words):
    with pytest.raises(rbd.RbdError, match=words):
        friction_effort(iiwa().with_(friction=2.0), np.zeros(7), **options)
