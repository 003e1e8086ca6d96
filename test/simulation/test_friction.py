"""Friction effort and its time derivatives."""

import numpy as np
import pytest
from simulation import robots

import rbd_ros as rbd
from rbd_ros.core.dynamics.friction import friction_effort, friction_effort_derivatives

MODEL = robots.pendulum(damping=0.3, friction=2.0)


def test_friction_is_viscous_plus_smoothed_coulomb():
    np.testing.assert_allclose(friction_effort(MODEL, [[10.0], [-10.0], [0.0]]), [[5.0], [-5.0], [0.0]])
    assert friction_effort(MODEL, [0.01])[0] == pytest.approx(0.003 + 2.0 * np.tanh(1.0))


def test_derivatives_along_a_motion():
    def v(t):
        return 0.02 * np.sin(3.0 * t)

    t, h = 0.4, 1e-30
    first, second = friction_effort_derivatives(MODEL, [v(t)], [0.06 * np.cos(3 * t)], [-0.18 * np.sin(3 * t)])

    def rate(t):
        slope = 0.3 + 2.0 / 0.01 / np.cosh(v(t) / 0.01) ** 2
        return slope * 0.06 * np.cos(3.0 * t)

    effort = 0.3 * v(t + 1j * h) + 2.0 * np.tanh(v(t + 1j * h) / 0.01)
    assert first[0] == pytest.approx(effort.imag / h, rel=1e-12)
    assert second[0] == pytest.approx(rate(t + 1j * h).imag / h, rel=1e-12)


@pytest.mark.parametrize("smoothing", [0.0, -1.0, float("nan")])
def test_smoothing_must_be_positive(smoothing):
    with pytest.raises(rbd.RbdError, match="smoothing must be a positive speed"):
        friction_effort(MODEL, [1.0], smoothing)
