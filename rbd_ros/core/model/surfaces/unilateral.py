"""Unilateral contacts with Coulomb friction, for `Simulator`."""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ...errors import RbdError, shown
from ..checks.frames import Frame, frame_pose
from ..inertia import finite
from .contacts import Contact
from .shapes import SPHERE
from .surface import Plane, Point


@dataclass(frozen=True, eq=False)
class UnilateralContact(Contact):
    """Unilateral contact of two surfaces with Coulomb friction, for `Simulator`.

    first, second: surfaces as in `RollingContact`; on a `Plane` with a size, only points and spheres above it touch.
    friction: coefficient µ, static and kinetic. restitution: Newton's coefficient, 0 … 1, the ratio of normal speeds
    after and before an impact; reduced where an impact with friction would add energy.

        >>> lands = rbd.UnilateralContact(rbd.Plane("world"), rbd.Sphere("ball", 0.1), friction=0.4, restitution=0.2)
        >>> lands.friction
        0.4
    """

    friction: float = field(default=0.0, kw_only=True)
    restitution: float = field(default=0.0, kw_only=True)
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.name, str):
            raise RbdError(f"contact: name is {shown(self.name)}, expected a text")
        named = f" '{self.name}'" if self.name else ""
        label = f"contact{named} of the {self.first} and the {self.second}"
        for coefficient, upper in (("friction", np.inf), ("restitution", 1.0)):
            value = float(finite(getattr(self, coefficient), (), f"{coefficient} of the {label}"))
            if not 0.0 <= value <= upper:
                raise RbdError(f"{label}: {coefficient} is {value:g}, expected "
                               + ("a number of 0 … 1" if upper == 1.0 else "a coefficient that is not negative"))
            object.__setattr__(self, coefficient, value)
        if isinstance(self.first, Plane) and self.first.size is not None and self.second.kind != SPHERE:
            raise RbdError(f"{label}: on a plane with a size only points and spheres touch")
        if isinstance(self.second, Plane) and self.second.size is not None:
            raise RbdError(f"{label}: name the plane first")

    def rows(self) -> tuple[str, ...]:
        """A name per row."""
        return ("normal", "tangent_x", "tangent_y")


def box_contacts(plane: Plane, link: str, size: ArrayLike, *, frame: Frame = None, friction: float = 0.0,
                 restitution: float = 0.0, name: str = "") -> tuple[UnilateralContact, ...]:
    """Unilateral contacts of a box's eight corners with a plane, for `Simulator`.

    link: the link with the box; size (3,): edge lengths (m) along the axes of `frame`, about its origin. name: prefix
    of the contacts' names `name/0` … `name/7`; by default the link's name.

        >>> corners = rbd.box_contacts(rbd.Plane("world"), "box", (0.2, 0.3, 0.1), friction=0.4)
        >>> len(corners)
        8
    """
    edges = finite(size, (3,), f"size of the box on '{link}'")
    if not (edges > 0.0).all():
        raise RbdError(f"size of the box on '{link}' is {shown(size)}, expected three lengths in m")
    if not isinstance(plane, Plane):
        raise RbdError(f"box_contacts: plane is {shown(plane)}, expected a Plane")
    pose = frame_pose(frame, f"frame of the box on '{link}'")
    corners = [np.array([x, y, z]) * edges for z in (-0.5, 0.5) for y in (-0.5, 0.5) for x in (-0.5, 0.5)]
    return tuple(UnilateralContact(plane, Point(link, pose[:3, :3] @ corner + pose[:3, 3]), friction=friction,
                                   restitution=restitution, name=f"{name or link}/{i}")
                 for i, corner in enumerate(corners))
