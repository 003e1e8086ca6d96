"""Shapes by link from `<visual>` and `<collision>` of a robot description; errors in them never prevent viewing.

Unreadable shapes (a missing mesh, an invalid size) are replaced by the link's collision shape, or by the box of its
inertia, with a note.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from ...core.errors import RbdError
from ...core.model.shapes.elements import read_numbers, read_shapes
from ...core.model.shapes.shapes import Colour, Shape

STAND_IN: Colour = (0.85, 0.65, 0.35, 0.6)
MOST_POINTS = 10_000_000    # of all meshes together, each counted as often as drawn


@dataclass(frozen=True)
class Visuals:
    """Shapes by link, and notes (link, reason) on replaced shapes."""

    shapes: Mapping[str, tuple[Shape, ...]]
    notes: tuple[tuple[str, str], ...]


def read_visuals(tree: ElementTree.Element, file: Path | None, stand_in: Callable[[str], Shape | None],
                 progress: Callable[[str], object] = lambda link: None) -> Visuals:
    """Shapes of all links of `<robot>`; file: of the description, None if it came as text. stand_in: a shape for a link
    whose own cannot be read. progress is called with the name of each link.
    """
    materials = {element.get("name", ""): colour for element in tree.iter("material")
                 if (colour := _rgba(element)) is not None}
    shapes: dict[str, tuple[Shape, ...]] = {}
    notes: list[tuple[str, str]] = []
    links = [element for element in tree if element.tag == "link"]
    points = 0
    tag = "visual" if any(link.find("visual") is not None for link in links) else "collision"
    for link in links:
        name = link.get("name", "")
        progress(name)
        shapes_of_link: list[Shape] = []
        lost = ""
        for element in link.findall(tag):
            try:
                shapes_here = read_shapes(element, name, file, _colour(element.find("material"), materials), tag)
                points += sum(len(shape.surface.points) for shape in shapes_here if shape.surface is not None)
                if points > MOST_POINTS:
                    raise RbdError(f"the meshes up to here have more than {MOST_POINTS} points")
                shapes_of_link += shapes_here
            except RbdError as error:
                lost = str(error)
        if lost:
            notes.append((name, lost))
            instead = _collision(link, name, file) or [shape for shape in [stand_in(name)] if shape is not None]
            shapes_of_link += [replace(shape, source="stand-in", colour=STAND_IN) for shape in instead]
        shapes[name] = tuple(shapes_of_link)
    return Visuals(shapes, tuple(notes))


def _collision(link: ElementTree.Element, name: str, file: Path | None) -> list[Shape]:
    """Primitive shapes of the collision geometry."""
    shapes: list[Shape] = []
    for element in link.findall("collision"):
        if element.find("geometry/mesh") is None:
            try:
                shapes += read_shapes(element, name, file, source="stand-in")
            except RbdError:
                continue
    return shapes


def _colour(material: ElementTree.Element | None, materials: Mapping[str, Colour]) -> Colour | None:
    if material is None:
        return None
    return _rgba(material) or materials.get(material.get("name", ""))


def _rgba(material: ElementTree.Element) -> Colour | None:
    colour = material.find("color")
    if colour is None:
        return None
    try:
        red, green, blue, opacity = (min(max(value, 0.0), 1.0)
                                     for value in read_numbers(colour.get("rgba", ""), 4, "rgba"))
    except RbdError:
        return None
    return red, green, blue, opacity if opacity > 0.05 else 1.0    # nearly invisible colours are drawn opaque
