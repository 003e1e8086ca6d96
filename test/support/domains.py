"""DDS domains that no other test on this machine uses at the same time."""
from __future__ import annotations

import fcntl
import functools
import tempfile
from pathlib import Path

# First domains whose ports lie above those that Linux gives to any program (32768 to 60999), then some whose ports lie
# among them; lower domains are left to the users of this machine.
_DOMAINS = [*range(215, 233), *range(103, 201)]
_held = []    # locks, which end with the process


@functools.cache
def private_domain_id(use: str = "") -> str:
    """One for each use of this process."""
    for number in _DOMAINS:
        try:
            lock = Path(tempfile.gettempdir(), f"rbd_ros_domain_{number}.lock").open("a")    # noqa: SIM115
        except PermissionError:    # it is another user's
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            continue
        _held.append(lock)
        return str(number)
    raise RuntimeError(f"all domains from {min(_DOMAINS)} to {max(_DOMAINS)} are in use")
