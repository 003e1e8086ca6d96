"""When a controller takes a trajectory, and where the robot is told to be before it begins."""
from __future__ import annotations

import numpy as np
import pytest
from support.arm import NAMES, Q, arm

from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FlatnessController, FlatnessSettings
from rbd_ros.runtime.inputs.references import Point

SECOND = 1_000_000_000
GOAL = Q + 1.0
CONTROLLERS = [(FeedforwardController, FeedforwardSettings), (FlatnessController, FlatnessSettings)]


@pytest.fixture(params=CONTROLLERS, ids=["feedforward", "flatness"])
def made(request):
    controller, settings = request.param
    model = arm()
    made = controller(model, settings.from_values({"state_timeout": 0.1}, model))
    made.activate(0.0)
    return made


def test_taken_where_the_robot_is_known(made):
    made.on_state(1.0, SECOND, NAMES, Q)
    assert made.on_trajectory(1.05, 0, NAMES, [Point(10.0, GOAL)])
    np.testing.assert_array_equal(made.reference.sample(1.1, SECOND).q, Q)


@pytest.mark.parametrize("stamp", [0, 5 * SECOND])
def test_refused_before_the_first_state(made, stamp):
    """It would count as over as soon as a state with the time of day came, and be a jump to its end."""
    assert not made.on_trajectory(1.0, stamp, NAMES, [Point(10.0, GOAL)])
    assert "no fresh joint state" in made.rejections.last and made.rejections.counts["bad_trajectory"] == 1
    made.on_state(1.1, 1000 * SECOND, NAMES, Q)
    assert made.reference.sample(1.1, 1000 * SECOND) is None


def test_refused_while_states_are_stale(made):
    made.on_state(1.0, SECOND, NAMES, Q)
    assert not made.on_trajectory(1.1, 0, NAMES, [Point(10.0, GOAL)])
    made.on_state(60.0, 60 * SECOND, NAMES, Q)
    assert made.reference.sample(60.0, 60 * SECOND) is None


def test_a_trajectory_that_tells_its_start_needs_no_state(made):
    """As in a simulation that has not begun yet: until its time it stands still at its first point."""
    assert made.on_trajectory(1.0, 2 * SECOND, NAMES, [Point(0.0, Q), Point(1.0, GOAL)])
    np.testing.assert_array_equal(made.reference.sample(1.0, SECOND).q, Q)
    np.testing.assert_allclose(made.reference.sample(1.0, 4 * SECOND).q, GOAL, rtol=0, atol=1e-12)


def test_a_trajectory_without_points_stops_even_while_states_are_stale(made):
    assert not made.on_trajectory(0.0, 0, NAMES, [])    # there is nothing to stop
    made.on_state(1.0, SECOND, NAMES, Q)
    assert made.on_trajectory(1.0, 0, NAMES, [Point(1.0, GOAL)])
    assert made.on_trajectory(5.0, 0, NAMES, [])
    np.testing.assert_array_equal(made.reference.sample(9.0, 9 * SECOND).q, Q)


def test_stays_until_its_time_has_come(made):
    made.on_state(1.0, SECOND, NAMES, Q)
    assert made.on_trajectory(1.0, 5 * SECOND, NAMES, [Point(0.0, Q + 0.01), Point(1.0, GOAL)])
    np.testing.assert_array_equal(made.reference.sample(1.0, 4 * SECOND).q, Q)
    np.testing.assert_allclose(made.reference.sample(1.0, 5 * SECOND).q, Q + 0.01, rtol=0, atol=1e-12)


def sample(made, stamp):
    return made.reference.sample(stamp, round(stamp * SECOND))


def test_a_trajectory_that_begins_later_follows_on_from_the_one_that_runs(made):
    """It stood still at once, and was as fast as before when its time came: two jumps of the velocity."""
    made.on_state(1.0, SECOND, NAMES, Q)
    rest = [0.0, 0.0]
    assert made.on_trajectory(1.0, 0, NAMES, [Point(4.0, GOAL, rest)])
    made.on_state(1.4, 2 * SECOND, NAMES, Q)
    expected = [sample(made, t) for t in (2.0, 2.999)]
    for goal in (Q - 0.5, Q):    # the second one takes the place of the first one
        assert made.on_trajectory(1.4, 3 * SECOND, NAMES, [Point(3.0, goal, rest)])
        for t, wanted in zip((2.0, 2.999), expected, strict=True):
            np.testing.assert_array_equal([sample(made, t).q, sample(made, t).v], [wanted.q, wanted.v])
    assert np.abs(sample(made, 3.001).v - expected[1].v).max() < 0.01
    assert np.abs(sample(made, 3.001).q - expected[1].q).max() < 0.01
    np.testing.assert_allclose(sample(made, 7.0).q, Q)


def test_a_trajectory_that_begins_later_ends_a_stream_at_rest(made):
    made.on_state(1.0, SECOND, NAMES, Q)
    made.on_reference(1.0, 0, NAMES, Q, [1.0, 1.0])
    assert made.on_trajectory(1.0, 2 * SECOND, NAMES, [Point(3.0, GOAL, [0.0, 0.0])])
    for t in (1.5, 2.0):
        np.testing.assert_array_equal([sample(made, t).q, sample(made, t).v], [Q, 0.0 * Q])


def test_of_a_trajectory_that_began_before_the_points_to_come_count(made):
    """The way that the robot had not gone was a jump."""
    made.on_state(2.0, 2 * SECOND, NAMES, Q)
    rest = [0.0, 0.0]
    assert made.on_trajectory(2.0, SECOND, NAMES, [Point(0.0, Q, rest), Point(0.5, Q + 0.5, rest),
                                                   Point(3.0, GOAL, rest)])
    np.testing.assert_array_equal(sample(made, 2.0).q, Q)
    assert np.abs(sample(made, 2.001).q - Q).max() < 1e-3
    np.testing.assert_array_equal(sample(made, 4.0).q, GOAL)
    before = made.reference.sample(2.0, 2 * SECOND)
    for end, reason in ((1.1, "to catch up"), (0.9, "past")):
        assert not made.on_trajectory(2.0, SECOND, NAMES, [Point(end, GOAL, rest)]) and reason in made.rejections.last
    np.testing.assert_array_equal(made.reference.sample(2.0, 2 * SECOND).q, before.q)


@pytest.mark.parametrize(("off", "fades"), [(1e-15, False), (1e-7, False), (1e-3, True)])
def test_rounding_of_the_first_point_is_no_jump(made, off, fades):
    """A planner's first point is the present position up to rounding: its torque acts at once, without a fade."""
    made.on_state(1.0, SECOND, NAMES, Q)
    assert made.on_trajectory(1.0, 0, NAMES, [Point(0.0, Q)])    # held there
    made.on_state(1.05, SECOND + SECOND // 20, NAMES, Q)
    verdict = made.on_trajectory(1.05, 0, NAMES, [Point(0.0, Q + off), Point(1.0, GOAL)])
    assert verdict and verdict.jumps == fades
