"""Timing of a stream of joint states: clock, message delay, loop rate, cycle statistics.

Each is a record in an array S from offset o on, with fields `CLOCK`, `TRANSIT`, `LOOP` and `CYCLES`; counts are floats.
Documentation of the fields: `runtime/inputs/stamps.py`, `runtime/control/loop_rate.py`, `runtime/statistics.py`.
"""
from __future__ import annotations

import numpy as np

from ..compiled.entry import quick_entry
from ..compiled.exact import exact

CLOCK = ("advance", "step", "interval", "count", "advances", "offset", "until", "rate", "highest", "highest_before",
         "period")
TRANSIT = ("least", "least_before", "until")
LOOP = ("rate", "max_age", "fraction", "period", "oldest", "longest", "memory", "pause", "share", "slow", "since",
        "step", "age", "now", "count", "sum", "alike")
CYCLES = ("fixed", "period", "last", "mean", "intervals", "pauses")
(_ADVANCE, _STEP, _INTERVAL, _COUNT, _ADVANCES, _OFFSET, _UNTIL, _RATE, _HIGHEST, _BEFORE,
 STAMP_PERIOD) = range(len(CLOCK))
(_EXPECTED, _MAX_AGE, _FRACTION, PERIOD, _OLDEST, _LONGEST, _MEMORY, _PAUSE, SHARE, SLOW, _SINCE, MEAN_STEP,
 _MEAN_AGE, NOW, _STEPS, _SUM, _ALIKE) = range(len(LOOP))
_FIXED, _CYCLE, _LAST, _MEAN, _INTERVALS, _PAUSES = range(len(CYCLES))

# of clocks
PERIODS = 5          # a leap: number of stamp periods
SLOWER, FASTER, MUCH = 2.0, 1.2, 1.1
LEARNING = 8         # advancing stamps after a start until period and pace are valid; LEAP until then
LEAP = 1.0           # s
UNKNOWN = 0.01       # s: assumed period before it is known
SPAN = 0.5           # s: window of the largest offset, one to two of these
MEMORY, LONGEST = 64, 4.0    # messages in the means; largest advance in periods
# of transit
PROMPT = 2.0         # s: window of the smallest delay, one to two of these
STRANGE = 1.0        # s: a longer delay means that one of the clocks leapt
# of loops
WINDOW, PAUSES = 0.5, 50.0    # s; periods
LEARNT = 64          # steps
EAGER = 1.5
OLD, BECAME_SLOW = 1, 2       # results of `judge`


@exact
def clock_pace(S, o):
    """Rate of the stamps' clock relative to the steady clock."""
    return S[o + _ADVANCE] / max(S[o + _INTERVAL], 1e-9) if S[o + _ADVANCES] >= LEARNING else 1.0


@exact
def clock_leaps(S, o, passed, waited):
    """Whether the stamps' clock leapt: `passed` s between stamps, `waited` s between arrivals."""
    if S[o + _ADVANCES] < LEARNING:
        return passed - waited > LEAP
    ahead = S[o + _OFFSET] + passed - S[o + _RATE] * waited - max(S[o + _HIGHEST], S[o + _BEFORE])
    return ahead > PERIODS * S[o + _STEP]


@exact
def clock_advance(S, o, now, passed, waited):
    """Update the clock by a message: `passed` s between stamps, `waited` s between arrivals, at `now` (s, steady)."""
    S[o + _OFFSET] += passed - S[o + _RATE] * waited
    if now >= S[o + _UNTIL]:
        S[o + _BEFORE] = S[o + _HIGHEST]
        S[o + _HIGHEST] = S[o + _OFFSET]
        S[o + _UNTIL] = now + SPAN
    elif S[o + _OFFSET] > S[o + _HIGHEST]:
        S[o + _HIGHEST] = S[o + _OFFSET]
    if S[o + _ADVANCES] >= LEARNING:
        longest = LONGEST * S[o + _STEP]
        passed = min(passed, longest)
        waited = min(waited, max(longest, LONGEST * S[o + _INTERVAL]))
    S[o + _COUNT] += 1.0
    if passed > 0.0:
        S[o + _ADVANCES] += 1.0
        S[o + _STEP] += (passed - S[o + _STEP]) / min(S[o + _ADVANCES], MEMORY)
    weight = 1.0 / min(S[o + _COUNT], MEMORY)
    S[o + _ADVANCE] += weight * (passed - S[o + _ADVANCE])
    S[o + _INTERVAL] += weight * (waited - S[o + _INTERVAL])
    S[o + STAMP_PERIOD] = max(S[o + _ADVANCE], 1e-4) if S[o + _ADVANCES] >= LEARNING else UNKNOWN
    pace = clock_pace(S, o)
    S[o + _RATE] = FASTER * pace if pace > MUCH else min(1.0, SLOWER * pace)


@exact
def transit_age(S, o, now_ns, sent_ns, received_ns):
    """Age (s) of a message at now_ns, from its time of sending (publisher's clock) and of reception (this clock), ns;
    0 if unknown.
    """
    late = 0.0
    if sent_ns != 0:
        now = now_ns * 1e-9
        delay = (now_ns - sent_ns) * 1e-9
        if now >= S[o + 2] or now < S[o + 2] - PROMPT:
            S[o + 1] = S[o]
            S[o] = delay
            S[o + 2] = now + PROMPT
        elif delay < S[o]:
            S[o] = delay
        late = delay - min(S[o], S[o + 1])
        if late > STRANGE:
            S[o] = S[o + 1] = np.inf
            S[o + 2] = -np.inf
            late = 0.0
    return late if received_ns == 0 else max(late, (now_ns - received_ns) * 1e-9)


