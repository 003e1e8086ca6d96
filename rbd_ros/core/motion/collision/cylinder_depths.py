"""Depth of a cylinder and another core that overlap: the least width of their difference, by its features.

The width w(n) = max_a n·a − min_b n·b of a direction n is how far the other core has to move along n to be apart; the
depth is the least of all, which EPA finds to 1e-6 m beside cylinders. The difference of the cores is convex, so from
inside no edge or vertex of it is nearest: both ways across n are flat, or bent with a radius above w. A way is flat
where n is perpendicular to an edge or a side. With two flat ways n is a cross product or an axis, with one it is found
on a circle, and with none, between two rims, on the sphere, by Newton's method. Each width is an upper bound of the
depth, so the least is taken. Of few edges all circles are searched, of hulls those beside the normal of EPA.
"""
from __future__ import annotations

import numpy as np

from ...compiled.entry import entry
from ...compiled.kernel import sweep
from ...lie.spatial import add, cross, dot, rotate, rotate_back, scale, sub
from ...model.block import matrix, put, vector
from ...model.inertia import Array
from .cylinder_normals import POSITION, ROTATION, SIZE, feature, reach
from .pieces import Piece
from .separation import length, nearest_in_triangle

STEPS = 12
LONGEST = 0.5    # rad, of a step
ROUNDS = 4
SINES = (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 1e-7)    # of a normal to edges, faces
FLAT = 1e-12     # sine, and m: what is farthest along a normal
CORNERS = 32     # of a face, at most
NONE = (0.0, 0.0, 0.0)
_TURNS = np.arange(16) * (2.0 * np.pi / 16)
CIRCLE = np.stack([np.cos(_TURNS), np.sin(_TURNS)], axis=1)
_HEIGHTS = 1.0 - (2.0 * np.arange(96) + 1.0) / 96
_TURNS = np.arange(96) * np.pi * (3.0 - np.sqrt(5.0))
SPHERE = np.stack([*(np.sqrt(1.0 - _HEIGHTS**2) * x for x in (np.cos(_TURNS), np.sin(_TURNS))), _HEIGHTS], axis=1)


def ways_of(piece: Piece) -> Array:
    """Directions (N, 3) of the edges and sides of a piece's core, in its frame; none of hulls."""
    return {"box": np.eye(3), "capsule": np.eye(3)[2:], "cylinder": np.eye(3)[2:]}.get(piece.shape.kind,
                                                                                      np.empty((0, 3)))


@sweep
def _width(first, second, vertices, n):
    return reach(first, vertices[:0], n) + reach(second, vertices, scale(-1.0, n))


@sweep
def _axis(C):
    return (C[ROTATION + 2], C[ROTATION + 5], C[ROTATION + 8])


@sweep
def _rim(C, n):
    """The point of a cylinder's rim that is farthest along n, from the cylinder's centre; the direction of the rim
    there, and the radius of its curvature as seen along n.
    """
    a = _axis(C)
    s = dot(n, a)
    across = sub(n, scale(s, a))
    size = length(across)
    e = scale(1.0 / size, across) if size > 0.0 else NONE
    point = add(scale(C[SIZE], e), scale(C[SIZE + 1] if s > 0.0 else -C[SIZE + 1], a))
    return point, cross(a, e), C[SIZE] / size if size > 0.0 else 0.0


@sweep
def _stationary(first, second, curved, c, n, w):
    """A direction near n in which the width is stationary, perpendicular to w unless that is 0; c: from the second
    core's centre or vertex to the first's.
    """
    n = sub(n, scale(dot(n, w), w))
    size = length(n)
    if not size > 0.0:
        return NONE
    n = scale(1.0 / size, n)
    t2, bend2 = NONE, 0.0
    for _ in range(STEPS):
        p, t, bend = _rim(first, n)
        slope = add(c, p)
        if curved:
            p, t2, bend2 = _rim(second, n)
            slope = add(slope, p)
        h = dot(n, slope)
        x = cross(n, w) if dot(w, w) > 0.0 else t
        y = NONE if dot(w, w) > 0.0 else cross(n, t)
        A = bend * dot(x, t) * dot(x, t) + bend2 * dot(x, t2) * dot(x, t2) - h
        B = bend * dot(x, t) * dot(y, t) + bend2 * dot(x, t2) * dot(y, t2)
        D = bend * dot(y, t) * dot(y, t) + bend2 * dot(y, t2) * dot(y, t2) - h
        g, k = dot(x, slope), dot(y, slope)
        if dot(w, w) > 0.0:
            if not A > 0.0:
                return n
            u, v = -g / A, 0.0
        else:
            if not (A > 0.0 and A * D > B * B):
                return n
            u, v = (B * k - D * g) / (A * D - B * B), (B * g - A * k) / (A * D - B * B)
        size = np.sqrt(u * u + v * v)
        if size > LONGEST:
            u, v = u * LONGEST / size, v * LONGEST / size
        n = add(n, add(scale(u, x), scale(v, y)))
        n = scale(1.0 / length(n), n)
        if size < 1e-15:
            break
    return n


