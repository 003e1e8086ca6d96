"""Faults that random walks found, each by itself."""
from __future__ import annotations

import numpy as np
import pytest
from safety_filter import COMMAND, FALLBACK, SAFE, PlainFilter, close, make
from support.arm import NAMES, Q, V, arm, measured
from support.elastic_arm import MOTORS, W, Z, controller

from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings

MS = 1_000_000


def test_the_way_to_a_fallback_beyond_the_limits_takes_its_time():
    """Both ends are cut to the limits first; else the torque is there after a small part of the ramp."""
    safety = PlainFilter(make(effort_limit=np.full(2, 4.0), fallback=np.full(2, 400.0), hold=0.0,
                              fallback_ramp=1.0).settings)
    safety.activate(0.0)
    safe = safety.update(1.0, None)
    safety.watchdog(1.05)
    rest = np.array(safety.output)
    close(safety.watchdog(1.06), rest + 0.01 * (4.0 - rest))
    assert safe is not None and FALLBACK is not None


def test_another_fallback_beyond_the_limits_takes_its_time():
    """It is cut to the limits before it fades in, not after."""
    safety = PlainFilter(make(effort_limit=np.full(2, 4.0), hold=0.0, fallback_ramp=0.0, ramp_in=1.0).settings)
    safety.activate(0.0)
    safety.update(1.0, None)
    close(safety.watchdog(1.1), FALLBACK)
    safety.set(fallback=np.full(2, 1e6))
    close(safety.watchdog(1.11), FALLBACK + 0.01 * (4.0 - FALLBACK))


def test_limits_that_rise_let_the_fallback_in_as_fast_as_the_ramp():
    """It is cut to them once, not twice: that would be the square of the fade."""
    safety = PlainFilter(make(effort_limit=np.full(2, 0.25), fallback=np.full(2, 0.5), hold=0.0, fallback_ramp=0.0,
                              ramp_in=1.0).settings)
    safety.activate(0.0)
    safety.update(1.0, None)
    close(safety.watchdog(1.1), np.full(2, 0.25))
    safety.set(effort_limit=np.full(2, 4.0))
    close(safety.watchdog(1.6), np.full(2, 0.375))


def test_a_law_that_has_a_command_again_takes_over_softly():
    """While it fades in, it has none for some cycles, then one again: that is no step."""
    safety = make(ramp_in=1.0)
    for now in np.linspace(1.0, 3.0, 101):
        safety.update(now, COMMAND)
    assert safety.mode == "running"
    safety.set("second")
    given = {"first": COMMAND, "second": None}
    for now in np.linspace(3.0, 3.5, 51):
        before = np.array(safety.update(now, given))
    given["second"] = COMMAND
    after = safety.update(3.51, given)
    assert np.abs(after - before).max() <= 0.05 * np.abs(COMMAND).max()


def test_a_law_that_has_a_command_again_on_the_way_out_does_not_come_back():
    """It lacked one while it faded in. Nothing ramps in on the way out, so the safe effort stays; it was a step."""
    safety = make(ramp_in=0.5, ramp_out=1.0)
    for now in np.linspace(1.0, 2.0, 101):
        safety.update(now, COMMAND)
    safety.set("second")
    both, without = {"first": COMMAND, "second": COMMAND}, {"first": COMMAND, "second": None}
    safety.update(2.25, both)
    safety.deactivate()
    for now in np.arange(2.26, 2.6, 0.01):
        before = np.array(safety.output)
        safety.update(now, without if now < 2.27 else both)
        assert now < 2.27 or np.abs(safety.output - before).max() <= 0.05 * np.abs(COMMAND).max()
    close(safety.output, SAFE)
    assert safety.mode == "ramp_out" and safety.finished


