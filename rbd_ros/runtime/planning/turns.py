"""Queue of searches: one at a time, in the order of the requests."""
from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PAUSE = 0.05    # s between two checks of cancellation


class Turns:
    """Fair lock: threads take turns in the order of their calls."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()

    @property
    def waiting(self) -> int:
        """Number of threads that wait or have their turn."""
        return len(self._waiting)

    @contextmanager
    def turn(self, gone: Callable[[], bool]) -> Iterator[bool]:
        """Context of this thread's turn: True; False if `gone()` became true before the turn came."""
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            while self._waiting[0] is not ticket and not gone():
                self._changed.wait(PAUSE)
            come = self._waiting[0] is ticket
        try:
            yield come
        finally:
            with self._changed:
                self._waiting.remove(ticket)
                self._changed.notify_all()
