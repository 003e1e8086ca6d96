"""What was wanted before an emergency stop, a long silence or hand guiding is not wanted after it."""
from __future__ import annotations

import numpy as np
import pytest
from support.arm import NAMES, Q, arm

import rbd_ros as rbd
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FlatnessController, FlatnessSettings
from rbd_ros.runtime.inputs.plausibility import CONFIRMED
from rbd_ros.runtime.inputs.references import Point

SECOND, MS = 1_000_000_000, 1_000_000
MODEL = arm()
G = rbd.gravity_effort(MODEL, Q)
GAINS = {"gains.kp": 300.0, "gains.kd": 30.0, "safe_output.hold_position": 0.0}


def make(controller=FeedforwardController, settings=FeedforwardSettings, **changes):
    made = controller(MODEL, settings.from_values(GAINS | changes, MODEL))
    made.activate(0.0)
    return made


def hold(made, begin, end):
    """The robot stays at Q and says so; the last effort."""
    for now in np.arange(begin, end, 0.01):
        effort = made.on_state(now, 1000 * SECOND + round(now * SECOND), NAMES, Q, [0.0, 0.0]).effort
    return effort


@pytest.fixture(params=[(FeedforwardController, FeedforwardSettings), (FlatnessController, FlatnessSettings)],
                ids=["feedforward", "flatness"])
def moving(request):
    """One second into a trajectory of ten."""
    made = make(*request.param)
    hold(made, 0.0, 1.0)
    assert made.on_trajectory(1.0, 0, NAMES, [Point(10.0, Q + 2.0)])
    hold(made, 1.0, 2.0)
    return made


def test_a_trajectory_does_not_go_on_after_an_emergency_stop(moving):
    """It did, while the robot was stopped: reset was a jump to where it would have been, at the effort limit."""
    moving.safety.stop()
    hold(moving, 2.0, 9.0)
    assert not moving.on_trajectory(9.0, 0, NAMES, [Point(1.0, Q)]) and "stop" in moving.rejections.last
    moving.safety.reset()
    np.testing.assert_allclose(hold(moving, 9.0, 10.0), G, rtol=0, atol=1e-12)
    assert moving.safety.mode == "waiting"
    assert moving.on_trajectory(10.0, 0, NAMES, [Point(10.0, Q + 2.0)])
    hold(moving, 10.0, 11.0)
    assert moving.safety.mode == "running"


def test_a_trajectory_does_not_go_on_after_a_stop_that_is_reset_before_the_next_state(moving):
    moving.safety.stop()
    moving.reset(2.0)
    np.testing.assert_allclose(hold(moving, 2.0, 3.0), G, rtol=0, atol=1e-12)
    assert moving.safety.mode == "waiting"
    assert moving.on_trajectory(3.0, 0, NAMES, [Point(10.0, Q + 2.0)])
    moving.reset(3.0)    # there is no stop
    hold(moving, 3.0, 4.0)
    assert moving.safety.mode == "running"


@pytest.mark.parametrize("watched", [True, False], ids=["let down", "process suspended"])
def test_a_trajectory_does_not_go_on_after_a_long_silence(moving, watched):
    for now in np.arange(2.0, 9.0, 0.01) if watched else ():
        moving.watchdog(now)
    np.testing.assert_allclose(hold(moving, 9.0, 10.0), G, rtol=0, atol=1e-12)
    assert moving.safety.mode == "waiting"


def test_a_trajectory_goes_on_after_a_short_silence(moving):
    moving.watchdog(2.3)
    assert moving.safety.mode == "stale"
    hold(moving, 2.4, 3.0)
    assert moving.safety.mode == "running"


@pytest.mark.parametrize("leap", [0.1, 0.9, 100.0])
def test_a_clock_that_leaps_ahead_does_not_end_a_trajectory(moving, leap):
    """It leads to gravity without a reference, after the states that confirm it."""
    start, leap = 1002 * SECOND, round(leap * SECOND)
    for i in range(CONFIRMED):
        found = moving.on_state(2.0 + 0.01 * i, start + leap + round(0.01 * i * SECOND), NAMES, Q, [0.0, 0.0])
        assert bool(found) == (i == CONFIRMED - 1)
    np.testing.assert_allclose(found.effort, G, rtol=0, atol=1e-12)
    assert moving.report()["clock_restarts"] == 1 and moving.report()["rejected_stamp_leap"] == CONFIRMED - 1
    assert any("of another clock: the trajectory or reference was dropped" in each for each in moving.take_notices())