@sweep
def _better(first, second, vertices, m, n, least):
    """Of the directions m, of any length, and n with its width: the one with the smaller width, and that."""
    size = length(m)
    if not size > 0.0:
        return n, least
    m = scale(1.0 / size, m)
    width = _width(first, second, vertices, m)
    if width < least:
        return m, width
    return n, least


@sweep
def _beside(first, second, vertices, n, w, best, least):
    """`_better` with a stationary direction near n, perpendicular to w unless that is 0."""
    U, c = matrix(second, ROTATION), sub(vector(first, POSITION), vector(second, POSITION))
    if vertices.shape[0]:
        c = sub(c, rotate(U, feature(vertices, rotate_back(U, n), 0.0)[0]))
    m = _stationary(first, second, vertices.shape[0] == 0, c, n, w)
    return _better(first, second, vertices, m, best, least)


@sweep
def _from_all_sides(first, second, vertices, ways, n, least):
    """`_better` with all directions that may be best between a cylinder and a core with these ways (N, 3)."""
    U = matrix(second, ROTATION)
    for i in range(ways.shape[0] + 1):
        w = rotate(U, vector(ways[i - 1], 0)) if i else _axis(first)
        for side in (-1.0, 1.0):
            n, least = _better(first, second, vertices, scale(side, w), n, least)
            for j in range(i):
                v = rotate(U, vector(ways[j - 1], 0)) if j else _axis(first)
                n, least = _better(first, second, vertices, scale(side, cross(w, v)), n, least)
        x = cross(w, (1.0, 0.0, 0.0) if abs(w[0]) < 0.7 else (0.0, 1.0, 0.0))
        x = scale(1.0 / length(x), x)
        y = cross(w, x)
        for k in range(CIRCLE.shape[0]):
            m = add(scale(CIRCLE[k, 0], x), scale(CIRCLE[k, 1], y))
            n, least = _beside(first, second, vertices, m, w, n, least)
    if vertices.shape[0] == 0:
        for k in range(SPHERE.shape[0]):
            m = (SPHERE[k, 0], SPHERE[k, 1], SPHERE[k, 2])
            n, least = _beside(first, second, vertices, m, NONE, n, least)
    return n, least


@sweep
def _from_the_best(first, second, vertices, n, least):
    """`_better` with the directions beside n: by the edges to which n is nearly perpendicular."""
    U, a = matrix(second, ROTATION), _axis(first)
    for _ in range(ROUNDS):
        before = least
        n, least = _beside(first, second, vertices, n, a, n, least)
        if vertices.shape[0] == 0:
            n, least = _beside(first, second, vertices, n, _axis(second), n, least)
            n, least = _beside(first, second, vertices, n, NONE, n, least)
        else:
            for sine in SINES:
                _, w, z = feature(vertices, rotate_back(U, n), sine)
                w, z = rotate(U, w), rotate(U, z)
                for m in (cross(w, z), cross(w, a)):
                    n, least = _better(first, second, vertices, scale(1.0 if dot(m, n) > 0.0 else -1.0, m), n, least)
                if dot(w, w) > 0.0:
                    n, least = _beside(first, second, vertices, n, w, n, least)
        if not least < before:
            break
    return n, least


@sweep
def _farthest(C, n):
    """What of a cylinder is farthest along n: the ends of a line, or equal; and the radius of a disc about them."""
    a, (p, _, _) = _axis(C), _rim(C, n)
    p = add(p, vector(C, POSITION))
    if abs(dot(n, a)) <= FLAT:
        return sub(p, scale(2.0 * C[SIZE + 1] * np.sign(dot(sub(p, vector(C, POSITION)), a)), a)), p, 0.0
    if length(cross(n, a)) <= FLAT:
        p = add(vector(C, POSITION), scale(C[SIZE + 1] if dot(n, a) > 0.0 else -C[SIZE + 1], a))
        return p, p, C[SIZE]
    return p, p, 0.0


