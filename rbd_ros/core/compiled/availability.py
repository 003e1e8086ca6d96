"""Whether numba can be used, known without importing it where an earlier process could: that saves a quarter of a
second, and processes that find their machine code in the cache never need it.
"""
from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.util
import os
import sys
from pathlib import Path

import numpy as np

from .cache import cache_directory, prepare


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


@functools.cache
def versions() -> str:
    """Of Python, NumPy, numba and llvmlite. Raises `ImportError`."""
    return "\n".join([str(sys.version_info[:3]), np.__version__, *map(_version, ("numba", "llvmlite"))])


def _version(package: str) -> str:
    """The text that tells the version, without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise ImportError(f"No module named '{package}'")
    with contextlib.suppress(OSError, TypeError):
        return Path(spec.origin).with_name("_version.py").read_text(encoding="utf-8")    # type: ignore[arg-type]
    return str(importlib.import_module(package).__version__)
