"""Machine code as object files in the cache, and loaded into this process by llvmlite."""
from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import zlib
from pathlib import Path
from typing import Any

from .cache import is_own, prepare


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


@functools.cache
def processor() -> dict[str, str]:
    """Name and features, as llvmlite's targets take them."""
    import llvmlite.binding as llvm

    return {"cpu": llvm.get_host_cpu_name(), "features": llvm.get_host_cpu_features().flatten()}


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
