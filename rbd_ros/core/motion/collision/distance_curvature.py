"""Second derivatives of distances, with the nearest features as they are: exact but where these change.

With v = b − a at the nearest points, n = v / |v|, the ways e_m = ∂v/∂μ_m along the features, `E = (e_1, …)`, and the
columns J = ∂v/∂q at fixed points, the distance is the least |v| over μ, and |v| ∂²|v| is `JᵀJ − JᵀnnᵀJ + vᵀ∂²v −
Cᵀ M⁻¹ C`, with `C = EᵀJ + vᵀ ∂E/∂q` and `M = EᵀE + diag(vᵀ ∂²v/∂μ²)`.
"""
from __future__ import annotations

import numpy as np

from ...compiled.entry import entry
from ...dynamics.kinematics import _P, SIZE
from ...lie.spatial import add, cross, dot, scale, sub
from ...model.block import first_velocity, integer, node, parent, put, vector
from .contacts import BENT, COUNT, NEAREST, NORMAL, WAY, WAYS
from .separation import BODY, PIECE, PLACE
from .sweeping import fixed_places, joint_column, places

SINGULAR = 1e-9    # of a pivot, relative: ways in which others lie


@entry("void(float64[::1], float64[::1], int64[:, ::1], float64[:, ::1], float64[:, :, ::1], float64[:, ::1], "
       "float64[:, ::1], float64[:, :, ::1])", nogil=True)
def distance_curvature(B, P, pairs, q, contacts, weights, squares, out):
    """Add Σ weights ∂²d + squares ∂dᵀ∂d, weights and squares (N, n), to out (N, nv, nv), at q (N, nq) with these
    contacts (N, n, CONTACT); of cores that overlap nothing.
    """
    pieces, nv = P.shape[0] // PIECE, out.shape[1]
    W, X = np.empty(SIZE * (integer(B, 0) + 1)), np.empty(PLACE * pieces)
    # of each joint that moves the pieces relative to each other: coordinate and side; turning and ∂v; n·∂v
    joints, turns, moves, slope = (np.empty((2 * nv, 2), dtype=np.int64), np.empty((2 * nv, 3)),
                                   np.empty((2 * nv, 3)), np.empty(2 * nv))
    C, M = np.empty((4, 2 * nv)), np.empty((4, 4))
    fixed_places(P, X)
    for s in range(q.shape[0]):
        x = q[s]
        placed = False
        for k in range(pairs.shape[0]):
            if weights[s, k] == 0.0 and squares[s, k] == 0.0:
                continue
            if not placed:
                places(B, P, x, 0, W, X)
                placed = True
            contact = contacts[s, k]
            n = vector(contact, NORMAL)
            distance = dot(n, sub(vector(contact, NEAREST + 3), vector(contact, NEAREST)))
            if distance == 0.0:
                continue
            ways = int(contact[COUNT])
            total = 0
            for side in range(2):
                point = vector(contact, NEAREST + 3 * side)
                sign = 1.0 if side else -1.0
                h = integer(P, PIECE * pairs[k, side] + BODY)
                for _ in range(pairs[k, 2 + side]):
                    angular, linear = joint_column(B, x, h, W)
                    u = scale(sign, add(linear, cross(angular, sub(point, vector(W, SIZE * h + _P)))))
                    joints[total, 0], joints[total, 1] = first_velocity(B, node(h)), side
                    put(turns[total], 0, angular)
                    put(moves[total], 0, u)
                    slope[total] = dot(n, u)
                    around = scale(distance * sign, cross(n, angular))
                    for m in range(ways):
                        w = WAYS + WAY * m
                        C[m, total] = (dot(sub(vector(contact, w + 3), vector(contact, w)), u)
                                       + dot(around, vector(contact, w + 3 * side)))
                    total += 1
                    h = parent(B, node(h))
            for m in range(ways):    # C := L⁻¹ C with M = L D Lᵀ, whose D is on the diagonal
                w = WAYS + WAY * m
                e = sub(vector(contact, w + 3), vector(contact, w))
                whole = dot(e, e) + contact[w + BENT]
                M[m, m] = whole
                for p in range(m):
                    o = WAYS + WAY * p
                    M[m, p] = dot(e, sub(vector(contact, o + 3), vector(contact, o)))
                    for r in range(p):
                        M[m, p] -= M[m, r] * M[p, r] * M[r, r]
                    M[m, p] = M[m, p] / M[p, p] if M[p, p] > 0.0 else 0.0
                    M[m, m] -= M[m, p] * M[m, p] * M[p, p]
                    for r in range(total):
                        C[m, r] -= M[m, p] * C[p, r]
                if M[m, m] <= SINGULAR * whole:
                    M[m, m] = 0.0
            weight, square = weights[s, k] / distance, squares[s, k]
            for r in range(total):
                u = vector(moves[r], 0)
                for t in range(r, total):    # of one side, t is nearer to the root
                    value = dot(u, vector(moves[t], 0)) - slope[r] * slope[t]
                    for m in range(ways):
                        if M[m, m] > 0.0:
                            value -= C[m, r] * C[m, t] / M[m, m]
                    if joints[r, 1] == joints[t, 1]:
                        value += distance * dot(n, cross(vector(turns[t], 0), u))
                    value = weight * value + square * slope[r] * slope[t]
                    out[s, joints[r, 0], joints[t, 0]] += value
                    if t > r:
                        out[s, joints[t, 0], joints[r, 0]] += value
