"""Triangles of COLLADA files (.dae): the subset used by robot descriptions, without textures, skins and animation.

Files may be hostile: the cost of reading is bounded by the file's length and by the limits here. Instances of nodes,
which expand few bytes to much data, are counted each time.
"""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from ...errors import RbdError
from ..files.xml_tree import parse_xml
from .shapes import GREY, Array, Colour, Surface

PIECES = ("triangles", "polylist", "polygons")
DEEPEST = 100             # nesting depth of nodes
MOST_NODES = 20_000       # nodes, their children and the pieces of geometry in them, each as often as it is drawn
MOST_CORNERS = 10_000_000    # of triangles, once for reading them and each time they are drawn
MOST_INPUTS = 32          # numbers that a corner has in the file: vertex, normal, texture, …


def read_collada(path: Path) -> list[Surface]:
    """The surfaces of a file, in m, by material. The up axis is ignored, as in RViz.

    Raises `RbdError` for an unreadable file.
    """
    try:
        root = parse_xml(path.read_bytes(), "it", "a mesh")
        for element in root.iter():    # names without their namespace
            element.tag = element.tag.rpartition(":")[2]
        return list(_File(root).surfaces())
    except RbdError:
        raise
    except (OSError, ArithmeticError, ValueError, KeyError, IndexError, AttributeError, TypeError) as error:
        raise RbdError(f"{type(error).__name__}: {str(error)[:120]}") from None


class _File:
    def __init__(self, root: Element) -> None:
        self._ids = {element.get("id", ""): element for element in root.iter() if element.get("id")}
        unit = root.find("asset/unit")
        self._metre = float(unit.get("meter", "1")) if unit is not None else 1.0
        scene = root.find("scene/instance_visual_scene")
        scenes = root.findall("library_visual_scenes/visual_scene")
        self._scene = self._at(scene.get("url", "")) if scene is not None else scenes[0] if scenes else None
        self._geometries = root.findall("library_geometries/geometry")
        self._read: dict[int, list[tuple[str, Array, Any]]] = {}
        self._points: dict[int, Array] = {}
        self._bound: dict[int, dict[str, str]] = {}
        self._colours: dict[str, Colour] = {}
        self._nodes = self._corners = 0

    def _at(self, url: str) -> Element:
        return self._ids[url.removeprefix("#")]

    def surfaces(self) -> Iterator[Surface]:
        scale = np.diag([self._metre] * 3 + [1.0])
        if self._scene is None:
            for geometry in self._geometries:
                yield from self._placed(geometry, scale, {})
        else:
            for node in self._scene.findall("node"):
                yield from self._node(node, scale, 0)

    def _node(self, node: Element, above: Array, depth: int) -> Iterator[Surface]:
        if depth > DEEPEST:
            raise RbdError("its nodes are nested too deeply, or in a circle")
        self._spend(1 + len(node), 0)
        pose = above @ _transform(node)
        for instance in node.findall("instance_geometry"):
            if id(instance) not in self._bound:
                self._bound[id(instance)] = {bound.get("symbol", ""): bound.get("target", "")
                                             for bound in instance.iter("instance_material")}
            yield from self._placed(self._at(instance.get("url", "")), pose, self._bound[id(instance)])
        for child in node.findall("node"):
            yield from self._node(child, pose, depth + 1)
        for other in node.findall("instance_node"):
            yield from self._node(self._at(other.get("url", "")), pose, depth + 1)

    def _placed(self, geometry: Element, pose: Array, materials: dict[str, str]) -> Iterator[Surface]:
        if id(geometry) not in self._read:
            mesh = geometry.find("mesh")
            self._read[id(geometry)] = [] if mesh is None else list(self._pieces(mesh))
        mirrored = np.linalg.det(pose[:3, :3]) < 0.0
        for material, points, faces in self._read[id(geometry)]:
            self._spend(1, faces.size)
            yield Surface(points @ pose[:3, :3].T + pose[:3, 3], faces[:, ::-1] if mirrored else faces,
                          self._colour(materials.get(material, "")))

    def _spend(self, nodes: int, corners: int) -> None:
        self._nodes, self._corners = self._nodes + nodes, self._corners + corners
        if self._nodes > MOST_NODES or self._corners > MOST_CORNERS:
            raise RbdError(f"it is too large: more than {MOST_NODES} nodes or {MOST_CORNERS // 6} triangles, instances "
                           "counted each time")

    def _pieces(self, mesh: Element) -> Iterator[tuple[str, Array, Any]]:
        for piece in (element for kind in PIECES for element in mesh.findall(kind)):
            inputs = {item.get("semantic", ""): item for item in piece.findall("input")}
            step = 1 + max(int(item.get("offset", "0")) for item in inputs.values())
            if not 0 < step <= MOST_INPUTS:
                raise RbdError(f"its corners have {step} numbers each, expected 1 to {MOST_INPUTS}")
            vertices = self._at(inputs["VERTEX"].get("source", ""))
            positions = next(item for item in vertices.findall("input") if item.get("semantic") == "POSITION")
            source = self._at(positions.get("source", ""))
            if id(source) not in self._points:
                self._points[id(source)] = _numbers(source)
            points = self._points[id(source)]
            corners, counts = _corners(piece, step)
            if not len(corners):
                continue
            if counts.min() < 0 or counts.sum() > len(corners):
                raise RbdError(f"its polygons have more corners than the {len(corners)} that are there")
            self._spend(1, 3 * int(np.maximum(counts - 2, 0).sum()))
            triangles = corners[_fans(counts)]    # (T, 3, step)
            used, faces = np.unique(_with_normals(triangles, inputs), axis=0, return_inverse=True)
            yield piece.get("material", ""), points[used[:, 0]], faces.reshape(-1, 3)

    def _colour(self, material: str) -> Colour:
        if material not in self._colours:
            self._colours[material] = self._looked_up(material)
        return self._colours[material]

    def _looked_up(self, material: str) -> Colour:
        try:
            effect = self._at(self._at(material).find("instance_effect").get("url", ""))    # type: ignore[union-attr]
            words = effect.find(".//diffuse/color").text.split()    # type: ignore[union-attr]
            red, green, blue = (min(max(float(word), 0.0), 1.0) for word in words[:3])
            return red, green, blue, 1.0
        except (KeyError, AttributeError, ValueError):    # a texture, or none
            return GREY