@pytest.mark.parametrize("leap", [100.0, -100.0])    # s: ahead, known after 5 states; back, after `state_timeout`
def test_motors_that_are_heard_of_are_braked_where_the_clock_leaps(leap):
    """For one cycle they were forgotten with the references, and not braked: their states are judged by themselves.
    Where they come after those of the joints, they are of the other clock only in the next cycle.
    """
    def efforts(motors_first):
        made = controller(mode="feed_forward", state_timeout=0.05, plausible_velocity=float("inf"))
        made.safety.stop()
        found = []
        for cycle in range(100):
            now = 1.0 + 2e-3 * cycle
            stamp = round(1e9 * (now + 200.0 + (leap if cycle >= 40 else 0.0)))
            z = measured(made.motor_state.position, Z)
            if motors_first:
                made.on_motor_state(now, stamp, MOTORS, z, W)
            command = made.on_state(now, stamp, NAMES, measured(made.state.q), V)
            if command:
                found.append(command.motor_effort)
            if not motors_first:
                made.on_motor_state(now, stamp, MOTORS, z, W)
        assert made.state.clock_restarts == 1
        return np.array(found[20:])    # from where the period is known

    braked = efforts(True)
    np.testing.assert_allclose(braked, braked[:1].repeat(len(braked), axis=0))
    unbraked = np.abs(efforts(False) - braked[0]).max(axis=1) > 1e-3
    assert unbraked[20] and unbraked.sum() == 1


def test_a_stream_that_begins_while_other_settings_fade_in_fades_in_too():
    """Also where a stream had begun before, long ago."""
    def settings(**values):
        given = {"feedforward": "none", "gains.kp": 10.0, "ramp_in": 0.1, "state_timeout": 10.0,
                 "reference_timeout": 0.1, "plausible_velocity": float("inf")} | values
        return FeedforwardSettings.from_values(given, model)

    model = arm()
    made = FeedforwardController(model, settings())
    made.activate(0.0)
    now, last, moved = 0.0, None, 0.0

    def go(seconds, reference=None):
        nonlocal now, last, moved
        end = now + seconds
        while now < end:
            now += 1e-3
            if reference is not None:
                assert made.on_reference(now, 0, NAMES, reference)
            output = np.array(made.on_state(now, round(1e9 * (now + 1.0)), NAMES, Q, np.zeros(2)).effort)
            moved = max(moved, 0.0 if last is None else float(np.abs(output - last).max()))
            last = output

    go(1.0, Q)
    go(0.5)
    go(1.0, Q + 0.1)    # begins again, and fades in
    go(0.5)
    made.apply(settings(**{"gains.kd": 1.0}))
    go(0.02)
    moved = 0.0
    go(1.0, Q - 0.9)    # 10 N m from the last one, in 0.1 s
    assert moved <= 0.2


@pytest.mark.parametrize("changed", [{"gains.kp": 0.0}, {"gains.kp": 200.0}, {"gains.kp": 10.0},
                                     {"safe_output.hold_position": 0.0}, {"safe_output.hold_position": 0.02}])
def test_a_hold_fades_with_the_gains_that_make_it(changed):
    """The springs of the old gains stay stretched until these have faded out; they were released at once."""
    def settings(**values):
        given = {"gains.kp": 50.0, "safe_output.hold_position": 0.1, "ramp_in": 0.5,
                 "plausible_velocity": float("inf")} | values
        return FeedforwardSettings.from_values(given, model)

    model = arm()
    made = FeedforwardController(model, settings())
    made.activate(0.0)

    def outputs(begin, seconds, away):
        return np.array([made.on_state(now, round(1e9 * (now + 1.0)), NAMES, measured(made.state.q, Q + away),
                                       np.zeros(2)).effort
                         for now in begin + np.arange(1e-3, seconds, 1e-3)])

    outputs(0.0, 1.0, 0.0)
    before = outputs(1.0, 1.0, 0.15)[-1]    # 7.5 N m, of at most 10 and 5
    made.apply(settings(**changed))
    during = outputs(2.0, 1.0, 0.15)
    assert np.abs(np.diff(during, axis=0, prepend=[before])).max() <= 1.05 * 20.0 * 1e-3 / 0.5
    assert np.abs(during[-1] - before).max() > 1.0
