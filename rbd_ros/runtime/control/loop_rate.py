"""Check of rate and latency of the control loop: feedback on old states is destabilising.

    age > max_age periods                    the command has no feedback; feedback ramps in again within `ramp_in`
    mean age > max_age periods, or
    mean step of the stamps > period/fraction    the loop is too slow for any command, until `EAGER` times better

All times are of the stamps' clock, so that a slow or paused simulation is not a slow loop: an age is multiplied by the
simulation's pace. period: 1/rate, or the shortest mean of `LEARNING` steps since activation. Means are weighted by
time, with a window of `WINDOW` or of `PERIODS` periods, whichever is longer. A single pause is bounded: one step moves
the mean by about half the limit at most, one age by twice its own limit.
"""
from __future__ import annotations

import math

from ...core.steady.stream_times import (
    EAGER, LEARNT, LOOP, OLD, BECAME_SLOW, TRANSIT, expect_entry, judge_entry, transit_age_entry,
)
from ..live_numbers import LiveNumbers, Number

LEARNING, LIKELY = LEARNT, 8    # steps


class Transit(LiveNumbers):
    """Estimates the age of messages: the time since the middleware received them, plus their delay relative to the
    most prompt recent message. Works for any clock of the publisher, and for stamps of a simulation.
    """

    def __init__(self) -> None:
        super().__init__(TRANSIT, transit_age_entry)
        self._numbers[:] = math.inf, math.inf, -math.inf

    def age(self, now_ns: int, sent_ns: int, received_ns: int) -> float:
        """Age (s) of a message, 0 if unknown. sent_ns: by the publisher's clock; now_ns, received_ns: by the local
        clock.
        """
        return float(transit_age_entry.call(self._numbers, now_ns, sent_ns, received_ns))


class LoopRate(LiveNumbers):
    """rate: expected, Hz; 0: learnt. max_age: in periods, inf for no limit. fraction: of the rate; 0 for no limit.

    share: factor of the feedback in the command; slow: whether commands are withheld; since: steady time (s) at which
    `slow` began; step, age: means (s); last: steady time (s) of the last answered state.
    """

    rate, period, share, since, step, age, last, _fraction, _oldest, _slow, _steps, _sum = (
        Number(LOOP, name) for name in ("rate", "period", "share", "since", "step", "age", "now", "fraction", "oldest",
                                        "slow", "count", "sum"))

    def __init__(self, rate: float, max_age: float, fraction: float) -> None:
        super().__init__(LOOP, judge_entry)
        self._numbers[:3] = rate, max_age, fraction
        self.counts = {"old_states": 0, "slow_loops": 0}
        self.time_ns = 0    # stamp of the last state
        self.restart()

    @property
    def slow(self) -> bool:
        return self._slow > 0.0

    @property
    def likely_period(self) -> float:
        """The period; before it is known the mean of the steps so far, from `LIKELY` steps on."""
        return self._sum / self._steps if self.period == math.inf and self._steps >= LIKELY else self.period

    def allow(self, max_age: float, fraction: float) -> None:
        """Change the limits."""
        self._numbers[1:3] = max_age, fraction
        expect_entry.call(self._numbers, self.period)

    def restart(self) -> None:
        """Forget the learnt period and means: on activation, or after a change of the clock."""
        numbers = self._numbers
        for name in LOOP[LOOP.index("slow"):]:
            numbers[LOOP.index(name)] = 0.0
        self.share, self.since, self.last = 1.0, math.inf, -math.inf
        expect_entry.call(numbers, 1.0 / self.rate if self.rate > 0.0 else math.inf)
        self.time_ns = 0

    def judge(self, now: float, time_ns: int, age: float, ramp: float) -> None:
        """Judge a state with this stamp, answered at `now` (s, steady), `age` s (by the stamps' clock) after it was
        sent. ramp: duration (s) of the return of feedback.
        """
        step, self.time_ns = (time_ns - self.time_ns) * 1e-9, time_ns
        events = judge_entry.call(self._numbers, now, step, age, ramp)
        if events:
            self.counts["old_states"] += bool(events & OLD)
            self.counts["slow_loops"] += bool(events & BECAME_SLOW)

    def slow_for(self, now: float) -> float:
        """Time (s) for which the loop has been too slow, 0 if it is not."""
        return now - self.since if self.slow else 0.0

    @property
    def problem(self) -> str:
        """Description of the loop's present problem, "" without one."""
        if not self.slow:
            return ""
        if self.age * EAGER > self._oldest:
            return (f"joint states are answered {1e3 * self.age:.3g} ms after they were sent, at most "
                    f"{1e3 * self._oldest:.3g} ms are allowed ('feedback.max_age')")
        source = "by 'state_rate'" if self.rate > 0.0 else "as measured since activation ('state_rate' is 0)"
        return (f"the loop is slower than {self._fraction / self.period:.3g} Hz: {self._fraction:g} "
                f"('feedback.min_rate') of {1.0 / self.period:.3g} Hz, {source}")
