"""Distance or depth of a cylinder and another core, exact to rounding, from the normal that GJK or EPA has found.

The width w(n) = max_a n·a − min_b n·b of a direction n is by how much the cores overlap along n: minus the distance of
those that are apart and the depth of those that overlap is the least of all. w is stationary on the sphere; on the
circle of normals perpendicular to an edge or a side; or where two such circles meet; each is found by Newton's method
or is a product of two directions. A width is an upper bound of the least one, so the least of those found is taken. It
is stationary if points of both cores that are farthest along ±n are w apart along n and not across: of cores that are
apart there is no other. From inside there may be several: of primitives the circles and, between two rims, the sphere
are searched from many starts; of hulls only what is beside the normal of EPA.
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
from .separation import ITERATIONS, POINTS, RELATIVE, SIMPLEX, length, nearest_in_simplex

# of a core: pose; radius and half the length of a cylinder, or how far vertices are from the origin
ROTATION, POSITION, SIZE, CORE = 0, 9, 12, 14
STEPS = 40
LONGEST = 0.5         # rad, of a step
NEGLIGIBLE = 1e-8     # of a step, by the sine of the normal to an axis: what follows is its square
RADII = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3)    # rad, about a normal: one after the other
BESIDE = 0.1          # sine of a normal to the axis of a cylinder, beside which the width is bent most
ROUNDING, PARALLEL = 4e-15, 1e-12    # relative: of widths, and the sine of lines
# of sizes and distance, and of positions: by how much nearest points miss, and what is farthest along a normal is not
EXACT, PLACED, NEARLY = 1e-12, 1e-15, 1e4
NONE = (0.0, 0.0, 0.0)
VERTICES, ENDS = np.array(list(product((-1.0, 1.0), repeat=3))), np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])


def _circle(count: int) -> Array:
    angles = np.arange(count) * (2.0 * np.pi / count)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _sphere(count: int) -> Array:
    heights = 1.0 - (2.0 * np.arange(count) + 1.0) / count
    angles = np.arange(count) * np.pi * (3.0 - np.sqrt(5.0))
    return np.stack([np.sqrt(1.0 - heights**2) * np.cos(angles), np.sqrt(1.0 - heights**2) * np.sin(angles), heights],
                    axis=1)


RING, CIRCLE, SPHERE = _circle(8), _circle(16), _sphere(96)


def vertices_of(piece: Piece) -> Array:
    """Vertices (N, 3) of a piece's core, in its frame; none of cylinders and planes."""
    shape = piece.shape
    if shape.surface is not None:
        return np.array(shape.surface.points)
    return {"box": lambda: 0.5 * VERTICES * shape.size, "sphere": lambda: np.zeros((1, 3)),
            "capsule": lambda: 0.5 * shape.size[1] * ENDS}.get(shape.kind, lambda: np.empty((0, 3)))()


def ways_of(piece: Piece) -> Array:
    """Directions (N, 3) of the edges and sides of a piece's core, in its frame; none of hulls."""
    return {"box": np.eye(3), "capsule": np.eye(3)[2:], "cylinder": np.eye(3)[2:]}.get(piece.shape.kind,
                                                                                      np.empty((0, 3)))


# ---- widths


@sweep
def _lowest(vertices, u):
    """Which of the vertices is least along u."""
    least, k = np.inf, 0
    for m in range(vertices.shape[0]):
        value = u[0] * vertices[m, 0] + u[1] * vertices[m, 1] + u[2] * vertices[m, 2]
        if value < least:
            least, k = value, m
    return k


@sweep
def _axis(C):
    return (C[ROTATION + 2], C[ROTATION + 5], C[ROTATION + 8])


@sweep
def _perpendicular(n):
    """A unit vector perpendicular to a unit vector."""
    x = cross(n, (1.0, 0.0, 0.0) if abs(n[0]) < 0.7 else (0.0, 1.0, 0.0))
    return scale(1.0 / length(x), x)


