"""Interpolation: conditions at the points, continuity, and derivatives that belong to each other."""
from __future__ import annotations

import numpy as np
import pytest

from rbd_ros.core.errors import RbdError
from rbd_ros.core.motion.trajectory import Reference, Trajectory, Waypoint

RNG = np.random.default_rng(1)
START = Reference(*RNG.normal(size=(3, 2)))


def waypoints(degree, times=(0.5, 1.25, 3.0)):
    return [Waypoint(t, RNG.normal(size=2), RNG.normal(size=2) if degree > 1 else None,
                     RNG.normal(size=2) if degree > 3 else None) for t in times]


@pytest.mark.parametrize("degree", [1, 3, 5])
def test_passes_the_points_as_smoothly_as_they_say(degree):
    points = waypoints(degree)
    trajectory = Trajectory(points, START)
    np.testing.assert_allclose(trajectory.sample(0.0).q, START.q)
    for point in points[:-1]:
        for t in (point.time - 1e-9, point.time + 1e-9):
            sample = trajectory.sample(t)
            np.testing.assert_allclose(sample.q, point.q, atol=1e-7)
            if degree > 1:
                np.testing.assert_allclose(sample.v, point.v, atol=1e-6)
            if degree > 3:
                np.testing.assert_allclose(sample.a, point.a, atol=1e-5)


@pytest.mark.parametrize("degree", [1, 3, 5])
@pytest.mark.parametrize("t", [0.1, 0.7, 2.9])
def test_velocity_and_acceleration_are_derivatives(degree, t):
    trajectory = Trajectory(waypoints(degree), START)
    h = 1e-5
    before, now, after = (trajectory.sample(t + d) for d in (-h, 0.0, h))
    np.testing.assert_allclose((after.q - before.q) / (2 * h), now.v, atol=1e-7)
    np.testing.assert_allclose((after.v - before.v) / (2 * h), now.a, atol=1e-6)


def test_stands_still_before_and_after():
    points = waypoints(5)
    trajectory = Trajectory(points, START)
    for t, q in ((-1.0, START.q), (3.0, points[-1].q), (99.0, points[-1].q)):
        sample = trajectory.sample(t)
        np.testing.assert_array_equal(sample.q, q)
        assert not sample.v.any() and not sample.a.any()


@pytest.mark.parametrize("times", [(), (-0.1, 1.0), (1.0, 1.0), (2.0, 1.0)])
def test_times_must_increase(times):
    with pytest.raises(RbdError, match="strictly increase"):
        Trajectory(waypoints(1, times), START)
