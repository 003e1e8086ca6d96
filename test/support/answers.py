"""Answers of services that may be lost."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

AGAIN = 5.0    # s


class Answer:
    """The answer to a request, which is sent again every 5 s.

    A server drops its answer to a client that it has not found yet, though the client has found the server: so may a
    new client's first request end on a busy machine.
    """

    def __init__(self, send: Callable[[], Any]) -> None:
        self._send, self._futures, self._due = send, [send()], time.monotonic() + AGAIN

    def result(self) -> Any:
        """None, so far."""
        if time.monotonic() > self._due:
            self._futures.append(self._send())
            self._due = time.monotonic() + AGAIN
        return next((future.result() for future in self._futures if future.done()), None)
