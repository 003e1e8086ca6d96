"""Shapes of one `<visual>` or `<collision>` element of a robot description."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from ...errors import RbdError
from ...lie import se3
from ..inertia import Array
from .meshes import find_mesh, read_mesh
from .shapes import GREY, Colour, Shape

PRIMITIVES: dict[str, tuple[tuple[str, int], ...]] = {    # attributes with their counts
    "box": (("size", 3),), "cylinder": (("radius", 1), ("length", 1)), "capsule": (("radius", 1), ("length", 1)),
    "sphere": (("radius", 1),)}


def read_shapes(element: ElementTree.Element, link: str, file: Path | None, colour: Colour | None = None,
                source: str = "collision") -> list[Shape]:
    """Shapes of a link's element: one, or one per surface of a mesh. file: of the description, None if it came as text;
    colour: None for a mesh's own. Raises `RbdError` for an unknown shape, invalid numbers and an unreadable mesh.
    """
    geometry = element.find("geometry")
    if geometry is None or not len(geometry):
        raise RbdError(f"<{element.tag}> has no geometry")
    pose = _pose(element.find("origin"))
    shape = geometry[0]
    if shape.tag in PRIMITIVES:
        size = tuple(value for name, count in PRIMITIVES[shape.tag]
                     for value in read_numbers(shape.get(name, ""), count, shape.tag))
        if min(size) <= 0.0:
            raise RbdError(f"<{shape.tag}> has a size of {min(size):g}")
        return [Shape(link, shape.tag, pose, size, colour or GREY, source=source)]
    if shape.tag != "mesh":
        raise RbdError(f"<{shape.tag[:40]}> is no known shape, expected {', '.join(PRIMITIVES)} or mesh")
    scale = np.array(read_numbers(shape.get("scale", "1 1 1"), 3, "mesh scale"))
    surfaces = read_mesh(find_mesh(shape.get("filename", ""), file))
    flipped = np.prod(scale) < 0.0
    return [Shape(link, "mesh", pose, (), colour or surface.colour,
                  replace(surface, points=surface.points * scale,
                          faces=surface.faces[:, ::-1] if flipped else surface.faces), source)
            for surface in surfaces]


def _pose(origin: ElementTree.Element | None) -> Array:
    if origin is None:
        return np.eye(4)
    return se3.pose(read_numbers(origin.get("xyz", "0 0 0"), 3, "origin xyz"),
                    read_numbers(origin.get("rpy", "0 0 0"), 3, "origin rpy"))


def read_numbers(text: str, count: int, name: str) -> list[float]:
    """Finite numbers of an attribute; raises `RbdError` naming it."""
    try:
        values = [float(word) for word in text.split()]
    except ValueError:
        values = []
    if len(values) != count or not np.isfinite(values).all():
        raise RbdError(f"{name}: expected {count} finite number{'s' * (count > 1)}, got '{text[:60]}'")
    return values
