"""Locating and reading mesh files of a robot description."""
from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import RbdError
from ..files.xml_tree import PACKAGE, in_package, prefixes
from ..inertia import Array
from .collada import read_collada
from .shapes import GREY, Surface

FORMATS = (".stl", ".dae", ".obj", ".ply", ".off", ".glb", ".gltf")
BINARY = (".stl", ".ply", ".glb")
CLOUDS = (".npy", ".ply")
LARGEST = 256 * 2**20    # bytes
LONGEST = 64 * 2**20     # bytes of text files, which need several times as much memory


def find_mesh(name: str, description: Path | None) -> Path:
    """The file of `<mesh filename>`; raises `RbdError`, listing the searched places.

    `package://name/path`: as `package_folder` finds it. Other names are paths, relative to the description's folder.

    A description given as text, e.g. from a topic, may only use meshes of packages (description: None).
    """
    folders = [] if description is None else list(description.resolve().parents)
    if name.startswith(PACKAGE):
        return _there(Path(in_package(name, description)))
    path = name.removeprefix("file://")
    if "://" in path:
        raise RbdError(f"'{name[:200]}': only package:// and file:// are looked up")
    if not folders and not any(os.path.normpath(path).startswith(os.path.join(prefix, "share", ""))
                               for prefix in prefixes()):
        raise RbdError(f"'{name[:200]}' is in no package of the environment (AMENT_PREFIX_PATH), and the description "
                       "is text, which may use meshes of packages only: give its file")
    return _there(folders[0] / path if folders else Path(os.path.normpath(path)))


def _there(path: Path) -> Path:
    if not os.path.isfile(path):    # False for invalid file names, too
        raise RbdError(f"there is no file '{str(path)[:200]}'")
    return path


@lru_cache(maxsize=256)
def read_mesh(path: Path) -> tuple[Surface, ...]:
    """The surfaces of a file, in its own unit and axes; raises `RbdError` for an unreadable file."""
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise RbdError(f"'{path.name}': meshes are read from {', '.join(FORMATS)}")
    limit = LARGEST if kind in BINARY else LONGEST
    if path.stat().st_size > limit:
        raise RbdError(f"'{path.name}' is larger than {limit >> 20} MiB")
    try:
        if kind in (".glb", ".gltf"):
            _check_gltf(path)
        surfaces = read_collada(path) if kind == ".dae" else _by_trimesh(path)
    except RbdError as error:
        raise RbdError(f"cannot read '{path.name}': {error}") from None
    good = tuple(surface for surface in surfaces if len(surface.faces) and np.isfinite(surface.points).all())
    if not good:
        raise RbdError(f"'{path.name}' holds no triangles")
    return good


def read_points(path: Path) -> Array:
    """The points (N, 3) of a .npy array or a .ply file; raises `RbdError` for an unreadable file."""
    kind = path.suffix.lower()
    if kind not in CLOUDS:
        raise RbdError(f"'{path.name}': points are read from {', '.join(CLOUDS)}")
    if path.stat().st_size > LARGEST:
        raise RbdError(f"'{path.name}' is larger than {LARGEST >> 20} MiB")
    try:
        points = np.asarray(np.load(path) if kind == ".npy" else _trimesh().load(path, process=False).vertices)
        points = points.astype(np.float64, casting="same_kind")
    except RbdError as error:
        raise RbdError(f"cannot read '{path.name}': {error}") from None
    except Exception as error:    # any exception of these readers for a corrupt file
        raise RbdError(f"cannot read '{path.name}': {type(error).__name__}: {str(error)[:120]}") from None
    if points.ndim != 2 or points.shape[1] != 3:
        raise RbdError(f"'{path.name}' has an array of shape {points.shape}, expected (N, 3)")
    return points


def _check_gltf(path: Path) -> None:
    """Raise `RbdError` for a glTF file that expands to huge arrays; other readers allocate any declared length."""
    data = path.read_bytes()
    if data[:4] == b"glTF":
        data = data[20:20 + int.from_bytes(data[12:16], "little")]
    try:
        tree = json.loads(data)
        accessors, meshes = tree.get("accessors", ()), tree.get("meshes", ())
        corners = [sum(abs(accessors[i]["count"]) for piece in mesh["primitives"]
                       for i in (piece["attributes"].get("POSITION"), piece.get("indices")) if i is not None)
                   for mesh in meshes]
        files = [path.parent / item["uri"] for item in tree.get("buffers", ())
                 if "uri" in item and not item["uri"].startswith("data:")]
        sums = {"numbers": 16 * sum(abs(item["count"]) for item in accessors),
                "bytes of views": sum(abs(item["byteLength"]) for item in tree.get("bufferViews", ())),
                "bytes of buffers": sum(os.path.getsize(file) for file in files),
                "corners": 16 * sum(corners[node["mesh"]] for node in tree.get("nodes", ()) if "mesh" in node)}
    except (OSError, ValueError, KeyError, IndexError, AttributeError, TypeError, RecursionError) as error:
        raise RbdError(f"no glTF: {type(error).__name__}: {str(error)[:120]}") from None
    for quantity, total in sums.items():
        if not 0 <= total <= LARGEST:
            raise RbdError(f"it names {total} {quantity}, counting every instance, expected at most {LARGEST}")


def _trimesh() -> Any:
    try:
        import trimesh
    except ImportError:
        raise RbdError("that needs the package trimesh (`pip install trimesh`)") from None
    return trimesh


def _by_trimesh(path: Path) -> list[Surface]:
    trimesh = _trimesh()
    flat = path.suffix.lower() == ".stl"
    try:
        scene = trimesh.load_scene(path, process=flat)    # joins the corners of an STL file
        parts = [part for part in scene.dump() if isinstance(part, trimesh.Trimesh)]
        return [Surface(np.asarray(part.vertices, dtype=np.float64), np.asarray(part.faces, dtype=np.int64),
                        _colour(part), flat) for part in parts]
    except Exception as error:    # any exception of its readers for a corrupt file
        raise RbdError(f"{type(error).__name__}: {str(error)[:120]}") from None


def _colour(part: object) -> tuple[float, float, float, float]:
    """The diffuse colour of the part's material, grey without one."""
    visual = getattr(part, "visual", None)
    material = getattr(visual, "material", None)
    if getattr(visual, "defined", False) and material is not None and getattr(material, "image", None) is None:
        red, green, blue = (float(value) / 255.0 for value in np.ravel(material.main_color)[:3])
        return red, green, blue, 1.0
    return GREY
