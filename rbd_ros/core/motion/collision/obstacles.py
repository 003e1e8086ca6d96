"""Obstacles, tools and loads as data: lists of mappings, or YAML."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ...errors import RbdError, shown, unknown_name
from ...lie import se3
from ...model.checks.frames import frame_pose
from ...model.files.surface_yaml import frame, has_truth
from ...model.files.yaml_text import read_yaml
from ...model.inertia import Array, finite
from ...model.scalars import positive
from ...model.shapes.meshes import find_mesh, read_mesh, read_points
from ...model.shapes.shapes import Shape
from ...model.state import real
from .pieces import WORLD, mesh
from .voxels import MOST_BOXES, joined, occupied_cells

Obstacles: TypeAlias = Sequence[Mapping[str, Any]] | str | os.PathLike[str]
SIZES: dict[str, tuple[str, ...]] = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"),
                                     "capsule": ("radius", "length"), "plane": (), "mesh": (),
                                     "points": ("voxel_size",)}
OF_MESHES = ("file", "scale", "points")
# of the text of a stranger
MOST_OBSTACLES = 200
MOST_CORNERS = 2000      # points of all meshes together
LONGEST_NAME = 80        # characters
SMALLEST, LARGEST = 1e-6, 1e3    # m: sizes; no coordinate is larger


def read_obstacles(obstacles: Obstacles, link: str = WORLD, trusted: bool = True) -> dict[str, list[Shape]]:
    """Shapes by name, fixed to a link: one each, of points boxes. Raises `RbdError` naming the entry and what is wrong
    with it. Not trusted: a list or YAML text, never a path, that names no files and keeps the bounds above.
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
    shapes: dict[str, list[Shape]] = {}
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
        shapes[name] = _shapes(f"obstacle '{name[:80]}'", entry, link, folder)
    if not trusted:
        _check_bounds([(name, shape) for name, each in shapes.items() for shape in each])
    return shapes


def _check_untrusted(i: int, name: str, entry: Mapping[str, Any]) -> None:
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise RbdError(f"obstacles[{i}]: name is {shown(name)}, expected at most {LONGEST_NAME} characters, none of "
                       "them for control")
    if "file" in entry:
        raise RbdError(f"obstacle '{name}': names a file, which is not opened for this sender: give `points`")


def _check_bounds(shapes: Sequence[tuple[str, Shape]]) -> None:
    if len(shapes) > MOST_OBSTACLES + MOST_BOXES:
        raise RbdError(f"obstacles: {len(shapes)} shapes and boxes of clouds together, expected at most "
                       f"{MOST_OBSTACLES + MOST_BOXES}")
    corners = 0
    for name, shape in shapes:
        points = np.zeros((0, 3)) if shape.surface is None else shape.surface.points
        corners += len(points)
        if shape.size and not SMALLEST <= min(shape.size) <= max(shape.size) <= LARGEST:
            raise RbdError(f"obstacle '{name}': sizes are {shown(shape.size)}, expected {SMALLEST:g} to {LARGEST:g} m")
        if np.abs(shape.pose[:3, 3]).max() > LARGEST or np.abs(points).max(initial=0.0) > LARGEST:
            raise RbdError(f"obstacle '{name}': a coordinate is larger than {LARGEST:g} m")
    if corners > MOST_CORNERS:
        raise RbdError(f"obstacles: meshes of {corners} points together, expected at most {MOST_CORNERS}")


def _shapes(what: str, entry: Mapping[str, Any], link: str, folder: Path | None) -> list[Shape]:
    kind = entry.get("shape")
    if not isinstance(kind, str) or kind not in SIZES:
        raise unknown_name("shape", kind, SIZES, what)
    if kind == "plane" and link != WORLD:
        raise RbdError(f"{what}: a plane is endless, and can be an obstacle only: give a box")
    noun = "a cloud" if kind == "points" else f"a {kind}"
    keys = ("name", "shape", "frame", *SIZES[kind], *(OF_MESHES if kind in ("mesh", "points") else ()))
    for key, value in entry.items():
        if key not in keys:
            raise unknown_name("key", key, keys, f"{what}: {noun}")
        if has_truth(value):
            raise RbdError(f"{what}: {key}: expected a value other than true or false, got {shown(value)}")
    missing = [key for key in SIZES[kind] if key not in entry]
    if missing:
        raise RbdError(f"{what}: {noun} needs {', '.join(missing)}")
    where = entry.get("frame")
    pose = frame_pose(frame(f"{what}: frame", where) if isinstance(where, Mapping) else where, f"{what}: frame")
    if kind == "mesh":
        return [mesh(link, _points(what, entry, folder), "obstacle", f"{what}: points", pose)]
    if kind == "points":
        return _boxes(what, entry, link, pose, folder)
    if kind == "box":
        size = tuple(finite(entry["size"], (3,), f"{what}: size").tolist())
        if min(size) <= 0.0:
            raise RbdError(f"{what}: size must be three positive lengths (m), got {shown(entry['size'])}")
    else:
        size = tuple(positive(entry[key], f"{what}: {key}", "length (m)") for key in SIZES[kind])
    return [Shape(link, kind, pose, size, source="obstacle")]


def _boxes(what: str, entry: Mapping[str, Any], link: str, pose: Array, folder: Path | None) -> list[Shape]:
    """Boxes, along the axes of a pose (4, 4), of the voxels that hold points; those that are not finite are none."""
    size = positive(entry["voxel_size"], f"{what}: voxel_size", "length (m)")
    points = real(_points(what, entry, folder), f"{what}: points", "(N, 3)")
    if points.ndim != 2 or points.shape[1] != 3:
        raise RbdError(f"{what}: expected points (N, 3), got {shown(points)}")
    cells = occupied_cells(points, size, what)
    if not len(cells):
        raise RbdError(f"{what}: none of its {len(points)} points is finite")
    first, behind = joined(cells, what)
    poses = pose @ se3.from_rotation(np.eye(3), 0.5 * size * (first + behind))
    return [Shape(link, "box", each, tuple(sides), source="obstacle")
            for each, sides in zip(poses, (size * (behind - first)).tolist(), strict=True)]


def _points(what: str, entry: Mapping[str, Any], folder: Path | None) -> Any:
    """Points (N, 3) of a mesh or of points: `points`, or those of a `file`."""
    kind = entry["shape"]
    if ("file" in entry) == ("points" in entry):
        raise RbdError(f"{what}: a {'mesh' if kind == 'mesh' else 'cloud'} needs either file or points")
    if "points" in entry:
        return entry["points"]
    name = entry["file"]
    if not isinstance(name, str | os.PathLike):
        raise RbdError(f"{what}: file is {shown(name)}, expected a path")
    scale = entry.get("scale", 1.0)
    factors: Array = finite(scale, (3,) if isinstance(scale, Sequence) else (), f"{what}: scale")
    try:
        path = find_mesh(os.fspath(name), folder or Path.cwd() / "obstacles")
        points = read_points(path) if kind == "points" else np.concatenate([it.points for it in read_mesh(path)])
    except RbdError as error:
        raise RbdError(f"{what}: {error}") from None
    return points * factors
