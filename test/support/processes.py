"""Ends of processes, whoever started them."""
from __future__ import annotations

import contextlib
import os
import select

PATIENCE = 120.0    # s: a deadline against hanging for ever, not an expectation


def ends(pid: int) -> bool:
    """Wait for the end of a process; whether it came in time."""
    try:
        with contextlib.closing(os.fdopen(os.pidfd_open(pid), "rb", buffering=0)) as process:
            return bool(select.select([process], [], [], PATIENCE)[0])
    except ProcessLookupError:
        return True
