"""`@entry`: entry points of the compiled library, each compiled for one signature and cached per user (`cache`).

An entry takes arrays of exactly the types of its signature, in C order if declared, aligned and writable; `TypeError`
otherwise. The extension `_door` calls the machine code; without it numba does, after checks in Python; without numba
the plain function runs, after the same checks.
"""
from __future__ import annotations

import contextlib
import os
import re
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import object_code
from .availability import forget
from .cache import folder_of, is_own, prepare
from .computing_time import add_compiling
from .kernel import BARE, COMPILED, OPTIONS

EXTENSION: Any = None    # the C module `_door`
if COMPILED:
    with contextlib.suppress(ImportError):    # optional: needs a C compiler
        EXTENSION = import_module(f"{__package__}._door")

CODES = {"float64": "d", "int64": "l", "int32": "i", "boolean": "?", "complex128": "D", "void": "v"}    # of `_door`
UNSUITED: tuple[type[Exception], ...] = (TypeError, ValueError, AttributeError)    # raised for unvalidated arguments
ENTRIES: list[Entry] = []    # all entries of imported modules


class Argument(NamedTuple):
    """An argument of an entry: an array of `axes` axes, or a number (0 axes). order: C, or A (any strides)."""

    type: str
    axes: int
    order: str


class Entry:
    """An entry point of the compiled library: compiled, or loaded from the cache, ahead or at its first call."""

    def __init__(self, function: Callable[..., Any], signature: str, options: dict[str, Any]) -> None:
        self.name, self.module = function.__name__, function.__module__
        self.python = function
        self.signature = signature
        self.result, _, argument_types = signature.partition("(")
        self.arguments = tuple(
            Argument(kind, axes.count(",") + 1 if axes else 0, "A" if axes and "::1" not in axes else "C")
            for kind, axes in re.findall(r"(\w+)(\[[^]]*\])?", argument_types))
        self._releases = options.get("nogil", False)
        self._options = options | OPTIONS
        self._code: Any = None    # owns the machine code
        self.call: Callable[..., Any] = self._first_call if COMPILED else _strict(function, self.arguments)
        ENTRIES.append(self)

    def __call__(self, *arguments: Any) -> Any:
        return self.call(*arguments)

    def _first_call(self, *arguments: Any) -> Any:
        self.compile()
        return self.call(*arguments)

    def cached(self) -> bool:
        """Whether the cache has machine code for this entry."""
        if not COMPILED:
            return False
        try:
            folder = folder_of(self.module)
        except RuntimeError:
            return False
        if EXTENSION:
            name = object_code.file_of(self.python, self.signature)
            return bool(name) and os.path.isfile(folder / name) and is_own(folder)
        return any(folder.glob(f"*.{self.name}-*.nbc")) and is_own(folder)

    def compile(self) -> None:
        """Compile, or load from the cache."""
        if not COMPILED or self.call != self._first_call:
            return
        begin, folder = time.perf_counter(), None
        with contextlib.suppress(RuntimeError, OSError):    # without a writable cache every process compiles
            if prepare(folder_of(self.module)):
                folder = folder_of(self.module)
        if EXTENSION:
            name = object_code.file_of(self.python, self.signature)
            self._code = (object_code.loaded(folder / name) if folder and name else None) or self._compiled(folder)
            codes = "".join(f"{CODES[each.type]}{each.axes}{each.order}" for each in self.arguments)
            self.call = EXTENSION.Kernel(self._code.address, codes, CODES[self.result], self._releases, self._code)
        else:
            self._code = self._compiled(folder)
            self.call = _strict(self._code, self.arguments)
        add_compiling(time.perf_counter() - begin)

    def _compiled(self, folder: Path | None) -> Any:
        """The code by numba, which this imports."""
        if not self.cached() and sys.stderr is not None and sys.stderr.isatty():
            print(f"rbd_ros: compiling {self.name} (once; `rbd compile` does all ahead) …", file=sys.stderr, flush=True)
        try:
            from . import calling
        except ImportError:
            forget()
            raise
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", calling.SLOW)
            compile_entry = calling.at_address if EXTENSION else calling.dispatcher
            return compile_entry(self.python, self.signature, self._options, folder)

    @property
    def address(self) -> int:
        """Address of the machine code, `int64_t f(int64_t *words)` for `_door`."""
        self.compile()
        return int(self._code.address)


def _strict(function: Callable[..., Any], expected: tuple[Argument, ...]) -> Callable[..., Any]:
    """The function with a check of types, dimensions and layouts of arrays."""
    arrays = [(i, np.dtype(each.type.replace("boolean", "bool")), each.axes, each.order == "C")
              for i, each in enumerate(expected) if each.axes]

    def call(*arguments: Any) -> Any:
        for i, kind, axes, contiguous in arrays:
            array = arguments[i]
            if array.dtype != kind or array.ndim != axes or (COMPILED and not (
                    array.flags.carray if contiguous else array.flags.behaved)):
                raise TypeError("no compiled version for these argument types")
        return function(*arguments)

    return call


def entry(signature: str, nogil: bool = False) -> Callable[[Callable[..., Any]], Entry]:
    """Decorator for an entry point with numba `signature`, e.g. `"int64(float64[::1], float64[::1])"`.

    nogil: release the interpreter's lock during calls.
    """
    return lambda function: Entry(function, signature, {"nogil": nogil})


def quick_entry(signature: str, nogil: bool = False) -> Callable[[Callable[..., Any]], Entry]:
    """Decorator for an entry point that neither allocates nor returns an array, which makes calls faster.

    It holds the interpreter's lock unless `nogil`, so that all calls can share a workspace (`RobotModel._work`).
    """
    return lambda function: Entry(function, signature, {"nogil": nogil, **BARE})


def is_cached() -> bool:
    """Whether all known entries are in the cache, for these sources and this machine."""
    return all(item.cached() for item in ENTRIES)
