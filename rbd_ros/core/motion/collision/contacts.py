"""Nearest features of two pieces, as GJK ends on them: normal, nearest points, and the ways along the features.

The nearest points are those of two surfaces a(μ), b(μ), flat or bent along each way: `½ |b − a|²` is stationary in μ.
Of polytopes the ways are edges of the simplex; of cylinders and planes, whose supports are not vertices, those of the
face, the side or the rim that the normal belongs to.
"""
from __future__ import annotations

import numpy as np

from ...compiled.kernel import sweep
from ...lie.spatial import add, dot, rotate, rotate_back, scale, sub
from ...model.block import integer, layout, matrix, put, vector
from .separation import CORE, CYLINDER, PIECE, PLACE, PLANE, POINTS, SIZES

# n from the first to the second piece, nearest points of their cores, number of ways, and of each way its direction in
# the first and in the second piece, and v·∂²v along it, v = b − a
NORMAL, NEAREST, COUNT, WAYS, CONTACT = layout(normal=3, nearest=6, count=1, ways=4 * 7)
BENT = 6            # of a way
WAY = 7
FLAT = 1e-6         # sine of the normal to an axis: of a face or the side of a cylinder


@sweep
def contact_of(P, X, i, j, n, S, contact):
    """Record of the nearest features of pieces i and j, normal n, with the simplex S of `separation`."""
    put(contact, NORMAL, n)
    used = 0
    for side in range(2):
        point = (0.0, 0.0, 0.0)
        for m in range(4):
            if S[4 * POINTS + m] > 0.0:
                point = add(point, scale(S[4 * POINTS + m], vector(S, POINTS * m + 3 + 3 * side)))
        put(contact, NEAREST + 3 * side, point)
    while used < 3 and S[4 * POINTS + used] > 0.0:
        used += 1
    distance = dot(n, sub(vector(contact, NEAREST + 3), vector(contact, NEAREST)))
    polytopes = True
    for piece in (i, j):
        core = integer(P, PIECE * piece + CORE)
        polytopes = polytopes and core != CYLINDER and core != PLANE
    contact[COUNT] = 0.0
    if polytopes:
        for m in range(1, used):
            w = WAYS + WAY * (m - 1)
            put(contact, w, sub(vector(S, POINTS * m + 3), vector(S, 3)))
            put(contact, w + 3, sub(vector(S, POINTS * m + 6), vector(S, 6)))
            contact[w + BENT] = 0.0
        contact[COUNT] = used - 1.0
        return
    for side in range(2):
        piece = j if side else i
        core = integer(P, PIECE * piece + CORE)
        R = matrix(X, PLACE * piece)
        first, second, bent = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0
        if core == PLANE:
            first, second = (R[0], R[3], R[6]), (R[1], R[4], R[7])
        elif core == CYLINDER:
            u = rotate_back(R, n)
            axis = (R[2], R[5], R[8])
            across = np.sqrt(u[0] * u[0] + u[1] * u[1])
            if across <= FLAT:
                first, second = (R[0], R[3], R[6]), (R[1], R[4], R[7])
            else:
                first = rotate(R, (-u[1] / across, u[0] / across, 0.0))
                bent = distance * across / P[PIECE * piece + SIZES]
                if abs(u[2]) <= FLAT:
                    second = axis
        else:
            if used > 1:
                first = sub(vector(S, POINTS + 3 + 3 * side), vector(S, 3 + 3 * side))
            if used > 2:
                second = sub(vector(S, 2 * POINTS + 3 + 3 * side), vector(S, 3 + 3 * side))
        for k in range(2):
            way = second if k else first
            if dot(way, way) > 0.0:
                w = WAYS + WAY * int(contact[COUNT])
                put(contact, w + 3 * side, way)
                put(contact, w + 3 - 3 * side, (0.0, 0.0, 0.0))
                contact[w + BENT] = 0.0 if k else bent
                contact[COUNT] += 1.0
