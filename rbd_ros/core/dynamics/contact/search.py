"""Approximate closest points of two surfaces: a robust search in real numbers, to start Newton's method of `closest`.

Sphere, cylinder and torus are tubes about a core: a point, a line, a circle. The search minimises the signed distance
of a point of the core, or of an ellipsoid, from the other body: in closed form if known, else by samples and pattern
search with decreasing steps.
"""
from __future__ import annotations

import numpy as np

from ...compiled.kernel import kernel, sweep
from ...lie.spatial import add, cross, dot, rotate, rotate_back, scale, sub
from ...model.surfaces.shapes import CYLINDER, ELLIPSOID, PLANE, TORUS, length, normal, outside, settled

SAMPLES = 32     # on a circle
POINTS = 160     # samples on an ellipsoid
FINEST = 1e-4    # rad: last step, before Newton's method


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
    """Point in direction m of a torus' circle or of an ellipsoid's surface."""
    if shape[0] == TORUS:
        return (shape[2] * m[0], shape[2] * m[1], 0.0)
    return (shape[2] * m[0], shape[3] * m[1], shape[4] * m[2])


@kernel
def support(shape, n):
    """Point of an ellipsoid with unit normal n."""
    x = (shape[2] * n[0], shape[3] * n[1], shape[4] * n[2])
    size = length(x)
    return (shape[2] * x[0] / size, shape[3] * x[1] / size, shape[4] * x[2] / size)


@sweep
def depth(walker, wall, R, p, m):
    """Signed distance of the point in direction m of the walker's core from the wall.

    For two ellipsoids m is a normal of the walker: minus their separation along m, which is at most the distance, with
    equality at the closest points; for a hollow wall the clearance along m.
    """
    if wall[0] == ELLIPSOID and walker[0] == ELLIPSOID:
        n = rotate(R, m)
        return dot(n, support(wall, n)) + wall[1] * (dot(n, p) + dot(m, support(walker, m)))
    return outside(wall, add(rotate(R, core(walker, m)), p))


@sweep
def best_on_circle(walker, wall, R, p):
    """Direction of the torus' core with the least signed distance from the wall."""
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
    """Direction (x/a, y/b, z/c) of the ellipsoid's point with the least `depth`."""
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
    """Approximate closest points on the wall, in its frame, and on the walker, whose pose in that frame is (R, p)."""
    kind = walker[0]
    y = (0.0, 0.0, 0.0)
    radius = walker[2]
    if kind == TORUS:
        radius = walker[3]
        y = core(walker, best_on_circle(walker, wall, R, p))
    elif kind == CYLINDER and wall[0] == CYLINDER:    # the point next to the other axis; the middle for parallel axes
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
