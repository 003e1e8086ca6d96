"""Location of the first event in a step: false position (Illinois), then bisection."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..model.inertia import Array

FINEST = 1e-12    # tolerance of events, relative to the step


def first_event(attempt: Callable[[float], tuple[Any, Array]], s: float, turns: int, bisect: int,
                enough: float = 0.0) -> tuple[float, Any, Array]:
    """Length of the shortest step with a passed event, with the results of `attempt` there.

    attempt: step length -> (state, excess of each event), the largest excess positive at s. turns: largest number of
    iterations, by bisection from `bisect` on. Stops within `FINEST` of s, or at an excess of at most `enough`.
    """
    begin, end, last = 0.0, s, 0
    state, gone = attempt(s)
    after = float(gone.max())
    before = -after    # unknown: the first guess is the middle
    for turn in range(turns):
        if end - begin <= FINEST * s or after <= enough:
            break
        length = 0.5 * (begin + end) if turn > bisect else end - (end - begin) * after / (after - before)
        length = min(max(length, begin + 0.4 * FINEST * s), end - 0.4 * FINEST * s)
        new, excess = attempt(length)
        value = float(excess.max())
        if value > 0.0:
            before *= 0.5 if last > 0 else 1.0
            end, state, gone, after, last = length, new, excess, value, 1
        else:
            after *= 0.5 if last < 0 else 1.0
            begin, before, last = length, min(value, -1e-300), -1
    return end, state, gone
