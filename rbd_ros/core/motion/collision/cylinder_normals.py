"""Nearest points of a cylinder and another core that are apart, by Newton's method from those that GJK has found.

GJK ends where the squared distance is right; the normal is then right to the square root of that error. Here the
distance f of a point of the other core from the cylinder, which has a closed form, is stationary along the feature that
its normal belongs to: a vertex, edge or face, or of a cylinder the face, the side or the rim.
"""
from __future__ import annotations

from itertools import product

import numpy as np

from ...compiled.entry import entry
from ...compiled.kernel import sweep
from ...lie.spatial import add, cross, dot, rotate, rotate_back, scale, sub
from ...model.block import matrix, put, vector
from ...model.inertia import Array
from .pieces import Piece
from .separation import length

STEPS = 4
FLAT = 1e-4, 1e-6, 1e-8    # sines of the normal to an edge, face, axis: one after the other, until it succeeds
ROUNDING = 1e-14    # m
SINGULAR = 1e-10    # of a second derivative, in 1/m
ROTATION, POSITION, SIZE, CORE = 0, 9, 12, 14    # of a core: pose, and of a cylinder radius, half the length
CORNERS, ENDS = np.array(list(product((-1.0, 1.0), repeat=3))), np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])


def vertices_of(piece: Piece) -> Array:
    """Vertices (N, 3) of a piece's core, in its frame; none of cylinders and planes."""
    shape = piece.shape
    if shape.surface is not None:
        return np.array(shape.surface.points)
    return {"box": lambda: 0.5 * CORNERS * shape.size, "sphere": lambda: np.zeros((1, 3)),
            "capsule": lambda: 0.5 * shape.size[1] * ENDS}.get(shape.kind, lambda: np.empty((0, 3)))()


@sweep
def reach(C, vertices, n):
    """Largest n·x over a core: of vertices (N, 3), or a cylinder without."""
    u = rotate_back(matrix(C, ROTATION), n)
    offset = dot(n, vector(C, POSITION))
    if vertices.shape[0] == 0:
        return offset + C[SIZE] * np.sqrt(u[0] * u[0] + u[1] * u[1]) + C[SIZE + 1] * abs(u[2])
    best = -np.inf
    for k in range(vertices.shape[0]):
        best = max(best, u[0] * vertices[k, 0] + u[1] * vertices[k, 1] + u[2] * vertices[k, 2])
    return offset + best


@sweep
def feature(vertices, u, flat):
    """A vertex of the feature of those (N, 3) that are least along u, and its two ways, of unit length or 0."""
    zero = (0.0, 0.0, 0.0)
    if vertices.shape[0] == 0:
        return zero, zero, zero
    least, first = np.inf, 0
    for k in range(vertices.shape[0]):
        value = u[0] * vertices[k, 0] + u[1] * vertices[k, 1] + u[2] * vertices[k, 2]
        if value < least:
            least, first = value, k
    o = (vertices[first, 0], vertices[first, 1], vertices[first, 2])
    w, z, longest = zero, zero, 0.0
    for turn in range(2):
        longest *= FLAT[0]    # the second way is not along the first
        for k in range(vertices.shape[0]):
            e = sub((vertices[k, 0], vertices[k, 1], vertices[k, 2]), o)
            slope = dot(u, e)
            if slope * slope <= flat * flat * dot(e, e):
                side = sub(e, scale(dot(e, w), w))
                size = length(side)
                if size > longest:
                    longest, z = size, scale(1.0 / size, side)
        if turn == 0:
            w, z = z, zero
    return o, w, z


@sweep
def _along_cylinder(C, found, u, y, flat):
    """The point y, moved into the feature of a cylinder that is least along `found`, and two ways as above; and the
    second derivative of u·x along the first.
    """
    radius, half = C[SIZE], C[SIZE + 1]
    across = np.sqrt(y[0] * y[0] + y[1] * y[1])
    z = y[2] if abs(found[2]) <= flat else -half if found[2] > 0.0 else half
    if np.sqrt(found[0] * found[0] + found[1] * found[1]) <= flat or not across > 0.0:
        return (y[0], y[1], z), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), 0.0
    e = (y[0] / across, y[1] / across, 0.0)
    second = (0.0, 0.0, 1.0) if abs(found[2]) <= flat else (0.0, 0.0, 0.0)
    return (radius * e[0], radius * e[1], z), (-e[1], e[0], 0.0), second, -dot(u, e) / radius


