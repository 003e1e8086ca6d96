"""Obstacles, tools and loads as data: lists of mappings, or YAML."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ...errors import RbdError, shown, unknown_name
from ...model.checks.frames import frame_pose
from ...model.files.surface_yaml import frame, has_truth
from ...model.files.yaml_text import read_yaml
from ...model.inertia import Array, finite
from ...model.scalars import positive
from ...model.shapes.meshes import find_mesh, read_mesh
from ...model.shapes.shapes import Shape
from .pieces import WORLD, mesh

Obstacles: TypeAlias = Sequence[Mapping[str, Any]] | str | os.PathLike[str]
SIZES: dict[str, tuple[str, ...]] = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"),
                                     "capsule": ("radius", "length"), "plane": (), "mesh": ()}
OF_MESHES = ("file", "scale", "points")
# of the text of a stranger
MOST_OBSTACLES = 200
MOST_CORNERS = 2000      # points of all meshes together
LONGEST_NAME = 80        # characters
SMALLEST, LARGEST = 1e-6, 1e3    # m: sizes; no coordinate is larger


def read_obstacles(obstacles: Obstacles, link: str = WORLD, trusted: bool = True) -> dict[str, Shape]:
    """Shapes by name, fixed to a link; raises `RbdError` naming the entry and what is wrong with it. Not trusted: a
    list or YAML text, never a path, that names no files and keeps the bounds above.
    """
    folder: Path | None = None
    if not trusted:
        if isinstance(obstacles, os.PathLike):
            raise RbdError(f"obstacles: expected a list or YAML text, got {shown(obstacles)}")
        if isinstance(obstacles, str):
            obstacles += "\n"    # no path has a line break
    if isinstance(obstacles, str | os.PathLike):
        data, source = read_yaml(obstacles, "obstacles")
        if source.startswith("'"):
            folder = Path(obstacles)
        if not isinstance(data, Mapping) or list(data) != ["obstacles"]:
            raise RbdError(f"{source}: expected `obstacles:` and a list, got {shown(data)}")
        obstacles = [] if data["obstacles"] is None else data["obstacles"]
    if not isinstance(obstacles, Sequence) or isinstance(obstacles, str | bytes):
        raise RbdError(f"obstacles: expected a list of mappings or a YAML file, got {shown(obstacles)}")
    if not trusted and len(obstacles) > MOST_OBSTACLES:
        raise RbdError(f"obstacles: {len(obstacles)} of them, expected at most {MOST_OBSTACLES}")
    shapes: dict[str, Shape] = {}
    for i, entry in enumerate(obstacles):
        if not isinstance(entry, Mapping):
            raise RbdError(f"obstacles[{i}]: expected {{name: …, shape: …}}, got {shown(entry)}")
        name = entry.get("name", f"obstacle_{i}")
        if not isinstance(name, str) or not name.strip():
            raise RbdError(f"obstacles[{i}]: name is {shown(name)}, expected a text")
        if name in shapes:
            raise RbdError(f"obstacles[{i}]: the name '{name[:80]}' is given twice")
        if not trusted:
            _check_untrusted(i, name, entry)
        shapes[name] = _shape(f"obstacle '{name[:80]}'", entry, link, folder)
    if not trusted:
        _check_bounds(shapes)
    return shapes


def _check_untrusted(i: int, name: str, entry: Mapping[str, Any]) -> None:
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise RbdError(f"obstacles[{i}]: name is {shown(name)}, expected at most {LONGEST_NAME} characters, none of "
                       "them for control")
    if "file" in entry:
        raise RbdError(f"obstacle '{name}': names a file, which is not opened for this sender: give `points`")


def _check_bounds(shapes: Mapping[str, Shape]) -> None:
    corners = 0
    for name, shape in shapes.items():
        points = np.zeros((0, 3)) if shape.surface is None else shape.surface.points
        corners += len(points)
        if shape.size and not SMALLEST <= min(shape.size) <= max(shape.size) <= LARGEST:
            raise RbdError(f"obstacle '{name}': sizes are {shown(shape.size)}, expected {SMALLEST:g} to {LARGEST:g} m")
        if np.abs(shape.pose[:3, 3]).max() > LARGEST or np.abs(points).max(initial=0.0) > LARGEST:
            raise RbdError(f"obstacle '{name}': a coordinate is larger than {LARGEST:g} m")
    if corners > MOST_CORNERS:
        raise RbdError(f"obstacles: meshes of {corners} points together, expected at most {MOST_CORNERS}")


def _shape(what: str, entry: Mapping[str, Any], link: str, folder: Path | None) -> Shape:
    kind = entry.get("shape")
    if not isinstance(kind, str) or kind not in SIZES:
        raise unknown_name("shape", kind, SIZES, what)
    if kind == "plane" and link != WORLD:
        raise RbdError(f"{what}: a plane is endless, and can be an obstacle only: give a box")
    keys = ("name", "shape", "frame", *SIZES[kind], *(OF_MESHES if kind == "mesh" else ()))
    for key, value in entry.items():
        if key not in keys:
            raise unknown_name("key", key, keys, f"{what}: a {kind}")
        if has_truth(value):
            raise RbdError(f"{what}: {key}: expected a value other than true or false, got {shown(value)}")
    missing = [key for key in SIZES[kind] if key not in entry]
    if missing:
        raise RbdError(f"{what}: a {kind} needs {', '.join(missing)}")
    where = entry.get("frame")
    pose = frame_pose(frame(f"{what}: frame", where) if isinstance(where, Mapping) else where, f"{what}: frame")
    if kind == "mesh":
        return mesh(link, _points(what, entry, folder), "obstacle", f"{what}: points", pose)
    if kind == "box":
        size = tuple(finite(entry["size"], (3,), f"{what}: size").tolist())
        if min(size) <= 0.0:
            raise RbdError(f"{what}: size must be three positive lengths (m), got {shown(entry['size'])}")
    else:
        size = tuple(positive(entry[key], f"{what}: {key}", "length (m)") for key in SIZES[kind])
    return Shape(link, kind, pose, size, source="obstacle")


def _points(what: str, entry: Mapping[str, Any], folder: Path | None) -> Any:
    """Points (N, 3) of a mesh: `points`, or those of a `file`."""
    if ("file" in entry) == ("points" in entry):
        raise RbdError(f"{what}: a mesh needs either file or points")
    if "points" in entry:
        return entry["points"]
    name = entry["file"]
    if not isinstance(name, str | os.PathLike):
        raise RbdError(f"{what}: file is {shown(name)}, expected a path")
    scale = entry.get("scale", 1.0)
    factors: Array = finite(scale, (3,) if isinstance(scale, Sequence) else (), f"{what}: scale")
    try:
        surfaces = read_mesh(find_mesh(os.fspath(name), folder or Path.cwd() / "obstacles"))
    except RbdError as error:
        raise RbdError(f"{what}: {error}") from None
    return np.concatenate([surface.points for surface in surfaces]) * factors
