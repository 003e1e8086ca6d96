"""A fair reentrant lock."""
from __future__ import annotations

import threading
from typing import Any


class Turnstile:
    """A fair reentrant lock: a thread that releases and reacquires it at once lets a waiting thread pass first. With
    the unfair locks of `threading`, a loop that never sleeps would hold the lock for ever.
    """

    def __init__(self) -> None:
        self._next, self._lock = threading.Lock(), threading.Lock()
        self._owner = self._depth = 0

    def __enter__(self) -> None:
        ident = threading.get_ident()
        if self._owner != ident:
            with self._next:    # held while waiting for the lock, so that its last owner cannot overtake
                self._lock.acquire()
            self._owner = ident
        self._depth += 1

    def __exit__(self, *error: Any) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = 0
            self._lock.release()
