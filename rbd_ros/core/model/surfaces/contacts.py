"""Contacts between two surfaces as constraints: rolling and sliding."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import RbdError, shown
from ..constraint_block import node_frame
from ..robot_model import RobotModel
from .shapes import CYLINDER, ELLIPSOID, PLANE, SPHERE, TORUS
from .surface import Point, Surface

MOVES_BEST = (SPHERE, TORUS, CYLINDER, PLANE)    # preferred surface of the search for closest points, best first


@dataclass(frozen=True, eq=False)
class Contact:
    """Base class of contacts. Row `normal`: the gap (m, positive if separated) along the first surface's normal;
    its multiplier is the normal force (N) on the second body along that normal: positive pushes, negative pulls.
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
        """Per row whether it restricts positions: only the gap."""
        return tuple(row == "normal" for row in self.rows())

    def contact_record(self, model: RobotModel, row: int) -> list[float]:
        """The packed record of the contact (`contact_block`), its first row at `row`."""
        node_1, pose_1 = node_frame(model, "first surface's", self.first.link, np.asarray(self.first.frame))
        node_2, pose_2 = node_frame(model, "second surface's", self.second.link, np.asarray(self.second.frame))
        if node_1 == node_2:
            raise RbdError(f"the {self.first} and the {self.second} are on one rigid body: nothing can move between "
                           "them")
        return [row, len(self.rows()), node_1, node_2, *pose_1, *pose_2, float(self.walks), *self.first.shape,
                *self.second.shape]

    @property
    def walks(self) -> bool:
        """Whether the search for closest points iterates on the second surface, not on the first."""
        first, second = self.first, self.second
        if ELLIPSOID in (first.kind, second.kind):
            return second.kind == ELLIPSOID and (first.kind != ELLIPSOID or not second.inside)
        return not second.inside and (first.inside or MOVES_BEST.index(second.kind) <= MOVES_BEST.index(first.kind))


@dataclass(frozen=True, eq=False)
class SlidingContact(Contact):
    """Bilateral sliding contact without friction of two surfaces: `Plane`, `Sphere`, `Cylinder`, `Ellipsoid`, `Torus`.

    One row, `normal`: see `RollingContact`.

        >>> slide = rbd.SlidingContact(rbd.Plane("world"), rbd.Sphere("ball", 0.1), name="slide")
        >>> rbd.ConstraintSet([slide]).row_names
        ('slide/normal',)
    """

    name: str = ""


@dataclass(frozen=True, eq=False)
class RollingContact(Contact):
    """Bilateral rolling contact of two surfaces, without sliding; with spin=False also without spin about the normal
    (rubber, not steel).

    Rows: `normal`, the gap f between closest points (m, positive for separated bodies), its multiplier the normal force
    (N), positive for pushing; `tangent_x` and `tangent_y`, the velocity of the second body relative to the first at the
    contact (m/s), their multipliers the tangential force (N) on the second body; with spin=False `spin`, the relative
    angular velocity about the normal (rad/s; N m). Axes: x along the first surface's chart (`Surface.chart`) at the
    contact, z the outward normal. At a change of chart (spheres, ellipsoids) the axes and both tangential multipliers
    jump, the force does not. `normal` restricts positions (`project`), the other rows only velocities. All rows and
    Ȧq̇ are exact, also with a gap or sliding.

    The contact is bilateral: it transmits pulling forces. Closest points must be unique: `RbdError` names a contact
    without unique ones, or a hollow body that does not contain the other.

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
    """Reason why two surfaces cannot touch in a single point; empty if they can. Call for both orders."""
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
    cavity, size = _widths(first), _widths(second)
    if first.kind == second.kind == TORUS:
        cavity, size = [first.sizes[1]], [second.sizes[1]]    # rings may follow each other
    for half_width, half_cavity in zip(size, cavity, strict=True):
        if half_width >= half_cavity:
            return f"it is inside out: half a width of {half_width:g} m does not fit into {half_cavity:g} m"
    return ""


def _widths(surface: Surface) -> list[float]:
    """Half widths (m) of a body, or of the cavity of a hollow body, along its axes, largest first."""
    a, b, c = surface.sizes
    if surface.kind == SPHERE:
        return [a, a, a]
    if surface.kind == ELLIPSOID:
        return sorted((a, b, c), reverse=True)
    if surface.kind == TORUS:
        return [float("inf"), b, b] if surface.inside else [a + b, a + b, b]
    return [float("inf"), a, a]
