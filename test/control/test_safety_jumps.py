"""What makes the torque jump for a reason fades in; time is an argument."""
from __future__ import annotations

import numpy as np
import pytest
from safety_filter import COMMAND, SAFE, PlainFilter, close, make, running

OTHER = np.array([15.0, 6.0])
LIMIT = np.array([4.0, 4.0])


def test_other_laws_fade_in():
    safety = running()
    safety.set("second", ramp_in=0.5)
    both = {"first": COMMAND, "second": OTHER}
    close(safety.update(1.1, both), COMMAND + 0.2 * (OTHER - COMMAND))
    assert safety.mode == "running" and safety.clipped
    moved = {"first": COMMAND + 1.0, "second": OTHER + 1.0}    # what changes in both comes at once
    close(safety.update(1.25, moved), (COMMAND + OTHER) / 2 + 1.0)
    close(safety.update(1.5, {"second": OTHER}), OTHER)
    assert not safety.clipped
    safety.set("third", ramp_in=0.0)
    close(safety.update(1.6, {"third": COMMAND}), COMMAND)


def test_an_outlier_in_one_cycle_is_gone_in_the_next():
    """It was kept for all of the ramp where an offset was taken from that cycle."""
    safety = running()
    safety.set("second", ramp_in=0.5)
    safety.update(1.001, {"first": COMMAND + 500.0, "second": OTHER - 500.0})
    close(safety.update(1.1, {"first": COMMAND, "second": OTHER}), COMMAND + 0.2 * (OTHER - COMMAND))


def test_changes_on_the_way_wait_for_its_end_and_only_the_newest_counts():
    safety = running()
    safety.set("second", ramp_in=0.5)
    safety.update(1.25, {"first": COMMAND, "second": OTHER})
    safety.use([safety.settings], "skipped")
    safety.use([safety.settings], "third")
    close(safety.update(1.3, {"first": COMMAND, "second": OTHER}), COMMAND + 0.6 * (OTHER - COMMAND))
    close(safety.update(1.5, {"second": OTHER, "third": -OTHER}), OTHER)
    close(safety.update(1.75, {"second": OTHER, "third": -OTHER}), 0.0 * OTHER)
    close(safety.update(2.0, {"third": -OTHER}), -OTHER)


def test_changes_in_every_cycle_do_not_freeze_the_output():
    safety = running()
    safety.set(ramp_in=0.5)
    for now in np.arange(1.01, 6.0, 0.01):
        safety.use([safety.settings], str(now))
        safety.update(now, OTHER)
    close(safety.output, OTHER)


def test_commands_are_clipped_before_they_are_mixed():
    """What is far beyond the limits must not keep the output there."""
    safety = running()
    safety.set(effort_limit=LIMIT)
    safety.set("second", ramp_in=0.5)
    both = {"first": np.array([1e6, -1e6]), "second": np.array([0.0, 1e6])}
    close(safety.update(1.0, both), [4.0, -4.0])
    close(safety.update(1.25, both), [2.0, 0.0])
    close(safety.update(1.5, {"second": both["second"]}), [0.0, 4.0])


@pytest.mark.parametrize("mode", ["running", "waiting", "stopped", "ramp_in", "ramp_out", "stale"])
def test_higher_limits_fade_in_and_lower_ones_act_at_once_in_every_mode(mode):
    """By the old limit and the new one, whatever lies between them."""
    far = np.array([60.0, -80.0])
    safety = PlainFilter(make(ramp_in=0.5, ramp_out=0.5, state_timeout=100.0).settings, lambda laws, at_rest: [far])
    safety.activate(0.0)
    safety.set(effort_limit=np.array([10.0, 20.0]), hold=1e3)
    now = 0.0

    def go(elapsed):
        nonlocal now
        now += elapsed
        if mode == "stale":
            return np.array(safety.watchdog(now))
        return np.array(safety.update(now, None if mode == "waiting" else far))

    safety.update(0.0, None if mode == "waiting" else far)
    if mode in ("running", "ramp_out"):
        safety.update(0.6, far)
        now = 0.6
    if mode == "stopped":
        safety.stop()
    if mode == "ramp_out":
        safety.deactivate()
    if mode == "stale":
        now = 150.0
    close(go(0.001), [10.0, -20.0])
    assert safety.mode == mode
    safety.set(effort_limit=np.array([50.0, 40.0]))
    close(go(0.125), [20.0, -25.0])
    assert not safety.finished
    close(go(0.125), [30.0, -30.0])
    safety.set(effort_limit=np.array([25.0, np.inf]))    # lower at once; higher waits for the way to end
    close(go(0.125), [21.25, -35.0])
    safety.set(effort_limit=np.array([5.0, 6.0]))
    close(go(0.001), [5.0, -6.0])


def test_a_change_within_the_ramp_in_is_no_step():
    safety = make()
    safety.update(1.0, COMMAND)
    last = safety.update(1.25, COMMAND)
    safety.set("second")
    close(safety.update(1.25, {"first": COMMAND, "second": OTHER}), last)
    close(safety.update(9.0, {"second": OTHER}), OTHER)


