"""Continuous check of a motion: no pair comes nearer than a clearance, at any time (conservative bisection).

Positions are piecewise polynomials of t. At the middle of an interval, with δ = q − q_mid and |δ_k| ≤ M_k, a point of a
piece moves by at most `|J δ| + Σ_k M_k W_k (½ S_k M_k + Σ_{l beyond k} S_l M_l)`: the second derivatives of its
position are `ω_j × J_k` for j before k. W_k: |ω_k| of a joint's column; S_k: the largest |J_k| in the interval,
`|J_k| + W_k Σ_{l beyond k} S_l M_l`. Of δ only the linear part is taken as such, |δ_k − w_k τ| ≤ E_k adds |J_k| E_k.
"""
from __future__ import annotations

import numpy as np

from ...compiled.entry import entry
from ...compiled.kernel import routine, sweep
from ...dynamics.kinematics import _P, _R, SIZE, node_motion
from ...lie.spatial import add, cross, dot, rotate, scale, sub
from ...model.block import first_position, first_velocity, integer, matrix, node, parent, put, vector
from ...model.joint_kinds import column
from .contacts import CONTACT, NEAREST, contact_of
from .separation import BODY, BOUND, FIRST, PIECE, PLACE, SIMPLEX, SPHERE, VERTEX, length, place, separation

MOVED, TURNED, REST, SHIFT = 0, 3, 6, 7    # of a piece relative to a node before: displacement, rotation, bound
CLEAR, TOUCHES, NEAR, GAVE_UP = 1, 0, -1, -2
QUEUE = 256        # intervals
SPENT = 12         # evaluations of a pair, in units of what a configuration without pairs takes


