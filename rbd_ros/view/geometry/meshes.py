"""Mesh files of a robot description: where they are, and what is in them."""
from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import numpy as np

from ...core.errors import RbdError
from ...core.model.files.xml_tree import PACKAGE, in_package
from .collada import read_collada
from .shapes import GREY, Surface

FORMATS = (".stl", ".dae", ".obj", ".ply", ".off", ".glb", ".gltf")
LARGEST = 256 * 2**20    # bytes


def find_mesh(name: str, description: Path | None) -> Path:
    """The file that `<mesh filename>` names; `RbdError` says where it is not.

    `package://name/path`: in the ament packages of the environment; else in a folder of that name at or beside one of
    the folders that hold the description. Other names are paths, relative to the description's folder.
    """
    folders = [] if description is None else list(description.resolve().parents)
    if name.startswith(PACKAGE):
        try:
            return _there(Path(in_package(name)))
        except RbdError as error:
            package, _, rest = name.removeprefix(PACKAGE).partition("/")
            for folder in folders:
                for root in (folder, folder / package) if folder.name == package else (folder / package,):
                    if (root / rest).is_file():
                        return root / rest
            raise RbdError(f"{error}; and no folder '{package[:80]}' around the description has it") from None
    if name.startswith("file://"):
        return _there(Path(name.removeprefix("file://")))
    if "://" in name:
        raise RbdError(f"'{name[:200]}': only package:// and file:// are looked up")
    return _there((folders[0] if folders else Path(os.curdir)) / name)


def _there(path: Path) -> Path:
    if not path.is_file():
        raise RbdError(f"there is no file '{str(path)[:200]}'")
    return path


@lru_cache(maxsize=256)
def read_mesh(path: Path) -> tuple[Surface, ...]:
    """The surfaces in a file, in its own unit and axes; `RbdError` says why it cannot be read."""
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise RbdError(f"'{path.name}': meshes are read from {', '.join(FORMATS)}")
    if path.stat().st_size > LARGEST:
        raise RbdError(f"'{path.name}' is larger than {LARGEST >> 20} MiB")
    try:
        found = read_collada(path) if kind == ".dae" else _by_trimesh(path)
    except RbdError as error:
        raise RbdError(f"cannot read '{path.name}': {error}") from None
    good = tuple(surface for surface in found if len(surface.faces) and np.isfinite(surface.points).all())
    if not good:
        raise RbdError(f"'{path.name}' holds no triangles")
    return good


def _by_trimesh(path: Path) -> list[Surface]:
    try:
        import trimesh
    except ImportError:
        raise RbdError("that needs the package trimesh (`pip install trimesh`)") from None
    flat = path.suffix.lower() == ".stl"
    try:
        scene = trimesh.load_scene(path, process=flat)    # joins the corners of an STL file
        parts = [part for part in scene.dump() if isinstance(part, trimesh.Trimesh)]
        return [Surface(np.asarray(part.vertices, dtype=np.float64), np.asarray(part.faces, dtype=np.int64),
                        _colour(part), flat) for part in parts]
    except Exception as error:    # whatever its readers raise of a broken file
        raise RbdError(f"{type(error).__name__}: {str(error)[:120]}") from None


def _colour(part: object) -> tuple[float, float, float, float]:
    """The diffuse colour of its material, grey where it has none."""
    visual = getattr(part, "visual", None)
    material = getattr(visual, "material", None)
    if getattr(visual, "defined", False) and material is not None and getattr(material, "image", None) is None:
        red, green, blue = (float(value) / 255.0 for value in np.ravel(material.main_color)[:3])
        return red, green, blue, 1.0
    return GREY
