"""Folders of ROS packages, for `package://NAME/…` and xacro's `$(find NAME)`: one search for both."""
from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from pathlib import Path

from ...errors import RbdError, shortened

NAME = re.compile(r"\w[\w.+-]*")
MANIFEST = re.compile(r"<name>\s*([^<\s]+)\s*</name>")
MOST = 2000    # packages that are looked at in one folder
REMEDY = ("Source the workspace that has it, clone it beside the description, or name its folder, or the one that "
          "holds it, in ROS_PACKAGE_PATH, in parameter 'package_folders' of a node, or by --package-folder of rbd")
_ADDED: ContextVar[tuple[str, ...]] = ContextVar("package_folders", default=())


@contextmanager
def package_folders(folders: Iterable[str]) -> Iterator[None]:
    """Within this context, look for packages at and below these folders first."""
    token = _ADDED.set(tuple(folders))
    try:
        yield
    finally:
        _ADDED.reset(token)


def package_folder(name: str, description: str | os.PathLike[str] | None = None, path: str = "") -> Path:
    """The folder of a package: the first that has this path, else the first. `RbdError` says what helps.

    Looked for at and below the folders of `package_folders`, in the sourced workspaces (AMENT_PREFIX_PATH), at and
    below the folders in ROS_PACKAGE_PATH, and at and beside each folder that holds the description, where a folder may
    be called otherwise than the package whose package.xml it holds. Beside a folder that every user may write to, as
    /tmp, nothing is looked for.
    """
    if not NAME.fullmatch(name):
        raise RbdError(f"'{shortened(name, 80)}' is no name of a package")
    first = None
    for folder in _folders(name, description):
        if (folder / path).exists():
            return folder
        first = first or folder
    if first is None:
        around = "" if description is None else " or around the description"
        raise RbdError(f"no package '{name[:80]}' in the environment (AMENT_PREFIX_PATH){around}. {REMEDY}")
    return first


def _folders(name: str, description: str | os.PathLike[str] | None) -> Iterator[Path]:
    for added in _ADDED.get():
        yield from _at(Path(added), name, True)
    for prefix in _listed("AMENT_PREFIX_PATH"):
        if (prefix / "share/ament_index/resource_index/packages" / name).exists():
            yield prefix / "share" / name
    for folder in _listed("ROS_PACKAGE_PATH"):
        yield from _at(folder, name, True)
    for folder in () if description is None else Path(description).resolve().parents:
        yield from _at(folder, name, folder.is_dir() and not folder.stat().st_mode & 0o002)


def _listed(variable: str) -> list[Path]:
    return [Path(entry) for entry in os.environ.get(variable, "").split(os.pathsep) if entry]


def _at(folder: Path, name: str, below: bool) -> Iterator[Path]:
    """This folder if it is the package, and those right below it."""
    if folder.name == name or _named(folder / "package.xml") == name:
        yield folder
    if below:
        if (folder / name).is_dir():
            yield folder / name
        yield from (manifest.parent for manifest in islice(folder.glob("*/package.xml"), MOST)
                    if _named(manifest) == name)


def _named(manifest: Path) -> str:
    try:
        with manifest.open(encoding="utf-8") as file:
            found = MANIFEST.search(file.read(10_000))
    except (OSError, UnicodeDecodeError):
        return ""
    return found[1] if found else ""
