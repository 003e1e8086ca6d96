"""Geometry of surfaces for contact: normal, Weingarten map and chart axes of each kind.

A shape is a tuple (kind, side, a, b, c) in the surface's frame; side: 1, or −1 for a surface touched from inside.

    PLANE      z = 0, outward z
    SPHERE     of radius a
    CYLINDER   of radius a, about z, infinite
    ELLIPSOID  semi-axes a, b, c along x, y, z
    TORUS      tube of radius b about the circle of radius a in the x, y plane

Kernels are analytic in all arguments, sizes included: derivatives by complex step.
"""
from __future__ import annotations

import numpy as np

from ...compiled.kernel import kernel, sweep
from ...lie.spatial import add, cross, dot, scale, sub

PLANE, SPHERE, CYLINDER, ELLIPSOID, TORUS = 0, 1, 2, 3, 4
POLAR = 0.8    # |cosine| of the polar angle above which a sphere or an ellipsoid uses its second chart


@kernel
def length(x):
    """|x|, analytic for complex numbers."""
    return np.sqrt(dot(x, x))


@kernel
def from_axis(x):
    """Distance of x from the z axis, and the radial unit vector."""
    rho = np.sqrt(x[0] * x[0] + x[1] * x[1])
    return rho, (x[0] / rho, x[1] / rho, 0.0 * rho)


@sweep
def gradient(shape, x):
    """A vector along the outward normal of the surface through x."""
    kind, _, a, b, c = shape
    z = 0.0 * x[0]
    if kind == PLANE:
        return (z, z, z + 1.0)
    if kind == SPHERE:
        return x
    if kind == CYLINDER:
        return (x[0], x[1], z)
    if kind == ELLIPSOID:
        return (x[0] / (a * a), x[1] / (b * b), x[2] / (c * c))
    radial = from_axis(x)[1]
    return sub(x, scale(a, radial))


@kernel
def normal(shape, x):
    """Outward unit normal at x."""
    g = gradient(shape, x)
    return scale(shape[1] / length(g), g)


@sweep
def bend(shape, x, n, s):
    """Weingarten map: derivative of the normal n at x along the tangent vector s."""
    kind, side, a, b, c = shape
    z = 0.0 * x[0]
    if kind == PLANE:
        return (z, z, z)
    if kind == SPHERE:
        return scale(side / a, sub(s, scale(dot(n, s), n)))
    if kind == ELLIPSOID:
        size = length(gradient(shape, x))
        turn = (s[0] / (a * a), s[1] / (b * b), s[2] / (c * c))
        return scale(side / size, sub(turn, scale(dot(n, turn), n)))
    rho, radial = from_axis(x)
    around = (-radial[1], radial[0], z)
    bent = scale(side * dot(around, s) / rho, around)
    if kind == CYLINDER:
        return bent
    along = cross(n, around)
    return add(scale(dot(n, radial) * dot(around, s) / rho, around), scale(side * dot(along, s) / b, along))


@sweep
def settled(shape, x):
    """Projection of x to the surface: the closest point, for ellipsoids the point on the ray from the centre."""
    kind, _, a, b, c = shape
    z = 0.0 * x[0]
    if kind == PLANE:
        return (x[0], x[1], z)
    if kind == SPHERE:
        return scale(a / length(x), x)
    if kind == ELLIPSOID:
        y = (x[0] / a, x[1] / b, x[2] / c)
        return scale(1.0 / length(y), x)
    radial = from_axis(x)[1]
    if kind == CYLINDER:
        return (a * radial[0], a * radial[1], x[2])
    y = sub(x, scale(a, radial))
    return add(scale(a, radial), scale(b / length(y), y))


@sweep
def outside(shape, x):
    """Signed distance of x from the body, positive outside; not for ellipsoids."""
    kind, side, a, b, _ = shape
    z = 0.0 * x[0]
    if kind == PLANE:
        return x[2]
    if kind == SPHERE:
        return side * (length(x) - a)
    rho = np.sqrt(x[0] * x[0] + x[1] * x[1])
    if kind == CYLINDER:
        return side * (rho - a)
    return side * (length((rho - a, x[2], z)) - b)


@kernel
def polar(shape, n):
    """Whether a point with normal n is outside the first chart of a sphere or an ellipsoid."""
    return shape[0] in (SPHERE, ELLIPSOID) and (n[2].real > POLAR or n[2].real < -POLAR)


@kernel
def turned_axes(x):
    """Components in the second chart's axes, whose poles are on x."""
    return (x[1], x[2], x[0])


@kernel
def turned_back(x):
    return (x[2], x[0], x[1])


@sweep
def chart_axis(shape, x, n, second):
    """The chart's x axis at the point x, and its torsion t: `dx·y = t·s` along the tangent vector s, y = n × x.

    The x axis is along increasing longitude; on a plane, the frame's. second: the chart with poles on x, of a sphere
    or an ellipsoid.
    """
    kind, _, a, b, c = shape
    z = 0.0 * x[0]
    o = z + 1.0
    if kind == PLANE:
        return (o, z, z), (z, z, z)
    if kind in (SPHERE, ELLIPSOID):
        if kind == SPHERE:
            b = a
            c = a
        if second:
            axis, torsion = meridian(b, c, turned_axes(x), turned_axes(n))
            return turned_back(axis), turned_back(torsion)
        return meridian(a, b, x, n)
    return meridian(o, o, x, n)


@sweep
def meridian(a, b, x, n):
    """`chart_axis` for the longitude of (x/a, y/b) about z."""
    z = 0.0 * x[0]
    X, Y = x[0] / a, x[1] / b
    rho = np.sqrt(X * X + Y * Y)
    C, S = X / rho, Y / rho
    along = (-a * S, b * C, z)
    size = length(along)
    axis = scale(1.0 / size, along)
    rate = dot(cross(n, axis), (-a * C, -b * S, z)) / size    # y·dx per longitude
    return axis, scale(rate / rho, (-S / a, C / b, z))
