"""Trajectories that would be a jump are refused; those of planners, which begin where the robot is, are not."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.arm import NAMES, Q, arm

import rbd_ros as rbd
from rbd_ros.core.motion import velocity_limits
from rbd_ros.core.motion.trajectory import Waypoint, Waypoints
from rbd_ros.core.motion.velocity_limits import START
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FlatnessController, FlatnessSettings
from rbd_ros.runtime.inputs.joint_states import UNSTAMPED
from rbd_ros.runtime.inputs.references import Point
from rbd_ros.runtime.inputs.rejections import TAKEN

SECOND, MS = 1_000_000_000, 1_000_000
LIMIT = 3.0
FAR = Q + np.array([0.8, 0.0])


@pytest.fixture(params=[(FeedforwardController, FeedforwardSettings), (FlatnessController, FlatnessSettings)],
                ids=["feedforward", "flatness"])
def made(request):
    controller, settings = request.param
    model = arm()
    made = controller(model, settings.from_values({"gains.kp": 100.0, "ramp_in": 0.5}, model))
    made.activate(0.0)
    state(made, 1.0)
    return made


def state(made, now, q=Q, stamp=None):
    return made.on_state(now, round(now * SECOND) if stamp is None else stamp, NAMES, q, [0.0, 0.0]).effort


@pytest.mark.parametrize("time", [0.0, 1e-9, 0.001, 0.1, 0.2])
def test_a_first_point_out_of_reach(made, time):
    """0.8 rad at once were a step of 80 N m."""
    assert not made.on_trajectory(1.0, 0, NAMES, [Point(time, FAR), Point(3.0, Q)])
    assert "joint 'shoulder' would have to move by 0.8" in made.rejections.last
    assert made.rejections.counts["bad_trajectory"] == 1
    assert made.on_trajectory(1.0, 0, NAMES, [Point(0.3, FAR)])


def test_later_points_and_velocities(made):
    for points in ([Point(0.0, Q), Point(0.001, Q + 0.8)], [Point(0.5, Q), Point(0.6, Q - 0.8)],
                   [Point(0.5, Q, [0.0, 100.0]), Point(1.0, Q, [0.0, 0.0])]):
        assert not made.on_trajectory(1.0, 0, NAMES, points) and "limit" in made.rejections.last


@pytest.mark.parametrize("way", [0.3, 1.3])
@pytest.mark.parametrize("fields", [(), (0.0,), (0.0, 0.0)])
def test_what_is_faster_than_a_limit_is_accepted_with_a_warning(made, fields, way):
    """The peak of a motion from rest to rest is 1, 3/2 or 15/8 of its mean, whichever derivatives are given."""
    peak = (1.0, 1.5, 1.875)[len(fields)]
    zero = [np.zeros(2) for _ in fields]
    for factor, warned in ((0.99, False), (1.02, True)):
        duration = peak * way / (factor * LIMIT)
        points = [Point(0.0, Q, *zero), Point(duration, Q - [way, 0.0], *zero)]
        taken, warning, _ = made.on_trajectory(1.0, 0, NAMES, points)
        expected = f"joint 'shoulder' reaches {LIMIT * factor:.3g} (rad/s or m/s), above its velocity limit {LIMIT:.3g}"
        assert taken and (expected in warning) == warned and bool(warning) == warned


def test_a_long_trajectory_is_looked_through_quickly(made):
    t = np.linspace(0.0, 50.0, 5000)
    q = Q + np.stack([0.5 * np.sin(t), 0.0 * t], axis=1)
    points = [Point(*row) for row in zip(t, q, np.stack([0.5 * np.cos(t), 0.0 * t], axis=1), strict=True)]
    assert made.on_trajectory(1.0, 0, NAMES, points) == TAKEN


def test_without_limits_there_is_a_bound():
    model = arm().with_(velocity_limit=np.array([np.inf, 0.0]))
    made = FeedforwardController(model, FeedforwardSettings.from_values({}, model))
    made.activate(0.0)
    state(made, 1.0)
    assert not made.on_trajectory(1.0, 0, NAMES, [Point(0.05, Q + 0.8)]) and "velocity limit 10" in made.rejections.last
    assert made.on_trajectory(1.0, 0, NAMES, [Point(0.09, Q + 0.8)])


@pytest.mark.parametrize("time", [0.0, 1e-4])
def test_a_first_point_where_the_robot_is_or_nearly(made, time):
    """The arm sags by 0.3 rad below the reference: a plan begins at the arm. Its torque fades to the new one."""
    made.on_trajectory(1.0, 0, NAMES, [Point(0.5, Q)])
    sagging, now = Q + 0.3, 1.0
    for now in np.arange(1.0, 2.0, 0.01):
        before = state(made, now, Q + 0.3 * min(1.0, 4.0 * (now - 1.0)))
    assert made.on_trajectory(now, 0, NAMES, [Point(time, sagging + 0.9 * START), Point(2.0, Q)])
    efforts = np.array([before, *(state(made, now + 0.01 * (i + 1), sagging) for i in range(70))])
    assert np.abs(efforts[-1] - before).max() > 10.0
    assert np.abs(np.diff(efforts, axis=0)).max() < 3.0
    assert not made.on_trajectory(now + 0.71, 0, NAMES, [Point(time, sagging + 2.0 * START), Point(2.0, Q)])


def test_a_stream_goes_on_until_a_later_trajectory_begins(made):
    """And that begins where the stream is then."""
    for now in np.arange(1.0, 3.0, 0.01):
        assert made.on_reference(now, 0, NAMES, Q + 0.1 * (now - 1.0), [0.1, 0.1])
        state(made, now)
        if abs(now - 1.5) < 1e-6:
            assert made.on_trajectory(now, 2 * SECOND + 500 * MS, NAMES, [Point(2.0, Q, [0.0, 0.0])])
        if now < 2.49:
            sample = made.reference.sample(now, round(now * SECOND))
            np.testing.assert_allclose([sample.q, sample.v], [Q + 0.1 * (now - 1.0), [0.1, 0.1]], rtol=0, atol=1e-12)
        elif now > 2.495:
            break
    sample = made.reference.sample(now, 2 * SECOND + 501 * MS)
    np.testing.assert_allclose(sample.q, Q + 0.15, rtol=0, atol=2e-3)
    assert np.abs(sample.v - 0.1).max() < 0.02
    np.testing.assert_allclose(made.reference.sample(now, 5 * SECOND).q, Q, rtol=0, atol=1e-12)


def test_states_without_stamps_follow_trajectories_by_the_time_of_reception():
    model = rbd.sample("two_link")
    made = FeedforwardController(model, FeedforwardSettings.from_values({"ramp_in": 0.0}, model))
    made.activate(0.0)
    for i in range(UNSTAMPED):
        state(made, 4.93 + 0.01 * i, stamp=0)
    assert not made.on_trajectory(5.0, 6 * SECOND, NAMES, [Point(1.0, Q + 0.5)]) and "stamp 0" in made.rejections.last
    assert made.on_trajectory(5.0, 0, NAMES, [Point(1.0, Q + 0.5)])
    for i in range(60):
        state(made, 5.0 + 0.01 * i, stamp=0)
        sample = made.desired(5.0 + 0.01 * i, made.safety.laws.new)
        np.testing.assert_allclose(sample.q, Q + 0.005 * i, rtol=0, atol=1e-6)


@pytest.mark.parametrize("timeout", [0.0, 1e6])
def test_a_reference_from_the_far_future_is_not_the_last_one(timeout):
    model = arm()
    made = FeedforwardController(model, FeedforwardSettings.from_values({"reference_timeout": timeout}, model))
    made.activate(0.0)
    assert made.on_reference(1.0, 10**18, NAMES, Q)
    assert not made.on_reference(1.1, SECOND, NAMES, Q + 0.1)
    assert made.on_reference(1.21, SECOND + MS, NAMES, Q + 0.1)
    assert made.on_reference(1.22, SECOND + 2 * MS, NAMES, Q + 0.1)


@pytest.mark.parametrize("seed", range(60))
def test_only_segments_that_may_be_too_fast_are_looked_at_closely(seed, monkeypatch):
    """What is said of all others is nothing."""
    rng = np.random.default_rng(seed)
    model = rbd.sample("iiwa")
    points = [Waypoint(0.1 * (i + 1), *rng.uniform(0.0, 10.0 ** rng.uniform(-1, 1.2), 3)[:, None] * rng.uniform(
        -1.0, 1.0, (3, 7)) * [[0.1], [1.0], [10.0]]) for i in range(12)]
    points = Waypoints.of([replace(point, v=None if rng.random() < 0.2 else point.v,
                                   a=None if rng.random() < 0.3 else point.a) for point in points])
    said = velocity_limits.above_limits(model, points)
    monkeypatch.setattr(velocity_limits, "SWING", 1e9)
    assert velocity_limits.above_limits(model, points) == said