@sweep
def _rim(C, n):
    """Support point of a cylinder along n, relative to its centre; the rim's unit tangent there, and the second
    derivative of the width by n along that tangent.
    """
    a = _axis(C)
    s = dot(n, a)
    across = sub(n, scale(s, a))
    across = sub(across, scale(dot(across, a), a))    # again: along the axis the first one is a rounding error
    size = length(across)
    e = scale(1.0 / size, across) if size > 0.0 else NONE
    point = add(scale(C[SIZE], e), scale(C[SIZE + 1] if s > 0.0 else -C[SIZE + 1], a))
    return point, cross(a, e), C[SIZE] / size if size > 0.0 else 0.0


@sweep
def _half_width(C, n):
    """Support function of a cylinder about its centre, along n."""
    a = _axis(C)
    return C[SIZE] * length(cross(n, a)) + C[SIZE + 1] * abs(dot(n, a))


@sweep
def _width(first, second, vertices, n):
    """By how much a cylinder and a core of vertices (N, 3), or a cylinder without, overlap along n."""
    width = dot(n, sub(vector(first, POSITION), vector(second, POSITION))) + _half_width(first, n)
    if vertices.shape[0] == 0:
        return width + _half_width(second, n)
    u = rotate_back(matrix(second, ROTATION), n)
    return width - dot(u, vector(vertices[_lowest(vertices, u)], 0))


@sweep
def _better(first, second, vertices, m, n, least):
    """The normal with the smaller width, and that width: m (of any length) or n (whose width is `least`). m if they are
    equal to rounding: the width is stationary, so an error of the normal shows in it by its square only.
    """
    size = length(m)
    if not size > 0.0:
        return n, least
    m = scale(1.0 / size, m)
    width = _width(first, second, vertices, m)
    if width < least + ROUNDING * (abs(width) + first[SIZE] + second[SIZE]):
        return m, width
    return n, least


@sweep
def _beside(first, second, vertices, n, w, best, least):
    """`_better` with the stationary normals near n, perpendicular to w unless that is 0: Newton's method from n, and
    from cylinder axes near n, where the second derivative is largest.
    """
    found, least = _stationary(first, second, vertices, n, w, best, least)
    for curved in range(1 if vertices.shape[0] else 2):
        a = _axis(second) if curved else _axis(first)
        if dot(w, w) > 0.0 and length(cross(n, a)) < BESIDE:
            a = scale(1.0 if dot(a, n) > 0.0 else -1.0, a)
            found, least = _stationary(first, second, vertices, a, w, found, least)
    if vertices.shape[0] == 0 and not dot(w, w) > 0.0:    # nearly parallel axes: normals between and around both
        a, b = _axis(first), _axis(second)
        a, b = scale(1.0 if dot(a, n) > 0.0 else -1.0, a), scale(1.0 if dot(b, n) > 0.0 else -1.0, b)
        x = sub(b, a)
        if 0.0 < length(x) < BESIDE and length(cross(n, a)) < BESIDE:
            y = cross(a, x)
            for k in range(RING.shape[0]):
                for about in (0.3, 1.0, 3.0):
                    m = add(a, add(scale(about * RING[k, 0], x), scale(about * RING[k, 1], y)))
                    found, least = _stationary(first, second, vertices, scale(1.0 / length(m), m), w, found, least)
    return found, least


