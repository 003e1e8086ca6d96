"""Folders of ROS packages, for `package://NAME/…` and xacro's `$(find NAME)`."""
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
MAX_PACKAGES = 2000    # packages searched in one folder
REMEDY = ("Source the workspace that has it, clone it beside the description, or name its folder, or the one that "
          "holds it, in ROS_PACKAGE_PATH, in parameter 'package_folders' of a node, or by --package-folder of rbd")
_ADDED: ContextVar[tuple[str, ...]] = ContextVar("package_folders", default=())


@contextmanager
def package_folders(folders: Iterable[str]) -> Iterator[None]:
    """Context in which packages at and below these folders come first."""
    token = _ADDED.set(tuple(folders))
    try:
        yield
    finally:
        _ADDED.reset(token)


def package_folder(name: str, description: str | os.PathLike[str] | None = None, path: str = "") -> Path:
    """The package's first folder that contains `path`, else its first folder; `RbdError` with a remedy if none.

    Order: at and below the folders of `package_folders`, sourced workspaces (AMENT_PREFIX_PATH), at and below the
    folders in ROS_PACKAGE_PATH, at and below each parent folder of the description. A folder's name may differ from
    the name in its package.xml. World-writable parent folders, as /tmp, are not searched below.
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
        yield from _candidates(Path(added), name, True)
    for prefix in _listed("AMENT_PREFIX_PATH"):
        if (prefix / "share/ament_index/resource_index/packages" / name).exists():
            yield prefix / "share" / name
    for folder in _listed("ROS_PACKAGE_PATH"):
        yield from _candidates(folder, name, True)
    for folder in () if description is None else Path(description).resolve().parents:
        yield from _candidates(folder, name, folder.is_dir() and not folder.stat().st_mode & 0o002)


def _listed(variable: str) -> list[Path]:
    return [Path(entry) for entry in os.environ.get(variable, "").split(os.pathsep) if entry]


def _candidates(folder: Path, name: str, below: bool) -> Iterator[Path]:
    """The folder itself and, with `below`, its subfolders, as far as they are the package."""
    if folder.name == name or _named(folder / "package.xml") == name:
        yield folder
    if below:
        if (folder / name).is_dir():
            yield folder / name
        yield from (manifest.parent for manifest in islice(folder.glob("*/package.xml"), MAX_PACKAGES)
                    if _named(manifest) == name)


def _named(manifest: Path) -> str:
    try:
        with manifest.open(encoding="utf-8") as file:
            match = MANIFEST.search(file.read(10_000))
    except (OSError, UnicodeDecodeError):
        return ""
    return match[1] if match else ""
