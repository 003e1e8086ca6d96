"""Fast acceptance of continuous states as bytes, in one compiled call (`followed_state_entry`).

A state that is not accepted changes nothing: the ordinary validation decides.
"""
from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.steady import cycle_kernel as at
from .joint_state_bytes import Layout, Words
from .plausibility import Known, Plausibility

Array = NDArray[np.float64]


def message_memory(layout: Layout, data: bytes,
                   indices: NDArray[np.intp]) -> tuple[Words, Words, Array, memoryview]:
    """Integers I of `cycle_kernel` for messages of this layout, and the memory of one: as words, numbers, and bytes."""
    words, mask = layout.words(data)
    whole = np.concatenate([np.zeros(at.HEAD, np.int64), indices, words, mask])
    whole[at.WORDS] = len(words)
    whole[at.POSITION], whole[at.VELOCITY], whole[at.EFFORT] = layout.places()
    message = bytearray(words.tobytes())
    return (whole, np.frombuffer(message, np.int64), np.frombuffer(message),
            memoryview(message)[4:4 + layout.length])


class QuickStates:
    """Fast acceptance for one driver with `count` numbers per state, judged by `check`."""

    def __init__(self, check: Plausibility, count: int) -> None:
        self._check, self._count = check, count
        self._last: Known | None = None    # the prepared predecessor
        self._bound: Array | None = None
        self._layout: Layout | None = None
        self._whole, self._words = np.zeros(at.HEAD, np.int64), np.zeros(1, np.int64)
        self._doubles, self._bytes = np.zeros(1), memoryview(b"")
        self._constants = np.zeros(at.SCALARS + at.LIMITS * count)
        self._rows = np.zeros(at.NEW_EFFORT * count)
        self._call = at.followed_state_entry
        self._call.compile()

    def __deepcopy__(self, memo: dict[int, Any]) -> QuickStates:
        """An unprepared copy: the arrays share memory, copies of them would not."""
        copied = memo[id(self)] = QuickStates(copy.deepcopy(self._check, memo), self._count)
        return copied

    def accept(self, now: float, data: bytes, timeout: float) -> Known | None:
        """Accept the state in a message as the last valid one; None if the ordinary validation must decide."""
        check, last = self._check, self._check.last
        if (last is None or last is not self._last or check.stuck or check.bounds[0] is not self._bound
                or len(data) != len(self._bytes)):
            return None
        self._bytes[:] = data
        self._constants[at.TIMEOUT] = timeout
        if not self._call.call(self._words, self._doubles, self._whole, self._constants, self._rows,
                               check.clock.numbers, now, last.now):
            return None
        q, v = self._rows[:2 * self._count].reshape(2, -1).copy()
        self._last = Known(now, self._whole.item(at.TIME), q, v)
        check.settle(self._last)
        return self._last

    def prepare(self, layout: Layout, data: bytes, indices: NDArray[np.intp]) -> None:
        """Prepare for messages like this one, of a complete layout. indices: of the joints in the message."""
        self._last, last = None, self._check.last
        if last is None or last.time_ns == 0 or np.isnan(last.v).any():
            return
        if layout is not self._layout or not np.array_equal(indices, self._whole[at.HEAD:at.HEAD + self._count]):
            self._whole, self._words, self._doubles, self._bytes = message_memory(layout, data, indices)
            self._whole[at.COUNT], self._layout = self._count, layout
        bounds = self._check.bounds
        self._bound = bounds[0]
        self._constants[at.SCALARS:].reshape(at.LIMITS, -1)[:3] = bounds
        rows = self._rows[:2 * self._count].reshape(2, -1)
        rows[0], rows[1] = last.q, last.v
        self._whole[at.TIME] = last.time_ns
        self._last = last
