"""Lines of a log that could be said in every cycle, or as often as somebody asks, and are said seldom."""
from __future__ import annotations

import sys
import time
from typing import Any

BURST = 20    # lines at once; configurations have some to say


class Seldom:
    """Logs each message at most once in `pause` s; `key` identifies the message.

    rclpy's own throttle looks at the stack of the caller each time, which takes longer than a joint state has to wait.
    """

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._due: dict[str, float] = {}

    def warning(self, key: str, text: str, pause: float = 1.0) -> None:
        if self._is_due(key, pause):
            self._logger.warning(text)

    def error(self, key: str, text: str, pause: float = 1.0) -> None:
        if self._is_due(key, pause):
            self._logger.error(text)

    def _is_due(self, key: str, pause: float) -> bool:
        now = time.monotonic()
        if now < self._due.get(key, now):
            return False
        self._due[key] = now + pause
        return True


class BoundedLog:
    """The logger of a node with a bound for what others can have it say, a thousand stops and resets a second for one.

    Of each line of the program there are `BURST` at once, and then one a second, which says how many were left out.
    """

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._said: dict[tuple[str, int], tuple[float, float, int]] = {}    # time (s), how many are left, left out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logger, name)

    # Without the options of rclpy, as its throttle, which has to be the same in each call of a line. Of these here
    # each has its own severity, as rclpy wants it.

    def debug(self, text: str, **_: Any) -> None:
        if text := self._bounded(text):
            self._logger.debug(text)

    def info(self, text: str, **_: Any) -> None:
        if text := self._bounded(text):
            self._logger.info(text)

    def warning(self, text: str, **_: Any) -> None:
        if text := self._bounded(text):
            self._logger.warning(text)

    def error(self, text: str, **_: Any) -> None:
        if text := self._bounded(text):
            self._logger.error(text)

    def _bounded(self, text: str) -> str:
        frame, now = sys._getframe(2), time.monotonic()
        place = frame.f_code.co_filename, frame.f_lineno
        before, left, lost = self._said.get(place, (now, BURST, 0))
        left = min(left + now - before, BURST)
        self._said[place] = (now, left - 1.0, 0) if left >= 1.0 else (now, left, lost + 1)
        if left < 1.0:
            return ""
        return text + (f" ({lost} more such lines were left out)" if lost else "")
