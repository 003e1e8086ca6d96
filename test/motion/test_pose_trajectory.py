"""Trajectories of a pose: through their points, continuous to the second derivative, with exact twists and rates."""
from __future__ import annotations

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.lie import so3
from rbd_ros.core.motion.pose_filter import PoseFilter
from rbd_ros.core.motion.pose_trajectory import PosePoints, PoseTrajectory

FAST = (100.0, 100.0)


def curve(t, order=0):
    """A pose in motion: axes and origin, or their rates (angular first, in axes of the root) by central differences."""
    t = np.asarray(t)
    if order == 0:
        axes = so3.exp(np.stack([0.4 * np.sin(t), 0.3 * np.cos(2 * t), 0.0 * t], -1)) @ so3.exp(
            1.5 * t[..., None] * np.array([0.0, 0.6, 0.8]))
        return axes, np.stack([0.3 * np.cos(t), 0.3 * np.sin(t), 0.1 * np.sin(2 * t)], -1)
    if order == 1:
        h = 1e-5
        (R1, p1), (R0, p0) = curve(t + h), curve(t - h)
        return np.concatenate([so3.log(R1 @ np.swapaxes(R0, -1, -2)), p1 - p0], -1) / (2 * h)
    h = 1e-4
    return (curve(t + h, 1) - curve(t - h, 1)) / (2 * h)


def points(times, known):
    return PosePoints(times, *curve(times), *(curve(times, k + 1) for k in range(known)))


def state_of(t, known=2):
    """Of a `PoseFilter` on the curve."""
    (axes, origin), twist, rate = curve(t), curve(t, 1), curve(t, 2)
    if known == 0:
        twist, rate = np.zeros((2, 6))
    return np.concatenate([axes.ravel(), origin, axes.T @ twist[:3], twist[3:], axes.T @ rate[:3], rate[3:]])


def sampled(course, times, pace=1.0, slope=0.0):
    rows = np.empty((len(times), 24))
    for t, row in zip(times, rows, strict=True):
        course.sample(t, pace, slope, np.empty(24), np.empty(12), row)
    return rows


TIMES = np.array([0.3, 0.7, 0.8, 1.2, 1.9, 2.2])


@pytest.mark.parametrize("known", [0, 1, 2])
def test_it_passes_its_points_and_twist_and_rate_are_those_of_the_pose(known):
    course, h = PoseTrajectory(points(TIMES, known), state_of(0.0), *FAST), 1e-4
    rows = sampled(course, TIMES[:-1])
    axes, origin = curve(TIMES[:-1])
    np.testing.assert_allclose(rows[:, :9].reshape(-1, 3, 3), axes, atol=1e-12)
    np.testing.assert_allclose(rows[:, 9:12], origin, atol=1e-12)
    for k, wanted in ((12, curve(TIMES[:-1], 1)), (18, curve(TIMES[:-1], 2)))[:known]:
        np.testing.assert_allclose(rows[:, k:k + 6], wanted, atol=1e-9)
    t = np.linspace(0.013, 2.19, 400)
    here, before, after = (sampled(course, t + shift) for shift in (0.0, -h, h))
    R = [each[:, :9].reshape(-1, 3, 3) for each in (before, after)]
    found = np.concatenate([so3.log(R[1] @ np.swapaxes(R[0], 1, 2)), after[:, 9:12] - before[:, 9:12]], 1) / (2 * h)
    scale = np.abs(here[:, 18:]).max()
    np.testing.assert_allclose(here[:, 12:18], found, atol=3e-6 * scale)
    np.testing.assert_allclose(here[:, 18:], (after[:, 12:18] - before[:, 12:18]) / (2 * h), atol=2e-5 * scale)


@pytest.mark.parametrize("known", [0, 1, 2])
def test_it_has_no_steps_where_it_begins_and_at_its_points(known):
    start, eps = state_of(0.0), 1e-9
    course = PoseTrajectory(points(TIMES, known), start, *FAST)
    state = np.empty(24)
    course.sample(0.0, 1.0, 0.0, state, np.empty(12), np.empty(24))
    np.testing.assert_allclose(state, start, atol=1e-12)
    for t in TIMES[:-1]:
        before, after = sampled(course, [t - eps, t + eps])
        np.testing.assert_allclose(before, after, atol=1e-5)


@pytest.mark.parametrize(("known", "least"), [(0, 3.0), (1, 3.0), (2, 5.5)])
def test_it_converges_to_the_curve_between_its_points(known, least):
    errors = []
    for count in (12, 24, 48):
        times = np.linspace(0.0, 3.0, count + 1)
        course = PoseTrajectory(points(times, known).after(1, 0.0)._replace(
            twist=None if known == 0 else curve(times[1:], 1)), state_of(0.0), *FAST)
        t = np.linspace(1.0, 2.0, 50)
        rows, (axes, origin) = sampled(course, t), curve(t)
        errors.append(max(np.abs(rows[:, :9].reshape(-1, 3, 3) - axes).max(), np.abs(rows[:, 9:12] - origin).max()))
    assert np.log2(errors[0] / errors[2]) / 2.0 > least, errors