@pytest.mark.parametrize("leap", [0.1, 0.9, 5.0, 1e6])
def test_a_single_stamp_that_leaps_neither_moves_a_trajectory_nor_stops_the_states(moving, leap):
    start = 1002 * SECOND
    assert not moving.on_state(2.0, start + round(leap * SECOND), NAMES, Q, [0.0, 0.0])
    expected = moving.reference.sample(2.0, start + SECOND // 100).q
    assert moving.on_state(2.01, start + SECOND // 100, NAMES, Q, [0.0, 0.0])
    np.testing.assert_array_equal(moving.reference.sample(2.01, moving.state.stamp_ns).q, expected)
    assert moving.state.restarts == 0 and moving.rejections.counts["stamp_leap"] == 1


def test_a_set_point_from_before_a_stop_is_forgotten_and_a_stream_is_not():
    made = make(reference_timeout=0.0)
    made.on_reference(0.0, 0, NAMES, Q + 1.0)
    hold(made, 0.0, 1.0)
    made.safety.stop()
    hold(made, 1.0, 2.0)
    made.safety.reset()
    hold(made, 2.0, 3.0)
    assert made.safety.mode == "waiting"
    made.safety.stop()
    hold(made, 3.0, 4.0)
    made.on_reference(4.0, 0, NAMES, Q)
    made.safety.reset()
    hold(made, 4.0, 5.0)
    assert made.safety.mode == "running"


def test_gains_after_hand_guiding_do_not_pull_the_robot_back():
    made = make(feedforward="gravity", **{"gains.kp": 0.0, "gains.kd": 0.0})
    made.on_reference(0.0, 0, NAMES, Q + 1.0)
    hold(made, 0.0, 1.0)
    assert made.safety.mode == "running"
    made.apply(FeedforwardSettings.from_values(GAINS | {"feedforward": "gravity"}, MODEL))
    np.testing.assert_allclose(hold(made, 1.0, 2.0), G, rtol=0, atol=1e-12)
    made.on_reference(2.0, 0, NAMES, Q)
    made.apply(FeedforwardSettings.from_values(GAINS | {"feedforward": "full"}, MODEL))
    hold(made, 2.0, 2.2)
    assert made.safety.mode == "ramp_in"    # still followed: only what nobody followed is forgotten


def test_a_stop_on_the_way_out_brakes_until_the_robot_stands_still():
    made = make(ramp_in=0.0, ramp_out=10.0)
    made.on_reference(0.0, 0, NAMES, Q + 0.1)
    hold(made, 0.0, 0.1)
    made.deactivate()
    made.safety.stop()
    v = np.array([0.5, -0.3])
    effort = made.on_state(0.11, 1000 * SECOND + 110 * MS, NAMES, Q, v).effort
    np.testing.assert_allclose(effort, G - 5.0 * rbd.mass_matrix(MODEL, Q) @ v, rtol=0, atol=1e-12)
    assert not made.finished
    for k in range(11):
        assert not made.finished
        made.on_state(0.12 + 0.02 * k, 1000 * SECOND + (120 + 20 * k) * MS, NAMES, Q, [0.0, 0.0])
    assert made.finished


def test_a_robot_at_rest_that_is_not_held_ends_with_the_ramp():
    made = make(ramp_in=0.0, ramp_out=0.5)
    for k in range(100):
        now = 0.01 * k
        assert made.on_reference(now, 0, NAMES, Q)
        made.on_state(now, 1000 * SECOND + 10 * k * MS, NAMES, Q, [0.0, 0.0])
    made.deactivate()
    waited = 0.0
    while not made.finished:
        waited += 0.01
        made.on_state(0.99 + waited, 1000 * SECOND + round((0.99 + waited) * SECOND), NAMES, Q, [0.0, 0.0])
        assert waited < 2.0
    assert waited == pytest.approx(0.5, abs=0.025)


def test_a_node_that_ends_while_joint_states_pause_waits_for_them_as_long_as_commands_do():
    made = make(ramp_in=0.0, ramp_out=0.0)
    v = np.array([0.5, -0.3])
    made.on_state(0.0, 1000 * SECOND, NAMES, Q, v)
    made.watchdog(0.1)
    made.deactivate()
    patience = made.safety.patience
    for t in np.linspace(0.11, patience - 0.01, 20):
        made.watchdog(t)
        assert not made.finished    # the robot was in motion
    made.on_state(patience - 0.005, 1000 * SECOND + round(patience * 1e9), NAMES, Q, v)
    for t in np.linspace(patience, 2.0 * patience - 0.02, 20):
        made.watchdog(t)
        assert not made.finished
    made.watchdog(2.0 * patience)
    assert made.finished    # they have ceased


@pytest.mark.parametrize(("seen", "back", "end"), [(0.1, False, 0.56), (0.3, False, 0.21), (0.1, True, 0.61)])
def test_a_node_that_ends_does_not_take_missing_states_for_rest(seen, back, end):
    """Of an arm that moved, and was seen to stand still for `seen` s when its states ceased, or came back 0.3 s later;
    0.2 s are rest.
    """
    made, ends = make(ramp_in=0.0, ramp_out=0.0), []
    assert made.safety.patience == pytest.approx(0.55)
    for t in np.arange(0.0, 2.0, 0.01):
        if t <= 0.01 + seen or (back and t > 0.4):
            made.on_state(t, 1000 * SECOND + round(t * 1e9), NAMES, Q, [0.1 if t < 0.015 else 0.0, 0.0])
        else:
            made.watchdog(t)
        if t == 0.0:
            made.deactivate()
        if made.finished:
            ends.append(t)
    assert ends[0] == pytest.approx(end, abs=0.011)
