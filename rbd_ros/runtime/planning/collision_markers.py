"""What a display shows of a collision model: its pieces as primitives in frames of links, red those that hit."""
from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.lie import se3
from ...core.model.shapes.shapes import Colour
from ...core.motion.collision.collision_model import CollisionModel
from ...core.motion.collision.pieces import Piece
from .obstacle_messages import CUBE, CYLINDER, SPHERE, TRIANGLES

Array = NDArray[np.float64]
ROBOT: Colour = (0.35, 0.6, 0.9, 0.35)
STANDING: Colour = (0.8, 0.6, 0.3, 0.6)
CARRIED: Colour = (0.3, 0.7, 0.5, 0.8)
HIT: Colour = (0.85, 0.1, 0.1, 0.9)
ENDLESS = (6.0, 6.0, 0.01)    # m, of a plane


class Solid(NamedTuple):
    """A primitive of a piece. group: "robot", "obstacles" or "carried"; kind: type of visualization_msgs/Marker; frame:
    name of a link; pose (4, 4) in it; scale (m) of the marker; points (N, 3), three for each triangle; colour.
    """

    piece: str
    group: str
    kind: int
    frame: str
    pose: Array
    scale: tuple[float, float, float]
    points: Array
    colour: Colour


def solids(collisions: CollisionModel, hit: Collection[str] = ()) -> list[Solid]:
    """All pieces; red those whose names are in `hit`."""
    root = collisions.model.body_names[0]
    return [solid for piece in collisions.pieces for solid in _solids(piece, root, piece.name in hit)]


def _solids(piece: Piece, root: str, hit: bool) -> list[Solid]:
    shape, size = piece.shape, piece.shape.size
    group, colour = (("robot", ROBOT) if piece.own else ("obstacles", STANDING) if piece.body < 0 else
                     ("carried", CARRIED))

    def solid(kind: int, scale: tuple[float, float, float], z: float = 0.0, points: Array | None = None) -> Solid:
        return Solid(piece.name, group, kind, shape.link or root, shape.pose @ se3.pose([0.0, 0.0, z]), scale,
                     np.zeros((0, 3)) if points is None else points, HIT if hit else colour)

    if shape.surface is not None:
        return [solid(TRIANGLES, (1.0, 1.0, 1.0), points=shape.surface.points[shape.surface.faces].reshape(-1, 3))]
    if shape.kind == "box":
        return [solid(CUBE, (size[0], size[1], size[2]))]
    if shape.kind == "plane":
        return [solid(CUBE, ENDLESS, -0.5 * ENDLESS[2])]
    across = 2.0 * size[0]
    if shape.kind == "sphere":
        return [solid(SPHERE, (across,) * 3)]
    ends = [solid(SPHERE, (across,) * 3, z) for z in (-0.5 * size[1], 0.5 * size[1])] if shape.kind == "capsule" else []
    return [solid(CYLINDER, (across, across, size[1])), *ends]
