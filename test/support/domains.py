"""DDS domains that no other test on this machine uses at the same time."""
from __future__ import annotations

import fcntl
import functools
import tempfile
from pathlib import Path

_FIRST, _COUNT = 103, 98
_held = []    # locks, which end with the process


@functools.cache
def private_domain_id(use: str = "") -> str:
    """One for each use of this process."""
    for number in range(_FIRST, _FIRST + _COUNT):
        lock = Path(tempfile.gettempdir(), f"rbd_ros_domain_{number}.lock").open("a")    # noqa: SIM115
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            continue
        _held.append(lock)
        return str(number)
    raise RuntimeError(f"all domains from {_FIRST} to {_FIRST + _COUNT - 1} are in use")