@sweep
def _stationary(first, second, vertices, n, w, best, least):
    """`_better` with the direction to which Newton's method, downhill, leads from n; perpendicular to w, if not 0."""
    n = sub(n, scale(dot(n, w), w))
    size = length(n)
    if not size > 0.0:
        return best, least
    n = scale(1.0 / size, n)
    curved, one = vertices.shape[0] == 0, dot(w, w) > 0.0
    c, t2, bend2 = sub(vector(first, POSITION), vector(second, POSITION)), NONE, 0.0
    if not curved:
        U = matrix(second, ROTATION)
        c = sub(c, rotate(U, vector(vertices[_lowest(vertices, rotate_back(U, n))], 0)))
    before, step, height = n, NONE, np.inf
    for _ in range(STEPS):
        p, t, bend = _rim(first, n)
        slope = add(c, p)
        if curved:
            p, t2, bend2 = _rim(second, n)
            slope = add(slope, p)
        h = dot(n, slope)
        if h > height + ROUNDING * (abs(h) + first[SIZE] + second[SIZE]):
            step = scale(0.25, step)
            n = add(before, step)
            n = scale(1.0 / length(n), n)
            continue
        before, height = n, h
        x = cross(n, w) if one else _perpendicular(n)
        y = NONE if one else cross(n, x)
        A = bend * dot(x, t) * dot(x, t) + bend2 * dot(x, t2) * dot(x, t2) - h
        B = bend * dot(x, t) * dot(y, t) + bend2 * dot(x, t2) * dot(y, t2)
        D = bend * dot(y, t) * dot(y, t) + bend2 * dot(y, t2) * dot(y, t2) - h
        g, k = dot(x, slope), dot(y, slope)
        if one:    # downhill, where the width is concave
            u, v = -g / max(abs(A), PARALLEL), 0.0
        elif A > 0.0 and A * D > B * B:
            u, v = (B * k - D * g) / (A * D - B * B), (B * g - A * k) / (A * D - B * B)
        else:
            break
        size = np.sqrt(u * u + v * v)
        if size > LONGEST:
            u, v = u * LONGEST / size, v * LONGEST / size
        step = add(scale(u, x), scale(v, y))
        n = add(n, step)
        n = scale(1.0 / length(n), n)
        if size * max(bend / first[SIZE], bend2 / second[SIZE] if curved else 0.0) < NEGLIGIBLE:
            break
    return _better(first, second, vertices, n, best, least)


# ---- searches


@sweep
def _on_all_sides(first, second, vertices, ways, n, least):
    """`_better` with stationary normals from starts all around: for cores with edges and sides along `ways` (N, 3)."""
    U = matrix(second, ROTATION)
    for i in range(ways.shape[0] + 1):
        w = rotate(U, vector(ways[i - 1], 0)) if i else _axis(first)
        for side in (-1.0, 1.0):
            n, least = _better(first, second, vertices, scale(side, w), n, least)
            for j in range(i):
                v = rotate(U, vector(ways[j - 1], 0)) if j else _axis(first)
                n, least = _better(first, second, vertices, scale(side, cross(w, v)), n, least)
        x = _perpendicular(w)
        y = cross(w, x)
        for k in range(CIRCLE.shape[0]):
            m = add(scale(CIRCLE[k, 0], x), scale(CIRCLE[k, 1], y))
            n, least = _beside(first, second, vertices, m, w, n, least)
    a = _axis(first)
    for k in range(vertices.shape[0]):    # the side of the cylinder leaves a vertex
        m = sub(add(rotate(U, vector(vertices[k], 0)), vector(second, POSITION)), vector(first, POSITION))
        n, least = _better(first, second, vertices, sub(m, scale(dot(m, a), a)), n, least)
    if vertices.shape[0] == 0:
        for k in range(SPHERE.shape[0]):
            m = (SPHERE[k, 0], SPHERE[k, 1], SPHERE[k, 2])
            n, least = _beside(first, second, vertices, m, NONE, n, least)
    return n, least


@sweep
def _select(vertices, u, height, Q):
    """Copy into Q the vertices whose coordinate along u exceeds the least one by `height` at most; returns how many."""
    count, lowest = 0, _lowest(vertices, u)
    most = dot(u, vector(vertices[lowest], 0)) + height
    for k in range(vertices.shape[0]):
        if k == lowest or u[0] * vertices[k, 0] + u[1] * vertices[k, 1] + u[2] * vertices[k, 2] <= most:
            put(Q[count], 0, vector(vertices[k], 0))
            count += 1
    return count


