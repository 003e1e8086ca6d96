"""The state machine between law and robot, with time as an argument."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rbd_ros.core.control.safety import SafetyFilter, SafetySettings

SAFE, AT_REST = np.array([1.0, 2.0]), np.array([1.5, 2.5])
COMMAND, FALLBACK = np.array([5.0, -4.0]), np.array([0.5, 0.0])
FREE = np.full(2, np.inf)


def make(**changes):
    settings = SafetySettings(FREE, FREE, FALLBACK, state_timeout=0.05, hold=0.1, fallback_ramp=0.2, ramp_in=0.5,
                              ramp_out=0.25)
    safety = SafetyFilter(dataclasses.replace(settings, **changes), lambda at_rest: AT_REST if at_rest else SAFE)
    safety.activate(0.0)
    return safety


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


def running(**changes):
    safety = make(**{"ramp_in": 0.0} | changes)
    close(safety.update(1.0, COMMAND), COMMAND)
    assert safety.mode == "running"
    return safety


def test_ramps_in_from_the_safe_effort():
    safety = make()
    close(safety.update(1.0, COMMAND), SAFE)
    close(safety.update(1.25, COMMAND), (SAFE + COMMAND) / 2)
    assert safety.mode == "ramp_in" and safety.clipped
    close(safety.update(1.5, COMMAND), COMMAND)
    assert safety.mode == "running" and not safety.clipped


def test_the_ramp_leads_to_what_the_limits_let_through():
    """High gains far from the reference: not at the limit after a hundredth of the ramp."""
    safety = make(effort_limit=np.array([5.0, 4.0]))
    safety.update(1.0, 100.0 * COMMAND)
    close(safety.update(1.25, 100.0 * COMMAND), (SAFE + COMMAND) / 2)
    close(safety.update(1.5, 100.0 * COMMAND), COMMAND)
    assert safety.counts["saturated"] == 1


def test_waits_for_a_command_with_the_safe_effort():
    safety = make()
    close(safety.update(1.0, None), SAFE)
    assert safety.mode == "waiting"
    close(safety.update(9.0, COMMAND), SAFE)
    close(safety.update(9.5, COMMAND), COMMAND)
    close(safety.update(9.6, None), SAFE)


def test_ramps_out_to_the_safe_effort_and_ends_at_rest():
    safety = running()
    safety.deactivate()
    assert not safety.finished
    close(safety.update(1.125, COMMAND), (SAFE + COMMAND) / 2 + (COMMAND - SAFE) / 2)    # the way begins here
    close(safety.update(1.1875, COMMAND), SAFE + (COMMAND - SAFE) / 2)
    close(safety.update(1.25, COMMAND), SAFE)
    assert safety.finished
    close(safety.finish(1.26), AT_REST)
    assert safety.mode == "inactive" and safety.watchdog(9.0) is None


def test_deactivation_in_the_middle_of_the_ramp_in_is_continuous():
    safety = make()
    safety.update(1.0, COMMAND)
    last = safety.update(1.1, COMMAND)
    safety.deactivate()
    following = safety.update(1.1001, COMMAND)
    assert np.abs(following - last).max() < 1e-2


def test_stale_state_holds_then_falls_back_for_ever():
    safety = running()
    assert safety.watchdog(1.049) is None
    close(safety.watchdog(1.05), AT_REST)
    close(safety.watchdog(1.14), AT_REST)
    assert safety.without_states(1.14) == "publishing the safe effort"
    close(safety.watchdog(1.25), (AT_REST + FALLBACK) / 2)
    assert safety.without_states(1.25) == "on the way to 'safe_output.fallback'"
    for now in (1.36, 2.0, 1e6):
        close(safety.watchdog(now), FALLBACK)
        assert safety.without_states(now) == "publishing 'safe_output.fallback'"
    assert safety.mode == "stale" and safety.counts["timeouts"] == 1


def test_fresh_state_after_a_stale_one_ramps_in():
    safety = running()
    safety.settings = dataclasses.replace(safety.settings, ramp_in=0.5)
    safety.watchdog(2.0)
    close(safety.update(2.1, COMMAND), SAFE)
    assert safety.mode == "ramp_in"
    close(safety.update(2.6, COMMAND), COMMAND)


def test_nothing_before_the_first_state():
    assert make().watchdog(99.0) is None
    assert make().finish(99.0) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nothing_non_finite_leaves(bad):
    safety = running()
    close(safety.update(1.001, np.array([bad, 0.0])), SAFE)
    assert safety.counts["non_finite_command"] == 1
    broken = SafetyFilter(safety.settings, lambda at_rest: np.array([bad, bad]))
    broken.activate(0.0)
    close(broken.update(0.1, np.array([bad, 0.0])), FALLBACK)
    close(broken.watchdog(0.2), FALLBACK)
    close(broken.finish(0.3), FALLBACK)


def test_saturation():
    safety = running()
    safety.settings = dataclasses.replace(safety.settings, effort_limit=np.array([3.0, 1.0]))
    close(safety.update(1.001, COMMAND), [3.0, -1.0])
    assert safety.clipped and safety.counts["saturated"] == 1


def test_rate_limit_by_elapsed_time():
    safety = running(rate_limit=np.array([10.0, np.inf]))
    close(safety.update(1.1, np.array([9.0, 9.0])), [6.0, 9.0])
    close(safety.update(1.3, np.array([9.0, 9.0])), [8.0, 9.0])
    assert safety.counts["rate_limited"] == 2 and safety.clipped


def test_emergency_stop_is_latched():
    safety = running()
    safety.stop()
    close(safety.update(1.001, COMMAND), SAFE)
    close(safety.update(5.0, COMMAND), SAFE)
    close(safety.watchdog(6.0), FALLBACK)
    close(safety.update(7.0, COMMAND), SAFE)
    assert safety.mode == "stopped"
    safety.reset()
    safety.settings = dataclasses.replace(safety.settings, ramp_in=0.5)
    close(safety.update(7.1, COMMAND), SAFE)
    close(safety.update(7.6, COMMAND), COMMAND)


def test_stale_state_ends_the_ramp_out():
    safety = running(ramp_out=100.0)
    safety.deactivate()
    safety.update(1.01, COMMAND)
    close(safety.watchdog(1.07), AT_REST)
    assert safety.finished
    close(safety.finish(1.08), AT_REST)


def test_emergency_stop_on_the_way_out_takes_the_place_of_the_ramp():
    safety = running(ramp_out=10.0)
    safety.deactivate()
    safety.update(2.0, COMMAND)
    safety.stop()
    close(safety.update(2.1, COMMAND), SAFE)
    safety.stop()    # once more changes nothing
    assert safety.mode == "stopped" and not safety.finished    # the damping goes on
    close(safety.update(11.0, COMMAND), SAFE)
    assert safety.finished
    close(safety.finish(11.1), AT_REST)
    assert safety.latched


def test_emergency_stop_on_the_way_out_is_within_the_rate_limit():
    safety = running(ramp_out=0.2, rate_limit=np.array([4.0, 4.0]))
    safety.deactivate()
    last = safety.update(1.1, COMMAND)
    safety.stop()
    assert not safety.settled and not safety.finished    # nothing was sent yet
    close(safety.update(1.3, COMMAND), last + np.array([-0.8, 0.8]))
    assert not safety.finished
    close(safety.update(9.0, COMMAND), SAFE)
    safety.stop()
    assert safety.finished


def test_emergency_stop_outlives_deactivation_and_acts_while_inactive():
    safety = running()
    safety.stop()
    safety.finish(1.1)
    safety.activate(2.0)
    close(safety.update(2.1, COMMAND), SAFE)
    assert safety.mode == "stopped" and safety.latched
    safety.reset()
    close(safety.update(2.2, COMMAND), COMMAND)
    idle = make()
    idle.finish(0.1)
    idle.stop()
    assert idle.mode == "inactive" and idle.latched
    idle.activate(1.0)
    close(idle.update(1.1, COMMAND), SAFE)
    idle.finish(1.2)
    idle.reset()
    assert idle.mode == "inactive" and not idle.latched


def test_rate_limit_holds_on_the_way_out_but_what_is_latched_is_the_safe_effort():
    safety = running(ramp_out=0.0, rate_limit=np.array([4.0, 4.0]))
    safety.deactivate()
    close(safety.update(1.1, COMMAND), COMMAND + np.array([-0.4, 0.4]))
    assert not safety.finished    # though the ramp is over
    close(safety.update(2.5, COMMAND), [SAFE[0], COMMAND[1] + 6.0])
    assert safety.finished and safety.mode == "ramp_out"
    safety = running(ramp_out=0.0, rate_limit=np.array([4.0, 4.0]))
    safety.deactivate()
    safety.update(1.1, COMMAND)
    close(safety.finish(1.11), AT_REST)    # out of patience: a step, not a wrong torque for ever


def test_rate_limit_brings_emergency_stop_and_fallback_in_time():
    safety = running(rate_limit=np.array([10.0, 10.0]))
    safety.stop()
    close(safety.update(1.1, COMMAND), COMMAND + np.array([-1.0, 1.0]))
    close(safety.update(2.1, COMMAND), SAFE)
    for step in range(1, 200):
        safety.watchdog(2.1 + 0.01 * step)
    close(safety.output, FALLBACK)


def test_restart_ramps_in_again():
    safety = running(ramp_in=0.0)
    safety.settings = dataclasses.replace(safety.settings, ramp_in=0.5)
    safety.restart()
    assert safety.mode == "waiting"
    close(safety.update(1.1, COMMAND), SAFE)
    close(safety.update(1.35, COMMAND), (SAFE + COMMAND) / 2)
    safety.stop()
    safety.restart()
    assert safety.mode == "stopped"
    safety = make()
    safety.finish(0.1)
    safety.restart()
    assert safety.mode == "inactive"


OTHER = np.array([15.0, 6.0])


def test_a_command_that_jumps_for_a_reason_fades_in():
    safety = running()
    safety.settings = dataclasses.replace(safety.settings, ramp_in=0.5)
    safety.soften()
    close(safety.update(1.1, OTHER), COMMAND)    # as before
    assert safety.mode == "running" and safety.clipped
    close(safety.update(1.35, OTHER + 1.0), (COMMAND + OTHER) / 2 + 1.0)    # its own changes come at once
    close(safety.update(1.6, OTHER), OTHER)
    assert not safety.clipped
    safety.settings = dataclasses.replace(safety.settings, ramp_in=0.0)
    safety.soften()
    close(safety.update(1.7, COMMAND), COMMAND)


def test_a_second_jump_begins_where_the_first_one_is():
    safety = running()
    safety.settings = dataclasses.replace(safety.settings, ramp_in=0.5)
    safety.soften()
    safety.update(1.1, OTHER)
    last = safety.update(1.35, OTHER)
    safety.soften()
    close(safety.update(1.36, COMMAND), last + 0.02 * (COMMAND - last))    # and fading goes on
    close(safety.update(1.60, COMMAND), (last + COMMAND) / 2)
    close(safety.update(1.87, COMMAND), COMMAND)


def test_a_jump_in_every_cycle_does_not_freeze_the_output():
    """As where a stream of references times out between its samples: it would be a torque without control."""
    safety = running()
    safety.settings = dataclasses.replace(safety.settings, ramp_in=0.5)
    for now in np.arange(1.01, 6.0, 0.01):
        safety.soften()
        safety.update(now, OTHER)
    assert np.abs(safety.output - OTHER).max() < 1e-3 * np.abs(COMMAND - OTHER).max()


def test_a_jump_is_one_between_what_the_limits_let_through():
    """What was far beyond them must not keep the output there."""
    safety = running()
    safety.settings = dataclasses.replace(safety.settings, ramp_in=0.5, effort_limit=np.array([4.0, 4.0]))
    safety.update(1.05, np.array([1e6, -1e6]))
    safety.soften()
    close(safety.update(1.1, np.array([0.0, 1e6])), [4.0, -4.0])
    close(safety.update(1.35, np.array([0.0, 1e6])), [2.0, 0.0])
    close(safety.update(1.6, np.array([0.0, 1e6])), [0.0, 4.0])


def test_what_limits_held_back_does_not_come_out_where_they_rise():
    """High gains at a low limit, then low gains at a high one: between the two outputs, not beyond both."""
    safety = running()
    safety.settings = dataclasses.replace(safety.settings, effort_limit=np.array([4.0, 4.0]))
    close(safety.update(1.05, np.array([1e3, -1e3])), [4.0, -4.0])
    safety.soften()
    safety.settings = dataclasses.replace(safety.settings, ramp_in=0.5, effort_limit=np.array([100.0, 100.0]))
    close(safety.update(1.1, OTHER), [4.0, -4.0])
    close(safety.update(1.35, OTHER), [9.5, 1.0])
    close(safety.update(1.6, OTHER), OTHER)


def test_a_jump_within_the_ramp_in_is_no_step():
    safety = make()
    safety.update(1.0, COMMAND)
    last = safety.update(1.25, COMMAND)
    safety.soften()
    close(safety.update(1.25, OTHER), last)
    close(safety.update(9.0, OTHER), OTHER)


@pytest.mark.parametrize("left", ["stale", "no command", "stopped", "restart", "activated"])
def test_a_jump_is_forgotten_where_the_output_was_safe(left):
    safety = running()
    safety.settings = dataclasses.replace(safety.settings, ramp_in=0.5)
    safety.soften()
    if left == "stale":
        safety.watchdog(1.2)
    elif left == "no command":
        safety.update(1.01, None)
    elif left == "stopped":
        safety.stop()
        safety.update(1.01, COMMAND)
        safety.reset()
    elif left == "restart":
        safety.restart()
    else:
        safety.finish(1.05)
        safety.activate(1.1)
    close(safety.update(1.21, OTHER), SAFE)
    close(safety.update(1.46, OTHER), (SAFE + OTHER) / 2)
    close(safety.update(1.8, OTHER), OTHER)
    close(safety.update(1.81, -OTHER), -OTHER)


def test_every_mode_is_bounded_whatever_comes():
    """Random events: the output is never non-finite, above its limit, or faster than its rate."""
    rng = np.random.default_rng(11)
    limit, rate = np.array([3.0, 2.0]), np.array([20.0, 30.0])
    safety = make(effort_limit=limit, rate_limit=rate, ramp_in=0.05, ramp_out=0.05)
    now, emitted, seen = 0.0, 0.0, set()
    commands = [None, COMMAND, -COMMAND, np.array([np.nan, 0.0]), np.array([1e140, -1e140]), np.zeros(2)]
    for _ in range(20_000):
        before = safety.output
        now += rng.choice([0.0, 1e-3, 2e-3, 0.2], p=[0.05, 0.45, 0.45, 0.05])
        event = rng.choice(["state", "watchdog", "stop", "reset", "deactivate", "restart", "cycle", "soften"],
                           p=[0.6, 0.28, 0.01, 0.03, 0.02, 0.02, 0.02, 0.02])
        if event == "state" and safety.mode != "inactive":
            safety.update(now, commands[rng.integers(len(commands))])
        elif event == "watchdog":
            safety.watchdog(now)
        elif event == "cycle":
            safety.finish(now)
            safety.activate(now)
            assert safety.output is None
            continue
        elif event not in ("state", "watchdog"):
            getattr(safety, event)()
        seen.add(safety.mode)
        if safety.output is not before:
            assert np.isfinite(safety.output).all() and (np.abs(safety.output) <= limit).all()
            if before is not None:
                assert (np.abs(safety.output - before) <= rate * (now - emitted) + 1e-9).all(), event
            emitted = now
    assert seen == {"waiting", "ramp_in", "running", "ramp_out", "stale", "stopped"}


def test_soft_changes_in_any_order_are_soft_and_end():
    """Random changes of command and limits, also in every cycle, with interruptions: while the robot runs, no step is
    larger than what a jump over the whole range loses in that time, and when changes cease the output is the command.
    """
    rng = np.random.default_rng(5)
    safety = make(ramp_in=0.05, effort_limit=np.full(2, 2.0))
    now, quiet, wanted, exact, ran = 0.0, 0.0, np.zeros(2), 0, 0
    for cycle in range(10_000):
        elapsed = rng.choice([0.0, 1e-3, 4e-3])
        now, quiet, lowered = now + elapsed, quiet + elapsed, 0.0
        if rng.random() < (0.9 if cycle % 2000 < 50 else 0.02):
            safety.soften()
            limit = rng.choice([1.0, 2.0, 8.0])
            lowered = max(safety.settings.effort_limit[0] - limit, 0.0)
            safety.settings = dataclasses.replace(safety.settings, effort_limit=np.full(2, limit))
            wanted, quiet = rng.normal(0.0, 10.0, 2), 0.0
        event = rng.choice(["", "no command", "not finite", "stop", "stale"], p=[0.996, 0.001, 0.001, 0.001, 0.001])
        if event == "stop":
            safety.stop()
        elif event == "stale":
            now += 0.06
            safety.watchdog(now)
        elif rng.random() < 0.01:
            safety.reset()
        before, mode = safety.output, safety.mode
        command = wanted + np.array([0.5, -0.5]) * now
        safety.update(now, {"no command": None, "not finite": command * np.nan}.get(event, command))
        limit = safety.settings.effort_limit
        assert (np.abs(safety.output) <= limit).all()
        if mode == safety.mode == "running":
            ran += 1
            assert (np.abs(safety.output - before) <= lowered + 2 * 8.0 * elapsed / 0.05 + 1e-2).all()
            if quiet > 0.06:
                close(safety.output, np.clip(command, -limit, limit))
                exact += not safety.clipped
    assert ran > 5_000 and exact > 100


def test_a_robot_that_was_let_down_is_not_lifted_by_the_last_output():
    """The pose is long out of date; and half of the weight for ever is no output either."""
    for stopped in (True, False):
        safety = running()
        if stopped:
            safety.stop()
        safety.watchdog(1.25)
        close(safety.output, (AT_REST + FALLBACK) / 2)
        safety.deactivate()
        close(safety.finish(1.25), FALLBACK)


def test_nothing_ramps_in_after_deactivation():
    for event in ("states come back", "reset"):
        safety = running(rate_limit=np.array([4.0, 4.0]))
        if event == "reset":
            safety.stop()
        else:
            safety.watchdog(1.06)
        safety.deactivate()
        if event == "reset":
            safety.reset()
        safety.update(1.1, COMMAND)
        assert not safety.finished and safety.mode == "ramp_out"
        close(safety.update(9.0, COMMAND), SAFE)
        assert safety.finished
        safety.finish(9.1)
        safety.activate(10.0)
        close(safety.update(10.1, COMMAND), COMMAND)
