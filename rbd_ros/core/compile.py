"""`@kernel`: numba where present, plain Python otherwise; one source for both.

Kernels check nothing and allocate little; public functions check once and call them. Compiled code is
cached per user in a folder keyed by a hash of their sources (numba alone does not notice a
change in a callee of another file), by Python and by numba.
"""
from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .errors import RbdWarning

try:
    if os.environ.get("RBD_DISABLE_COMPILE"):
        raise ImportError("RBD_DISABLE_COMPILE is set")
    import numba
    from numba.core import config as _numba_config
except ImportError as reason:
    numba = None
    warnings.warn(f"numba is not used ({reason}): rbd_ros computes in plain Python, "
                  "about a thousand times slower. Install numba for control rates.", RbdWarning, stacklevel=2)

COMPILED = numba is not None
# What the call of an entry raises for arguments it has no version for: numba cannot type an empty list, for one,
# and plain Python finds no `shape` in any list. Public functions then look at the arguments more closely.
UNSUITED: tuple[type[Exception], ...] = (TypeError, ValueError, AttributeError)
if numba is not None:
    UNSUITED += (numba.core.errors.NumbaError,)
_CORE = Path(__file__).parent
WITHOUT_KERNELS = ("actuation", "control", "service")    # folders whose changes leave compiled kernels as they are
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}


def sources_hash() -> str:
    """Hash of every source file that a compiled kernel can depend on, and of the compiler's version."""
    digest = hashlib.sha256(f"{sys.version_info[:3]} {numba and numba.__version__}".encode())
    for path in sorted(_CORE.rglob("*.py")):
        if path.relative_to(_CORE).parts[0] in WITHOUT_KERNELS:
            continue
        digest.update(path.relative_to(_CORE).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_directory() -> Path:
    """Folder of the compiled kernels: `$RBD_CACHE_DIR`, else `$XDG_CACHE_HOME/rbd_ros`, else `~/.cache/rbd_ros`."""
    root = os.environ.get("RBD_CACHE_DIR")
    if root:
        return Path(root)
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(home) / "rbd_ros"


_DIRECTORY = cache_directory() / sources_hash() if COMPILED else None


@contextlib.contextmanager
def _numba_cache() -> Iterator[None]:
    """numba's cache directory set for our kernels only, not for the user's own functions."""
    before = _numba_config.CACHE_DIR
    _numba_config.CACHE_DIR = str(_DIRECTORY)
    try:
        yield
    finally:
        _numba_config.CACHE_DIR = before


# Kernels leave out numba's counting of references to arrays, which costs as much as their arithmetic, where this numba
# can: such code may neither allocate nor return an array (test/test_kernels.py).
_BARE: dict[str, Any] = {}
if numba is not None and hasattr(numba.core.cpu.CPUTargetOptions, "_nrt"):
    _BARE = {"_nrt": False}


def kernel(function: Callable[..., Any]) -> Any:
    """A building block of kernels, compiled with its callers and for all types they use; never returns an array."""
    return numba.njit(forceinline=True, **_BARE, **_OPTIONS)(function) if COMPILED else function


def routine(function: Callable[..., Any]) -> Any:
    """A larger part of kernels, compiled once and called: inlined, several of these cost minutes of compilation."""
    return numba.njit(**_OPTIONS)(function) if COMPILED else function


def sweep(function: Callable[..., Any]) -> Any:
    """A routine that, like a kernel, neither allocates nor returns an array."""
    return numba.njit(**_BARE, **_OPTIONS)(function) if COMPILED else function


_ENTRIES: list[Entry] = []


class Entry:
    """An entry point of the compiled library: compiled for one signature, ahead or at its first call.

    Calling it with other types (lists, integers, strided arrays) raises `TypeError` at once instead of
    compiling anew.
    """

    def __init__(self, function: Callable[..., Any], signature: str, options: dict[str, Any]) -> None:
        self.name = function.__name__
        self.python = function
        self._signature = signature
        self._options = options | _OPTIONS
        self.call: Callable[..., Any] = self._first_call if COMPILED else _strict(function, signature)
        _ENTRIES.append(self)

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
        return _DIRECTORY is not None and any(_DIRECTORY.glob(f"*/*.{self.name}-*.nbc"))

    def compile(self) -> None:
        """Compile, or load from the cache."""
        if not COMPILED or self.call != self._first_call:
            return
        with _numba_cache(), warnings.catch_warnings():
            warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)
            dispatcher = numba.njit(**self._options)(self.python)
            with contextlib.suppress(RuntimeError):    # no writable cache: compile in each process
                dispatcher.enable_caching()
            dispatcher.compile(self._signature)
        dispatcher.disable_compile()
        # For other argument types numba would look for conversions and word a message, which takes 60 µs.
        dispatcher._search_new_conversions = lambda *arguments, **keywords: False
        dispatcher._explain_matching_error = _no_match
        self.call = dispatcher


def _strict(function: Callable[..., Any], signature: str) -> Callable[..., Any]:
    """The plain function, refusing arrays that the compiled one would refuse: other types, other dimensions."""
    kinds = re.findall(r"(\w+)(\[[^]]*\])?", signature.partition("(")[2])
    arrays = [(i, kind.replace("boolean", "bool"), axes.count(",") + 1) for i, (kind, axes) in enumerate(kinds) if axes]

    def call(*arguments: Any) -> Any:
        for i, kind, count in arrays:
            if arguments[i].dtype != kind or arguments[i].ndim != count:
                _no_match()
        return function(*arguments)

    return call


def _no_match(*arguments: Any, **keywords: Any) -> None:
    raise TypeError("no compiled version for these argument types")


def entry(signature: str, nogil: bool = False) -> Callable[[Callable[..., Any]], Entry]:
    """Decorator for an entry point with numba `signature`, e.g. `"int64(float64[::1], float64[::1])"`."""
    return lambda function: Entry(function, signature, {"nogil": nogil})


def quick_entry(signature: str) -> Callable[[Callable[..., Any]], Entry]:
    """Decorator for an entry point that, like a kernel, neither allocates nor returns an array: a call takes less time.

    It holds the interpreter's lock, so one workspace serves all calls (`RobotModel._work`).
    """
    return lambda function: Entry(function, signature, _BARE)


def is_cached() -> bool:
    """Whether nothing is left to compile: all that is known lies in the cache."""
    return all(item.cached() for item in _ENTRIES)


def compile_all(report: Callable[[str], None] | None = None) -> float:
    """Compile every entry point into the cache, reporting progress; returns the seconds it took."""
    start = time.perf_counter()
    for count, item in enumerate(_ENTRIES, 1):
        begin = time.perf_counter()
        item.compile()
        if report is not None:
            report(f"[{count}/{len(_ENTRIES)}] {item.name} ({time.perf_counter() - begin:.1f} s)")
    _prune()
    return time.perf_counter() - start


def _prune(keep: int = 8) -> None:
    """Delete the caches of older sources, all but the newest few."""
    if _DIRECTORY is None or not _DIRECTORY.parent.is_dir():
        return
    folders = sorted((p for p in _DIRECTORY.parent.iterdir() if p.is_dir() and len(p.name) == 16),
                     key=lambda p: p.stat().st_mtime, reverse=True)
    for folder in folders[keep:]:
        if folder != _DIRECTORY:
            shutil.rmtree(folder, ignore_errors=True)