@sweep
def _nearest_of_lines(a, b, c, d):
    """The point of the line from c to d that is nearest to the line from a to b, and the squared distance (Ericson
    2005, 5.1.9).
    """
    u, v, r = sub(b, a), sub(d, c), sub(a, c)
    U, V, f = dot(u, u), dot(v, v), dot(v, r)
    s = t = 0.0
    if U > 0.0 and V > 0.0:
        e, across = dot(u, v), dot(cross(u, v), cross(u, v))
        s = min(max((e * f - dot(u, r) * V) / across, 0.0), 1.0) if across > FLAT * FLAT * U * V else 0.5
    if V > 0.0:
        t = min(max((s * dot(u, v) + f) / V, 0.0), 1.0)
    if U > 0.0:
        s = min(max((t * dot(u, v) - dot(u, r)) / U, 0.0), 1.0)
    if V > 0.0:
        t = min(max((s * dot(u, v) + f) / V, 0.0), 1.0)
    y = add(c, scale(t, v))
    d = sub(y, add(a, scale(s, u)))
    return y, dot(d, d)


@sweep
def _touching(first, second, vertices, n, width, corners):
    """The nearest point of the second core: farthest along −n, and by the width along n from one of the first that is
    farthest along n.
    """
    U, o = matrix(second, ROTATION), vector(second, POSITION)
    a, b, radius = _farthest(first, n)
    a, b = sub(a, scale(width, n)), sub(b, scale(width, n))
    if vertices.shape[0] == 0:
        c, d, wide = _farthest(second, scale(-1.0, n))
        if radius == 0.0 and wide > 0.0:    # the point of a line that is nearest to the middle of a disc
            a, b, c, d = c, d, a, b
        y, _ = _nearest_of_lines(a, b, c, d)
        if radius > 0.0 and wide > 0.0:
            size = length(sub(a, c))
            y = add(c, scale(min(1.0, wide / size) if size > 0.0 else 0.0, sub(a, c)))
        return y
    u, count, least = rotate_back(U, n), 0, -reach(second, vertices, scale(-1.0, n)) - dot(n, o)
    for k in range(vertices.shape[0]):
        value = u[0] * vertices[k, 0] + u[1] * vertices[k, 1] + u[2] * vertices[k, 2]
        if value <= least + FLAT and count < CORNERS:
            corners[count] = k
            count += 1
    a, b = rotate_back(U, sub(a, o)), rotate_back(U, sub(b, o))
    y, nearest = NONE, np.inf
    for i in range(count):
        c = vector(vertices[corners[i]], 0)
        for j in range(i + 1 if count == 1 else i):
            d = vector(vertices[corners[j]], 0)
            x, square = _nearest_of_lines(a, b, c, d)
            if square < nearest:
                y, nearest = x, square
            for k in range(j):
                e = vector(vertices[corners[k]], 0)
                for p in (a, b):
                    s, t, r = nearest_in_triangle(sub(c, p), sub(d, p), sub(e, p))
                    x = add(scale(s, c), add(scale(t, d), scale(r, e)))
                    square = dot(sub(x, p), sub(x, p))
                    if square < nearest:
                        y, nearest = x, square
    return add(rotate(U, y), o)


@entry("float64(float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64, float64, float64[:, ::1], "
       "float64[::1])", nogil=True)
def depth(first, second, vertices, ways, radius, sign, points, normal):
    """Distance, not positive, of a cylinder `first` and another piece whose core `second` it overlaps: with vertices
    (N, 3), or a cylinder without, `ways_of` and a radius about it.

    points (2, 3), normal (3,): in the world, from the cylinder to the other piece, or with sign −1 from the other piece
    to the cylinder; of the normal, which is in, near the one of the least width, and out. −inf, and nothing is changed,
    if the cores do not overlap.
    """
    n, least = _better(first, second, vertices, scale(sign, vector(normal, 0)), _axis(first), np.inf)
    if ways.shape[0] or vertices.shape[0] == 1:
        n, least = _from_all_sides(first, second, vertices, ways, n, least)
    n, least = _from_the_best(first, second, vertices, n, least)
    if not least >= 0.0:
        return -np.inf
    x = _touching(first, second, vertices, n, least, np.empty(CORNERS, dtype=np.int64))
    flat = points.reshape(-1)
    own, others = (0, 3) if sign > 0.0 else (3, 0)
    put(flat, own, add(x, scale(least, n)))
    put(flat, others, sub(x, scale(radius, n)))
    put(normal, 0, scale(sign, n))
    return -least - radius
