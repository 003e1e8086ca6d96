"""Random walks over the controllers, in short (`scripts/bench walk` is the long form); and that they find faults."""
from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest

from benchmark.walk import SEEN, SHARE, Batch, batches, rules
from benchmark.walk.arms import NAMES
from benchmark.walk.episode import Episode
from benchmark.walk.rules import Cycle
from rbd_ros.runtime.inputs.wrench_input import WrenchInput
from rbd_ros.runtime.control.following import FollowingController
from rbd_ros.runtime.safety import filter as filters
from rbd_ros.runtime.safety.channel import Channel
from rbd_ros.runtime.safety.fade import Fade
from rbd_ros.runtime.safety.filter import SafetyFilter
from rbd_ros.runtime.safety.limiter import Limiter
from rbd_ros.runtime.safety.modes import Modes

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")    # of numpy: nothing of that in the output of a node
FREE, TWO = np.full(2, np.inf), np.full(2, 2.0)


@pytest.mark.parametrize("name", NAMES)
def test_a_short_walk(name):
    seen = Counter()
    for number in range(110, 115):
        episode = Episode(name, 5, number)
        episode.run(600)
        assert not episode.violations, "\n".join([*episode.violations, *episode.history])
        seen += episode.seen
    assert {"exact", "fading", "continuous", "smooth", "stale", "as fresh"} <= set(seen) <= {*SEEN, "on"}


@pytest.mark.parametrize(("steps", "ahead"), [(1, 1), (1000, 1), (1001, 3), (25_000, 3)])
def test_a_walk_has_at_least_the_steps_that_are_wanted(steps, ahead):
    """Of all controllers, in about their shares."""
    class Begun(NamedTuple):
        batch: Batch

        def result(self):
            return self.batch

    began = []

    def submit(name, first):
        began.append((name, first))
        return Begun(Batch(name, 100 + len(began) % 3, Counter(), []))

    found = list(batches(steps, NAMES, submit, ahead))
    assert len(found) == len(began) == len(set(began)) and {each.name for each in found} == set(NAMES)
    total = sum(each.steps for each in found)
    assert steps <= total < steps + (3 + ahead) * 102
    if steps > 10_000:
        shares = {name: sum(each.steps for each in found if each.name == name) / total for name in NAMES}
        assert shares == pytest.approx(SHARE, abs=0.02)


def cycle(output, values, limits=(FREE,), rate=FREE, elapsed=0.01, ways=()):
    return Cycle(np.array(output), {name: np.array(value, dtype=float) for name, value in values.items()},
                 dict(enumerate(limits)), rate, elapsed, ways)


def test_rule_of_limits():
    assert not rules.limits(cycle([2.0, -2.0], {"C": [9.0, -9.0]}, [TWO]), None)
    assert "not finite" in rules.limits(cycle([np.nan, 0.0], {"C": [0.0, 0.0]}), None)
    assert "beyond" in rules.limits(cycle([2.1, 0.0], {"C": [9.0, 0.0]}, [TWO]), None)
    slow = cycle([4.0, 0.0], {"C": [9.0, 0.0]}, [TWO], np.full(2, 100.0))    # on its way to a lowered limit
    assert not rules.limits(slow, np.array([5.0, 0.0])) and "beyond" in rules.limits(slow, np.array([4.5, 0.0]))


def test_rule_of_the_interval():
    values = {"C": [9.0, 1.0], "S": [0.0, -1.0]}
    assert not rules.interval(cycle([2.0, 0.5], values, [TWO]), None)
    assert "not between" in rules.interval(cycle([2.0, 1.5], values, [TWO]), None)
    late = cycle([-3.0, 0.0], values, [TWO], np.full(2, 100.0))
    assert not rules.interval(late, np.array([-4.0, 0.0])) and rules.interval(late, np.array([-3.5, 0.0]))


def test_rule_of_the_interval_with_a_rate_limit():
    """On the way there, no farther back than the rate limit asks for."""
    moved = cycle([1.0, 0.0], {"C": [3.0, 0.0]}, rate=np.array([100.0, np.inf]))    # at most 1 in this time
    assert not rules.interval(moved, np.array([0.0, 50.0])) and not rules.interval(moved, np.array([-1.0, 0.0]))
    assert rules.interval(moved, np.array([0.5, 0.0]))


