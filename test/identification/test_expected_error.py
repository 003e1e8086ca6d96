"""The error to expect of feed-forward: against the errors of many simulated arms, and what is outside the recording."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.recordings import periodic, perturbed, record

import rbd_ros as rbd
from rbd_ros.core.identification.expected_error import ResidualBySpeed
from rbd_ros.core.identification.zeros import Zeros

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
TWO = rbd.sample("two_link")


def test_errors_of_other_motions_are_as_expected():
    """Their deviation by the parameters alone: the truth has no noise."""
    ratios = []
    for seed in range(12):
        truth = perturbed(TWO, seed)
        found = rbd.identify(TWO, record(truth, periodic(TWO, seed), seed, noise=0.2), delay=0.0)
        other = periodic(TWO, 100 + seed)
        t = np.linspace(0.0, 10.0, 200)
        q, v, a = (0.7 * x for x in other(t)[:3])
        exact = rbd.inverse_dynamics(truth, q, v, a) + rbd.friction_effort(truth, v)
        expected = found.expected_error(q, v, a)
        assert np.isfinite(expected.total).all()
        assert (expected.total >= expected.parameters).all() and (expected.residual > 0.0).all()
        ratios.append(np.sqrt(np.mean((found.effort(q, v, a) - exact) ** 2, axis=0))
                      / np.sqrt(np.mean(expected.parameters ** 2, axis=0)))
    assert 0.4 < np.sqrt(np.mean(np.square(ratios))) < 1.6


def test_what_the_recording_does_not_show_is_not_expected():
    truth = perturbed(TWO, 1)
    found = rbd.identify(TWO, record(truth, periodic(TWO, 1), 1), delay=0.0)
    q, v, a = periodic(TWO, 1)(np.linspace(0.0, 10.0, 50))[:3]
    assert found.expected_error(q, 3.0 * v, a).outside.all()
    one = found.expected_error(q[0], v[0], a[0])
    np.testing.assert_array_equal(one.total[0], found.expected_error(q, v, a).total[0])
    with pytest.raises(rbd.RbdError, match="v"):
        found.expected_error(q, v[:, :1], a)


def test_it_is_that_of_the_positions_behind_the_encoders():
    found = rbd.identify(TWO, record(TWO, periodic(TWO, 2), 2), delay=0.0)
    offset = np.array([0.3, -0.2])
    shifted = replace(found, zeros=Zeros(offset, np.zeros(2), TWO.gravity, 0.0, 0.0))
    q, v, a = periodic(TWO, 3)(np.linspace(0.0, 10.0, 50))[:3]
    np.testing.assert_allclose(shifted.expected_error(q, v, a).total, found.expected_error(q + offset, v, a).total)


def test_residuals_are_of_the_bin_of_the_speed():
    speeds = ResidualBySpeed(np.array([[0.1, 0.5, 1.0]]), np.array([[1.0, np.nan, 3.0, 2.0]]), np.array([2.0]))
    np.testing.assert_array_equal(speeds.at(np.array([[0.05], [-0.3], [0.7], [-1.5], [9.0]]))[:, 0], [1, 3, 3, 2, 2])
