"""Trajectories that leave the position limits of the robot description are refused, by name."""
from __future__ import annotations

import numpy as np
import pytest
from support.arm import NAMES, Q, arm, arm_urdf

import rbd_ros as rbd
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FlatnessController, FlatnessSettings
from rbd_ros.runtime.inputs.references import Point

SECOND = 1_000_000_000
CONTROLLERS = [(FeedforwardController, FeedforwardSettings), (FlatnessController, FlatnessSettings)]


@pytest.fixture(params=CONTROLLERS, ids=["feedforward", "flatness"])
def make(request):
    controller, settings = request.param

    def make(q=Q, model=None):
        """Limits are ±3 rad."""
        model = arm() if model is None else model
        made = controller(model, settings.from_values({"state_timeout": 0.1}, model))
        made.activate(0.0)
        made.on_state(1.0, SECOND, NAMES, q)
        return made

    return make


def taken(made, *points):
    return made.on_trajectory(1.0, 0, NAMES, points).taken


@pytest.mark.parametrize(("q", "joint", "value", "limit"), [
    ([0.0, 3.2], "elbow", "3.2", "3"), ([-3.1, 0.0], "shoulder", "-3.1", "-3"),
    ([3.002, 0.0], "shoulder", "3.002", "3")])
def test_a_point_beyond_a_limit(make, q, joint, value, limit):
    made = make()
    assert taken(made, Point(1.0, [0.5, 0.5]))
    before = made.reference.sample(1.0, 2 * SECOND).q
    assert not taken(made, Point(1.0, [0.0, 0.0]), Point(2.0, q), Point(3.0, [0.0, 0.0]))
    assert made.rejections.counts["bad_trajectory"] == 1
    assert f"joint '{joint}' at {value} is beyond its limit {limit} " in made.rejections.last
    np.testing.assert_array_equal(made.reference.sample(1.0, 2 * SECOND).q, before)    # as before


def test_up_to_the_limits_and_rounding(make):
    assert taken(make(), Point(1.0, [3.0, -3.0]))
    assert taken(make(), Point(1.0, [3.0000001, -3.0005]))


def test_back_from_beyond_a_limit(make):
    """Calibration or hand guiding has brought it there: it must get away, but no farther out."""
    assert taken(make([3.3, -0.7]), Point(1.0, [3.2, -0.7]))
    assert taken(make([3.3, -0.7]), Point(0.0, [3.3, -0.7]), Point(2.0, [2.0, -0.7]))
    made = make([3.3, -0.7])
    assert not taken(made, Point(1.0, [3.4, -0.7]))
    assert "joint 'shoulder' at 3.4" in made.rejections.last
    assert not taken(made, Point(1.0, [-3.3, -0.7]))


def test_many_short_trajectories_lead_no_farther_than_one(make):
    """Jogging: each one ends within the rounding of where the last one ended."""
    for begin, most in (([2.9995, 0.0], 3.001), ([3.3, 0.0], 3.3)):
        made, q, step = make(begin), np.array(begin), np.array([0.0009, 0.0])
        for _ in range(20):
            if taken(made, Point(0.01, q + step)):
                q = made.reference.sample(1.0, 2 * SECOND).q
                assert made.on_state(1.0, SECOND, NAMES, q)
        assert begin[0] <= q[0] <= most
        if isinstance(made, FeedforwardController):    # the smooth one swings out
            assert taken(made, Point(0.01, q + 0.5 * step), Point(0.02, q))    # rounding on the way


def test_a_start_that_only_the_trajectory_tells(make):
    made = make()
    assert not made.on_trajectory(9.0, 10 * SECOND, NAMES, [Point(0.0, [0.0, 3.2]), Point(1.0, [0.0, 2.0])])
    assert "joint 'elbow' at 3.2" in made.rejections.last


def test_between_the_points():
    """A cubic or quintic swings out though its points do not."""
    for points, inside in (
            ([Point(1.0, [2.9, 0.0], [0.0, 0.0]), Point(2.0, [2.9, 0.0], [-0.5, 0.0])], True),
            ([Point(1.0, [2.9, 0.0], [0.0, 0.0]), Point(2.0, [2.9, 0.0], [-2.0, 0.0])], False),
            ([Point(1.0, [0.0, -2.9], [0.0, -2.0]), Point(2.0, [0.0, -2.9], [0.0, 0.0])], False),
            ([Point(1.0, [2.9, 0.0], [0.0] * 2, [0.0] * 2), Point(2.0, [2.9, 0.0], [0.0] * 2, [20.0, 0.0])], False),
            ([Point(1.0, [2.9, 0.0], [0.0] * 2, [0.0] * 2), Point(2.0, [2.9, 0.0], [0.0] * 2, [5.0, 0.0])], True)):
        made = FeedforwardController(arm(), FeedforwardSettings.from_values({}, arm()))
        made.activate(0.0)
        made.on_state(1.0, SECOND, NAMES, [2.8, 0.0] if points[0].position[0] else [0.0, -2.8], [0.0, 0.0])
        assert taken(made, *points) == inside, made.rejections.last
        if not inside:
            assert "between its points" in made.rejections.last and "beyond its limit" in made.rejections.last
        else:
            way = [made.reference.sample(1.0, SECOND + round(t * SECOND)).q for t in np.linspace(0.0, 2.0, 500)]
            assert np.abs(way).max() <= 3.0


@pytest.mark.parametrize("quintic", [False, True])
@pytest.mark.parametrize("out", [True, False])
def test_between_points_far_apart(quintic, out):
    """However long a segment is; and among so many close to a limit that they are looked at in parts."""
    speed, T, a = 0.05, 30.0, [0.0, 0.0] if quintic else ()
    edge = 3.0 - (16 / 81 if quintic else 4 / 27) * speed * T + (0.0015 if out else 0.0005)
    points = [Point(1.0 + i, [-2.9997, edge], [0.0035 * (-1) ** i * (i < 599), 0.0], a) for i in range(600)]
    points.append(Point(600.0 + T, [-2.9997, edge], [0.0, -speed], a))
    made = FeedforwardController(arm(), FeedforwardSettings.from_values({}, arm()))
    made.activate(0.0)
    made.on_state(1.0, SECOND, NAMES, [-2.9997, edge])
    assert taken(made, *points) != out, made.rejections.last


def test_what_overflows_between_the_points():
    made = FeedforwardController(arm(), FeedforwardSettings.from_values({}, arm()))
    made.activate(0.0)
    made.on_state(1.0, SECOND, NAMES, Q)
    assert not taken(made, Point(1.0, Q, [1e149, 0.0]), Point(1e100, Q, [-1e149, 0.0]))
    assert not taken(made, Point(1e100, Q, [1e149] * 2, [1e149] * 2), Point(1e120, Q, [1e149] * 2, [1e149] * 2))


def test_continuous_joints_and_those_without_limits(make):
    turning = arm_urdf().replace('type="revolute"', 'type="continuous"')
    assert taken(make(model=rbd.load_urdf(turning)), Point(2.0, [5.0, -5.0]))
    unlimited = arm_urdf().replace('lower="-3" upper="3" ', "")    # which means 0 and 0
    made = make(model=rbd.load_urdf(unlimited))
    assert taken(made, Point(2.0, [1.0, -1.0]), Point(3.0, [1.1, -1.1]), Point(4.0, [0.2, -0.2])), made.rejections.last
