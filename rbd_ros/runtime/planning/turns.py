"""One search at a time, in the order in which they were asked for."""
from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PAUSE = 0.05    # s between two looks whether who waits still wants his turn


class Turns:
    """Threads that take turns."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()

    @property
    def waiting(self) -> int:
        """How many wait or have their turn."""
        return len(self._waiting)

    @contextmanager
    def turn(self, gone: Callable[[], bool]) -> Iterator[bool]:
        """Within: this thread's turn, True; or False, where `gone()` became true before it came."""
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
