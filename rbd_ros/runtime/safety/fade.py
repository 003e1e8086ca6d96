"""Fade between two time-varying values in a given time.

During a fade the old and the new object are both evaluated in each cycle, and their results are mixed by `share`. An
outlier therefore acts in one cycle only.

Invariants: 0 ≤ share ≤ 1; it grows by at most elapsed/duration; it is 1 exactly if there is no old object. A mix of two
numbers therefore lies between them, and moves by at most their distance times elapsed/duration if they are constant.
"""
from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
T = TypeVar("T")


class Fade(Generic[T]):
    """`old` (None without a fade), `new`, and the `share` of `new`.

    A change during a fade waits for its end, and only the newest change is kept: with changes in every cycle, complete
    fades follow each other.
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
    def all(self) -> list[T]:
        """The values that count, or will when the fade has ended, from the oldest to the newest."""
        return [each for each in (self.old, self.new, self._next) if each is not None]

    @property
    def fading(self) -> bool:
        return self.old is not None

    def change(self, value: T) -> None:
        """Start a fade to `value`."""
        if self.old is None:
            self.old, self.new, self.share = self.new, value, 0.0
        else:
            self._next = value

    def replace(self, value: T) -> None:
        """Set `value` without a fade."""
        self.old, self.new, self._next, self.share = None, value, None, 1.0

    def advance(self, elapsed: float, duration: float) -> None:
        """Advance by `elapsed` s; a complete fade takes `duration` s."""
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
    """Componentwise interpolation; between `old` and `new` despite rounding."""
    low, high = np.minimum(old, new), np.maximum(old, new)
    mixed: Array = np.minimum(np.maximum(old + share * (new - old), low), high)
    return mixed
