"""Targets that approach goals and take up twists without steps and overshoot, no faster than allowed."""
from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from rbd_ros.core.lie import so3
from rbd_ros.core.motion.pose_filter import PACING, Pace, PoseFilter

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
        if rng.random() < 0.6:
            filtered.aim(so3.exp(3.0 * rng.normal(size=3)), rng.normal(size=3))
        else:
            filtered.move(rng.normal(size=6))
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
    assert rows[-1, 9] == pytest.approx(here + 2.0 * 0.25 / 10.0, abs=3e-4)


@pytest.mark.parametrize("seed", range(3))
def test_a_twist_is_taken_up_as_by_two_poles_and_kept_in_axes_of_the_root(seed):
    rng = np.random.default_rng(seed)
    axes, origin = so3.exp(rng.normal(size=3)), rng.normal(size=3)
    twist = rng.normal(size=6)
    twist *= 0.9 / max(np.linalg.norm(twist[:3]) / 1.0, np.linalg.norm(twist[3:]) / 0.25)
    filtered = PoseFilter(axes, origin, 10.0, 0.25, 1.0)
    filtered.move(twist)
    rows, t = advanced(filtered, 2.0), H * np.arange(1.5, 2001.0)    # steps lead by half of one
    share = 1.0 - (1.0 + 10.0 * t) * np.exp(-10.0 * t)
    np.testing.assert_allclose(rows[:, 15:18], share[:, None] * twist[3:], atol=2e-3 * 0.25)
    spun = np.linalg.norm(rows[:, 12:15], axis=1)
    assert (np.diff(spun) > -1e-9).all() and spun[-1] == pytest.approx(np.linalg.norm(twist[:3]), rel=1e-6)
    np.testing.assert_allclose(rows[-1, 12:15], twist[:3], atol=0.02)    # its direction lags while the pose turns
    filtered.halt()
    rows = advanced(filtered, 3.0)
    assert (rows[:, 15:18] @ twist[3:] > -1e-9).all() and filtered.rests and filtered.waits


def test_a_twist_is_as_fast_as_both_speeds_allow():
    filtered = PoseFilter(np.eye(3), np.zeros(3), 10.0, 0.25, 1.0)
    filtered.move(np.array([0.0, 0.0, 0.5, 3.0, 4.0, 0.0]))
    rows = advanced(filtered, 2.0)
    np.testing.assert_allclose(rows[-1, 12:18], [0.0, 0.0, 0.025, 0.15, 0.2, 0.0], atol=1e-5)
    filtered.move(np.array([3.0, 0.0, 0.0, 0.1, 0.0, 0.0]))
    np.testing.assert_allclose(advanced(filtered, 2.0)[-1, 12:18], [1.0, 0.0, 0.0, 0.1 / 3.0, 0.0, 0.0], atol=1e-5)


def test_a_target_that_is_held_up_halts_where_it_is():
    filtered = PoseFilter(np.eye(3), np.zeros(3), 10.0, 0.25, 1.0)
    filtered.move(np.array([0.0, 0.0, 0.0, 0.2, 0.0, 0.0]))
    advanced(filtered, 1.0)
    before = advanced(filtered, 1.0, 0.0)[-1]
    filtered.halt()
    np.testing.assert_allclose(advanced(filtered, 1.0)[:, 9:12], np.tile(before[9:12], (1000, 1)), atol=1e-6)


@pytest.mark.parametrize("dt", [1e-3, 0.05])
def test_the_pace_is_a_low_pass_of_second_order(dt):
    pace, k, t = Pace(), 1.0 / PACING, dt * np.arange(1, round(0.5 / dt) + 1)
    rows = np.array([pace.advance(dt, 0.25) for _ in t])
    np.testing.assert_allclose(rows[:, 0], 0.25 + 0.75 * (1.0 + k * t) * np.exp(-k * t), atol=1e-12)
    np.testing.assert_allclose(rows[:, 1], -0.75 * k * k * t * np.exp(-k * t), atol=1e-10)