def _numbers(source: Element) -> Array:
    """The rows of a `<source>`: (N, 3)."""
    array = source.find("float_array")
    accessor = source.find(".//accessor")
    width = int(accessor.get("stride", "3")) if accessor is not None else 3
    text = array.text if array is not None else None
    return np.array((text or "").split(), dtype=np.float64).reshape(-1, width)[:, :3]


def _corners(piece: Element, step: int) -> tuple[Any, Any]:
    """Indices (C, step) of all corners, and how many corners each polygon has."""
    lists = [np.array((p.text or "").split(), dtype=np.int64).reshape(-1, step) for p in piece.findall("p")]
    corners = np.concatenate(lists) if lists else np.zeros((0, step), dtype=np.int64)
    if piece.tag == "triangles":
        return corners, np.full(len(corners) // 3, 3)
    if piece.tag == "polygons":
        return corners, np.array([len(part) for part in lists])
    count = piece.find("vcount")
    return corners, np.array((count.text or "").split() if count is not None else [], dtype=np.int64)


def _fans(counts: Any) -> Any:
    """Triangle fans (T, 3) of polygons with these numbers of corners."""
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    each = np.maximum(counts - 2, 0)
    start = np.repeat(first, each)
    within = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
    return np.stack([start, start + within + 1, start + within + 2], axis=1)


def _with_normals(triangles: Any, inputs: dict[str, Element]) -> Any:
    """Indices of point and normal of each corner (C, 1 or 2): different normals make an edge."""
    columns = [int(inputs[name].get("offset", "0")) for name in ("VERTEX", "NORMAL") if name in inputs]
    return triangles.reshape(-1, triangles.shape[2])[:, columns]


def _transform(node: Element) -> Array:
    """The product of a node's transformations (4, 4), in their order."""
    pose = np.eye(4)
    for element in node:
        if element.tag not in ("matrix", "translate", "rotate", "scale"):
            continue
        values = np.array((element.text or "")[:1000].split(), dtype=np.float64)
        step = np.eye(4)
        if element.tag == "matrix":
            step = values.reshape(4, 4)
        elif element.tag == "translate":
            step[:3, 3] = values
        elif element.tag == "scale":
            step[[0, 1, 2], [0, 1, 2]] = values
        else:
            axis, angle = values[:3], np.deg2rad(values[3])
            x, y, z = axis / max(float(np.linalg.norm(axis)), 1e-300)
            K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
            step[:3, :3] = np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K
        pose = pose @ step
    return pose
