"""Lines of a log that could be said in every cycle, and are said seldom."""
from __future__ import annotations

import time
from typing import Any


class Seldom:
    """Says what a line of the program has to say at most once in `pause` s; `key` tells the lines apart.

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
