"""Rate-limited logging."""
from __future__ import annotations

import sys
import time
from typing import Any

BURST = 20    # lines at once; a configuration logs several


class Seldom:
    """Logs each message at most once in `pause` s; `key` identifies the message.

    rclpy's own throttle inspects the caller's stack each time, which takes longer than the answer to a joint state.
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
    """Rate-limited logger of a node, against floods caused by others, e.g. a thousand stops and resets per second.

    Each line of code logs at most `BURST` messages at once, then one per second with the number of omitted ones.
    """

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._said: dict[tuple[str, int], tuple[float, float, int]] = {}    # time (s), remaining, omitted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._logger, name)

    # Without rclpy's options, such as its throttle, which must not differ between calls of a line. One method per
    # severity, because rclpy requires one severity per line.

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
        before, remaining, lost = self._said.get(place, (now, BURST, 0))
        remaining = min(remaining + now - before, BURST)
        self._said[place] = (now, remaining - 1.0, 0) if remaining >= 1.0 else (now, remaining, lost + 1)
        if remaining < 1.0:
            return ""
        return text + (f" ({lost} more such lines were left out)" if lost else "")
