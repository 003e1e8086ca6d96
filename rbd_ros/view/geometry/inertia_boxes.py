"""Uniform boxes with the links' inertias, to show wrong inertias beside the geometry."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...core.model.inertia import Array, Inertia
from ...core.model.shapes.shapes import Colour, Shape

GOOD: Colour = (0.0, 0.45, 0.70, 0.35)
BAD: Colour = (0.84, 0.37, 0.0, 0.55)
THINNEST = 0.002    # m: sides of boxes that are drawn


@dataclass(frozen=True, eq=False)
class InertiaBox:
    """sides (3,), m: of the box of mass `mass` (kg) whose principal moments are the link's; pose (4, 4) of its middle
    in the link's frame. problem: why the inertia is impossible, "" if it is possible.
    """

    link: str
    mass: float
    sides: Array
    pose: Array
    problem: str

    @property
    def shape(self) -> Shape:
        """The box as a shape."""
        return Shape(self.link, "box", self.pose, tuple(float(side) for side in np.maximum(self.sides, THINNEST)),
                     BAD if self.problem else GOOD, source="inertia")


def inertia_box(link: str, inertia: Inertia) -> InertiaBox | None:
    """The box of a link; None without mass.

    Of sides a, b, c a uniform box has the moments m/12 (b² + c²), …, so a² = 6/m (I_y + I_z − I_x): negative, drawn as
    zero, where the moments violate the triangle inequality.
    """
    if inertia.mass <= 0.0:
        return None
    moments, axes = np.linalg.eigh(inertia.matrix)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = axes, inertia.com
    squares = 6.0 / inertia.mass * (moments.sum() - 2.0 * moments)
    return InertiaBox(link, inertia.mass, np.sqrt(np.maximum(squares, 0.0)), pose, "; ".join(inertia.problems()))


def inertia_boxes(links: Mapping[str, Inertia]) -> tuple[InertiaBox, ...]:
    """The boxes of all links with mass."""
    candidates = (inertia_box(name, inertia) for name, inertia in links.items())
    return tuple(box for box in candidates if box is not None)
