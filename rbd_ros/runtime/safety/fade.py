"""Fade between two time-varying values in a given time.

A fade keeps both things alive: whoever asks computes with the old one and with the new one in each cycle, and mixes
what both say by `share`. So an outlier in one cycle acts in that cycle and is gone in the next.

Invariants: 0 ≤ share ≤ 1; it grows by at most elapsed/duration; it is 1 exactly when there is no old one. A mix of
two numbers therefore lies between them, and moves by at most their distance times elapsed/duration where they rest.
"""
from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
T = TypeVar("T")


class Fade(Generic[T]):
    """`old` (None where nothing fades), `new` and the `share` of the new one.

    What changes while something fades waits for its end, and only the newest change counts: changes in every cycle
    lead on from one to the next, each on its whole way.
    """

    def __init__(self, value: T) -> None:
        self.old: T | None = None
        self.new = value
        self.share = 1.0
        self._next: T | None = None

    @property
    def newest(self) -> T:
        """The final value."""
        return self.new if self._next is None else self._next

    @property
    def fading(self) -> bool:
        return self.old is not None

    def change(self, value: T) -> None:
        """Go to `value` from now on."""
        if self.old is None:
            self.old, self.new, self.share = self.new, value, 0.0
        else:
            self._next = value

    def replace(self, value: T) -> None:
        """Be at `value`, at once."""
        self.old, self.new, self._next, self.share = None, value, None, 1.0

    def advance(self, elapsed: float, duration: float) -> None:
        """`elapsed` s later; the whole way takes `duration` s."""
        if self.old is None:
            return
        if duration <= 0.0:
            self.replace(self.newest)
            return
        self.share = min(self.share + max(elapsed, 0.0) / duration, 1.0)
        if self.share >= 1.0:
            following, self._next = self._next, None
            self.old = None
            if following is not None:
                self.change(following)


def mix(old: Array, new: Array, share: float) -> Array:
    """Between both, component by component, also after rounding."""
    low, high = np.minimum(old, new), np.maximum(old, new)
    mixed: Array = np.minimum(np.maximum(old + share * (new - old), low), high)
    return mixed
