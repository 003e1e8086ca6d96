"""Attributes stored in an array that the compiled cycle shares."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.compiled.entry import Entry

Array = NDArray[np.float64]


class LiveNumbers:
    """Base of classes with shared numbers, initially 0, of the given `names`. Methods access them through `_numbers`,
    or by name through `Number` descriptors.
    """

    def __init__(self, names: Sequence[str], *entries: Entry) -> None:
        """entries: called by the methods of the subclass; loaded here, not in a cycle."""
        self._numbers: Array = np.zeros(len(names))
        for entry in entries:
            entry.compile()

    @property
    def numbers(self) -> Array:
        """The array, for kernels."""
        return self._numbers

    def live_in(self, array: Array) -> None:
        """Store the numbers in `array` from now on."""
        array[:] = self._numbers
        self._numbers = array


class Number:
    """Descriptor of one shared number."""

    def __init__(self, names: Sequence[str], name: str) -> None:
        self._at = names.index(name)

    def __get__(self, owner: Any, kind: type) -> float:
        value: float = owner._numbers.item(self._at)
        return value

    def __set__(self, owner: Any, value: float) -> None:
        owner._numbers[self._at] = value
