"""Is the loop fast enough for feedback? Torque that follows an old state pushes where the robot has been.

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

WINDOW, PERIODS = 0.5, 50.0    # s
LEARNING = 64                  # steps
EAGER = 1.5
PROMPT = 2.0                   # s: the most prompt message of one to two of these is the measure of the others
LEAP = 1.0                     # s: no message waits that long; it is one of the two clocks that leapt


class Transit:
    """How old messages are, as far as it can be known: since the middleware received them, and by how much later they
    come than the most prompt one of late. The publisher's clock may be any, and stamps may be of a simulation.
    """

    def __init__(self) -> None:
        self._restart()

    def _restart(self) -> None:
        self._least = self._least_before = math.inf
        self._until = -math.inf

    def age(self, now_ns: int, sent_ns: int, received_ns: int) -> float:
        """Age (s) of a message that was sent at that time by the publisher's clock and received at that time by ours;
        0: not known.
        """
        late = self._late(now_ns * 1e-9, (now_ns - sent_ns) * 1e-9) if sent_ns else 0.0
        return max(late, (now_ns - received_ns) * 1e-9) if received_ns else late

    def _late(self, now: float, delay: float) -> float:
        if now >= self._until or now < self._until - PROMPT:
            self._least_before, self._least, self._until = self._least, delay, now + PROMPT
        elif delay < self._least:
            self._least = delay
        late = delay - min(self._least, self._least_before)
        if late > LEAP:
            self._restart()
            return 0.0
        return late


class LoopRate:
    """rate: expected, Hz; 0: learnt. max_age: in periods, inf for no limit. fraction: of the rate; 0 for no limit.

    share: of the feedback that an answer may carry; slow: whether it may carry no command at all; since: when that
    began (s, steady).
    """

    def __init__(self, rate: float, max_age: float, fraction: float) -> None:
        self.rate, self._max_age, self._fraction = rate, max_age, fraction
        self.counts = {"old_states": 0, "slow_loops": 0}
        self.restart()

    def allow(self, max_age: float, fraction: float) -> None:
        """Other limits from now on."""
        self._max_age, self._fraction = max_age, fraction
        self._expect(self.period)

    def restart(self) -> None:
        """Activation, or another clock: what was learnt is forgotten."""
        self._expect(1.0 / self.rate if self.rate > 0.0 else math.inf)
        self.share, self.slow, self.since = 1.0, False, math.inf
        self.step = self.age = 0.0    # means, s
        self._now, self._time_ns = -math.inf, 0
        self._count, self._sum = 0, 0.0
        self._alike = 0               # states with the stamp of the one before

    def _expect(self, period: float) -> None:
        self.period = period
        self._oldest = self._max_age * period
        self._longest = period / self._fraction if self._fraction > 0.0 else math.inf
        self._memory = max(WINDOW, PERIODS * period)
        # (1 - exp(-s/memory)) s, what a step of s adds to the mean, is about s^2/memory
        self._pause = min(math.sqrt(0.5 * self._memory * self._longest), 0.25 * self._memory)

    def judge(self, now: float, time_ns: int, age: float, ramp: float) -> None:
        """A state with this stamp is answered at `now` (s, steady), `age` s (of the time of stamps) after it was sent.
        ramp: s in which feedback comes back.
        """
        first, elapsed = self._now == -math.inf, now - self._now
        step = (time_ns - self._time_ns) * 1e-9
        self._now, self._time_ns = now, time_ns
        if age > self._oldest:
            self.counts["old_states"] += 1
            self.share = 0.0
        elif self.share < 1.0:
            self.share = min(self.share + elapsed / ramp, 1.0) if ramp > 0.0 else 1.0
        if first or step <= 0.0:
            self._alike += not first
            return
        if self.rate <= 0.0:
            self._learn(step)
        if self.period == math.inf:
            self._alike = 0
            return
        if step > self._pause:
            step = self._pause
        weight = 1.0 - math.exp(-step / self._memory)
        self.step += weight * (step / (1 + self._alike) - self.step)
        self._alike = 0
        self.age += weight * ((age if age < 2.0 * self._oldest else 2.0 * self._oldest) - self.age)
        better = EAGER if self.slow else 1.0
        slow = self.age * better > self._oldest or self.step * better > self._longest
        if slow and not self.slow:
            self.counts["slow_loops"] += 1
            self.since = now
        self.slow = slow

    def _learn(self, step: float) -> None:
        self._count, self._sum = self._count + 1, self._sum + step
        if self._count == LEARNING:
            self._expect(min(self.period, self._sum / LEARNING))
            self._count, self._sum = 0, 0.0

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
