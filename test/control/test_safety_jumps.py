"""What makes the torque jump for a reason fades in; time is an argument."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from safety_filter import COMMAND, SAFE, close, make, running

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
