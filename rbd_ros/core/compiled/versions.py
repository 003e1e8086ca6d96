"""What machine code depends on beside its sources: versions and the processor."""
from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import sys
from pathlib import Path

import numpy as np


@functools.cache
def versions() -> str:
    """Of Python, NumPy, numba and llvmlite, without importing the latter two. Raises `ImportError`."""
    return "\n".join([str(sys.version_info[:3]), np.__version__, *map(_version, ("numba", "llvmlite"))])


def _version(package: str) -> str:
    """The text that tells the version."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:    # nothing, or a mere folder
        raise ImportError(f"No module named '{package}'")
    with contextlib.suppress(OSError):
        return Path(spec.origin).with_name("_version.py").read_text(encoding="utf-8")
    return str(importlib.import_module(package).__version__)


@functools.cache
def processor() -> dict[str, str]:
    """Name and features, as llvmlite's targets take them."""
    import llvmlite.binding as llvm

    return {"cpu": llvm.get_host_cpu_name(), "features": llvm.get_host_cpu_features().flatten()}
