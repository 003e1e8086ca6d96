"""From LLVM code to machine code in memory, kept on disk beside the kernels."""
from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..kernel_cache import cache_directory

KEPT = 200    # pieces of machine code
_engines: dict[str, Any] = {}    # by key; they own the code


def address_of(name: str, key: str, text: Callable[[], str]) -> int:
    """Where the function of this name begins in memory. key: of all that its code depends on; text: the LLVM code."""
    import llvmlite.binding as llvm

    machine = _machine()
    hashed = _hash(key, machine)
    if hashed in _engines:
        return int(_engines[hashed].get_function_address(name))
    path = cache_directory() / "specialize" / f"{hashed}.o"
    code = _read(path)
    if code is None:
        code = machine.emit_object(llvm.parse_assembly(text()))
        _write(path, code)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines[hashed] = engine
    return int(engine.get_function_address(name))


def _machine() -> Any:
    import llvmlite.binding as llvm

    with contextlib.suppress(RuntimeError):    # where it goes without
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True)


def _hash(key: str, machine: Any) -> str:
    import llvmlite
    import llvmlite.binding as llvm

    whole = "\n".join([key, llvmlite.__version__, machine.triple, llvm.get_host_cpu_name(),
                       llvm.get_host_cpu_features().flatten()])
    return hashlib.sha256(whole.encode()).hexdigest()[:24]


def _read(path: Path) -> bytes | None:
    try:
        code = path.read_bytes()
        path.touch()
    except OSError:
        return None
    return code


def _write(path: Path, code: bytes) -> None:
    """Whole or not at all; without a writable cache each process makes its own."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(code)
            Path(temporary).replace(path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
        oldest = sorted(path.parent.glob("*.o"), key=lambda each: each.stat().st_mtime)[:-KEPT]
        for each in oldest:
            each.unlink(missing_ok=True)
