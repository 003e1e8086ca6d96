"""Functions of tests that call kernels with other types, compiled once for these sources, and cached like kernels."""
from __future__ import annotations

import contextlib
import hashlib
import inspect
from collections.abc import Callable
from typing import Any

from rbd_ros.core.compiled.cache import cache_directory, key_of_core, prepare
from rbd_ros.core.compiled.kernel import COMPILED


def compiled(function: Callable[..., Any]) -> Any:
    """The function compiled by numba, in plain Python as it is."""
    if not COMPILED:
        return function
    import numba

    from rbd_ros.core.compiled import numba_inside

    made: Any = numba.njit(error_model="numpy")(function)
    source = inspect.getsource(inspect.getmodule(function))    # type: ignore[arg-type]
    key = hashlib.sha256(f"{key_of_core()}{source}".encode()).hexdigest()[:16]
    with contextlib.suppress(OSError, RuntimeError):    # no writable cache
        if prepare(folder := cache_directory() / f"test.{function.__module__}.{function.__name__}" / key):
            made._cache = numba_inside.cache_in(function, folder)
    return made
