"""Declared surfaces on links (plane, point, sphere, cylinder, ellipsoid, torus) and their charts."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from numpy.typing import ArrayLike

from ...errors import RbdError, shown
from ..checks.frames import Frame, frame_pose
from ..inertia import Array, finite
from ..scalars import positive
from .charts import Shape, chart_forms, coordinates_of
from .shapes import CYLINDER, ELLIPSOID, PLANE, SPHERE, TORUS


class Chart(NamedTuple):
    """Geometry of a surface at u (Montana 1988), in the surface's frame.

    `point` c(u) (3,); `axes` (3, 3): columns x along ∂c/∂u₁, y = z × x, and the outward normal z; `metric` M (2, 2),
    with `dc = [x y] M du`: diagonal, upper triangular for an ellipsoid with different semi-axes; `curvature` K (2, 2),
    with `dz = [x y] K M du`: positive for a convex body; `torsion` T (2,), with `y·dx = T M du`.
    """

    point: Array
    axes: Array
    metric: Array
    curvature: Array
    torsion: Array


class Surface:
    """Base class of surfaces. link: the link that carries it ("world": the world, or the model's link of this name)."""

    kind: ClassVar[int]
    link: str
    frame: Frame
    inside: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.link, str):
            raise RbdError(f"{type(self).__name__}: expected the name of its link, got {shown(self.link)}")
        object.__setattr__(self, "frame", frame_pose(self.frame, f"frame of {self}"))
        if not isinstance(self.inside, bool):
            raise RbdError(f"{self}: inside is {shown(self.inside)}, expected True or False")

    def __str__(self) -> str:
        return f"{'inside of the ' * (self.inside is True)}{type(self).__name__.lower()} on '{self.link[:80]}'"

    @property
    def sizes(self) -> tuple[float, float, float]:
        return 1.0, 1.0, 1.0

    @property
    def shape(self) -> Shape:
        """Kind, side and sizes for kernels (`shapes`)."""
        return self.kind, -1.0 if self.inside else 1.0, *self.sizes

    def coordinates(self, point: ArrayLike) -> tuple[Array, int]:
        """Coordinates u (2,) of a point (3,) of the surface, in its frame, and the chart: 0, or 1 near poles."""
        return coordinates_of(self.shape, finite(point, (3,), "point"))

    def chart(self, u: ArrayLike, index: int = 0) -> Chart:
        """Geometry of the surface at u (2,).

        u: on a plane (x, y); else the longitude about z (rad), and the height of a cylinder (m), the latitude of a
        sphere, the latitude on the unit sphere whose scaling is the ellipsoid, or the angle about a torus's tube from
        its outer side; u₂ changes sign for a surface touched from inside. index 1: the second chart of a sphere or an
        ellipsoid, with poles on x instead of z.
        """
        u = finite(u, (2,), "u")
        if index not in (0, 1) or (index == 1 and self.kind not in (SPHERE, ELLIPSOID)):
            raise RbdError(f"{self} has no chart {shown(index)}")
        return Chart(*chart_forms(self.shape, u, bool(index)))


@dataclass(frozen=True, eq=False)
class Plane(Surface):
    """The infinite plane z = 0 of a frame on a link; the body is below it. frame as in `LoopClosure`.

    size (2,): edge lengths (m) along x and y of a rectangle about the frame's origin, which bounds the plane in a
    `UnilateralContact` or `CompliantContact`; constraints take the plane as infinite.

        >>> floor = rbd.Plane("world")
        >>> rbd.UnilateralContact(floor, rbd.Sphere("ball", 0.1), friction=0.5).friction
        0.5
    """

    link: str
    frame: Frame = None
    size: Sequence[float] | Array | None = None
    kind = PLANE

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size is not None:
            x, y = finite(self.size, (2,), f"size of the {self}")
            object.__setattr__(self, "size", tuple(
                positive(edge, f"size of the {self}", "length in m") for edge in (x, y)))


@dataclass(frozen=True, eq=False)
class Point(Surface):
    """A point of a link, at the frame's origin, for contact with planes: a corner, a tip. A sphere of radius zero.

        >>> rbd.Point("foot").link
        'foot'
    """

    link: str
    frame: Frame = None
    kind = SPHERE

    @property
    def sizes(self) -> tuple[float, float, float]:
        return 0.0, 1.0, 1.0

    def coordinates(self, point: ArrayLike) -> tuple[Array, int]:
        """A point has none: `RbdError`."""
        raise RbdError(f"the {self} has no chart: contact coordinates are those of surfaces")

    def chart(self, u: ArrayLike, index: int = 0) -> Chart:
        """A point has none: `RbdError`."""
        raise RbdError(f"the {self} has no chart: contact coordinates are those of surfaces")


@dataclass(frozen=True, eq=False)
class Sphere(Surface):
    """A sphere of this radius (m) about the frame's origin; inside: hollow, touched from inside.

        >>> rbd.Sphere("ball", 0.1).radius
        0.1
    """

    link: str
    radius: float = 0.0
    frame: Frame = None
    inside: bool = False
    kind = SPHERE

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "radius", positive(self.radius, f"radius of the {self}", "length in m"))

    @property
    def sizes(self) -> tuple[float, float, float]:
        return self.radius, 1.0, 1.0


@dataclass(frozen=True, eq=False)
class Cylinder(Sphere):
    """The lateral surface of an infinite cylinder of this radius (m) about the frame's z axis; inside: a pipe.

    On a plane the contact line is represented by its point next to the frame's origin; other joints or constraints must
    keep the axis parallel to the plane (`LoopClosure` with axes ["ry"] of a frame with x along the axis).

        >>> rbd.Cylinder("wheel", 0.1).radius
        0.1
    """

    kind = CYLINDER


@dataclass(frozen=True, eq=False)
class Ellipsoid(Surface):
    """An ellipsoid with these three semi-axes (m) along the frame's axes; inside: hollow.

        >>> rbd.Ellipsoid("egg", (0.1, 0.1, 0.2)).sizes
        (0.1, 0.1, 0.2)
    """

    link: str
    semi_axes: Sequence[float] | Array = ()
    frame: Frame = None
    inside: bool = False
    kind = ELLIPSOID

    def __post_init__(self) -> None:
        super().__post_init__()
        axes = finite(self.semi_axes, (3,), f"semi_axes of the {self}")
        object.__setattr__(self, "semi_axes", tuple(
            positive(axis, f"semi-axis of the {self}", "length in m") for axis in axes))

    @property
    def sizes(self) -> tuple[float, float, float]:
        a, b, c = self.semi_axes
        return float(a), float(b), float(c)


@dataclass(frozen=True, eq=False)
class Torus(Surface):
    """A torus: a tube of minor_radius (m) about the circle of major_radius (m), the larger of the two, in the frame's
    x, y plane; inside: touched from inside the tube.

        >>> rbd.Torus("tyre", major_radius=0.3, minor_radius=0.05).minor_radius
        0.05
    """

    link: str
    major_radius: float = 0.0
    minor_radius: float = 0.0
    frame: Frame = None
    inside: bool = False
    kind = TORUS

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("major_radius", "minor_radius"):
            object.__setattr__(self, name, positive(getattr(self, name), f"{name} of the {self}", "length in m"))
        if self.minor_radius >= self.major_radius:
            raise RbdError(f"{self}: minor_radius {self.minor_radius:g} should be less than major_radius "
                           f"{self.major_radius:g}")

    @property
    def sizes(self) -> tuple[float, float, float]:
        return self.major_radius, self.minor_radius, 1.0