@exact
def expect(S, o, period):
    """Set the limits of a loop with this period (s)."""
    S[o + PERIOD] = period
    S[o + _OLDEST] = S[o + _MAX_AGE] * period
    S[o + _LONGEST] = period / S[o + _FRACTION] if S[o + _FRACTION] > 0.0 else np.inf
    S[o + _MEMORY] = max(WINDOW, PAUSES * period)
    # (1 - exp(-s/memory)) s, what a step of s adds to the mean, is about s^2/memory
    S[o + _PAUSE] = min(np.sqrt(0.5 * S[o + _MEMORY] * S[o + _LONGEST]), 0.25 * S[o + _MEMORY])


@exact
def judge(S, o, now, step, age, ramp):
    """Update the loop rate by a state, `step` s of stamps after the last one, answered at `now` (s, steady), `age` s
    (of stamps) after it was sent. ramp: time of the return of feedback, s. Returns 0, `OLD` or `BECAME_SLOW`.
    """
    first = S[o + NOW] == -np.inf
    elapsed = now - S[o + NOW]
    S[o + NOW] = now
    events = 0
    if age > S[o + _OLDEST]:
        events = OLD
        S[o + SHARE] = 0.0
    elif S[o + SHARE] < 1.0:
        S[o + SHARE] = min(S[o + SHARE] + elapsed / ramp, 1.0) if ramp > 0.0 else 1.0
    if first:
        return events
    if step <= 0.0:
        S[o + _ALIKE] += 1.0
        return events
    if S[o + _EXPECTED] <= 0.0:
        S[o + _STEPS] += 1.0
        S[o + _SUM] += step
        if S[o + _STEPS] == LEARNT:
            expect(S, o, min(S[o + PERIOD], S[o + _SUM] / LEARNT))
            S[o + _STEPS] = S[o + _SUM] = 0.0
    if S[o + PERIOD] == np.inf:
        S[o + _ALIKE] = 0.0
        return events
    step = min(step, S[o + _PAUSE])
    weight = 1.0 - np.exp(-step / S[o + _MEMORY])
    S[o + MEAN_STEP] += weight * (step / (1.0 + S[o + _ALIKE]) - S[o + MEAN_STEP])
    S[o + _ALIKE] = 0.0
    S[o + _MEAN_AGE] += weight * (min(age, 2.0 * S[o + _OLDEST]) - S[o + _MEAN_AGE])
    better = EAGER if S[o + SLOW] > 0.0 else 1.0
    slow = S[o + _MEAN_AGE] * better > S[o + _OLDEST] or S[o + MEAN_STEP] * better > S[o + _LONGEST]
    if slow and S[o + SLOW] == 0.0:
        events |= BECAME_SLOW
        S[o + _SINCE] = now
    S[o + SLOW] = 1.0 if slow else 0.0
    return events


@exact
def cycle_received(S, o, now):
    """Count a valid joint state that arrived at `now` (s, steady); whether it is late."""
    late = False
    if S[o + _LAST] != 0.0:
        interval = now - S[o + _LAST]
        late = S[o + _CYCLE] > 0.0 and interval > 2.0 * S[o + _CYCLE]
        mean = S[o + _MEAN]
        if 0.1 * mean < interval < 10.0 * mean or mean == 0.0:
            S[o + _INTERVALS] += 1.0
            S[o + _PAUSES] = 0.0
            S[o + _MEAN] += (interval - mean) / min(S[o + _INTERVALS], 256.0)
        else:    # single pauses and bursts are ignored; many in a row are a new period
            S[o + _PAUSES] += 1.0
            if S[o + _PAUSES] == 8.0:
                S[o + _MEAN] = interval
                S[o + _INTERVALS] = 1.0
                S[o + _PAUSES] = 0.0
        if S[o + _FIXED] == 0.0 and S[o + _INTERVALS] >= 8.0:
            S[o + _CYCLE] = S[o + _MEAN]
    S[o + _LAST] = now
    return late


@quick_entry("boolean(float64[::1], float64, float64)")
def clock_leaps_entry(S, passed, waited):
    return clock_leaps(S, 0, passed, waited)


@quick_entry("void(float64[::1], float64, float64, float64)")
def clock_advance_entry(S, now, passed, waited):
    clock_advance(S, 0, now, passed, waited)


@quick_entry("float64(float64[::1], int64, int64, int64)")
def transit_age_entry(S, now_ns, sent_ns, received_ns):
    return transit_age(S, 0, now_ns, sent_ns, received_ns)


@quick_entry("void(float64[::1], float64)")
def expect_entry(S, period):
    expect(S, 0, period)


@quick_entry("int64(float64[::1], float64, float64, float64, float64)")
def judge_entry(S, now, step, age, ramp):
    return judge(S, 0, now, step, age, ramp)


@quick_entry("boolean(float64[::1], float64)")
def cycle_received_entry(S, now):
    return cycle_received(S, 0, now)