@sweep
def _stationary(first, second, vertices, n, b, flat):
    """Normal, nearest point of the second core and of the first, from a normal and a point of the second."""
    R, U = matrix(first, ROTATION), matrix(second, ROTATION)
    radius, half = first[SIZE], first[SIZE + 1]
    y = rotate_back(U, sub(b, vector(second, POSITION)))
    found = rotate_back(U, n)    # the one that is given decides on features: it is better than that of its points
    o, w, z = feature(vertices, found, flat)
    bent, a = 0.0, b
    for step in range(STEPS + 1):
        if vertices.shape[0] == 0:
            y, w, z, bent = _along_cylinder(second, found, rotate_back(U, n), y, flat)
        else:
            d = sub(y, o)
            y = add(o, add(scale(dot(d, w), w), scale(dot(d, z), z)))
        b = add(rotate(U, y), vector(second, POSITION))
        x = rotate_back(R, sub(b, vector(first, POSITION)))
        rho = np.sqrt(x[0] * x[0] + x[1] * x[1])
        side, end = max(rho - radius, 0.0), max(abs(x[2]) - half, 0.0)
        f = np.sqrt(side * side + end * end)
        if not f > 0.0:
            return n, b, a
        e = (x[0] / rho, x[1] / rho, 0.0) if rho > 0.0 else (1.0, 0.0, 0.0)
        slope = (side / f * e[0], side / f * e[1], (-1.0 if x[2] < 0.0 else 1.0) * end / f)
        n = rotate(R, slope)
        a = sub(b, scale(f, n))
        if step == STEPS:
            break
        # ∂²f = around ttᵀ + over mmᵀ
        t = rotate_back(U, rotate(R, (-e[1], e[0], 0.0)))
        m = rotate_back(U, rotate(R, cross(slope, (-e[1], e[0], 0.0))))
        around = side / f / rho if side > 0.0 else 0.0
        over = 1.0 / f if side > 0.0 and end > 0.0 else 0.0
        u = rotate_back(U, n)
        A = around * dot(w, t) * dot(w, t) + over * dot(w, m) * dot(w, m) + bent
        B = around * dot(w, t) * dot(z, t) + over * dot(w, m) * dot(z, m)
        D = around * dot(z, t) * dot(z, t) + over * dot(z, m) * dot(z, m)
        g, h = dot(w, u), dot(z, u)
        p = q = 0.0
        if A > SINGULAR:
            D, h = D - B * B / A, h - g * B / A
            q = -h / D if D > SINGULAR else 0.0
            p = -(g + B * q) / A
        elif D > SINGULAR:
            q = -h / D
        y = add(y, add(scale(p, w), scale(q, z)))
    return n, b, a


@entry("float64(float64[::1], float64[::1], float64[:, ::1], float64, float64, float64[:, ::1], float64[::1])",
       nogil=True)
def refine(first, second, vertices, radius, sign, points, normal):
    """Distance of a cylinder `first` and another piece: its core `second`, with vertices (N, 3) in its frame, or a
    cylinder without, and a radius about it.

    points (2, 3), normal (3,): in the world, from the cylinder to the other piece, or with sign −1 from the other piece
    to the cylinder; in, near the nearest ones, and out. The distance is that by which planes with this normal separate
    the pieces. −inf, and nothing is changed, if they separate them less than those with the normal given, and of cores
    that touch.
    """
    flat = points.reshape(-1)
    own, others = (0, 3) if sign > 0.0 else (3, 0)
    given = scale(sign, vector(normal, 0))
    before = -reach(second, vertices, scale(-1.0, given)) - reach(first, vertices[:0], given)
    b = add(vector(flat, others), scale(radius, given))
    for sine in FLAT:
        n, x, a = _stationary(first, second, vertices, given, b, sine)
        after = -reach(second, vertices, scale(-1.0, n)) - reach(first, vertices[:0], n)
        if after >= max(before - ROUNDING, ROUNDING):
            put(flat, own, a)
            put(flat, others, sub(x, scale(radius, n)))
            put(normal, 0, scale(sign, n))
            return after - radius
    return -np.inf
