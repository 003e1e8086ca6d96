"""`@kernel`: compiled by numba if installed, plain Python otherwise.

Kernels do not validate and allocate little; public functions validate and call kernels through entries (`entry`).
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
BARE: dict[str, Any] = numba_inside.BARE if COMPILED else {}    # without reference counting of arrays
# What numba would else take over from the caller that is compiled first: reference counting; inlining.
COUNTED = dict.fromkeys(BARE, True)
CALLED: dict[str, Any] = {"forceinline": False, **OPTIONS}


def kernel(function: Callable[..., Any]) -> Any:
    """A short kernel, inlined into its callers, for all types; must not return an array.

    Optimised again in each caller: suitable for short or hot functions, not for long ones.
    """
    return linking.Callee(function, {"forceinline": True, **BARE, **OPTIONS}) if COMPILED else function


def routine(function: Callable[..., Any]) -> Any:
    """A long kernel, compiled once and called; inlined, several would take minutes to compile.

    A call takes 10 ns, with many arrays 50; and around it in a loop, even if it is not executed, some 5 %.
    """
    return linking.Callee(function, CALLED) if COMPILED else function


def allocating(function: Callable[..., Any]) -> Any:
    """A routine that allocates, for callers that count no references."""
    return linking.Callee(function, {**COUNTED, **CALLED}) if COMPILED else function


def sweep(function: Callable[..., Any]) -> Any:
    """A routine that, like a kernel, neither allocates nor returns an array."""
    return linking.Callee(function, {**BARE, **CALLED}) if COMPILED else function
