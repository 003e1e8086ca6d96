"""Check of rate and latency of the control loop: feedback on old states is destabilising.

    age > max_age periods                    the answer has no feedback, which comes back within `ramp_in`
    mean age > max_age periods, or
    mean step of the stamps > period/fraction    the loop is too slow for any command, until it is `EAGER` times better

All in the time of the stamps, so that a simulation which runs slowly, or stands still, is no slow loop: an age is
multiplied by its pace. period: 1/rate, or the shortest mean of `LEARNING` steps since activation. Means are over time:
a torque that is held for long counts for long; they forget within `WINDOW`, or `PERIODS` periods if that is longer.
A pause is no rate: one step counts as so long that it moves the mean by about half the limit, one age as twice its own.
"""
from __future__ import annotations

import math

from ...core.steady.stream_times import (
    EAGER, LEARNT, LOOP, OLD, BECAME_SLOW, TRANSIT, expect_entry, judge_entry, transit_age_entry,
)
from ..live_numbers import LiveNumbers, Number

LEARNING = LEARNT


class Transit(LiveNumbers):
    """How old messages are, as far as it can be known: since the middleware received them, and by how much later they
    come than the most prompt one of late. The publisher's clock may be any, and stamps may be of a simulation.
    """

    def __init__(self) -> None:
        super().__init__(TRANSIT, transit_age_entry)
        self._numbers[:] = math.inf, math.inf, -math.inf

    def age(self, now_ns: int, sent_ns: int, received_ns: int) -> float:
        """Age (s) of a message that was sent at that time by the publisher's clock and received at that time by ours;
        0: not known.
        """
        return float(transit_age_entry.call(self._numbers, now_ns, sent_ns, received_ns))


class LoopRate(LiveNumbers):
    """rate: expected, Hz; 0: learnt. max_age: in periods, inf for no limit. fraction: of the rate; 0 for no limit.

    share: of the feedback that an answer may carry; slow: whether it may carry no command at all; since: when that
    began (s, steady); step, age: means (s); last: when the last state was answered.
    """

    rate, period, share, since, step, age, last, _fraction, _oldest, _slow = (Number(LOOP, name) for name in (
        "rate", "period", "share", "since", "step", "age", "now", "fraction", "oldest", "slow"))

    def __init__(self, rate: float, max_age: float, fraction: float) -> None:
        super().__init__(LOOP, judge_entry)
        self._numbers[:3] = rate, max_age, fraction
        self.counts = {"old_states": 0, "slow_loops": 0}
        self.time_ns = 0    # of the stamp of the last state
        self.restart()

    @property
    def slow(self) -> bool:
        return self._slow > 0.0

    def allow(self, max_age: float, fraction: float) -> None:
        """Other limits from now on."""
        self._numbers[1:3] = max_age, fraction
        expect_entry.call(self._numbers, self.period)

    def restart(self) -> None:
        """Activation, or another clock: what was learnt is forgotten."""
        numbers = self._numbers
        for name in LOOP[LOOP.index("slow"):]:
            numbers[LOOP.index(name)] = 0.0
        self.share, self.since, self.last = 1.0, math.inf, -math.inf
        expect_entry.call(numbers, 1.0 / self.rate if self.rate > 0.0 else math.inf)
        self.time_ns = 0

    def judge(self, now: float, time_ns: int, age: float, ramp: float) -> None:
        """A state with this stamp is answered at `now` (s, steady), `age` s (of the time of stamps) after it was sent.
        ramp: s in which feedback comes back.
        """
        step, self.time_ns = (time_ns - self.time_ns) * 1e-9, time_ns
        events = judge_entry.call(self._numbers, now, step, age, ramp)
        if events:
            self.counts["old_states"] += bool(events & OLD)
            self.counts["slow_loops"] += bool(events & BECAME_SLOW)

    def slow_for(self, now: float) -> float:
        """Seconds since the loop is too slow, 0 if it is not."""
        return now - self.since if self.slow else 0.0

    @property
    def problem(self) -> str:
        """What is wrong with the loop at present, "" if nothing is."""
        if not self.slow:
            return ""
        if self.age * EAGER > self._oldest:
            return (f"joint states are answered {1e3 * self.age:.3g} ms after they were sent, at most "
                    f"{1e3 * self._oldest:.3g} ms are allowed ('feedback.max_age')")
        known = "by 'state_rate'" if self.rate > 0.0 else "as measured since activation ('state_rate' is 0)"
        return (f"the loop is slower than {self._fraction / self.period:.3g} Hz: {self._fraction:g} "
                f"('feedback.min_rate') of {1.0 / self.period:.3g} Hz, {known}")
