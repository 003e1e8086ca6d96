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
import tempfile
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


@functools.cache
def key_of_core() -> str:
    """Of all sources of the core, and of the machine."""
    digest = hashlib.sha256(_machine().encode())
    for file in sorted(_CORE.rglob("*.py")):
        digest.update(_text(file).encode())
    return digest.hexdigest()[:16]


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
    from .numba_inside import version
    return f"{sys.version_info[:3]} {version()}"


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


def is_writable() -> bool:
    """Whether anything can be kept, and so come back from another process."""
    try:
        cache_directory().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache_directory()):
            return True
    except OSError:
        return False


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
