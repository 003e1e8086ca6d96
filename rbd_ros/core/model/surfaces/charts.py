"""Charts c(u) of surfaces: points, fundamental forms, coordinates of a point. For real and complex numbers.

Plane: u = (x, y). Other surfaces: u₁ is the longitude about z (rad); u₂ is the height of a cylinder (m), the latitude
of a sphere, the latitude on the unit sphere whose scaling is the ellipsoid, the angle about a torus's tube from its
outer side. For surfaces touched from inside u₂ changes sign: x, y and the outward z stay right-handed. The second
chart of a sphere or an ellipsoid has its poles on x.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ...compiled.entry import quick_entry
from ...compiled.kernel import kernel
from ...lie.spatial import cross, dot
from ..inertia import Array
from .shapes import CYLINDER, PLANE, SPHERE, TORUS, bend, chart_axis, normal, polar, turned_axes, turned_back

Shape = tuple[int, float, float, float, float]
FORMS = 22    # point 3, axes 9, metric 4, curvature 4, torsion 2


@kernel
def chart_point(shape: Shape, u1: Any, u2: Any, second: bool) -> tuple[Any, Any, Any]:
    """Point c(u)."""
    kind, side, a, b, c = shape
    if kind == PLANE:
        return u1, u2, 0.0 * u1
    C, S, v = np.cos(u1), np.sin(u1), side * u2
    if kind == CYLINDER:
        return a * C, a * S, v
    if kind == TORUS:
        rho = a + b * np.cos(v)
        return rho * C, rho * S, b * np.sin(v)
    m = (C * np.cos(v), S * np.cos(v), np.sin(v))
    m = turned_back(m) if second else m
    return (a * m[0], a * m[1], a * m[2]) if kind == SPHERE else (a * m[0], b * m[1], c * m[2])


@kernel
def chart_coordinates(shape: Shape, x: Any, second: bool) -> tuple[float, float]:
    """Coordinates u of a point (real numbers) of the surface."""
    kind, side, a, b, c = shape
    if kind == PLANE:
        return x[0], x[1]
    if kind == CYLINDER:
        return np.arctan2(x[1], x[0]), side * x[2]
    if kind == TORUS:
        return np.arctan2(x[1], x[0]), side * np.arctan2(x[2], np.hypot(x[0], x[1]) - a)
    m = (x[0] / a, x[1] / a, x[2] / a) if kind == SPHERE else (x[0] / a, x[1] / b, x[2] / c)
    m = turned_axes(m) if second else m
    return np.arctan2(m[1], m[0]), side * np.arctan2(m[2], np.hypot(m[0], m[1]))


@kernel
def chart_slopes(shape: Shape, u1: Any, u2: Any, second: bool) -> tuple[tuple[Any, Any, Any], tuple[Any, Any, Any]]:
    """∂c/∂u₁ and ∂c/∂u₂."""
    kind, side, a, b, c = shape
    z = 0.0 * u1
    o = z + 1.0
    if kind == PLANE:
        return (o, z, z), (z, o, z)
    C, S, v = np.cos(u1), np.sin(u1), side * u2
    if kind == CYLINDER:
        return (-a * S, a * C, z), (z, z, side * o)
    if kind == TORUS:
        rho, slope = a + b * np.cos(v), -side * b * np.sin(v)
        return (-rho * S, rho * C, z), (slope * C, slope * S, side * b * np.cos(v))
    m1, m2 = (-S * np.cos(v), C * np.cos(v), z), (-C * np.sin(v), -S * np.sin(v), np.cos(v))
    if second:
        m1, m2 = turned_back(m1), turned_back(m2)
    b, c = (a, a) if kind == SPHERE else (b, c)
    return (a * m1[0], b * m1[1], c * m1[2]), (side * a * m2[0], side * b * m2[1], side * c * m2[2])


@quick_entry("void(float64[::1], complex128[::1], boolean, complex128[::1])")
def forms_entry(numbers, u, second, out):
    """`chart_forms` of a shape of 5 numbers, rows of matrices one after the other, into out (22,)."""
    o = 0.0 * u[0]
    shape = int(numbers[0]), numbers[1], numbers[2] + o, numbers[3] + o, numbers[4] + o
    p = chart_point(shape, u[0], u[1], second)
    n = normal(shape, p)
    x, torsion = chart_axis(shape, p, n, second)
    y = cross(n, x)
    by_u1, by_u2 = chart_slopes(shape, u[0], u[1], second)
    bent_x, bent_y = bend(shape, p, n, x), bend(shape, p, n, y)
    for i in range(3):
        out[i] = p[i]
        out[3 + 3 * i], out[4 + 3 * i], out[5 + 3 * i] = x[i], y[i], n[i]
    out[12], out[13], out[14], out[15] = dot(x, by_u1), dot(x, by_u2), dot(y, by_u1), dot(y, by_u2)
    out[16], out[17], out[18], out[19] = dot(x, bent_x), dot(x, bent_y), dot(y, bent_x), dot(y, bent_y)
    out[20], out[21] = dot(x, torsion), dot(y, torsion)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1])")
def coordinates_entry(numbers, point, out):
    """Coordinates (2,) of a point of a shape of 5 numbers; whether they are of the second chart."""
    shape = int(numbers[0]), numbers[1], numbers[2], numbers[3], numbers[4]
    x = point[0], point[1], point[2]
    second = polar(shape, normal(shape, x))
    out[0], out[1] = chart_coordinates(shape, x, second)
    return second


def chart_forms(shape: Shape, u: Any, second: bool) -> tuple[Any, Any, Any, Any, Any]:
    """Point (3,), axes (3, 3), metric (2, 2), curvature (2, 2) and torsion (2,) at u (2,), real or complex."""
    out = np.empty(FORMS, dtype=complex)
    forms_entry.call(np.array(shape, dtype=float), u.astype(complex), second, out)
    if not np.iscomplexobj(u):
        out = out.real.copy()
    return out[:3], out[3:12].reshape(3, 3), out[12:16].reshape(2, 2), out[16:20].reshape(2, 2), out[20:]


def coordinates_of(shape: Shape, point: Array) -> tuple[Array, int]:
    """Coordinates (2,) of a point (3,) of the surface, and the index of their chart."""
    u = np.empty(2)
    second = coordinates_entry.call(np.array(shape, dtype=float), np.array(point), u)
    return u, int(second)