@sweep
def _within(first, second, vertices, radius, n, least, corners):
    """`_better` with the normals of features beside n. Of vertices (N, 3): the support vertices along a ring of normals
    `radius` (rad) about n, the edges between them and the faces through three.
    """
    a = _axis(first)
    for w in (NONE, a):
        n, least = _beside(first, second, vertices, n, w, n, least)
    if vertices.shape[0] == 0:
        b = _axis(second)
        n, least = _beside(first, second, vertices, n, b, n, least)
        for m in (a, b, cross(a, b)):
            n, least = _better(first, second, vertices, scale(1.0 if dot(m, n) > 0.0 else -1.0, m), n, least)
        return n, least
    n, least = _better(first, second, vertices, scale(1.0 if dot(a, n) > 0.0 else -1.0, a), n, least)
    if vertices.shape[0] == 1:
        return n, least
    U, given, count = matrix(second, ROTATION), n, 1
    x = scale(radius, _perpendicular(n))
    y = cross(n, x)
    corners[0] = _lowest(vertices, rotate_back(U, n))
    for r in range(RING.shape[0]):
        m = add(n, add(scale(RING[r, 0], x), scale(RING[r, 1], y)))
        k, new = _lowest(vertices, rotate_back(U, m)), True
        for i in range(count):
            new = new and corners[i] != k
        if new:
            corners[count] = k
            count += 1
    for i in range(count):
        c = vector(vertices[corners[i]], 0)
        for j in range(i):
            d = sub(vector(vertices[corners[j]], 0), c)
            w = rotate(U, scale(1.0 / length(d), d))
            m = cross(w, a)
            n, least = _better(first, second, vertices, scale(1.0 if dot(m, given) > 0.0 else -1.0, m), n, least)
            n, least = _beside(first, second, vertices, given, w, n, least)
            for k in range(j):
                m = cross(w, rotate(U, sub(vector(vertices[corners[k]], 0), c)))
                n, least = _better(first, second, vertices, scale(1.0 if dot(m, given) > 0.0 else -1.0, m), n, least)
    return n, least


# ---- nearest points


@sweep
def _farthest(C, n, flat):
    """Support feature of a cylinder along n, within `flat` (m): the two ends of a line on its side; or a point of the
    rim, twice; or the centre of an end, twice, with the radius of that disc (else 0).
    """
    a, centre = _axis(C), vector(C, POSITION)
    p = _rim(C, n)[0]
    if abs(dot(n, a)) * C[SIZE + 1] <= flat:
        end = scale(C[SIZE + 1], a)
        middle = add(centre, sub(p, scale(dot(p, a), a)))
        return sub(middle, end), add(middle, end), 0.0
    if length(cross(n, a)) * C[SIZE] <= flat:
        p = scale(C[SIZE + 1] if dot(n, a) > 0.0 else -C[SIZE + 1], a)
        return add(centre, p), add(centre, p), C[SIZE]
    return add(centre, p), add(centre, p), 0.0


@sweep
def _nearest_of_lines(a, b, c, d):
    """Nearest points of the segments ab and cd (Ericson 2005, 5.1.9)."""
    u, v, r = sub(b, a), sub(d, c), sub(a, c)
    U, V, f = dot(u, u), dot(v, v), dot(v, r)
    s = t = 0.0
    if U > 0.0 and V > 0.0:
        across = dot(cross(u, v), cross(u, v))
        s = min(max((dot(u, v) * f - dot(u, r) * V) / across, 0.0), 1.0) if across > PARALLEL**2 * U * V else 0.5
    if V > 0.0:
        t = min(max((s * dot(u, v) + f) / V, 0.0), 1.0)
    if U > 0.0:
        s = min(max((t * dot(u, v) - dot(u, r)) / U, 0.0), 1.0)
    if V > 0.0:
        t = min(max((s * dot(u, v) + f) / V, 0.0), 1.0)
    return add(a, scale(s, u)), add(c, scale(t, v))


@sweep
def _nearest(a, b, Q, count, S):
    """Nearest points of the segment ab and of the convex hull of Q (count, 3), all in a plane: by GJK, as in
    `separation`; in closed form of two segments, which may be nearly parallel.
    """
    if count < 3:
        return _nearest_of_lines(a, b, vector(Q[0], 0), vector(Q[count - 1], 0))
    p, y, used, square = a, vector(Q[0], 0), 0, np.inf
    v = sub(y, p)
    for _ in range(2 * count + ITERATIONS):
        end = a if dot(v, a) > dot(v, b) else b
        k = 0
        for m in range(1, count):
            if dot(v, vector(Q[m], 0)) < dot(v, vector(Q[k], 0)):
                k = m
        w = sub(vector(Q[k], 0), end)
        if used and square - dot(v, w) <= RELATIVE * square:
            break
        put(S, POINTS * used, w)
        put(S, POINTS * used + 3, end)
        put(S, POINTS * used + 6, vector(Q[k], 0))
        used = nearest_in_simplex(S, used + 1, True)
        start, x = NONE, NONE
        for m in range(used):
            start = add(start, scale(S[4 * POINTS + m], vector(S, POINTS * m + 3)))
            x = add(x, scale(S[4 * POINTS + m], vector(S, POINTS * m + 6)))
        w = sub(x, start)
        if not used or not dot(w, w) < square:
            break
        p, y, v, square = start, x, w, dot(w, w)
        if not square > 0.0:
            break
    return p, y


