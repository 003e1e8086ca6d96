"""Numbers of an object in an array, so that the compiled cycle reads and writes the same ones."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.compiled.entry import Entry

Array = NDArray[np.float64]


class LiveNumbers:
    """A subclass is made with the `names` of its numbers, which begin at 0; its methods use `_numbers` or, by
    `Number`, their names.
    """

    def __init__(self, names: Sequence[str], *entries: Entry) -> None:
        """entries: that its methods call, loaded now and not in a cycle."""
        self._numbers: Array = np.zeros(len(names))
        for entry in entries:
            entry.compile()

    @property
    def numbers(self) -> Array:
        """For kernels."""
        return self._numbers

    def live_in(self, array: Array) -> None:
        """Have the numbers there from now on."""
        array[:] = self._numbers
        self._numbers = array


class Number:
    """One of them, as an attribute."""

    def __init__(self, names: Sequence[str], name: str) -> None:
        self._at = names.index(name)

    def __get__(self, owner: Any, kind: type) -> float:
        found: float = owner._numbers.item(self._at)
        return found

    def __set__(self, owner: Any, value: float) -> None:
        owner._numbers[self._at] = value
