"""Location of the first event in a step: false position (Illinois), then bisection."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..model.inertia import Array

FINEST = 1e-12    # of the step: how closely events are found


def first_event(attempt: Callable[[float], tuple[Any, Array]], s: float, turns: int, bisect: int,
                enough: float = 0.0) -> tuple[float, Any, Array]:
    """The end of the shortest step found after which something is beyond its end, with what `attempt` gives there.

    attempt: of a step of this length, the state and how far each is beyond its end, positive at s. turns: at most,
    from `bisect` on by halves. Ends within `FINEST` of s, or where the farthest is not above `enough`.
    """
    begin, end, last = 0.0, s, 0
    state, gone = attempt(s)
    after = float(gone.max())
    before = -after    # not known: the first guess is the middle
    for turn in range(turns):
        if end - begin <= FINEST * s or after <= enough:
            break
        at = 0.5 * (begin + end) if turn > bisect else end - (end - begin) * after / (after - before)
        at = min(max(at, begin + 0.4 * FINEST * s), end - 0.4 * FINEST * s)
        new, found = attempt(at)
        value = float(found.max())
        if value > 0.0:
            before *= 0.5 if last > 0 else 1.0
            end, state, gone, after, last = at, new, found, value, 1
        else:
            after *= 0.5 if last < 0 else 1.0
            begin, before, last = at, min(value, -1e-300), -1
    return end, state, gone
