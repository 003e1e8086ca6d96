"""Where compiled kernels are kept: one cache per content and machine, whichever checkout or installation asks.

numba keys its own cache by the path of the source file, and does not notice a change in a callee of another file.
Here the machine code of an entry lies in a folder named after its module and keyed by a hash of the sources that the
module imports, itself included, of Python, of numba and of the processor. So two checkouts with the same sources share
it, another processor that mounts the same home does not, and a change reaches what it must and nothing else.
"""
from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CORE = Path(__file__).parent
_IMPORT = re.compile(r"^[ \t]*from[ \t]+(\.+)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]+)", re.MULTILINE)
KEPT = 8    # versions of each module


def cache_directory() -> Path:
    """Folder of the compiled kernels: `$RBD_CACHE_DIR`, else `$XDG_CACHE_HOME/rbd_ros`, else `~/.cache/rbd_ros`."""
    root = os.environ.get("RBD_CACHE_DIR")
    if root:
        return Path(root)
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(home) / "rbd_ros"


def folder_of(module: str) -> Path:
    """Where the machine code of a module of the core lies, `rbd_ros.core.dynamics.inverse` for example."""
    name = module.partition(".core.")[2]
    return cache_directory() / name / _key(_file(_CORE, name.split(".")))


def dependencies(path: Path) -> list[Path]:
    """The files of the core that a file of it imports, directly or not, and the file itself; sorted."""
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _imports(file)
    return sorted(found)


@functools.cache
def _key(path: Path) -> str:
    digest = hashlib.sha256(_machine().encode())
    for file in dependencies(path):
        digest.update(file.relative_to(_CORE).as_posix().encode())
        digest.update(_text(file).encode())
    return digest.hexdigest()[:16]


@functools.cache
def _machine() -> str:
    import numba
    from llvmlite import binding
    features = sorted(name for name, present in binding.get_host_cpu_features().items() if present)
    return f"{sys.version_info[:3]} {numba.__version__} {binding.get_host_cpu_name()} {features}"


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _imports(path: Path) -> tuple[Path, ...]:
    """Files of the core that a file of it imports by a relative import, which is how the core imports itself."""
    found = []
    for dots, module, names in _IMPORT.findall(_text(path)):
        base = path.parents[len(dots) - 1]
        parts = module.split(".") if module else []
        for name in re.findall(r"\w+", names):    # a name may be a module itself
            found.append(_file(base, [*parts, name]) or _file(base, parts))
    return tuple(file for file in found if file is not None and file.is_relative_to(_CORE))


def _file(base: Path, parts: list[str]) -> Any:
    path = base.joinpath(*parts)
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def keep(dispatcher: Any, module: str) -> None:
    """Let a numba dispatcher find and leave its machine code in `folder_of(module)`, if that is writable.

    numba 0.59 to 0.68 have no public way for a cache that does not know paths; one without these classes uses its own.
    """
    try:
        from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
    except ImportError:
        dispatcher.enable_caching()
        return

    class Locator(_CacheLocator):    # type: ignore[misc]
        def __init__(self, py_file: str) -> None:
            self._py_file = py_file

        def get_cache_path(self) -> str:
            return str(folder_of(module))

        def get_source_stamp(self) -> str:    # the folder's name has it
            return "content"

        def get_disambiguator(self) -> str:
            return "entry"

        @classmethod
        def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Any:
            locator = cls(py_file)
            try:
                locator.ensure_cache_path()
            except OSError:
                return None
            return locator

    class Implementation(CompileResultCacheImpl):    # type: ignore[misc]
        _locator_classes = [Locator]    # noqa: RUF012

    class Cache(FunctionCache):    # type: ignore[misc]
        _impl_class = Implementation

    dispatcher._cache = Cache(dispatcher.py_func)


def prune() -> None:
    """Delete what older versions left, all but the newest few of each module."""
    root = cache_directory()
    if not root.is_dir():
        return
    for folder in root.iterdir():
        if not folder.is_dir():
            continue
        if re.fullmatch(r"[0-9a-f]{16}", folder.name):    # of a release that kept all modules in one folder
            shutil.rmtree(folder, ignore_errors=True)
            continue
        versions = sorted((p for p in folder.iterdir() if re.fullmatch(r"[0-9a-f]{16}", p.name)),
                          key=lambda p: p.stat().st_mtime, reverse=True)
        for old in versions[KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
