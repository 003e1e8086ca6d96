"""The future that ends an executor which spins for days."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.task import Future


class Stop(Future):
    """Done when the executor that waits for it is to end. For one call of `spin_until_future_complete` only.

    rclpy adds the same callback, which wakes the executor, before the first and then at every spin: hundreds a second,
    for ever, and all of them run when the future is done. One is enough.
    """

    _woken = False

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        if not self._woken:
            self._woken = True
            super().add_done_callback(callback)
