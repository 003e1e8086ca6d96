"""Functions of tests that call kernels, compiled once for these sources, and cached like kernels."""
from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from rbd_ros.core.compiled.cache import folder_of, prepare
from rbd_ros.core.compiled.kernel import COMPILED


def compiled(function: Callable[..., Any]) -> Any:
    """The function compiled by numba, in plain Python as it is."""
    if not COMPILED:
        return function
    import numba

    from rbd_ros.core.compiled import calling

    made: Any = numba.njit(error_model="numpy")(function)
    with contextlib.suppress(OSError, RuntimeError):    # no writable cache
        if prepare(folder := folder_of(function.__module__)):
            made._cache = calling.cache_in(function, folder)
    return made
