"""`@kernel`: numba where present, plain Python otherwise; one source for both.

Kernels check nothing and allocate little; public functions check once and call them. Compiled code is cached per
user (`kernel_cache`).
"""
from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from .errors import RbdWarning
from .kernel_cache import folder_of, is_own, prepare

try:
    if os.environ.get("RBD_DISABLE_COMPILE"):
        raise ImportError("RBD_DISABLE_COMPILE is set")
    from . import numba_inside, numba_linking
    from .numba_import import numba
except ImportError as reason:
    numba = None
    warnings.warn(f"numba is not used ({reason}): rbd_ros computes in plain Python, "
                  "about a thousand times slower. Install numba for control rates.", RbdWarning, stacklevel=2)

COMPILED = numba is not None
# What the call of an entry raises for arguments it has no version for: numba cannot type an empty list, for one,
# and plain Python finds no `shape` in any list. Public functions then look at the arguments more closely.
UNSUITED: tuple[type[Exception], ...] = (TypeError, ValueError, AttributeError)
if COMPILED:
    UNSUITED += (numba_inside.UNTYPED,)
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
_BARE: dict[str, Any] = numba_inside.BARE if COMPILED else {}    # without references to arrays being counted


def kernel(function: Callable[..., Any]) -> Any:
    """A building block of kernels, compiled with its callers and for all types they use; never returns an array.

    Optimised once more in each caller: right for what is short or hot, not for what is long, or called at one place.
    """
    return numba_linking.Callee(function, {"forceinline": True, **_BARE, **_OPTIONS}) if COMPILED else function


def routine(function: Callable[..., Any]) -> Any:
    """A larger part of kernels, compiled once and called (some 10 ns): inlined, several of these cost minutes."""
    return numba_linking.Callee(function, _OPTIONS) if COMPILED else function


def sweep(function: Callable[..., Any]) -> Any:
    """A routine that, like a kernel, neither allocates nor returns an array."""
    return numba_linking.Callee(function, {**_BARE, **_OPTIONS}) if COMPILED else function


ENTRIES: list[Entry] = []    # all that are known


class Entry:
    """An entry point of the compiled library: compiled for one signature, ahead or at its first call.

    Calling it with other types (lists, integers, strided arrays) raises `TypeError` at once instead of
    compiling anew.
    """

    def __init__(self, function: Callable[..., Any], signature: str, options: dict[str, Any]) -> None:
        self.name, self.module = function.__name__, function.__module__
        self.python = function
        self._signature = signature
        self._options = options | _OPTIONS
        self.call: Callable[..., Any] = self._first_call if COMPILED else _strict(function, signature)
        ENTRIES.append(self)

    def __call__(self, *arguments: Any) -> Any:
        return self.call(*arguments)

    def _first_call(self, *arguments: Any) -> Any:
        announce = not self.cached()
        if announce and sys.stderr is not None and sys.stderr.isatty():
            print(f"rbd_ros: compiling {self.name} (once; `rbd compile` does all ahead) …", file=sys.stderr, flush=True)
        self.compile()
        return self.call(*arguments)

    def cached(self) -> bool:
        """Whether machine code for this entry lies in the cache."""
        return COMPILED and numba_inside.is_kept(self.name, folder := folder_of(self.module)) and is_own(folder)

    def compile(self) -> None:
        """Compile, or load from the cache."""
        if not COMPILED or self.call != self._first_call:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)
            dispatcher = numba.njit(**numba_linking.ENTRY, **self._options)(self.python)
            with contextlib.suppress(RuntimeError, OSError):    # no writable cache: compile in each process
                if prepare(folder := folder_of(self.module)):
                    numba_inside.keep(dispatcher, folder)
            dispatcher.compile(self._signature)
        dispatcher.disable_compile()
        numba_inside.refuse_at_once(dispatcher, _no_match)
        numba_inside.tell_arrays_apart(dispatcher, len(dispatcher.nopython_signatures[0].args))
        self.call = dispatcher


def _strict(function: Callable[..., Any], signature: str) -> Callable[..., Any]:
    """The plain function, rejecting arrays of other types or dimensions, as the compiled one does."""
    kinds = re.findall(r"(\w+)(\[[^]]*\])?", signature.partition("(")[2])
    arrays = [(i, kind.replace("boolean", "bool"), axes.count(",") + 1) for i, (kind, axes) in enumerate(kinds) if axes]

    def call(*arguments: Any) -> Any:
        for i, kind, count in arrays:
            if arguments[i].dtype != kind or arguments[i].ndim != count:
                _no_match()
        return function(*arguments)

    return call


def _no_match(*arguments: Any, **keywords: Any) -> NoReturn:
    raise TypeError("no compiled version for these argument types")


def entry(signature: str, nogil: bool = False) -> Callable[[Callable[..., Any]], Entry]:
    """Decorator for an entry point with numba `signature`, e.g. `"int64(float64[::1], float64[::1])"`."""
    return lambda function: Entry(function, signature, {"nogil": nogil})


def quick_entry(signature: str, nogil: bool = False) -> Callable[[Callable[..., Any]], Entry]:
    """Decorator for an entry point that, like a kernel, neither allocates nor returns an array: a call takes less time.

    With the interpreter's lock, so that one workspace serves all calls (`RobotModel._work`), unless `nogil`.
    """
    return lambda function: Entry(function, signature, {"nogil": nogil, **_BARE})


def is_cached() -> bool:
    """Whether all known entries are in the cache, for these sources and this machine."""
    return all(item.cached() for item in ENTRIES)
