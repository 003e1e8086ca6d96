"""Cache of compiled kernels, by content and machine, shared by all checkouts and installations.

numba's cache is keyed by the path of the source file, and ignores changes in callees of other files. Here the machine
code of an entry is in a folder named after its module and a hash of the sources that the module imports, itself
included, of Python, of numba and of the processor. Checkouts with equal sources share code, different processors with
the same home do not, and a change invalidates exactly the dependent code. Writers of the cache can execute code as its
user: `is_own` is checked before loading and storing.
"""
from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from ..errors import warn
from .versions import processor, versions

_CORE = Path(__file__).parents[1]
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
    """Folder of the machine code of a module of the core, `rbd_ros.core.dynamics.inverse` for example, or of another
    one with entries of its own, which depends on its file and all of the core. Raises `RuntimeError` without a file.
    """
    name = module.partition(".core.")[2]
    if name:
        return cache_directory() / name / _key(_file(name.replace(".", "/")))
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        raise RuntimeError(f"module '{module}' has no file: its compiled code is not kept")
    return cache_directory() / f"outside.{module}" / _key_of_outsider(Path(file))


@functools.cache
def key_of_core() -> str:
    """Hash of all sources of the core and of the machine."""
    digest = hashlib.sha256(_machine().encode())
    for file in sorted(_CORE.rglob("*.py")):
        digest.update(_text(file).encode())
    return digest.hexdigest()[:16]


def dependencies(path: Path) -> list[Path]:
    """A file of the core and the files of the core that it imports, directly or not, sorted; of another file, that file
    alone.
    """
    if not path.is_relative_to(_CORE):
        return [path]
    return [_CORE / file for file in _reached(path.relative_to(_CORE).as_posix())]


def _reached(file: str) -> list[str]:
    """`dependencies` by paths relative to the core: text, because `Path` would take 0.1 s at the start of each node."""
    files: set[str] = set()
    waiting = [file]
    while waiting:
        file = waiting.pop()
        if file not in files:
            files.add(file)
            waiting += _imports(file)
    return sorted(files, key=lambda file: file.split("/"))


@functools.cache
def _key(file: str) -> str:
    digest = hashlib.sha256(_machine().encode())
    for each in _reached(file):
        digest.update(each.encode())
        digest.update(_text(_CORE / each).encode())
    return digest.hexdigest()[:16]


@functools.cache
def _key_of_outsider(path: Path) -> str:
    return hashlib.sha256(f"{key_of_core()}{_text(path)}".encode()).hexdigest()[:16]


@functools.cache
def _machine() -> str:
    return f"{versions()} {processor()}"


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _imports(file: str) -> tuple[str, ...]:
    """Files of the core that a file imports by relative imports, the only kind within the core."""
    folders = file.split("/")[:-1]
    files = []
    for dots, module, names in _IMPORT.findall(_text(_CORE / file)):
        if len(dots) <= len(folders) + 1:    # within the core
            parts = folders[:len(folders) + 1 - len(dots)] + (module.split(".") if module else [])
            for name in re.findall(r"\w+", names):    # the name may be a module
                files.append(_file("/".join([*parts, name])) or _file("/".join(parts)))
    return tuple(filter(None, files))


@functools.cache
def _file(module: str) -> str:
    """Of a module of the core, both relative to it; "" for what is none."""
    return next((file for file in (f"{module}.py", f"{module}/__init__.py") if os.path.isfile(_CORE / file)), "")


def is_writable() -> bool:
    """Whether code can be stored, for other processes."""
    root = cache_directory()
    try:
        if not prepare(root):
            return False
        with tempfile.TemporaryFile(dir=root):
            return True
    except OSError:
        return False


def prepare(folder: Path) -> bool:
    """Create a folder of the cache, private to the user, if missing; whether it is private. Raises `OSError`."""
    root = cache_directory()
    root.parent.mkdir(parents=True, exist_ok=True)
    for path in _down_to(folder):
        path.mkdir(mode=0o700, exist_ok=True)
    return is_own(folder)


_OWN: dict[Path, bool] = {}    # checked folders; only this user and root can change them since


def is_own(folder: Path) -> bool:
    """Whether only this user and root can write a folder of the cache and its files; warns otherwise."""
    root = cache_directory()
    if folder != root and not is_own(root):    # already warned
        return False
    if folder not in _OWN:
        within: list[Path] = []
        with contextlib.suppress(OSError):
            within = list(folder.iterdir())
        open_to = folder.stat().st_mode if within else 0    # no access to the folder, no writing in it
        why = next(filter(None, [*map(_written_by_others, _down_to(folder)),
                                 *(_written_by_others(file, open_to) for file in within)]), "")
        if why:
            warn(f"the cache of machine code is not used: {why}, so that it may hold code of others, which would run "
                 "as you. Delete it, or `chmod -R go-w` it if you trust what is there, or set RBD_CACHE_DIR to a "
                 "folder of your own")
        elif not folder.is_dir():    # not yet created; another user could
            return True
        _OWN[folder] = not why
    return _OWN[folder]


def _down_to(folder: Path) -> list[Path]:
    """Folders from the cache's root to `folder`, itself included; only `folder` if outside the cache."""
    root = cache_directory()
    return [path for path in reversed((folder, *folder.parents)) if path.is_relative_to(root)] or [folder]


def _written_by_others(path: Path, open_to: int = 0o011) -> str:
    """Other users with write access, "" if none. open_to: mode of the folder, whose x bits give access."""
    try:
        status = path.stat()
    except OSError:
        return ""    # nothing to load
    if status.st_uid not in (os.geteuid(), 0):
        return f"'{path}' belongs to another user ({status.st_uid})"
    if status.st_mode & 0o002 and open_to & 0o001:
        return f"all users may write '{path}'"
    if status.st_mode & 0o020 and open_to & 0o010 and not _is_private(status.st_gid):
        return f"group {status.st_gid} may write '{path}'"
    return ""


@functools.cache
def _is_private(group: int) -> bool:
    """Whether this user is the only member of the group, a user private group of the same name."""
    try:
        import grp
        import pwd
        user, entry = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except (ImportError, KeyError):
        return False
    return group == user.pw_gid and entry.gr_name == user.pw_name and not set(entry.gr_mem) - {user.pw_name}


def prune() -> None:
    """Delete cached code of older versions, except the newest few of each module."""
    root = cache_directory()
    if not root.is_dir() or not is_own(root):
        return
    for folder in root.iterdir():
        if not folder.is_dir():
            continue
        if re.fullmatch(r"[0-9a-f]{16}", folder.name):    # of an older release: one folder for all modules
            shutil.rmtree(folder, ignore_errors=True)
            continue
        versions = sorted((p for p in folder.iterdir() if re.fullmatch(r"[0-9a-f]{16}", p.name)),
                          key=lambda p: p.stat().st_mtime, reverse=True)
        for old in versions[KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
