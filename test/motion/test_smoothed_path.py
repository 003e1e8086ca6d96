"""Splines through what was taught: within the tolerance, without pauses and noise, and fit to be timed."""
from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

import rbd_ros as rbd


def taught(seed, count=600, noise=0.0):
    """A hand's way of seven joints: smooth, with pauses."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 1.0, count)
    way = np.clip(3.0 * t, 0.0, 1.0) + np.clip(2.0 * t - 1.2, 0.0, 0.8)    # with a rest
    q = sum(rng.normal(size=7) / k * np.sin(2.0 * k * way[:, None] + rng.uniform(0.0, 3.0, 7)) for k in (1, 2, 3))
    return q + noise * rng.normal(size=q.shape)


def distance(spline, q):
    """Largest distance, in any joint, of positions from the nearest point of the spline."""
    way = spline.states(np.linspace(0.0, 1.0, 20001), 1)[:, 0]
    return float(cKDTree(way).query(q, p=np.inf)[0].max())


@pytest.mark.parametrize("tolerance", [1e-3, 1e-2, 1e-1])
@pytest.mark.parametrize("seed", range(2))
def test_every_position_is_near_the_spline(seed, tolerance):
    q = taught(seed, noise=1e-5)
    spline = rbd.smoothed_path(q, tolerance)
    assert distance(spline, q) <= 1.5 * tolerance    # of the polygon through places half a tolerance apart
    np.testing.assert_allclose(spline.states(np.array([0.0, 1.0]), 1)[:, 0], q[[0, -1]], atol=1e-3 * tolerance)


def test_noise_at_rest_leaves_no_trace():
    still = np.repeat(taught(0)[:1], 500, axis=0) + 1e-4 * np.random.default_rng(1).normal(size=(500, 7))
    q = taught(0)
    plain, noisy = rbd.smoothed_path(q, 5e-3), rbd.smoothed_path(np.concatenate([still, q]), 5e-3)
    assert abs(len(noisy.control) - len(plain.control)) <= 0.3 * len(plain.control)


@pytest.mark.parametrize("seed", range(2))
def test_it_can_be_timed_there_and_back(seed):
    """A path that turns back on itself has a corner, which the tolerance rounds."""
    model = rbd.sample("iiwa")
    q = 0.3 * taught(seed)
    limits = rbd.MotionLimits(velocity=0.5 * model.velocity_limit, acceleration=2.5)
    motion = rbd.time_optimal(model, rbd.smoothed_path(np.concatenate([q, q[::-1]]), 2e-2), limits=limits, grid=2000)
    assert motion.good and np.abs(motion(0.0).q - q[0]).max() < 1e-4
    t = np.linspace(0.0, motion.duration, 3001)
    assert np.abs(motion(t).a).max() < 2.5 * (1.0 + 1e-6)


@pytest.mark.parametrize(("positions", "word"), [
    ([[0.0, 0.0]], "N of at least 2"), ([[0.0], [np.nan]], "finite"), ([0.0, 1.0], "N of at least 2"),
    ([[0.0, 0.0], [1e-4, 0.0]], "no joint moves"), ([[0.0], [1e200], [-1e308]], "up to"),
    ([[0.0], [1e7]], "up to")])
def test_what_is_no_path(positions, word):
    with pytest.raises(rbd.RbdError, match=word):
        rbd.smoothed_path(positions)


def test_too_long_a_way_says_so():
    with pytest.raises(rbd.RbdError, match="larger tolerance"):
        rbd.smoothed_path(np.random.default_rng(0).uniform(-1.0, 1.0, (2000, 2)), 1e-3)
    with pytest.raises(rbd.RbdError, match="tolerance"):
        rbd.smoothed_path([[0.0], [1.0]], 0.0)
