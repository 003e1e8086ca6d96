"""Clock of searches with a time limit, on which compiling kernels takes no time."""
from __future__ import annotations

import time

_compiling = [0.0]    # s that this process has spent in it


def computing_time() -> float:
    """`time.perf_counter` without the time in which entries were compiled."""
    return time.perf_counter() - _compiling[0]


def add_compiling(seconds: float) -> None:
    """Take so many s, which were spent in compiling, off the clock."""
    _compiling[0] += seconds
