"""Distances of convex pieces by separating planes: GJK (Gilbert, Johnson, Keerthi 1988), compiled for many pairs.

For a unit vector n, `min_{b in B} n·b − max_{a in A} n·a` is a lower bound of the distance, however n was found. GJK
finds n; what is certified depends on this bound alone. A piece is a core (a point, segment, box, cylinder or hull), and
a radius about it. Pieces are packed: see `layout` below. V: the vertices of hulls (vertices, 3), and for each where its
neighbours begin in the same array of whole numbers, which lists them.

The library coal (`pair_distances`) computes distances, too. Its answer is no bound unless it has converged, and it is
called from Python, for each pair: certificates, random trees and rows of an optimisation come from here. Here is no
depth of cores that overlap, and no care for normals of surfaces that touch: distances, nearest points and gradients
that `CollisionModel` answers come from coal, and so do depths in `CollisionModel._near`.
"""
from __future__ import annotations

import numpy as np

from ...compiled.kernel import kernel, sweep
from ...lie.spatial import add, cross, dot, rotate, rotate_back, scale, sub
from ...model.block import integer, layout, matrix, put, vector

# of a piece: node (−1: the world), kind of core, pose in the node, sizes, radius about the core, bounding sphere's
# centre in the node and radius, vertices
BODY, CORE, ROTATION, POSITION, SIZES, ROUND, CENTRE, BOUND, FIRST, LAST, PIECE = layout(
    body=1, core=1, rotation=9, position=3, sizes=3, round=1, centre=3, bound=1, first=1, last=1)
POINT, SEGMENT, BOX, CYLINDER, HULL, PLANE = range(6)
# of a piece in the world: rotation and position, centre of its sphere, latest vertex
POSE, SPHERE, VERTEX, PLACE = layout(pose=12, sphere=3, vertex=1)
POINTS = 9          # of a vertex of the simplex: b − a, a, b
SIMPLEX = 4 * POINTS + 4    # numbers: vertices, weights
ITERATIONS = 60
RELATIVE = 1e-14    # of squared lengths: no progress
TOUCHING = 1e-10    # m: cores nearer than this overlap
EXACT = 1e-14       # m, between the bounds of a distance


@kernel
def length(a):
    return np.sqrt(dot(a, a))


@sweep
def climbed(V, u, k):
    """The vertex of a hull that is farthest along u, from vertex k on along edges: uphill there is always one."""
    points, edges = V
    best = points[k, 0] * u[0] + points[k, 1] * u[1] + points[k, 2] * u[2]
    before = -1
    while before != k:
        before = k
        for e in range(edges[before], edges[before + 1]):
            m = edges[e]
            value = points[m, 0] * u[0] + points[m, 1] * u[1] + points[m, 2] * u[2]
            if value > best:
                best, k = value, m
    return k


@sweep
def support(P, V, X, i, d):
    """The point of the core of piece i that is farthest along d, in world axes."""
    o, x = PIECE * i, PLACE * i
    R = matrix(X, x)
    u = rotate_back(R, d)
    core = integer(P, o + CORE)
    s = vector(P, o + SIZES)
    y = (0.0, 0.0, 0.0)
    if core == SEGMENT:
        y = (0.0, 0.0, s[2] if u[2] > 0.0 else -s[2])
    elif core == BOX:
        y = (s[0] if u[0] > 0.0 else -s[0], s[1] if u[1] > 0.0 else -s[1], s[2] if u[2] > 0.0 else -s[2])
    elif core == CYLINDER:
        across = np.sqrt(u[0] * u[0] + u[1] * u[1])
        f = s[0] / across if across > 0.0 else 0.0
        y = (f * u[0], f * u[1], s[2] if u[2] > 0.0 else -s[2])
    elif core == HULL:
        k = climbed(V, u, integer(X, x + VERTEX))
        X[x + VERTEX] = k
        y = (V[0][k, 0], V[0][k, 1], V[0][k, 2])
    return add(rotate(R, y), vector(X, x + 9))


@sweep
def nearest_in_segment(a, b):
    """Weights of the point nearest to the origin."""
    d = sub(b, a)
    square = dot(d, d)
    t = -dot(a, d) / square if square > 0.0 else 0.0
    t = min(max(t, 0.0), 1.0)
    return 1.0 - t, t


