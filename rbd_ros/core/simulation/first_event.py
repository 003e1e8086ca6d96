"""Location of the first event in a step: false position (Illinois), then bisection."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiled.entry import entry
from ..compiled.kernel import kernel
from ..model.inertia import Array

FINEST = 1e-12    # tolerance of events, relative to the step
# Of a search (SEARCH,): the step; the bracket of lengths and the largest excess at its ends (BEFORE unknown: its
# negative); which end moved last, −1, 0 or 1; the length on trial; trials so far.
WHOLE, BEGIN, END, BEFORE, AFTER, LAST, LENGTH, TRIALS, SEARCH = range(9)


@kernel
def open_search(search, s, excess):
    """Begin a search in a step s (s) with this largest excess, positive, at its end."""
    search[WHOLE], search[BEGIN], search[END], search[LAST], search[TRIALS] = s, 0.0, s, 0.0, 0.0
    search[BEFORE], search[AFTER] = -excess, excess


@kernel
def next_trial(search, most, bisect, enough):
    """Length of the next step to be tried, or 0 at the end: after `most` trials, by bisection from `bisect` on, or with
    the bracket within `FINEST` of the step, or an excess of at most `enough` at its end.
    """
    width = search[END] - search[BEGIN]
    if search[TRIALS] >= most or width <= FINEST * search[WHOLE] or search[AFTER] <= enough:
        return 0.0
    length = 0.5 * (search[BEGIN] + search[END])
    if search[TRIALS] <= bisect:
        length = search[END] - width * search[AFTER] / (search[AFTER] - search[BEFORE])
    margin = 0.4 * FINEST * search[WHOLE]
    search[TRIALS] += 1.0
    search[LENGTH] = min(max(length, search[BEGIN] + margin), search[END] - margin)
    return search[LENGTH]


@kernel
def judge(search, excess):
    """Narrow the bracket by the largest excess of the last trial; returns whether that trial is its new end."""
    if excess > 0.0:
        search[BEFORE] *= 0.5 if search[LAST] > 0.0 else 1.0
        search[END], search[AFTER], search[LAST] = search[LENGTH], excess, 1.0
        return True
    search[AFTER] *= 0.5 if search[LAST] < 0.0 else 1.0
    search[BEGIN], search[BEFORE], search[LAST] = search[LENGTH], min(excess, -1e-300), -1.0
    return False


@entry("void(float64[::1], float64, float64)")
def open_search_entry(search, s, excess):
    """`open_search`."""
    open_search(search, s, excess)


@entry("float64(float64[::1], int64, int64, float64)")
def next_trial_entry(search, most, bisect, enough):
    """`next_trial`."""
    return next_trial(search, most, bisect, enough)


@entry("boolean(float64[::1], float64)")
def judge_entry(search, excess):
    """`judge`."""
    return judge(search, excess)


def first_event(attempt: Callable[[float], tuple[Any, Array]], s: float, most: int, bisect: int,
                enough: float = 0.0, before: float | None = None) -> tuple[float, Any, Array]:
    """Length of the shortest step with a passed event, with the results of `attempt` there.

    attempt: step length -> (state, excess of each event), the largest excess positive at s. most, bisect, enough: see
    `next_trial`; before: largest excess at 0, if known.
    """
    search = np.empty(SEARCH)
    state, gone = attempt(s)
    open_search_entry(search, s, float(gone.max()))
    if before is not None:
        search[BEFORE] = min(before, -1.0)
    while length := next_trial_entry(search, most, bisect, enough):
        new, excess = attempt(length)
        if judge_entry(search, float(excess.max())):
            state, gone = new, excess
    return float(search[END]), state, gone