@sweep
def _touching(first, second, vertices, n, width, flat, Q, S):
    """Nearest point of the second core, if n separates by the width: on its support feature along −n, nearest to the
    support feature of the first along n, which is moved by −width n; and the distance (m) of the two, 0 if the width is
    stationary. vertices (of the second) may be the first rows of Q; Q and S are workspace.
    """
    a, b, radius = _farthest(first, n, flat)
    U, o, wide, count = matrix(second, ROTATION), vector(second, POSITION), 0.0, 2
    u = rotate_back(U, n)
    if vertices.shape[0] == 0:
        c, d, wide = _farthest(second, scale(-1.0, n), flat)
        put(Q[0], 0, rotate_back(U, sub(c, o)))
        put(Q[1], 0, rotate_back(U, sub(d, o)))
    else:
        count = _select(vertices, u, flat, Q)
    a = sub(rotate_back(U, sub(a, o)), scale(width, u))
    b = sub(rotate_back(U, sub(b, o)), scale(width, u))
    x, y = _nearest(a, b, Q, count, S)
    along = dot(u, sub(x, y))
    side = sub(sub(x, y), scale(along, u))
    across = length(side)
    if wide > 0.0 and across > 0.0:    # towards the point of the first, in the disc
        y = add(y, scale(min(1.0, wide / across), side))
        across = max(across - wide, 0.0)
    return add(rotate(U, y), o), max(across - radius, abs(along))


@entry("float64(float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64, float64, float64[:, ::1], "
       "float64[::1])", nogil=True)
def cylinder_distance(first, second, vertices, ways, radius, sign, points, normal):
    """Distance (m) of a cylinder `first` and another piece, negative for a depth: its core `second` with vertices (N,
    3), or a cylinder without, `ways_of`, and a radius about it.

    points (2, 3): nearest points, out; normal (3,): in, near the one sought, and out; in the world, from the cylinder
    to the other piece, or with sign −1 from that to the cylinder. −inf, and nothing is changed, if no normal is found
    of which the width is stationary.
    """
    corners, Q, S = np.empty(len(RING) + 1, dtype=np.int64), np.empty((max(len(vertices), 2), 3)), np.empty(SIMPLEX)
    n, least = _better(first, second, vertices, scale(sign, vector(normal, 0)), _axis(first), np.inf)
    x, missed, searched = NONE, np.inf, vertices.shape[0] > 1 and ways.shape[0] == 0
    p, o, size = vector(first, POSITION), vector(second, POSITION), second[SIZE] + second[SIZE + 1]
    exact = EXACT * (first[SIZE] + first[SIZE + 1] + size + length(sub(p, o))) + PLACED * (length(p) + length(o))
    for about in RADII:
        count, before = len(vertices), n
        if count:
            count = _select(vertices, rotate_back(matrix(second, ROTATION), n), 8.0 * about * size, Q)
        m, _ = _within(first, second, Q[:count], about, n, least, corners)
        n, least = _better(first, second, vertices, m, n, least)
        if least > 0.0 and not searched:
            searched = True
            n, least = _on_all_sides(first, second, vertices, ways, n, least)
        if length(sub(n, before)) > 3.0 * about:    # others may be farthest
            count = len(vertices)
            Q[:count] = vertices
        x, missed = _touching(first, second, Q[:count], n, least, exact, Q, S)
        if missed <= exact:
            break
    if not missed <= exact:    # what is parallel to rounding only, in files or products of rotations
        x, missed = _touching(first, second, vertices, n, least, NEARLY * exact, Q, S)
    if not missed <= NEARLY * exact:
        return -np.inf
    flat = points.reshape(-1)
    own, others = (0, 3) if sign > 0.0 else (3, 0)
    put(flat, own, add(x, scale(least, n)))
    put(flat, others, sub(x, scale(radius, n)))
    put(normal, 0, scale(sign, n))
    return -least - radius
