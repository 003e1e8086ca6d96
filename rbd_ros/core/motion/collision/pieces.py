"""Convex pieces, between which distances are computed: shapes of links, obstacles, hulls of meshes."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike

from ...errors import RbdError, shown, unknown_name
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.shapes.elements import read_shapes
from ...model.shapes.shapes import Shape, Surface
from ...model.state import real
from .slices import slices

WORLD = ""    # link of obstacles


@dataclass(frozen=True, eq=False)
class Piece:
    """A convex shape, fixed to a link. body: index of the link, -1 for the world. middle (3,), in the shape's frame,
    and radius (m): of a sphere about it, infinite for a plane. touching: links that it may touch. group: name of the
    obstacle, tool or load that it is part of, "" if that is its own.
    """

    name: str
    shape: Shape
    body: int
    middle: Array
    radius: float
    touching: tuple[str, ...] = ()
    group: str = ""

    @property
    def own(self) -> bool:
        """Whether it is the robot's: no obstacle, tool or load."""
        return self.shape.source == "collision"

    @property
    def link(self) -> str:
        """Name in pairs of links: its link's, or of an obstacle, tool or load."""
        return self.shape.link if self.own else self.group or self.name


def piece(name: str, shape: Shape, body: int, touching: Sequence[str] = ()) -> Piece:
    """A piece of a shape; a mesh becomes its convex hull. Raises `RbdError` for a mesh without volume."""
    middle = np.zeros(3)
    if shape.surface is not None:
        shape = replace(shape, surface=hull(shape.surface.points, name))
        assert shape.surface is not None
        points = shape.surface.points
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
        radius = float(np.linalg.norm(points - middle, axis=1).max())
    else:
        radius = {"box": lambda s: 0.5 * np.linalg.norm(s), "cylinder": lambda s: np.hypot(s[0], 0.5 * s[1]),
                  "capsule": lambda s: s[0] + 0.5 * s[1], "sphere": lambda s: s[0],
                  "plane": lambda s: np.inf}[shape.kind](shape.size)
    return Piece(name, shape, body, middle, float(radius), tuple(touching))


def pieces_of_shapes(shapes: Mapping[str, Sequence[Shape]], body: int) -> list[Piece]:
    """Pieces of obstacles, tools or loads, named as these, or `name/0`, `name/1`, … if one has several."""
    return [piece(name, each[0], body) if len(each) == 1 else replace(piece(f"{name}/{k}", shape, body), group=name)
            for name, each in shapes.items() for k, shape in enumerate(each)]


def hull(points: Array, name: str) -> Surface:
    """Convex hull of points (N, 3), its faces counterclockwise seen from outside."""
    from scipy.spatial import ConvexHull, QhullError    # local import: saves 0.15 s of `rbd doctor`

    try:
        found = ConvexHull(points)
    except (QhullError, ValueError):
        raise RbdError(f"'{name}': the convex hull of its {len(points)} points has no volume: give a box, or convex "
                       "`pieces` of the link") from None
    index = np.full(len(points), -1)
    index[found.vertices] = np.arange(len(found.vertices))
    corners = points[found.vertices]
    equations, group, counts = np.unique(found.equations, axis=0, return_inverse=True, return_counts=True)
    triangles = index[found.simplices[np.argsort(group.reshape(-1), kind="stable")]]    # of a flat face in a row
    single = triangles[np.repeat(counts == 1, counts)]
    a, b, c = np.moveaxis(corners[single], 1, 0)
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), equations[counts == 1, :3]) < 0.0
    single[inward] = single[inward][:, ::-1]
    faces = [_strip(corners, np.unique(part), normal[:3])
             for part, normal, count in zip(np.split(triangles, np.cumsum(counts)[:-1]), equations, counts, strict=True)
             if count > 1]
    return Surface(corners, np.concatenate([single, *faces]))


def _strip(corners: Array, face: Any, normal: Array) -> Any:
    """Triangles of a flat face, as a strip: in a fan one corner would have all others as neighbours, too many for coal.
    """
    offsets = corners[face] - corners[face].mean(axis=0)
    across = offsets[0] - normal * (normal @ offsets[0])
    angles = np.arctan2(offsets @ np.cross(normal, across), offsets @ across)
    around = face[np.argsort(angles)].tolist()    # counterclockwise, seen from outside
    triangles = []
    while len(around) > 2:
        triangles.append([around[0], around[1], around[-1]])
        if len(around) > 3:
            triangles.append([around[1], around[-2], around[-1]])
        around = around[1:-1]
    return np.array(triangles, dtype=np.int64)


