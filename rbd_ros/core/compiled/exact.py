"""`@exact`: kernels with bitwise reproducible results in all callers.

In other kernels the compiler may contract products and sums, differently per caller. Decisions must be the same in the
steady cycle and in separate calls.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .callee import Callee
from .kernel import BARE, COMPILED


def exact(function: Callable[..., Any]) -> Any:
    """A `kernel` without fused products."""
    if not COMPILED:
        return function
    return Callee(function, {"forceinline": True, "error_model": "numpy", **BARE})