def test_rule_of_continuity():
    before = cycle([0.0, 0.0], {"C": [0.0, 0.0], "S": [-1.0, 0.0]})
    values = {"C": [3.0, 0.0], "S": [-1.0, 0.0]}
    assert not rules.continuity(cycle([3.0, 0.0], values), before)    # as the command
    assert rules.continuity(cycle([3.1, 0.0], values), before)
    assert not rules.continuity(cycle([2.0, 0.0], values, [TWO]), cycle([0.0, 0.0], values | {"C": [0, 0]}, [TWO]))
    assert rules.continuity(cycle([0.0, 0.1], values), before)        # nothing moves there
    ramp = {"C": [3.0, 4.0], "S": [-1.0, 0.0]}
    assert not rules.continuity(cycle([0.4, 0.4], ramp, ways=(0.1,)), cycle([0.0, 0.0], ramp))
    assert rules.continuity(cycle([0.4, 0.41], ramp, ways=(0.1,)), cycle([0.0, 0.0], ramp))


def test_rule_of_the_exact_command():
    assert not rules.exact(cycle([1.0, 2.0], {}), np.array([1.0, 2.0]))
    assert rules.exact(cycle([1.0, np.nextafter(2.0, 3.0)], {}), np.array([1.0, 2.0]))


def no_clip(patch):
    patch.setattr(Limiter, "clipped", lambda self, effort: (effort, True))


def fast_fades(patch):
    advance = Fade.advance
    patch.setattr(Fade, "advance", lambda self, elapsed, duration: advance(self, 4.0 * elapsed, duration))


def slow_fades(patch):
    advance = Fade.advance
    patch.setattr(Fade, "advance", lambda self, elapsed, duration: advance(self, 0.4 * elapsed, duration))


def no_ramp_in(patch):
    advance = Modes.advance
    patch.setattr(Modes, "advance", lambda self, elapsed, commanded, ramp_in, ramp_out: advance(
        self, elapsed, commanded, 0.0, ramp_out))


def no_ramp_out(patch):
    advance = Modes.advance
    patch.setattr(Modes, "advance", lambda self, elapsed, commanded, ramp_in, ramp_out: advance(
        self, elapsed, commanded, ramp_in, 0.0))


def a_remembered_command(patch):
    """As offsets that are taken from one cycle were: the old law is not asked any more."""
    asked = SafetyFilter._asked

    def remembering(self, command, laws):
        known = self.__dict__.setdefault("known", {})
        if laws is not self.laws.old or id(laws) not in known:
            known[id(laws)] = asked(self, command, laws)
        return known[id(laws)]

    patch.setattr(SafetyFilter, "_asked", remembering)


def a_mix_that_overshoots(patch):
    patch.setattr(filters, "mix", lambda old, new, share: old + 1.2 * share * (new - old))


def a_drift(patch):
    emit = Channel.emit
    patch.setattr(Channel, "emit", lambda self, effort, *more: emit(self, effort * (1.0 + 1e-13), *more))


def steps_where_streams_begin(patch):
    patch.setattr(FollowingController, "_fade_from", lambda self, before, same=False: None)


def wrenches_that_stay(patch):
    patch.setattr(WrenchInput, "at", lambda self, now: self._wanted if self.any else None)


def a_stop_that_is_not_heard(patch):
    patch.setattr(Modes, "stop", lambda self: None)


def a_watchdog_that_sleeps(patch):
    patch.setattr(SafetyFilter, "watchdog", lambda self, now: None)


FAULTS = [no_clip, fast_fades, slow_fades, no_ramp_in, no_ramp_out, a_remembered_command, a_drift,
          a_mix_that_overshoots, steps_where_streams_begin, wrenches_that_stay, a_stop_that_is_not_heard,
          a_watchdog_that_sleeps]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(monkeypatch, fault):
    fault(monkeypatch)
    for number in range(60):
        episode = Episode("flatness", 5, number)
        episode.run(600)
        if episode.violations:
            return
    pytest.fail("it was not found")