@sweep
def nearest_in_triangle(a, b, c):
    """Weights of the point nearest to the origin (Ericson 2005, 5.1.5)."""
    ab, ac = sub(b, a), sub(c, a)
    d1, d2 = -dot(ab, a), -dot(ac, a)
    if d1 <= 0.0 and d2 <= 0.0:
        return 1.0, 0.0, 0.0
    d3, d4 = -dot(ab, b), -dot(ac, b)
    if d3 >= 0.0 and d4 <= d3:
        return 0.0, 1.0, 0.0
    vc = d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        x, y = nearest_in_segment(a, b)
        return x, y, 0.0
    d5, d6 = -dot(ab, c), -dot(ac, c)
    if d6 >= 0.0 and d5 <= d6:
        return 0.0, 0.0, 1.0
    vb = d5 * d2 - d1 * d6
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        x, y = nearest_in_segment(a, c)
        return x, 0.0, y
    va = d3 * d6 - d5 * d4
    if va <= 0.0 and d4 >= d3 and d5 >= d6:
        x, y = nearest_in_segment(b, c)
        return 0.0, x, y
    total = va + vb + vc
    if total <= 0.0:
        return 1.0, 0.0, 0.0
    return va / total, vb / total, vc / total


@sweep
def _beyond(a, b, c, d):
    """Whether the origin is not on the same side of the plane a, b, c as d."""
    n = cross(sub(b, a), sub(c, a))
    return -dot(n, a) * dot(n, sub(d, a)) <= 0.0


@sweep
def _drop(S, count):
    """Remove vertices without weight; returns how many are left."""
    kept = 0
    for k in range(count):
        if S[4 * POINTS + k] > 0.0:
            if kept < k:
                for m in range(POINTS):
                    S[POINTS * kept + m] = S[POINTS * k + m]
                S[4 * POINTS + kept] = S[4 * POINTS + k]
            kept += 1
    return kept


@sweep
def nearest_in_simplex(S, count, apart):
    """Weights into S, without vertices that have none; returns how many are left, 0 if the origin is inside. apart:
    whether it is known to be outside, where a flat tetrahedron may not show it.
    """
    L = 4 * POINTS
    a = vector(S, 0)
    if count == 1:
        S[L] = 1.0
        return 1
    b = vector(S, POINTS)
    if count == 2:
        S[L], S[L + 1] = nearest_in_segment(a, b)
        return _drop(S, 2)
    c = vector(S, 2 * POINTS)
    if count == 3:
        S[L], S[L + 1], S[L + 2] = nearest_in_triangle(a, b, c)
        return _drop(S, 3)
    d = vector(S, 3 * POINTS)
    if not apart and not (_beyond(a, b, c, d) or _beyond(a, b, d, c) or _beyond(a, c, d, b) or _beyond(b, c, d, a)):
        return 0
    least = np.inf
    for face in range(4):
        f, g, h = (a, b, c) if face == 0 else (a, b, d) if face == 1 else (a, c, d) if face == 2 else (b, c, d)
        x, y, z = nearest_in_triangle(f, g, h)
        p = add(scale(x, f), add(scale(y, g), scale(z, h)))
        square = dot(p, p)
        if square < least:
            least = square
            S[L] = x if face < 3 else 0.0
            S[L + 1] = y if face < 2 else x if face == 3 else 0.0
            S[L + 2] = z if face == 0 else y if face > 1 else 0.0
            S[L + 3] = z if face > 0 else 0.0
    return _drop(S, 4)


