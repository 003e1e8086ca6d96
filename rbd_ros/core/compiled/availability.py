"""Whether numba can be used, known without importing it where an earlier process could: that saves a quarter of a
second, and processes that find their machine code in the cache never need it.
"""
from __future__ import annotations

import contextlib
import functools
import importlib
import os
from pathlib import Path

from .cache import folder_of, prepare


@functools.cache
def unavailable() -> str:
    """Why numba is not used, "" if it can be."""
    if os.environ.get("RBD_DISABLE_COMPILE"):
        return "RBD_DISABLE_COMPILE is set"
    try:
        note = _note()
        if note is None or not os.path.isfile(note):    # `Path.is_file` raises where access is denied
            importlib.import_module(".calling", __package__)
            with contextlib.suppress(OSError):    # without a writable cache numba is imported each time
                if note is not None and prepare(note.parent):
                    note.touch()
    except ImportError as reason:
        return str(reason)
    return ""


def forget() -> None:
    """Numba cannot be imported any more: the next process shall find out."""
    note = _note()
    if note is not None:
        with contextlib.suppress(OSError):
            note.unlink(missing_ok=True)


def _note() -> Path | None:
    """The file that notes that numba was imported, in this version, by these sources; None without a home."""
    try:
        return folder_of(f"{__package__}.calling") / "imported"
    except RuntimeError:
        return None
