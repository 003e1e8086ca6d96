"""Machine code as object files in the cache, and loaded into this process by llvmlite, without numba.

Uses internals of numba like `linking`, whose table continues here. Tested with numba 0.68.1.

| here | in numba | without it |
|---|---|---|
| `_add_functions` | the tables `c_helpers` of its extensions `_helperlib` and `_nrt_python`, that machine code calls their functions by the names `numba_…` and `NRT_…`, and `memsys_use_cpython_allocator` | numba is imported before machine code is loaded, which takes a quarter of a second |
"""    # noqa: E501
from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib
import importlib.util
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from pathlib import Path
from typing import Any, NamedTuple

from .cache import is_own, prepare
from .versions import processor


class Code(NamedTuple):
    """Machine code `int64_t f(int64_t *words)`, or `double f(…)` for a float64. loaded: from the cache."""

    address: int
    owner: Any
    loaded: bool


def file_of(python: Callable[..., Any], signature: str) -> str:
    """Name of the file of an entry's code, in the folder of its module; "" for closures, whose code is not kept."""
    code = python.__code__
    if python.__closure__:
        return ""
    key = f"{python.__qualname__} {code.co_firstlineno} {signature} {code.co_code.hex()}"
    return f"{python.__name__}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.o"


def loaded(path: Path) -> Code | None:
    """The code of an entry from its file, if kept."""
    kept = read(path)
    if kept is None:
        return None
    names, code = kept.split(b"\n", 1)
    name, *called = names.decode().split()
    if not _are_known(called):
        return None
    engine = engine_of(code)
    return Code(engine.get_function_address(name), engine, True)


def keep(path: Path, name: str, called: Iterable[str], code: bytes) -> None:
    """Write the code of an entry for `loaded`. name: of its function; called: names of the functions that it calls."""
    write(path, f"{' '.join([name, *called])}\n".encode() + code)


def _are_known(names: Iterable[str]) -> bool:
    """Whether llvmlite finds these functions, among them those of the C library; without one it aborts the process."""
    import llvmlite.binding as llvm

    process = ctypes.CDLL(None)
    others = [name for name in names if not hasattr(process, name)]
    with contextlib.suppress(ImportError, AttributeError):    # another numba
        _add_functions()
    if not all(map(llvm.address_of_symbol, others)):
        importlib.import_module(".linking", __package__).add_functions()
    return all(map(llvm.address_of_symbol, others))


@functools.cache
def _add_functions() -> None:
    """Register with llvmlite the functions of numba that machine code calls: for arrays, and for errors."""
    import llvmlite.binding as llvm

    memory = _extension("numba.core.runtime._nrt_python")
    memory.memsys_use_cpython_allocator()    # as numba does when it is imported, perhaps later: while arrays exist
    for prefix, module in (("numba_", _extension("numba._helperlib")), ("NRT_", memory)):
        for function, address in module.c_helpers.items():
            llvm.add_symbol(f"{prefix}{function}", address)


def _extension(name: str) -> Any:
    """An extension of numba, as numba itself would import it, but without its packages."""
    if name in sys.modules:
        return sys.modules[name]
    package, *folders = name.split(".")[:-1]
    spec = importlib.util.find_spec(package)
    folder = Path(str(spec and spec.origin)).parent.joinpath(*folders)
    spec = FileFinder(str(folder), (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} has no extension '{name}'")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules.pop(name, None)    # for numba, if it is imported later
    return module


def engine_of(code: bytes) -> Any:
    """llvmlite's engine, which owns the loaded object file and has the addresses of its functions."""
    import llvmlite.binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def machine() -> Any:
    """llvmlite's target: this processor."""
    import llvmlite.binding as llvm

    with contextlib.suppress(RuntimeError):    # optional
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    # opt: 2 and 3 take longer, without gain for straight-line code
    return llvm.Target.from_default_triple().create_target_machine(**processor(), opt=1, jit=True)


def read(path: Path) -> bytes | None:
    """What `write` has written; None if there is nothing, or it is damaged, or others may have written it."""
    try:
        content = path.read_bytes() if is_own(path.parent) else b""
    except OSError:
        return None
    code = content[4:]
    return code if content and content[:4] == _sum(code) else None


def write(path: Path, code: bytes) -> bool:
    """Write atomically; false without a writable cache: every process compiles its code."""
    with contextlib.suppress(OSError):
        if not prepare(path.parent):
            return False
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_sum(code) + code)
            Path(temporary).replace(path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
        return True
    return False


def _sum(code: bytes) -> bytes:
    return zlib.crc32(code).to_bytes(4, "little")