@sweep
def separation(P, V, X, i, j, motion, clearance, exact, axis, k, S):
    """(lower, upper): bounds of the distance of pieces i and j, as close as needed; axis[k:]: n, from i to j.

    motion: displacement of the spheres' centres relative to each other, rotations of the pieces, and what is beyond the
    first order: over an interval, half of which these are, the plane n separates the pieces by at least lower − `loss`.
    Ends as soon as this is above the clearance, or the upper bound not above it: (inf, inf), (−inf, −inf). If `exact`,
    it converges where the distance is not above the clearance; the weights and points of the simplex are then in S, and
    the bound of cores that overlap is (−inf, x).
    """
    o, u = PIECE * i, PIECE * j
    radii = P[o + ROUND] + P[u + ROUND]
    if integer(P, o + CORE) == PLANE or integer(P, u + CORE) == PLANE:
        first = integer(P, o + CORE) == PLANE
        plane, other = (i, j) if first else (j, i)
        x = PLACE * plane
        z = (X[x + 2], X[x + 5], X[x + 8])
        b = support(P, V, X, other, scale(-1.0, z))
        gap = dot(z, sub(b, vector(X, x + 9))) - radii
        n = z if first else scale(-1.0, z)
        put(axis, k, n)
        foot = sub(b, scale(gap + radii, z))
        put(S, 3, foot if first else b)
        put(S, 6, b if first else foot)
        S[4 * POINTS] = 1.0
        S[4 * POINTS + 1] = S[4 * POINTS + 2] = S[4 * POINTS + 3] = 0.0
        if gap - loss(P, i, j, motion, n) > clearance:
            return np.inf, np.inf
        return (-np.inf, -np.inf) if not exact and gap <= clearance else (gap, gap)
    n = vector(axis, k)
    if not dot(n, n) > 0.5:
        n = sub(vector(X, PLACE * j + SPHERE), vector(X, PLACE * i + SPHERE))
        size = length(n)
        n = scale(1.0 / size, n) if size > TOUCHING else (0.0, 0.0, 1.0)
    count = 0
    lower, upper, square = -np.inf, np.inf, np.inf
    v = n
    for _ in range(ITERATIONS):
        a = support(P, V, X, i, n)
        b = support(P, V, X, j, scale(-1.0, n))
        w = sub(b, a)
        gap = dot(n, w) - radii
        if gap > lower:
            lower = gap
            put(axis, k, n)
        if gap - loss(P, i, j, motion, n) > clearance:
            put(axis, k, n)
            return np.inf, np.inf
        if count and (upper - lower <= (EXACT if exact else TOUCHING) or square - dot(v, w) <= RELATIVE * square):
            break
        same = False
        for m in range(count):
            c = POINTS * m
            same |= S[c] == w[0] and S[c + 1] == w[1] and S[c + 2] == w[2]
        if same:
            break
        put(S, POINTS * count, w)
        put(S, POINTS * count + 3, a)
        put(S, POINTS * count + 6, b)
        count = nearest_in_simplex(S, count + 1, lower + radii > 0.0)
        if count == 0:
            return (-np.inf, -np.inf) if not exact and -radii <= clearance else (-np.inf, -radii)
        v = (0.0, 0.0, 0.0)
        for m in range(count):
            v = add(v, scale(S[4 * POINTS + m], vector(S, POINTS * m)))
        square = dot(v, v)
        size = np.sqrt(square)
        upper = min(upper, size - radii)
        if size < TOUCHING and not lower + radii > TOUCHING:
            return (-np.inf, -np.inf) if not exact and -radii <= clearance else (-np.inf, -radii)
        if not exact and upper <= clearance:
            return -np.inf, -np.inf
        n = scale(1.0 / size, v)
    for m in range(count, 4):
        S[4 * POINTS + m] = 0.0
    return lower, upper


@kernel
def loss(P, i, j, motion, n):
    """The most by which the plane n separates less after half an interval of `motion`."""
    moved, turned, other, rest = motion
    return (abs(dot(n, moved)) + length(cross(n, turned)) * P[PIECE * i + BOUND]
            + length(cross(n, other)) * P[PIECE * j + BOUND] + rest)


@kernel
def place(P, X, i, R, p):
    """Pose of piece i and the centre of its sphere in the world, into X; (R, p): pose of its node."""
    o, x = PIECE * i, PLACE * i
    for r in range(3):
        for c in range(3):
            X[x + 3 * r + c] = (R[3 * r] * P[o + ROTATION + c] + R[3 * r + 1] * P[o + ROTATION + 3 + c]
                                + R[3 * r + 2] * P[o + ROTATION + 6 + c])
    put(X, x + 9, add(rotate(R, vector(P, o + POSITION)), p))
    put(X, x + SPHERE, add(rotate(R, vector(P, o + CENTRE)), p))
