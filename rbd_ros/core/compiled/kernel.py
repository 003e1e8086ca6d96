"""`@kernel`: compiled by numba if installed, plain Python otherwise.

Kernels do not validate and allocate little; public functions validate and call kernels through entries (`entry`).
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..errors import RbdWarning
from .availability import unavailable
from .callee import Callee

COMPILED = not unavailable()
if not COMPILED:
    warnings.warn(f"numba is not used ({unavailable()}): rbd_ros computes in plain Python, "
                  "about a thousand times slower. Install numba for control rates.", RbdWarning, stacklevel=2)

OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
# Without reference counting of arrays: such code may neither allocate nor return an array (test/test_kernels.py).
BARE: dict[str, Any] = {"_nrt": False}
# What numba would else take over from the caller that is compiled first: reference counting; inlining.
COUNTED: dict[str, Any] = {"_nrt": True}
CALLED: dict[str, Any] = {"forceinline": False, **OPTIONS}


def kernel(function: Callable[..., Any]) -> Any:
    """A short kernel, inlined into its callers, for all types; must not return an array.

    Optimised again in each caller: suitable for short or hot functions, not for long ones.
    """
    return Callee(function, {"forceinline": True, **BARE, **OPTIONS}) if COMPILED else function


def routine(function: Callable[..., Any]) -> Any:
    """A long kernel, compiled once and called; inlined, several would take minutes to compile.

    A call takes 10 ns, with many arrays 50; and around it in a loop, even if it is not executed, some 5 %.
    """
    return Callee(function, CALLED) if COMPILED else function


def allocating(function: Callable[..., Any]) -> Any:
    """A routine that allocates, for callers that count no references."""
    return Callee(function, {**COUNTED, **CALLED}) if COMPILED else function


def sweep(function: Callable[..., Any]) -> Any:
    """A routine that, like a kernel, neither allocates nor returns an array."""
    return Callee(function, {**BARE, **CALLED}) if COMPILED else function
