"""Closest points of two surfaces, nearly: a safe search in real numbers, where Newton's method of `closest` begins.

Sphere, cylinder and torus are tubes about a point, a line and a circle. The search moves a point of this core, or of an
ellipsoid, to where it is least far outside of the other body: in closed form where there is one, else from samples on
ever finer steps.
"""
from __future__ import annotations

import numpy as np

from ...compiled.kernel import kernel, sweep
from ...lie.spatial import add, cross, dot, rotate, rotate_back, scale, sub
from ...model.surfaces.shapes import CYLINDER, ELLIPSOID, PLANE, TORUS, length, normal, outside, settled

SAMPLES = 32     # of a circle
POINTS = 160     # of an ellipsoid
FINEST = 1e-4    # rad: where Newton's method takes over


@kernel
def across(n):
    """Two unit vectors perpendicular to the unit vector n and to each other."""
    z = 0.0 * n[0]
    axis = (z + 1.0, z, z) if n[0].real * n[0].real < 0.5 else (z, z + 1.0, z)
    t = cross(n, axis)
    t = scale(1.0 / length(t), t)
    return t, cross(n, t)


@kernel
def core(shape, m):
    """The point in direction m of the circle in a torus or of an ellipsoid's surface."""
    if shape[0] == TORUS:
        return (shape[2] * m[0], shape[2] * m[1], 0.0)
    return (shape[2] * m[0], shape[3] * m[1], shape[4] * m[2])


@kernel
def support(shape, n):
    """The point of an ellipsoid whose normal is n, a unit vector."""
    x = (shape[2] * n[0], shape[3] * n[1], shape[4] * n[2])
    size = length(x)
    return (shape[2] * x[0] / size, shape[3] * x[1] / size, shape[4] * x[2] / size)


@sweep
def depth(walker, wall, R, p, m):
    """How far the walker's core in direction m is outside of the wall.

    Of two ellipsoids m is a normal of the walker: minus what separates them along it, at most the distance, and that
    for the right one; of a hollow wall the room that is left along m.
    """
    if wall[0] == ELLIPSOID and walker[0] == ELLIPSOID:
        n = rotate(R, m)
        return dot(n, support(wall, n)) + wall[1] * (dot(n, p) + dot(m, support(walker, m)))
    return outside(wall, add(rotate(R, core(walker, m)), p))


@sweep
def best_on_circle(walker, wall, R, p):
    """The direction of the torus' core that is least far outside of the wall."""
    step = 2.0 * np.pi / SAMPLES
    best = np.inf
    t = 0.0
    for i in range(SAMPLES):
        d = depth(walker, wall, R, p, (np.cos(i * step), np.sin(i * step), 0.0))
        if d < best:
            best = d
            t = i * step
    while step > FINEST:
        moved = False
        for sign in (-1.0, 1.0):
            x = t + sign * step
            d = depth(walker, wall, R, p, (np.cos(x), np.sin(x), 0.0))
            if d < best:
                best = d
                t = x
                moved = True
        if not moved:
            step *= 0.4
    return (np.cos(t), np.sin(t), 0.0)


@sweep
def best_on_ellipsoid(walker, wall, R, p):
    """The direction (x/a, y/b, z/c) of the ellipsoid's point that is least far outside of the wall (see `depth`)."""
    best = np.inf
    m = (0.0, 0.0, 1.0)
    for i in range(POINTS):    # a spiral from pole to pole
        z = 1.0 - (2.0 * i + 1.0) / POINTS
        r = np.sqrt(1.0 - z * z)
        x = (r * np.cos(2.399963229728653 * i), r * np.sin(2.399963229728653 * i), z)
        d = depth(walker, wall, R, p, x)
        if d < best:
            best = d
            m = x
    step = 0.3
    while step > FINEST:
        moved = False
        t, u = across(m)
        for k in range(4):
            x = add(m, scale(step if k < 2 else -step, t if k % 2 == 0 else u))
            x = scale(1.0 / length(x), x)
            d = depth(walker, wall, R, p, x)
            if d < best:
                best = d
                m = x
                moved = True
        if not moved:
            step *= 0.4
    return m


@sweep
def searched(walker, wall, R, p):
    """Closest points in real numbers, nearly: on the wall, in its frame, and on the walker, whose pose (R, p) is."""
    kind = walker[0]
    y = (0.0, 0.0, 0.0)
    radius = walker[2]
    if kind == TORUS:
        radius = walker[3]
        y = core(walker, best_on_circle(walker, wall, R, p))
    elif kind == CYLINDER and wall[0] == CYLINDER:    # next to the other's axis; the middle where they are parallel
        slope = R[2] * R[2] + R[5] * R[5]
        y = (0.0, 0.0, -(p[0] * R[2] + p[1] * R[5]) / slope if slope > 1e-12 else 0.0)
    elif kind == ELLIPSOID:
        radius = 0.0
        if wall[0] == PLANE:
            m = (-walker[2] * R[6], -walker[3] * R[7], -walker[4] * R[8])
            y = core(walker, scale(1.0 / length(m), m))
        else:
            m = best_on_ellipsoid(walker, wall, R, p)
            if wall[0] == ELLIPSOID:
                return scale(-wall[1], support(wall, rotate(R, m))), support(walker, m)
            y = core(walker, m)
    x = settled(wall, add(rotate(R, y), p))
    n = rotate_back(R, normal(wall, x))
    if kind == CYLINDER:
        n = (n[0], n[1], 0.0)
        n = scale(1.0 / length(n), n)
    return x, sub(y, scale(radius, n))
