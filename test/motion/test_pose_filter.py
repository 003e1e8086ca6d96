"""Targets that approach goals without steps and overshoot, no faster than allowed."""
from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from rbd_ros.core.lie import so3
from rbd_ros.core.motion.pose_filter import PoseFilter

H = 1e-3


def advanced(filtered, seconds, pace=1.0):
    return np.array([filtered.advance(H, pace) for _ in range(round(seconds / H))])


@pytest.mark.parametrize("seed", range(3))
def test_it_reaches_the_goal_without_overshoot(seed):
    rng = np.random.default_rng(seed)
    filtered = PoseFilter(np.eye(3), np.zeros(3), 10.0, 0.25, 1.0)
    assert filtered.waits
    axes, origin = so3.exp(rng.normal(size=3)), 0.3 * rng.normal(size=3)
    filtered.aim(axes, origin)
    assert not filtered.waits
    rows = advanced(filtered, 6.0)
    np.testing.assert_allclose(rows[-1, :9].reshape(3, 3), axes, atol=1e-6)
    np.testing.assert_allclose(rows[-1, 9:12], origin, atol=1e-6)
    np.testing.assert_allclose(rows[-1, 12:], 0.0, atol=1e-4)
    left = np.linalg.norm(origin - rows[:, 9:12], axis=1)
    assert (np.diff(left) < 1e-9).all()
    assert np.linalg.norm(rows[:, 15:18], axis=1).max() <= 1.005 * 0.25
    assert np.linalg.norm(rows[:, 12:15], axis=1).max() <= 1.005


@pytest.mark.parametrize("pace", [1.0, 0.4])
def test_twist_and_rate_are_those_of_the_pose_and_continuous(pace):
    """Whatever the goal does."""
    rng, filtered, rows = np.random.default_rng(7), PoseFilter(np.eye(3), np.zeros(3), 10.0, 0.5, 2.0), []
    for _ in range(8):
        filtered.aim(so3.exp(3.0 * rng.normal(size=3)), rng.normal(size=3))
        rows.append(advanced(filtered, rng.uniform(0.05, 0.6), pace))
    rows = np.concatenate(rows)
    R = rows[:, :9].reshape(-1, 3, 3)
    np.testing.assert_allclose(R @ R.transpose(0, 2, 1), np.broadcast_to(np.eye(3), R.shape), atol=1e-12)
    np.testing.assert_allclose(np.diff(rows[:, 9:12], axis=0) / H, rows[1:, 15:18], atol=1e-9)
    turned = np.array([so3.log(b @ a.T) for a, b in pairwise(R)]) / H
    np.testing.assert_allclose(turned, rows[1:, 12:15], atol=2e-2)
    u, k = 0.5, 10.0    # a step of the goal accelerates by at most 0.7 u k, one back as much again; jerk: 6 u k²
    assert np.abs(np.diff(rows[:, 15:18], axis=0)).max() < 2.0 * u * k * H * pace
    assert np.abs(np.diff(rows[:, 21:24], axis=0)).max() < 12.0 * u * k * k * H * pace


def test_halt_does_not_turn_back():
    filtered = PoseFilter(np.eye(3), np.zeros(3), 10.0, 0.25, 1.0)
    filtered.aim(np.eye(3), np.array([1.0, 0.0, 0.0]))
    advanced(filtered, 1.0)
    here = filtered.target[9]
    filtered.halt()
    rows = advanced(filtered, 3.0)
    assert filtered.waits and (rows[:, 15] > -1e-9).all() and np.abs(rows[-1, 12:]).max() < 1e-6
    assert rows[-1, 9] == pytest.approx(here + 3.0 * 0.25 / 10.0, abs=2e-4)
