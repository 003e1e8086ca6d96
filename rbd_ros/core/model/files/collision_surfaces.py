"""Surfaces from the `<collision>` shapes of a URDF: spheres, cylinders and the faces of boxes."""
from __future__ import annotations

import os
from xml.etree import ElementTree

import numpy as np

from ...errors import RbdError, unknown_name
from ...lie import se3
from ..surfaces.surface import Cylinder, Plane, Sphere, Surface
from .urdf_parts import NUMBER, line
from .xml_tree import parse_xml, read_text

# rotations of z to the outward normals of a box's faces x, −x, y, −y, z, −z
FACE_NAMES = ("x", "-x", "y", "-y", "z", "-z")
FACES = ((0.0, 0.5, 0.0), (0.0, -0.5, 0.0), (-0.5, 0.0, 0.0), (0.5, 0.0, 0.0), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))


def surfaces_of(path_or_xml: str | os.PathLike[str], link: str) -> tuple[Surface, ...]:
    """The surfaces of a link for contacts, from its `<collision>` shapes in a URDF file or text, in their order.

    A sphere gives a `Sphere`; a cylinder an infinite `Cylinder` about its axis z; a box six infinite planes, its faces
    x, −x, y, −y, z and −z (the top of a plate is `[4]`). Meshes are ignored. Raises `RbdError` for a link that is not
    in the file, and for a shape with missing or invalid numbers.

        >>> [type(surface).__name__ for surface in rbd.surfaces_of(rbd.sample_path("ball_on_plate"), "plate")[:2]]
        ['Plane', 'Plane']
    """
    text, source = read_text(path_or_xml)
    return tuple(surface for shape in collision_shapes(text, source, link) for surface in shape)


def collision_shapes(text: str | bytes, source: str, link: str) -> list[tuple[Surface, ...]]:
    """As `surfaces_of`, a tuple per shape (six surfaces for a box)."""
    links = {element.get("name", ""): element for element in parse_xml(text, source) if element.tag == "link"}
    if link not in links:
        raise unknown_name("link", link, links, source)
    shapes: list[tuple[Surface, ...]] = []
    for collision in links[link].iter("collision"):
        where = f"{source}, line {line(collision)}: collision of link '{link[:80]}'"
        origin = collision.find("origin")
        none = ElementTree.Element("origin")
        origin = none if origin is None else origin
        frame = se3.pose(_numbers(origin, "xyz", 3, where, "0 0 0"), _numbers(origin, "rpy", 3, where, "0 0 0"))
        for shape in collision.iter():
            if shape.tag == "sphere":
                shapes.append((Sphere(link, _numbers(shape, "radius", 1, where)[0], frame),))
            elif shape.tag == "cylinder":
                shapes.append((Cylinder(link, _numbers(shape, "radius", 1, where)[0], frame),))
            elif shape.tag == "box":
                size = _numbers(shape, "size", 3, where)
                shapes.append(tuple(Plane(link, frame @ se3.pose(rpy=np.pi * np.array(turn))
                                          @ se3.pose([0.0, 0.0, 0.5 * size[axis // 2]]))
                                    for axis, turn in enumerate(FACES)))
    return shapes


def _numbers(element: ElementTree.Element, name: str, count: int, where: str,
             default: str | None = None) -> list[float]:
    words = (element.get(name, default) or "").split()
    if len(words) != count or not all(NUMBER.fullmatch(word) for word in words):
        raise RbdError(f"{where}: expected {count} number{'s' * (count > 1)} for {name} of <{element.tag}>, got "
                       f"'{' '.join(words)[:60]}'")
    return [float(word) for word in words]
