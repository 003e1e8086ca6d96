"""`@exact`: kernels whose results are the same to the last bit wherever they are inlined.

Other kernels may fuse a product into a sum, whichever is convenient where they stand. What is decided, in the steady
cycle as in a call of its own, must not hang on that.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .kernel import COMPILED

if COMPILED:
    from . import linking, numba_inside


def exact(function: Callable[..., Any]) -> Any:
    """A `kernel` without fused products."""
    if not COMPILED:
        return function
    return linking.Callee(function, {"forceinline": True, "error_model": "numpy", **numba_inside.BARE})
