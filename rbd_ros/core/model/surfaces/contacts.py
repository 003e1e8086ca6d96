"""Contacts between two surfaces as constraints: rolling and sliding."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import RbdError, shown
from ..constraint_block import node_frame
from ..robot_model import RobotModel
from .shapes import CYLINDER, ELLIPSOID, PLANE, SPHERE, TORUS
from .surface import Point, Surface

MOVES_BEST = (SPHERE, TORUS, CYLINDER, PLANE)    # in the search for closest points


@dataclass(frozen=True, eq=False)
class Contact:
    """Base class of contacts. Rows `normal`: the gap (m, positive apart) along the first surface's normal; its
    multiplier is the force (N) that pushes the bodies apart, the second along that normal: negative where it would have
    to pull.
    """

    first: Surface
    second: Surface

    def __post_init__(self) -> None:
        for which in ("first", "second"):
            surface = getattr(self, which)
            if not isinstance(surface, Surface):
                raise RbdError(f"contact: {which} is {shown(surface)}, expected a surface: Plane, Sphere, Cylinder, "
                               "Ellipsoid or Torus")
        problem = _impossible(self.first, self.second) or _impossible(self.second, self.first)
        if (self.first.kind, self.second.kind) == (CYLINDER, PLANE):
            problem = "name the plane first"
        if isinstance(self.first, Point) or (isinstance(self.second, Point) and self.first.kind != PLANE):
            problem = "a point touches planes, named first; elsewhere it is a Sphere of a small radius"
        if problem:
            raise RbdError(f"contact of the {self.first} and the {self.second}: {problem}")

    def rows(self) -> tuple[str, ...]:
        """A name per row."""
        return ("normal",)

    @property
    def holonomic_rows(self) -> tuple[bool, ...]:
        """Which rows restrict positions, too: the gap alone."""
        return tuple(row == "normal" for row in self.rows())

    def contact_record(self, model: RobotModel, row: int) -> list[float]:
        """This contact for the kernels (`contact_block`), its first row at `row`."""
        node_1, pose_1 = node_frame(model, "first surface's", self.first.link, np.asarray(self.first.frame))
        node_2, pose_2 = node_frame(model, "second surface's", self.second.link, np.asarray(self.second.frame))
        if node_1 == node_2:
            raise RbdError(f"the {self.first} and the {self.second} are on one rigid body: nothing can move between "
                           "them")
        return [row, len(self.rows()), node_1, node_2, *pose_1, *pose_2, float(self.walks), *self.first.shape,
                *self.second.shape]

    @property
    def walks(self) -> bool:
        """Whether the search for closest points moves the second surface, not the first."""
        first, second = self.first, self.second
        if ELLIPSOID in (first.kind, second.kind):
            return second.kind == ELLIPSOID and (first.kind != ELLIPSOID or not second.inside)
        return not second.inside and (first.inside or MOVES_BEST.index(second.kind) <= MOVES_BEST.index(first.kind))


@dataclass(frozen=True, eq=False)
class SlidingContact(Contact):
    """Two surfaces that touch, and slide without friction: `Plane`, `Sphere`, `Cylinder`, `Ellipsoid`, `Torus`.

    One row, `normal`: see `RollingContact`.

        >>> slide = rbd.SlidingContact(rbd.Plane("world"), rbd.Sphere("ball", 0.1), name="slide")
        >>> rbd.ConstraintSet([slide]).row_names
        ('slide/normal',)
    """

    name: str = ""


@dataclass(frozen=True, eq=False)
class RollingContact(Contact):
    """Two surfaces that touch and roll on each other without sliding; with spin=False they do not spin about the
    normal, either (rubber, not steel).

    Rows: `normal`, the gap f between closest points (m, positive apart), whose multiplier is the normal force (N),
    positive where the bodies push each other; `tangent_x` and `tangent_y`, the velocity of the second body against the
    first at the contact (m/s), whose multipliers are the components of the force (N) on the second body; with
    spin=False `spin`, the relative angular velocity about the normal (rad/s; N m). Axes: x along the first surface's
    chart (`Surface.chart`) at the contact, z its outward normal; of spheres and ellipsoids they jump where one chart
    takes over from the other, with the two multipliers, while the force does not. The first row holds positions
    (`project`), the others velocities alone. All rows and Ȧq̇ are exact, with a gap, too, and where it slides.

    A contact is two-sided here: it keeps touching where it would have to pull. Closest points must be unique:
    `RbdError` names a contact where they are not, or where a hollow body does not hold the other.

        >>> roll = rbd.RollingContact(rbd.Plane("world"), rbd.Sphere("ball", 0.1), name="roll")
        >>> rbd.ConstraintSet([roll]).row_names
        ('roll/normal', 'roll/tangent_x', 'roll/tangent_y')
    """

    spin: bool = True
    name: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.spin, bool):
            raise RbdError(f"rolling contact: spin is {shown(self.spin)}, expected True (may spin) or False")

    def rows(self) -> tuple[str, ...]:
        """A name per row."""
        return ("normal", "tangent_x", "tangent_y") + (() if self.spin else ("spin",))


def _impossible(first: Surface, second: Surface) -> str:
    """Reason why two surfaces cannot touch in a point, in either order."""
    if first.kind == second.kind == PLANE:
        return "planes touch all over: use LoopClosure with axes 'planar', or FixedContact"
    if not first.inside:
        return ""
    if second.inside:
        return "two hollow surfaces cannot touch from inside"
    if second.kind == PLANE:
        return "a plane has no end and does not fit inside"
    if second.kind == CYLINDER:
        return ("they touch along a line" if first.kind == CYLINDER else
                "a cylinder has no end and does not fit inside")
    room, size = _widths(first), _widths(second)
    if first.kind == second.kind == TORUS:
        room, size = [first.sizes[1]], [second.sizes[1]]    # rings may follow each other
    for wide, least in zip(size, room, strict=True):
        if wide >= least:
            return f"it is inside out: half a width of {wide:g} m does not fit into {least:g} m"
    return ""


def _widths(surface: Surface) -> list[float]:
    """Half the widths of a body, or of the cavity of a hollow one, along its axes, the largest first."""
    a, b, c = surface.sizes
    if surface.kind == SPHERE:
        return [a, a, a]
    if surface.kind == ELLIPSOID:
        return sorted((a, b, c), reverse=True)
    if surface.kind == TORUS:
        return [float("inf"), b, b] if surface.inside else [a + b, a + b, b]
    return [float("inf"), a, a]