@sweep
def places(B, P, q, k, W, X):
    """World places of all pieces that move; W: world poses of the nodes."""
    node_motion(B, q, k, B, B, 0, 0, True, W)
    for i in range(P.shape[0] // PIECE):
        h = integer(P, PIECE * i + BODY)
        if h >= 0:
            place(P, X, i, matrix(W, SIZE * h + _R), vector(W, SIZE * h + _P))


@sweep
def fixed_places(P, X):
    """World places of all pieces that do not move, and a first vertex of each piece."""
    one = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    for i in range(P.shape[0] // PIECE):
        X[PLACE * i + VERTEX] = P[PIECE * i + FIRST]
        if integer(P, PIECE * i + BODY) < 0:
            place(P, X, i, one, (0.0, 0.0, 0.0))


@sweep
def joint_column(B, q, j, W):
    """(angular, linear) of node j in world axes, linear at its origin."""
    angular, linear = column(B, node(j), q, first_position(B, node(j)), 0)
    R = matrix(W, SIZE * j + _R)
    return rotate(R, angular), rotate(R, linear)


@sweep
def shifts(B, P, q, W, X, ranges, depth, D):
    """Into D, for each piece and each node before it, how it moves relative to that node: MOVED, TURNED, REST.

    ranges (3, nq): w τ, M and E of the positions.
    """
    for i in range(P.shape[0] // PIECE):
        c, radius = vector(X, PLACE * i + SPHERE), P[PIECE * i + BOUND]
        moved, turned = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        rest, beyond = 0.0, 0.0
        j = integer(P, PIECE * i + BODY)
        d = SHIFT * depth * i
        for _ in range(depth):
            put(D, d + MOVED, moved)
            put(D, d + TURNED, turned)
            D[d + REST] = rest
            d += SHIFT
            if j < 0:
                break
            angular, linear = joint_column(B, q, j, W)
            speed = add(linear, cross(angular, sub(c, vector(W, SIZE * j + _P))))
            k = first_position(B, node(j))
            turns = length(angular)
            at_most = length(speed) + turns * radius
            moved = add(moved, scale(ranges[0, k], speed))
            turned = add(turned, scale(ranges[0, k], angular))
            rest += ranges[2, k] * at_most
            at_most += turns * beyond
            rest += ranges[1, k] * turns * (0.5 * at_most * ranges[1, k] + beyond)
            beyond += at_most * ranges[1, k]
            j = parent(B, node(j))


@routine
def taylor(powers, u, half, error, q, ranges, T):
    """Positions q at u of polynomials powers (m, nq), and `ranges` within u ± half; T (m,): workspace."""
    count = powers.shape[0]
    for j in range(q.shape[0]):
        for m in range(count):
            T[m] = powers[m, j]
        for m in range(count - 1):
            for r in range(count - 2, m - 1, -1):
                T[r] += u * T[r + 1]
        q[j] = T[0]
        ranges[0, j] = half * T[1]
        ranges[2, j] = error[j]
        h = half
        for m in range(2, count):
            h *= half
            ranges[2, j] += h * abs(T[m])
        ranges[1, j] = abs(ranges[0, j]) + ranges[2, j]


@entry("int64(float64[::1], float64[::1], float64[:, ::1], int64[::1], int64[:, ::1], float64[::1], "
       "float64[:, :, ::1], float64[::1], float64[:, ::1], float64[::1], float64[::1])", nogil=True)
def sweep_motion(B, P, points, edges, pairs, breaks, powers, error, axes, settings, found):
    """CLEAR, if all pairs are farther apart than the clearance all along; TOUCHES, NEAR (within the resolution), or
    GAVE_UP (too many evaluations). breaks (K + 1,), powers (K, m, nq): polynomials of t − breaks[k]; error (nq,): of
    the positions. pairs (n, 4): pieces, and how many nodes before each the nearest common one is. axes (n, 3): n,
    warm. settings: clearance, resolution, evaluations at most. found: t, pair, evaluations.
    """
    clearance, resolution, most = settings[0], settings[1], settings[2]
    count, nq = pairs.shape[0], powers.shape[2]
    pieces = P.shape[0] // PIECE
    depth = 1
    for k in range(count):
        depth = max(depth, pairs[k, 2] + 1, pairs[k, 3] + 1)
    W, X, D = np.empty(SIZE * (integer(B, 0) + 1)), np.empty(PLACE * pieces), np.zeros(SHIFT * depth * pieces)
    q, ranges, T, S = np.empty(nq), np.empty((3, nq)), np.empty(max(powers.shape[1], 2)), np.empty(SIMPLEX)
    ends, listed = np.empty((QUEUE, 2)), np.empty((QUEUE, count), dtype=np.int32)
    lengths, passed = np.empty(QUEUE, dtype=np.int64), np.empty(count, dtype=np.int32)
    flat = axes.reshape(-1)
    V = points, edges
    fixed_places(P, X)
    found[0], found[1], found[2] = breaks[0], -1.0, 0.0
    for piece in range(powers.shape[0]):
        head, waiting = 0, 1
        ends[0, 0], ends[0, 1] = 0.0, breaks[piece + 1] - breaks[piece]
        lengths[0] = count
        for k in range(count):
            listed[0, k] = k
        while waiting:
            if waiting < QUEUE // 2:    # the coarse ones first: what touches is found early
                slot = head
                head = (head + 1) % QUEUE
            else:
                slot = (head + waiting - 1) % QUEUE
            waiting -= 1
            low, high = ends[slot, 0], ends[slot, 1]
            middle, half = 0.5 * (low + high), 0.5 * (high - low)
            taylor(powers[piece], middle, half, error, q, ranges, T)
            places(B, P, q, 0, W, X)
            shifts(B, P, q, W, X, ranges, depth, D)
            found[2] += 1.0
            left = 0
            for r in range(lengths[slot]):
                k = listed[slot, r]
                i, j = pairs[k, 0], pairs[k, 1]
                a, b = SHIFT * (depth * i + pairs[k, 2]), SHIFT * (depth * j + pairs[k, 3])
                moved = sub(vector(D, b + MOVED), vector(D, a + MOVED))
                turned, other = vector(D, a + TURNED), vector(D, b + TURNED)
                rest = D[a + REST] + D[b + REST]
                apart = sub(vector(X, PLACE * j + SPHERE), vector(X, PLACE * i + SPHERE))
                first, second = P[PIECE * i + BOUND], P[PIECE * j + BOUND]
                if length(apart) - first - second - length(moved) - rest > clearance:    # spheres: turning is nothing
                    continue
                lower, _ = separation(P, V, X, i, j, (moved, turned, other, rest), clearance, False, flat, 3 * k,
                                      S)
                found[2] += 1.0 / SPENT
                if lower == np.inf:
                    continue
                if lower == -np.inf:
                    found[0], found[1] = breaks[piece] + middle, k
                    return TOUCHES
                moves = length(moved) + length(turned) * first + length(other) * second + rest
                if moves <= resolution:
                    found[0], found[1] = breaks[piece] + middle, k
                    return NEAR
                passed[left] = k
                left += 1
            if not left:
                continue
            if found[2] > most or waiting + 2 > QUEUE:
                found[0], found[1] = breaks[piece] + middle, passed[0]
                return GAVE_UP
            for side in range(2):
                slot = (head + waiting) % QUEUE
                ends[slot, 0], ends[slot, 1] = (low, middle) if side == 0 else (middle, high)
                lengths[slot] = left
                for r in range(left):
                    listed[slot, r] = passed[r]
                waiting += 1
    return CLEAR


@entry("void(float64[::1], float64[::1], float64[:, ::1], int64[::1], int64[:, ::1], float64[:, ::1], float64, "
       "float64[:, ::1], float64[:, ::1], float64[:, :, ::1], float64[:, :, ::1])", nogil=True)
def near_distances(B, P, points, edges, pairs, q, within, axes, distances, gradients, contacts):
    """Distances (N, n) at q (N, nq), at most `within`; and, unless these are empty, gradients (N, n, nv), zero beyond
    it, and contacts (N, n, CONTACT) of what is nearer. −inf: cores that overlap.
    """
    pieces, count = P.shape[0] // PIECE, pairs.shape[0]
    W, X, S = np.empty(SIZE * (integer(B, 0) + 1)), np.empty(PLACE * pieces), np.empty(SIMPLEX)
    still = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0)
    flat = axes.reshape(-1)
    sloped, latest = gradients.shape[0] > 0, np.empty(CONTACT)
    V = points, edges
    fixed_places(P, X)
    for s in range(q.shape[0]):
        x = q[s]
        places(B, P, x, 0, W, X)
        for k in range(count):
            i, j = pairs[k, 0], pairs[k, 1]
            distances[s, k] = within
            if sloped:
                gradients[s, k] = 0.0
            apart = sub(vector(X, PLACE * j + SPHERE), vector(X, PLACE * i + SPHERE))
            if length(apart) - P[PIECE * i + BOUND] - P[PIECE * j + BOUND] >= within:
                continue
            lower, _ = separation(P, V, X, i, j, still, within, True, flat, 3 * k, S)
            if lower >= within:
                continue
            distances[s, k] = lower
            if not sloped:
                continue
            contact = contacts[s, k] if contacts.shape[0] else latest
            if lower == -np.inf:
                contact[:] = 0.0
                continue
            n = vector(flat, 3 * k)
            contact_of(P, X, i, j, n, S, contact)
            for side in range(2):
                point = vector(contact, NEAREST + 3 * side)
                h = integer(P, PIECE * (j if side else i) + BODY)
                while h >= 0:
                    angular, linear = joint_column(B, x, h, W)
                    speed = dot(n, add(linear, cross(angular, sub(point, vector(W, SIZE * h + _P)))))
                    gradients[s, k, first_velocity(B, node(h))] += speed if side else -speed
                    h = parent(B, node(h))
