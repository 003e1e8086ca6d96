"""The state machine between law and robot, with time as an argument."""
from __future__ import annotations

import numpy as np
import pytest
from safety_filter import AT_REST, COMMAND, FALLBACK, SAFE, PlainFilter, close, make, running


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
    assert safety.counts["saturated"] == 2    # where the command has a share in the output


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
    close(safety.update(1.0625, COMMAND), SAFE + 0.75 * (COMMAND - SAFE))
    close(safety.update(1.125, -COMMAND), SAFE + 0.5 * (-COMMAND - SAFE))    # the command of this cycle
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
    assert safety.sent.problem == "no valid joint state for 0.140 s: publishing the safe effort"
    close(safety.watchdog(1.25), (AT_REST + FALLBACK) / 2)
    assert safety.sent.problem == "no valid joint state for 0.250 s: on the way to 'safe_output.fallback'"
    for now in (1.36, 2.0, 1e6):
        close(safety.watchdog(now), FALLBACK)
        assert safety.sent.problem.endswith("s: publishing 'safe_output.fallback'")
    assert safety.mode == "stale" and safety.counts["timeouts"] == 1


def test_fresh_state_after_a_stale_one_ramps_in():
    safety = running()
    safety.set(ramp_in=0.5)
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
    broken = PlainFilter(safety.settings, lambda laws, at_rest: [np.array([bad, bad])])
    broken.activate(0.0)
    close(broken.update(0.1, np.array([bad, 0.0])), FALLBACK)
    close(broken.watchdog(0.2), FALLBACK)
    close(broken.finish(0.3), FALLBACK)


def test_saturation():
    safety = running()
    safety.set(effort_limit=np.array([3.0, 1.0]))
    close(safety.update(1.001, COMMAND), [3.0, -1.0])
    assert safety.clipped and safety.counts["saturated"] == 1


def test_rate_limit_by_elapsed_time():
    safety = running(rate_limit=np.array([10.0, np.inf]))
    close(safety.update(1.1, np.array([9.0, 9.0])), [6.0, 9.0])
    close(safety.update(1.3, np.array([9.0, 9.0])), [8.0, 9.0])
    assert safety.counts["rate_limited"] == 2 and safety.clipped


def test_rate_limit_does_not_hold_back_the_response_to_the_state():
    """The command moves by 3 because the state does, and by 1 because the reference does."""
    safety = running(rate_limit=np.array([10.0, 10.0]))
    moved = np.array([3.0, 3.0])
    close(safety.update(1.01, COMMAND + moved, moved), COMMAND + moved)
    assert not safety.counts["rate_limited"]
    last = safety.output
    close(safety.update(1.02, COMMAND + 2.0 * moved + 1.0, moved), last + moved)
    close(safety.update(1.03, COMMAND + 2.0 * moved + 1.0), last + moved + 0.1)
    for step in range(4, 20):
        safety.update(1.0 + 0.01 * step, COMMAND + 2.0 * moved + 1.0)
    close(safety.output, COMMAND + 2.0 * moved + 1.0)
    assert not safety.clipped


def test_emergency_stop_is_latched():
    safety = running()
    safety.stop()
    close(safety.update(1.001, COMMAND), SAFE)
    close(safety.update(5.0, COMMAND), SAFE)
    close(safety.watchdog(6.0), FALLBACK)
    close(safety.update(7.0, COMMAND), SAFE)
    assert safety.mode == "stopped"
    safety.reset()
    safety.set(ramp_in=0.5)
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


def test_emergency_stop_on_the_way_out_acts_at_once():
    safety = running(ramp_out=0.2, rate_limit=np.array([4.0, 4.0]))
    safety.deactivate()
    safety.update(1.1, COMMAND)
    safety.stop()
    assert not safety.settled and not safety.finished    # nothing was sent yet
    close(safety.update(1.11, COMMAND), SAFE)
    safety.update(9.0, COMMAND)
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


def test_rate_limit_delays_no_emergency_stop_but_the_way_to_the_fallback():
    safety = running(rate_limit=np.array([10.0, 10.0]))
    safety.stop()
    close(safety.update(1.001, COMMAND), SAFE)    # a stop is at once
    for step in range(1, 200):
        before = safety.output
        safety.watchdog(1.1 + 0.01 * step)
        assert step == 1 or (np.abs(safety.output - before) <= 0.1 + 1e-12).all()
    close(safety.output, FALLBACK)


def test_restart_ramps_in_again():
    safety = running(ramp_in=0.0)
    safety.set(ramp_in=0.5)
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


def test_every_mode_is_bounded_whatever_comes():
    """Random events: the output is never non-finite, above its limit, or faster than its rate, unless a mode ends at
    once, or damping begins.
    """
    rng = np.random.default_rng(11)
    limit, rate = np.array([3.0, 2.0]), np.array([20.0, 30.0])
    safety = make(effort_limit=limit, rate_limit=rate, ramp_in=0.05, ramp_out=0.05)
    now, emitted, seen = 0.0, 0.0, set()
    commands = [None, COMMAND, -COMMAND, np.array([np.nan, 0.0]), np.array([1e140, -1e140]), np.zeros(2)]
    for _ in range(20_000):
        before, weight, stale = safety.output, safety._before[3], safety._stale is not None
        stopping = safety._stopping
        now += rng.choice([0.0, 1e-3, 2e-3, 0.2], p=[0.05, 0.45, 0.45, 0.05])
        event = rng.choice(["state", "watchdog", "stop", "reset", "deactivate", "restart", "cycle", "change"],
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
        elif event == "change":
            safety.use([safety.settings], str(now))
        elif event not in ("state", "watchdog"):
            getattr(safety, event)()
        seen.add(safety.mode)
        if safety.output is not before:
            assert np.isfinite(safety.output).all() and (np.abs(safety.output) <= limit).all()
            at_once = safety._before[3] < weight or stopping or stale != (safety._stale is not None) or safety.lacks
            if before is not None and not at_once:
                assert (np.abs(safety.output - before) <= rate * (now - emitted) + 1e-9).all(), event
            emitted = now
    assert seen == {"waiting", "ramp_in", "running", "ramp_out", "stale", "stopped"}


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
        close(safety.update(1.1, COMMAND), SAFE)
        assert safety.finished and safety.mode == "ramp_out"
        safety.finish(9.1)
        safety.activate(10.0)
        close(safety.update(10.1, COMMAND), COMMAND)
