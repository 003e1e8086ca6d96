"""Charts c(u) of surfaces: points, fundamental forms, coordinates of a point. For real and complex numbers.

Plane: u = (x, y). Other surfaces: u₁ is the longitude about z (rad); u₂ is the height of a cylinder (m), the latitude
of a sphere, the latitude on the unit sphere whose scaling is the ellipsoid, the angle about a torus's tube from its
outer side. For surfaces touched from inside u₂ changes sign: x, y and the outward z stay right-handed. The second
chart of a sphere or an ellipsoid has its poles on x.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ...lie.spatial import cross
from .shapes import CYLINDER, PLANE, SPHERE, TORUS, bend, chart_axis, normal, turned_axes, turned_back

Shape = tuple[int, float, float, float, float]


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


def chart_forms(shape: Shape, u: Any, second: bool) -> tuple[Any, Any, Any, Any, Any]:
    """Point, axes, metric, curvature and torsion at u."""
    u1, u2 = u
    p = chart_point(shape, u1, u2, second)
    n = normal(shape, p)
    x, torsion = chart_axis(shape, p, n, second)
    y = cross(n, x)
    across = np.array([x, y])
    bent = np.column_stack([bend(shape, p, n, x), bend(shape, p, n, y)])
    return (np.array(p), np.column_stack([x, y, n]), across @ np.column_stack(chart_slopes(shape, u1, u2, second)),
            across @ bent, across @ np.array(torsion))
