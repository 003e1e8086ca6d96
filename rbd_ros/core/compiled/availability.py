"""Whether numba can be used, known without importing it where an earlier process could: that saves a quarter of a
second, and processes that find their machine code in the cache never need it.
"""
from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import os

from .cache import cache_directory, prepare
from .versions import versions


@functools.cache
def unavailable() -> str:
    """Why numba is not used, "" if it can be."""
    if os.environ.get("RBD_DISABLE_COMPILE"):
        return "RBD_DISABLE_COMPILE is set"
    try:
        imported = cache_directory() / "imported" / hashlib.sha256(versions().encode()).hexdigest()[:16]
        if not imported.is_file():
            importlib.import_module(".calling", __package__)
            with contextlib.suppress(OSError, RuntimeError):    # without a writable cache numba is imported each time
                if prepare(imported.parent):
                    imported.touch()
    except ImportError as reason:
        return str(reason)
    return ""