def test_rotations_about_one_axis_are_splines_of_the_angle():
    times, axis = np.array([0.5, 1.1, 1.3, 2.0]), np.array([0.6, 0.0, 0.8])
    angle = np.array([1.0, 2.5, 3.5, 6.0])
    still = np.concatenate([np.eye(3).ravel(), np.zeros(15)])
    turning = PoseTrajectory(PosePoints(times, so3.exp(angle[:, None] * axis), np.zeros((4, 3))), still, *FAST)
    moving = PoseTrajectory(PosePoints(times, np.tile(np.eye(3), (4, 1, 1)), angle[:, None] * axis), still, *FAST)
    t = np.linspace(0.0, 1.99, 100)
    one, other = sampled(turning, t), sampled(moving, t)
    np.testing.assert_allclose(one[:, 12:15], other[:, 15:18], atol=1e-9)
    np.testing.assert_allclose(one[:, 18:21], other[:, 21:24], atol=1e-8)


@pytest.mark.parametrize("known", [0, 2])
def test_it_begins_anew_from_where_the_target_is_by_then(known):
    course = PoseTrajectory(points(TIMES, known), state_of(0.0), *FAST)
    course.begin(state_of(0.1), 0.1)
    state = np.empty(24)
    course.sample(0.1, 1.0, 0.0, state, np.empty(12), np.empty(24))
    np.testing.assert_allclose(state, state_of(0.1), atol=1e-12)
    before, after = sampled(course, [0.3 - 1e-9, 0.3 + 1e-9])
    np.testing.assert_allclose(before, after, atol=1e-5)
    with pytest.raises(rbd.RbdError, match="passed"):
        course.begin(state_of(0.3), 0.3)


def test_a_pace_that_changes_is_in_twist_and_rate():
    filtered = PoseFilter(*curve(0.0), 10.0, *FAST)
    filtered.follow(PoseTrajectory(points(TIMES, 2), filtered.state, *FAST))
    h, rows = 1e-4, []
    for k in range(20_000):
        rows.append(filtered.advance(h, 0.3 if 3000 < k < 8000 else 1.0))
    rows = np.array(rows)
    np.testing.assert_allclose(np.diff(rows[:, 9:12], axis=0) / h, rows[1:, 15:18], atol=1e-3)
    np.testing.assert_allclose(np.diff(rows[:, 12:18], axis=0) / h, rows[1:, 18:24], atol=0.1)
    assert np.abs(np.diff(rows[:, 12:18], axis=0)).max() < 200.0 * h


def test_its_end_is_kept():
    filtered = PoseFilter(*curve(0.0), 10.0, *FAST)
    for known in (0, 2):
        filtered.follow(PoseTrajectory(points(TIMES, known), filtered.state, *FAST))
        before = filtered.target
        assert not filtered.rests and not filtered.waits
        rows = np.array([filtered.advance(1e-3) for _ in range(6000)])
        assert filtered.rests and filtered.waits
        np.testing.assert_allclose(rows[-1, 9:12], curve(TIMES[-1])[1], atol=1e-6)
        steps = np.diff(np.vstack([before, rows])[:, 12:18], axis=0)
        assert np.abs(steps).max() < 1.1e-3 * np.abs(rows[:, 18:]).max()


@pytest.mark.parametrize(("changed", "words"), [
    ({"speed": 0.2}, "point 5, 1.9 s after its start, it moves at .* m/s"), ({"angular": 0.5}, "target.angular_speed"),
    ({"turned": True}, "turns by"), ({"close": True}, "close in time")])
def test_what_is_refused(changed, words):
    times = TIMES.copy()
    if "close" in changed:
        times[2] = times[1] + 1e-12
    given, start = points(times, 2), state_of(0.0, 0)
    if "turned" in changed:
        given.axes[2] = given.axes[1] @ so3.exp(np.array([0.0, 3.1, 0.0]))
    if "speed" in changed:    # slow, but for the fifth piece
        origin, start[9:12] = 0.01 * given.origin, 0.01 * start[9:12]
        origin[4:] += [0.3, 0.0, 0.0]
        given = given._replace(origin=origin, twist=None, rate=None)
    with pytest.raises(rbd.RbdError, match=words):
        PoseTrajectory(given, start, changed.get("speed", 100.0), changed.get("angular", 100.0), first=1)


def test_accelerations_are_bounded():
    """Those of the samples in time, of a trajectory that turns as it goes."""
    rng, rest = np.random.default_rng(0), PoseFilter(np.eye(3), np.zeros(3), 10.0, 10.0, 10.0).state
    points = PosePoints(np.arange(1.0, 5.0) * 0.5, np.array([so3.exp(0.5 * rng.normal(size=3)) for _ in range(4)]),
                        0.2 * rng.normal(size=(4, 3)))
    made = PoseTrajectory(points, rest, 100.0, 100.0)
    rates, state, goal, target = [], np.zeros(24), np.zeros(12), np.zeros(24)
    for t in np.linspace(0.0, 2.0, 4001):
        made.sample(t, 1.0, 0.0, state, goal, target)
        rates.append(target[18:].copy())
    for name, part, unit in (("acceleration", slice(3, 6), "m/s²"), ("angular_acceleration", slice(0, 3), "rad/s²")):
        most = float(np.linalg.norm(np.array(rates)[:, part], axis=1).max())
        PoseTrajectory(points, rest, 100.0, 100.0, 0, **{name: 1.001 * most})
        with pytest.raises(rbd.RbdError, match=f"{unit}, at most .*target.{name}"):
            PoseTrajectory(points, rest, 100.0, 100.0, 0, **{name: 0.97 * most})
