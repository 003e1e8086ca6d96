"""Import of numba without its optional packages, which are imported later where used.

This saves 0.2 s in processes that compile. Seen in numba 0.68.1.
"""
from __future__ import annotations

import gc
import importlib
import importlib.util
import sys
from typing import Any


def _import_lightly() -> Any:
    """numba, without coverage and without scipy.linalg."""
    unwanted = "coverage" not in sys.modules    # unless coverage measures this process
    collects = gc.isenabled()
    gc.disable()    # its objects live until the end
    if unwanted:
        sys.modules["coverage"] = None    # type: ignore[assignment]
    try:
        numba = importlib.import_module("numba")
    finally:
        if unwanted:
            del sys.modules["coverage"]
        if collects:
            gc.enable()
    if importlib.util.find_spec("scipy") is not None:
        _skip_linear_algebra()
    return numba


def _skip_linear_algebra() -> None:
    """Keep `numba.np.arraymath` from importing scipy.linalg to detect it."""
    try:
        linalg: Any = importlib.import_module("numba.np.linalg")
        ensure = linalg.ensure_blas
    except (ImportError, AttributeError):    # another numba: it takes the time
        return
    linalg.ensure_blas = lambda: None
    try:
        arraymath: Any = importlib.import_module("numba.np.arraymath")
        arraymath.ensure_blas = ensure
    finally:
        linalg.ensure_blas = ensure


numba = _import_lightly()
