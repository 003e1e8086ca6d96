"""`@kernel`: numba where present, plain Python otherwise; one source for both.

Kernels check nothing and allocate little; public functions check once and call them through entries (`entry`).
"""
from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

from ..errors import RbdWarning

try:
    if os.environ.get("RBD_DISABLE_COMPILE"):
        raise ImportError("RBD_DISABLE_COMPILE is set")
    from . import linking, numba_inside
    from .numba_import import numba
except ImportError as reason:
    numba = None
    warnings.warn(f"numba is not used ({reason}): rbd_ros computes in plain Python, "
                  "about a thousand times slower. Install numba for control rates.", RbdWarning, stacklevel=2)

COMPILED = numba is not None
OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
BARE: dict[str, Any] = numba_inside.BARE if COMPILED else {}    # without references to arrays being counted


def kernel(function: Callable[..., Any]) -> Any:
    """A building block of kernels, compiled with its callers and for all types they use; never returns an array.

    Optimised once more in each caller: right for what is short or hot, not for what is long, or called at one place.
    """
    return linking.Callee(function, {"forceinline": True, **BARE, **OPTIONS}) if COMPILED else function


def routine(function: Callable[..., Any]) -> Any:
    """A larger part of kernels, compiled once and called (some 10 ns): inlined, several of these cost minutes."""
    return linking.Callee(function, OPTIONS) if COMPILED else function


def sweep(function: Callable[..., Any]) -> Any:
    """A routine that, like a kernel, neither allocates nor returns an array."""
    return linking.Callee(function, {**BARE, **OPTIONS}) if COMPILED else function
