"""LLVM code → machine code in memory, cached on disk with the kernels."""
from __future__ import annotations

import contextlib
import ctypes
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import object_code
from ..compiled.cache import cache_directory, is_own
from ..compiled.versions import processor
from .program import NoProgram

KEPT = 400    # files of machine code in the cache
_engines: dict[str, Any] = {}    # by key; engines own the code


class Code(NamedTuple):
    """Code for batches: addresses of its functions; blocks of `group`; rows of `f`; number of operations."""

    f: int
    group: int
    rows_of: int
    rows_past: int
    blocks: int
    rows: int
    operations: int

    def numbers(self, whole_rows: int, outputs: int) -> NDArray[np.int64]:
        """Argument `code` of `compute_range`. whole_rows: `rows_of` or `rows_past`; outputs: numbers of a result."""
        return np.array([self.f, self.group, whole_rows, self.rows_of, self.blocks, self.rows, outputs], np.int64)


def code_of(key: str, text: Callable[[], str]) -> Code:
    """Code for batches from text of `llvm.printed`; arguments and errors as `call_of`."""
    engine = _engine(key, text)
    functions = (int(engine.get_function_address(name)) for name in ("f", "group", "rows_of", "rows_past"))
    return Code(*functions, *(_number(engine, name) for name in ("blocks", "rows", "operations")))


def is_kept(key: str) -> bool:
    """Whether the code is loaded or on disk."""
    hashed = _hash(key, object_code.machine())
    path = cache_directory() / "specialize" / f"{hashed}.o"
    return hashed in _engines or (path.exists() and is_own(path.parent))


def call_of(key: str, text: Callable[[], str]) -> tuple[int, int]:
    """Address of `call`, from text of `one_state.printed_for_one`; number of operations.

    key: of all dependencies of the code; text: returns the text, called if there is no code yet. Its `NoProgram` is
    raised, and cached like code.
    """
    engine = _engine(key, text)
    return int(engine.get_function_address("call")), _number(engine, "operations")


def _number(engine: Any, name: str) -> int:
    return ctypes.c_int64.from_address(engine.get_global_value_address(name)).value


def _engine(key: str, text: Callable[[], str]) -> Any:
    machine = object_code.machine()
    hashed = _hash(key, machine)
    if hashed not in _engines:
        path = cache_directory() / "specialize" / f"{hashed}.o"
        code = _read(path)
        if code is None:
            code = _translated(machine, path.with_suffix(".none"), text)
            _write(path, code)
        # keep an engine of another thread: its addresses may be in use
        _engines.setdefault(hashed, object_code.engine_of(code))
    return _engines[hashed]


def _translated(machine: Any, refusal: Path, text: Callable[[], str]) -> bytes:
    """Machine code of the text; `NoProgram`, from the cache if known."""
    import llvmlite
    import llvmlite.binding as llvm

    if tuple(map(int, llvmlite.__version__.split(".")[:2])) < (0, 45):    # older versions have typed pointers
        raise NoProgram(f"llvmlite {llvmlite.__version__} is older than 0.45, of numba 0.62")
    reason = _read(refusal)
    if reason is not None:
        raise NoProgram(reason.decode())
    try:
        return bytes(machine.emit_object(llvm.parse_assembly(text())))
    except NoProgram as none:
        _write(refusal, str(none).encode())
        raise


def _hash(key: str, machine: Any) -> str:
    import llvmlite

    whole = "\n".join([key, llvmlite.__version__, machine.triple, *processor().values()])
    return hashlib.sha256(whole.encode()).hexdigest()[:24]


def _read(path: Path) -> bytes | None:
    code = object_code.read(path)
    with contextlib.suppress(OSError):    # a read-only cache of another user
        if code is not None:
            path.touch()
    return code


def _write(path: Path, code: bytes) -> None:
    with contextlib.suppress(OSError):    # another process may delete the same
        if object_code.write(path, code):
            drop_oldest(path.parent, KEPT)


def drop_oldest(folder: Path, kept: int) -> None:
    """Delete all files but the newest."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.stat().st_mtime)[:-kept]:
        entry.unlink(missing_ok=True)
