"""Motions from rest to rest: derivatives against differences, peaks of the quintic, dwells, ends and wrong input."""
from __future__ import annotations

import numpy as np
import pytest

from rbd_ros.core.errors import RbdError
from rbd_ros.core.motion.rest_to_rest import PEAK_SPEED, RestToRestMotion

POINTS = np.array([[0.0, 1.0], [1.0, -1.0], [1.0, 0.5], [-2.0, 0.0]])
MOTION = RestToRestMotion(POINTS, [2.0, 1.0, 4.0], [0.5, 0.0, 1.0, 0.25])


def test_each_derivative_is_that_of_the_one_before():
    t, h = np.random.default_rng(0).uniform(0.0, MOTION.duration, 200), 1e-5
    edges = np.array([0.5, 2.5, 3.5, 4.5, 8.5])
    t = t[np.abs(t[:, None] - edges).min(axis=1) > 1e-3]    # jerk and snap jump there
    before, here, after = MOTION(t - h), MOTION(t), MOTION(t + h)
    for k in range(4):
        np.testing.assert_allclose((after[k] - before[k]) / (2.0 * h), here[k + 1], atol=3e-6)


def test_points_are_passed_at_rest_and_held():
    assert MOTION.duration == pytest.approx(8.75)
    for point, begin, end in zip(POINTS, (0.0, 2.5, 3.5, 8.5), (0.5, 2.5, 4.5, 8.75), strict=True):
        for t in (begin, 0.5 * (begin + end), end):
            np.testing.assert_allclose(MOTION(t).q, point, atol=1e-12)
            np.testing.assert_allclose(MOTION(t)[1:3], 0.0, atol=1e-9)
    for t, point in ((-1.0, POINTS[0]), (99.0, POINTS[-1])):
        np.testing.assert_array_equal(MOTION(t).q, point)
        np.testing.assert_array_equal(MOTION(t)[1:], 0.0)


def test_speed_peaks_in_the_middle():
    assert MOTION(1.5).v[1] == pytest.approx(-2.0 / 2.0 * PEAK_SPEED)
    t = np.linspace(0.5, 2.5, 401)
    assert np.abs(MOTION(t).v[:, 1]).max() == pytest.approx(PEAK_SPEED)


def test_one_state_is_a_row_of_a_batch():
    for t in (0.0, 0.7, 3.0, 20.0):
        for one, row in zip(MOTION(t), MOTION(np.array([t, 1.0])), strict=True):
            np.testing.assert_array_equal(one, row[0])


def test_a_single_point_is_rest():
    still = RestToRestMotion([[1.0, 2.0]], [], [3.0])
    np.testing.assert_array_equal(still(1.0).q, [1.0, 2.0])
    assert still.duration == 3.0 and still(np.zeros(4)).v.shape == (4, 2) and not still(1.0).v.any()


@pytest.mark.parametrize(("arguments", "words"), [
    (([[0.0, np.nan]], [], [0.0]), "points"), (([0.0, 1.0], [1.0], [0.0, 0.0]), "points"),
    (([[0.0], [1.0]], [0.0], [0.0, 0.0]), "positive"), (([[0.0], [1.0]], [1.0], [0.0, -1.0]), "dwells"),
    (([[0.0], [1.0]], [1.0, 1.0], [0.0, 0.0]), "1 durations and 2 dwells"), (([], [], []), "points")])
def test_wrong_motions(arguments, words):
    with pytest.raises(RbdError, match=words):
        RestToRestMotion(*arguments)


def test_wrong_times():
    with pytest.raises(RbdError, match="finite time"):
        MOTION(np.nan)