def pieces_of_links(tree: ElementTree.Element, file: Path | None, source: str, model: RobotModel,
                    convex: Mapping[str, Sequence[ArrayLike]]) -> list[Piece]:
    """Pieces of the `<collision>` shapes of a description, named as their link, or `link/0`, `link/1`, … if it has
    several. convex: points (N, 3) of convex pieces instead of the shapes of a link, in its frame.
    """
    if tree.tag != "robot":
        raise RbdError(f"{source}: the root element is <{tree.tag[:60]}>, expected <robot>")
    for name, given in convex.items():
        model.body_index(name)
        if not isinstance(given, Sequence):
            raise RbdError(f"pieces of link '{name}': expected a list of points (N, 3), got {shown(given)}")
    pieces = []
    for link in tree.findall("link"):
        name = link.get("name", "")
        if name not in model._body_by_name:
            raise unknown_name("link", name, model.body_names, f"{source}: this is another robot's description")
        if name in convex:
            shapes = [mesh(name, points, "collision", f"pieces of link '{name}'") for points in convex[name]]
        else:
            shapes = [shape for element in link.findall("collision") for shape in _shapes(element, name, file, source)]
        pieces += [piece(name if len(shapes) == 1 else f"{name}/{k}", shape, model.body_index(name))
                   for k, shape in enumerate(shapes)]
    return pieces


def _shapes(element: ElementTree.Element, link: str, file: Path | None, source: str) -> list[Shape]:
    """The shapes of a `<collision>`: of a mesh, all of its surfaces together, its slices."""
    try:
        shapes = read_shapes(element, link, file)
    except RbdError as error:
        raise RbdError(f"{source}: collision of link '{link[:80]}': {error}") from None
    surfaces = [shape.surface for shape in shapes if shape.surface is not None]
    if not surfaces:
        return shapes
    starts = np.cumsum([0, *(len(surface.points) for surface in surfaces)])
    faces = np.concatenate([surface.faces + start for surface, start in zip(surfaces, starts, strict=False)])
    return [replace(shapes[0], surface=Surface(points, np.empty((0, 3), dtype=np.int64)))
            for points in slices(np.concatenate([surface.points for surface in surfaces]), faces)]


def mesh(link: str, points: ArrayLike, source: str, what: str, pose: Array | None = None) -> Shape:
    """A mesh of points (N, 3); raises `RbdError` for other shapes and numbers that are not finite."""
    array = real(points, what, "(N, 3)")
    if array.ndim != 2 or array.shape[1] != 3 or not np.isfinite(array).all():
        raise RbdError(f"{what}: expected finite points (N, 3), N at least 4, got {shown(points)}")
    return Shape(link, "mesh", np.eye(4) if pose is None else pose, (),
                 surface=Surface(array, np.empty((0, 3), dtype=np.int64)), source=source)


def geometry(coal: Any, piece: Piece) -> Any:
    """The shape of a piece in the library coal; raises `RbdError` for a hull that it cannot use."""
    shape = piece.shape
    if shape.surface is not None:
        points, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
        for point in shape.surface.points:
            points.append(point)
        for face in shape.surface.faces.tolist():
            faces.append(coal.Triangle(*face))
        try:
            return coal.Convex(points, faces)
        except RuntimeError as error:    # a corner with more neighbours than coal can count
            raise RbdError(f"'{piece.name}': coal cannot use the convex hull of its mesh ("
                           f"{str(error).rpartition('message: ')[2].strip()}): give simpler convex `pieces`") from None
    if shape.kind == "plane":
        return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
    return {"box": coal.Box, "cylinder": coal.Cylinder, "capsule": coal.Capsule, "sphere": coal.Sphere
            }[shape.kind](*shape.size)


def load_coal() -> Any:
    """The library coal; raises `RbdError` if it is not installed."""
    try:
        import coal
    except ImportError:
        raise RbdError("distances of collision shapes need the package coal, which is not installed "
                       "(`pip install coal`)") from None
    return coal
