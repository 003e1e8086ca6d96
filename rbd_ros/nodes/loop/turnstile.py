"""A fair reentrant lock."""
from __future__ import annotations

import threading
from typing import Any


class Turnstile:
    """A reentrant lock. A thread that releases and reacquires it at once first lets a waiting thread pass: the locks of
    `threading` are not fair, and a loop that never sleeps would hold one for ever.
    """

    def __init__(self) -> None:
        self._next, self._lock = threading.Lock(), threading.Lock()
        self._owner = self._depth = 0

    def __enter__(self) -> None:
        own = threading.get_ident()
        if self._owner != own:
            with self._next:    # held while waiting for the lock: whoever held that cannot overtake
                self._lock.acquire()
            self._owner = own
        self._depth += 1

    def __exit__(self, *error: Any) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = 0
            self._lock.release()
