"""Which loops are too slow for feedback, and how old messages are; what only looks so is let be."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

from rbd_ros.runtime.control.loop_rate import LEARNING, LoopRate, Transit

S = 1_000_000_000


# ---- the judge of the loop

class Stream:
    """States for a `LoopRate`; `now` and `stamp` in s."""

    def __init__(self, rate=0.0, max_age=5.0, fraction=0.25, ramp=0.5):
        self.loop, self.ramp, self.now, self.stamp = LoopRate(rate, max_age, fraction), ramp, 1.0, 1e5

    def go(self, seconds, step, age=0.0, wait=None):
        """States `step` s apart by stamps, `wait` s by reception; age: s, or one per state."""
        ages = itertools.cycle(np.atleast_1d(age))
        for _ in range(round(seconds / step)):
            self.now, self.stamp = self.now + (step if wait is None else wait), self.stamp + step
            self.loop.judge(self.now, round(self.stamp * 1e9), next(ages), self.ramp)
        return self.loop


@pytest.mark.parametrize("rate", [0.0, 500.0])
def test_an_old_state_takes_the_feedback_out_and_it_comes_back_within_the_ramp(rate):
    stream = Stream(rate)
    assert stream.go(1.0, 0.002, 0.009).share == 1.0
    loop = stream.go(0.002, 0.002, 0.011)
    assert loop.share == 0.0 and loop.counts == {"old_states": 1, "slow_loops": 0}
    assert stream.go(0.25, 0.002).share == pytest.approx(0.5)
    assert stream.go(0.25, 0.002).share == pytest.approx(1.0) and not loop.slow


@pytest.mark.parametrize("h", [1e-3, 2e-3, 0.01, 1.0 / 30.0])
@pytest.mark.parametrize("known", [True, False])
def test_a_slow_loop_is_found_counted_named_and_forgiven(h, known):
    stream = Stream(1.0 / h if known else 0.0)
    loop = stream.go(max(2.0, 2 * LEARNING * h), h)
    longest = max(0.5, 50.0 * h)
    assert not stream.go(3.0 * longest, 3.9 * h).slow
    stream.go(2.0 * longest, h)
    assert stream.go(3.0 * longest, 5.0 * h).slow and loop.counts["slow_loops"] == 1
    assert f"than {0.25 / h:.3g} Hz" in loop.problem and f"of {1.0 / h:.3g} Hz" in loop.problem
    assert ("'state_rate'" in loop.problem) and ("measured" in loop.problem) != known
    assert 0.0 < loop.slow_for(stream.now) < 3.0 * longest
    assert stream.go(3.0 * longest, 3.0 * h).slow    # better, but not `EAGER` times
    assert not stream.go(3.0 * longest, 2.0 * h).slow and loop.problem == "" and loop.slow_for(stream.now) == 0.0


def test_answers_that_are_old_on_average_are_a_slow_loop_too():
    stream = Stream(500.0)
    assert not stream.go(2.0, 0.002, [0.001, 0.001, 0.015]).slow
    loop = stream.go(2.0, 0.002, [0.001, 0.015, 0.015])
    assert loop.slow and "max_age" in loop.problem and "10 ms" in loop.problem
    assert not stream.go(1.0, 0.002).slow


def test_a_starved_loop_is_found_within_half_a_second():
    """45 Hz of 500, answers 42 ms old, as measured on a machine without a free core."""
    stream = Stream()
    stream.go(1.0, 0.002)
    assert stream.go(0.023, 0.022, 0.042).share == 0.0
    begin = stream.now
    while not stream.go(0.022, 0.022, 0.042).slow:
        assert stream.now - begin < 0.5


@pytest.mark.parametrize("rate", [0.0, 500.0])
@pytest.mark.parametrize(("gap", "answers"), [(0.03, 5), (0.034, 3), (0.034, 4), (0.042, 1)])
def test_a_loop_that_stutters_is_found_before_it_swings_up(rate, gap, answers):
    """The process runs in bursts: each answer is to a fresh state, but the torque of the last one is held for long."""
    stream = Stream(rate)
    stream.go(2.0, 0.002, 0.001)
    begin = stream.now
    while not stream.loop.slow:
        stream.go(gap, gap, 0.001)
        stream.go(answers * 0.002, 0.002, 0.001)
        assert stream.now - begin < 0.25
    assert stream.loop.counts == {"old_states": 0, "slow_loops": 1}


@pytest.mark.parametrize("fraction", [0.0, 0.02, 0.25])
@pytest.mark.parametrize("h", [1e-3, 2e-3, 0.01, 1.0 / 30.0])
def test_one_pause_is_no_slow_loop_however_long(fraction, h):
    """Nor is one that ends with an old state."""
    for pause in (20.0 * h, 0.2, 1e3):
        stream = Stream(1.0 / h, fraction=fraction)
        stream.go(3.0, h)
        assert not stream.go(pause, pause, 1.0).slow and not stream.go(1.0, h).slow


@pytest.mark.parametrize("limits", [{"max_age": np.inf, "fraction": 0.0}])
def test_both_limits_can_be_switched_off(limits):
    loop = Stream(500.0, **limits).go(10.0, 0.1, 3.0)
    assert loop.share == 1.0 and not loop.slow and not any(loop.counts.values())


def jittery(count, h, seed=1):
    return h * np.random.default_rng(seed).lognormal(0.0, 0.5, count)


@pytest.mark.parametrize("h", [1e-3, 2e-3, 0.01, 1.0 / 30.0])
@pytest.mark.parametrize("name", ["jitter", "pauses", "one long pause", "coarse stamps", "stamps twice", "stands still",
                                  "a message in three is lost"])
def test_no_false_alarm(name, h):
    steps = {"jitter": jittery(3000, h), "pauses": np.where(np.arange(3000) % 500 == 499, 0.045, h),
             "one long pause": np.where(np.arange(3000) == 1000, 1e3, h),
             "coarse stamps": np.diff(np.floor(np.arange(3000) * h / 0.02 / (h / 2e-3)) * 0.02 * (h / 2e-3)),
             "stamps twice": np.where(np.arange(3000) % 2, h, 0.0),
             "stands still": np.where(np.arange(3000) % 1000 > 500, 0.0, h),
             "a message in three is lost": np.where(np.arange(3000) % 2, h, 2.0 * h)}[name]
    for rate in (0.0, 1.0 / h):
        loop, now, stamp = LoopRate(rate, 5.0, 0.25), 1.0, S
        for step in steps:
            now, stamp = now + max(step, h), stamp + round(step * 1e9)
            loop.judge(now, stamp, 0.5 * h, 0.5)
            assert not loop.slow and loop.share == 1.0, (rate, now, loop.problem)


def test_a_restart_forgets_what_was_learnt():
    stream = Stream()
    stream.go(1.0, 0.001)
    stream.loop.restart()
    assert not stream.go(10.0, 0.01).slow
    assert stream.loop.period == pytest.approx(0.01)


# ---- the age of a message

def ages(transit, delays, offset=0):
    """Of messages every 2 ms with these delays (s); offset: ns that the publisher's clock is ahead."""
    begin = 10**18
    return [transit.age(begin + 2_000_000 * i + round(delay * 1e9), begin + 2_000_000 * i + offset, 0)
            for i, delay in enumerate(delays)]


@pytest.mark.parametrize("offset", [0, 3 * S, -7 * S, 10**17])
def test_age_is_counted_from_the_most_prompt_message_whatever_the_clock(offset):
    found = ages(Transit(), [0.001, 0.0005, 0.0205, 0.0005, 0.0015], offset)
    np.testing.assert_allclose(found, [0.0, 0.0, 0.02, 0.0, 0.001], atol=1e-6)


def test_age_is_at_least_that_since_the_reception():
    assert Transit().age(10**18, 0, 10**18 - 30_000_000) == pytest.approx(0.03)
    assert Transit().age(10**18, 10**18 - 1, 10**18 - 30_000_000) == pytest.approx(0.03)
    assert Transit().age(10**18, 0, 0) == 0.0    # nothing is known


@pytest.mark.parametrize("leap", [3.0, -3.0])
def test_a_clock_that_leaps_makes_nothing_old_for_long(leap):
    transit, delays = Transit(), np.full(3000, 0.001)
    delays[1000:] += leap
    assert np.flatnonzero(np.array(ages(transit, delays)) > 0.005).size == 0


def test_clocks_that_drift_make_nothing_old():
    assert max(ages(Transit(), 0.001 + 2e-3 * 2e-4 * np.arange(20_000))) < 1e-3