def test_a_law_that_has_no_command_hands_over_softly():
    safety = running()
    safety.set("second", ramp_in=0.5)
    close(safety.update(1.25, {"first": COMMAND, "second": None}), (SAFE + COMMAND) / 2)
    assert safety.mode == "running"
    close(safety.update(1.5, {"second": None}), SAFE)
    assert safety.mode == "waiting"


def test_safe_efforts_and_fallback_fade_too():
    efforts = {"first": SAFE, "second": OTHER}
    safety = PlainFilter(make(hold=0.0, fallback_ramp=0.0).settings, lambda laws, at_rest: [efforts[laws]])
    safety.activate(0.0)
    close(safety.update(1.0, None), SAFE)
    safety.set("second")
    close(safety.update(1.25, None), (SAFE + OTHER) / 2)
    close(safety.update(1.5, None), OTHER)
    close(safety.watchdog(1.6), safety.settings.fallback)
    safety.set(fallback=OTHER)
    close(safety.watchdog(1.85), (safety.settings.fallback + make().settings.fallback) / 2)
    close(safety.watchdog(2.1), OTHER)


@pytest.mark.parametrize("left", ["stale", "no command", "stopped", "restart", "activated"])
def test_where_the_output_was_safe_the_command_ramps_in_from_there(left):
    safety = running()
    safety.set("second", ramp_in=0.5)
    if left == "stale":
        safety.watchdog(1.2)
    elif left == "no command":
        safety.update(1.01, None)
    elif left == "stopped":
        safety.stop()
        safety.update(1.01, OTHER)
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


@pytest.mark.parametrize("cycles", [2500, pytest.param(10_000, marks=pytest.mark.thorough)])
def test_soft_changes_in_any_order_are_soft_and_end(cycles):
    """Random changes of laws and limits, also in every cycle, with interruptions, outliers and the way out. Every
    output lies between the command and the safe effort of its cycle; no step is larger than what commands, safe
    efforts and lowered limits do by themselves and the ramps allow; when changes cease the output is the command.
    """
    rng = np.random.default_rng(5)
    ramp, laws, efforts = 0.05, 0, {0: np.zeros(2)}
    base = make(ramp_in=ramp, ramp_out=ramp, effort_limit=np.full(2, 2.0)).settings
    safe = np.array([0.5, -0.7])
    safety = PlainFilter(base, lambda laws, at_rest: [safe])
    safety.laws.replace(0)
    safety.activate(0.0)
    now, quiet, exact, ran, out, calm = 0.0, 0.0, 0, 0, 0, False
    for cycle in range(cycles):
        elapsed = rng.choice([0.0, 1e-3, 4e-3])
        now, quiet, lowered = now + elapsed, quiet + elapsed, 0.0
        if rng.random() < (0.9 if cycle % 2000 < 50 else 0.02):
            limit, laws = rng.choice([1.0, 2.0, 8.0]), laws + 1
            lowered = max(safety.settings.effort_limit[0] - limit, 0.0)
            efforts[laws], quiet = rng.normal(0.0, 10.0, 2), 0.0
            safety.set(laws, effort_limit=np.full(2, limit))
        event = rng.choice(["", "no command", "not finite", "stop", "stale", "out", "outlier"],
                           p=[0.99, 0.001, 0.001, 0.001, 0.001, 0.001, 0.005])
        if event == "stop":
            safety.stop()
        elif event == "stale":
            now += 0.06
            safety.watchdog(now)
        elif event == "out":
            safety.deactivate()
        elif safety.finished and rng.random() < 0.1:
            safety.finish(now)
            safety.activate(now)
        elif rng.random() < 0.01:
            safety.reset()
        before, mode = safety.output, safety.mode
        shift = np.array([0.5, -0.5]) * now + (1e3 if event == "outlier" else 0.0)
        given = {name: {"no command": None, "not finite": value * np.nan}.get(event, value + shift)
                 for name, value in efforts.items()}
        safety.update(now, given)
        limit = safety.settings.effort_limit
        assert (np.abs(safety.output) <= limit).all()
        assert (np.min(safety.ends, axis=0) <= safety.output).all()
        assert (safety.output <= np.max(safety.ends, axis=0)).all()
        if before is not None and event == "" and calm and mode == safety.mode:
            ran += mode == "running"
            out += mode == "ramp_out"
            assert (np.abs(safety.output - before) <= lowered + 3 * 16.0 * elapsed / ramp + 5e-3).all(), (mode, cycle)
        if quiet > 2.1 * ramp and mode == safety.mode == "running" and event == "":
            close(safety.output, np.clip(given[laws], -limit, limit))
            exact += not safety.clipped
        calm = event == ""
    assert ran > 0.3 * cycles and exact > 0.01 * cycles and out > 0.005 * cycles
