"""Shapes as data: primitives and triangles, each with a pose in its link and a colour."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..inertia import Array

Colour = tuple[float, float, float, float]    # red, green, blue, opacity, 0 … 1
GREY: Colour = (0.72, 0.74, 0.77, 1.0)


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles: `points` (N, 3) in m, `faces` (T, 3) indices of them. flat: edges are sharp between all faces."""

    points: Array
    faces: Any
    colour: Colour = GREY
    flat: bool = False


@dataclass(frozen=True, eq=False)
class Shape:
    """One shape of a link. pose (4, 4): in the link's frame; size (m): x, y, z of a box, radius and length (along z) of
    a cylinder, of a capsule without its caps, radius of a sphere, nothing of a mesh, which has a `surface`, and of a
    "plane", whose solid is below its xy plane. source: where it comes from, "visual", "collision", "skeleton",
    "obstacle", or "stand-in" of a mesh that cannot be read.
    """

    link: str
    kind: str
    pose: Array
    size: tuple[float, ...] = ()
    colour: Colour = GREY
    surface: Surface | None = None
    source: str = "visual"

    @property
    def corners(self) -> Array:
        """(8, 3): corners of a box about the shape, in the link's frame."""
        if self.surface is not None:
            low, high = self.surface.points.min(axis=0), self.surface.points.max(axis=0)
        else:
            half = {"box": lambda s: np.array(s) / 2.0, "cylinder": lambda s: np.array([s[0], s[0], s[1] / 2.0]),
                    "capsule": lambda s: np.array([s[0], s[0], s[0] + s[1] / 2.0]),
                    "sphere": lambda s: np.full(3, s[0])}[self.kind](self.size)
            low, high = -half, half
        choose = np.array(np.meshgrid([0, 1], [0, 1], [0, 1])).reshape(3, 8).T
        return np.where(choose == 0, low, high) @ self.pose[:3, :3].T + self.pose[:3, 3]
