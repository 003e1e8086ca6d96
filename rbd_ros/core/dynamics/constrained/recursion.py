"""Forward and hybrid dynamics under constraints in O(n) + O(m³): K eq. 67–69 and 74–80, compiled.

One articulated-body run gives q̈_r and the factors Î, U, Ψ. The m simplified runs (K §3.2: no bias) need their inward
sweep only: with `E x` the residual efforts of joint efforts x, M_vv⁻¹ = Eᵀ Ψ E, so Z = Ψ^½ E A_vᵀ has
`ZᵀZ = A_v M_vv⁻¹ A_vᵀ`; `minimum_norm` factorises Z. The last run adds λ's residual efforts to those of the first and
sweeps outward: q̈ = q̈_r + q̈_c. Prescribed coordinates (mask) are not eliminated, as in `articulated`; λ's residual
efforts there become part of their efforts.
"""
from __future__ import annotations

import numpy as np

from ...compiled.entry import entry, quick_entry
from ...compiled.kernel import kernel, sweep
from ...lie.spatial import add, cross, dot, rotate, scale
from ...model.block import (
    RATIO, SHARED, all_finite, finite_range, first_position, first_velocity, integer, kind, matrix, node, node_count,
    parent, put_add, rates_valid, size_q, size_v, vector,
)
from ...model.configuration import positions_valid
from ...model.constraint_block import ROWS
from ...model.joint_kinds import column, dof, is_revolute
from ...compiled.workspace import CONSTRAINED
from ..articulated import _ACCEL, _ALPHA, _OMEGA, _U, SIZE, articulated_accelerations, articulated_factors
from .minimum_norm import minimum_norm
from .rows import POSES, Motion, constraint_rows, world_poses

# options: Baumgarte α and β (1/s), damping. info: rank, residual, its scale, ratio of pivots, and the largest residual
# of a row relative to its tolerance
ALPHA, BETA, DAMPING, OPTIONS = 0, 1, 2, 3
RANK, RESIDUAL, SCALE, CONDITION, EXCESS, INFO = 0, 1, 2, 3, 4, 5

CONSISTENT = 1e-6    # accepted residual relative to the largest terms of A q̈ + Ȧq̇
NEGLIGIBLE = 1e-9    # always accepted residual (m/s², rad/s²)


@sweep
def simplified_runs(B, q, k, mask, A, offset, m, W, G, Y):
    """E Aᵀ into Y (m, nv): residual efforts of each row of A[offset:] as joint efforts; G (nodes, m, 6): forces.

    Nodes without influence on any row are skipped: their G stays zero.
    """
    n = node_count(B)
    nv = size_v(B)
    hybrid = mask.shape[0] > 0
    for c in range(n * m * 6):
        G[c] = 0.0
    for c in range(nv * m):
        Y[c] = 0.0
    for i in range(n - 1, -1, -1):
        o = node(i)
        w = SIZE * i
        iv = first_velocity(B, o)
        t = kind(B, o)
        h = parent(B, o)
        R = matrix(W, w)
        p = vector(W, w + 9)
        count = dof(t)
        for r in range(m):
            g = 6 * (i * m + r)
            N = vector(G, g)
            F = vector(G, g + 3)
            touched = dot(N, N) + dot(F, F) > 0.0
            for c in range(count):
                touched |= A[offset + r * nv + iv + c] != 0.0
            if not touched:
                continue
            for c in range(count - 1, -1, -1):
                if is_revolute(t):
                    residual = A[offset + r * nv + iv] - B[o + RATIO] * N[2]
                else:
                    sa, sl = column(B, o, q, k + first_position(B, o), c)
                    residual = A[offset + r * nv + iv + c] - dot(sa, N) - dot(sl, F)
                u = w + _U + 8 * c
                Y[r * nv + iv + c] = residual
                if hybrid and mask[iv + c]:
                    continue
                x = W[u + 6] * residual
                N = add(N, scale(x, vector(W, u)))
                F = add(F, scale(x, vector(W, u + 3)))
            if h >= 0:
                f = rotate(R, F)
                g = 6 * (h * m + r)
                put_add(G, g, add(rotate(R, N), cross(p, f)))
                put_add(G, g + 3, f)


@kernel
def constrained_recursion(B, C, inputs, s, states, mask, outside, options, work, results):
    """Constrained dynamics of state s of `states`; returns as `articulated_recursion`.

    inputs: q, v, tau and acc, prescribed accelerations with a mask. outside: external wrenches on nodes, and rows of
    contacts and users, of all states (or empty). work: see `constrained_states`. results: accelerations, efforts (with
    a mask), multipliers, info.
    """
    q, v, tau, acc = inputs
    wrench, user = outside
    (W, X, G), (A, f, b), (Y, Z, T, P, y, start) = work
    out, effort, lam, info = results
    n = node_count(B)
    nv = size_v(B)
    m = integer(C, ROWS)
    k = s * size_q(B)
    j = s * nv
    first = s * m
    hybrid = mask.shape[0] > 0
    prescribed = (mask, acc)
    status = articulated_factors(B, q, k, v, tau, j, prescribed, (wrench, 6 * n * s), W)
    if status != 0:
        return status
    world_poses(B, W, SIZE, X)
    for turn in range(2):
        articulated_accelerations(B, q, k, tau, j, prescribed, W, out, effort)
        if turn == 1:
            break
        constraint_rows(B, C, (q, k, v, j, out, j), Motion(X, POSES, W, SIZE, _OMEGA, _ALPHA, _ACCEL, 1.0),
                        (user, s * (user.shape[0] // states)), 2, (A, f, b, 0))
        if options[ALPHA] != 0.0 or options[BETA] != 0.0:    # f̈ + 2 α ḟ + β² f = 0
            for r in range(m):
                b[r] += options[BETA] * options[BETA] * f[r]
                for c in range(nv):
                    b[r] += 2.0 * options[ALPHA] * A[r * nv + c] * v[j + c]
        simplified_runs(B, q, k, mask, A, 0, m, W, G, Y)
        for i in range(n):
            o = node(i)
            for c in range(dof(kind(B, o))):
                x = first_velocity(B, o) + c
                root = 0.0
                if not (hybrid and mask[x]):
                    root = np.sqrt(W[SIZE * i + _U + 8 * c + 6])
                for r in range(m):
                    Z[r * nv + x] = root * Y[r * nv + x]
        rank, condition = minimum_norm(Z, nv, m, b, 0, options[DAMPING], T, P, y, lam, first)
        info[INFO * s + RANK] = rank
        info[INFO * s + CONDITION] = condition
        for i in range(n):
            o = node(i)
            w = SIZE * i
            for r in range(m):
                for c in range(dof(kind(B, o))):
                    W[w + _U + 8 * c + 7] += lam[first + r] * Y[r * nv + first_velocity(B, o) + c]
        for c in range(nv):
            start[c] = out[j + c]
    put_residuals(A, b, start, out, j, nv, m, y, info, INFO * s)
    return 0


@sweep
def put_residuals(A, b, start, out, j, nv, m, y, info, offset):
    """Residuals of `b + A (q̈ − start)` = 0 into info[offset:]; y: 2 m workspace.

    The scale is the largest term of any row, but at most this row's largest possible term (rows of other units).
    """
    acceleration = 0.0
    for c in range(nv):
        acceleration = max(acceleration, abs(out[j + c]) + abs(start[c]))
    worst = 0.0
    largest = 0.0
    for r in range(m):
        residual = b[r]
        size = abs(b[r])
        bound = size
        for c in range(nv):
            x = A[r * nv + c]
            residual += x * (out[j + c] - start[c])
            size += abs(x) * (abs(out[j + c]) + abs(start[c]))
            bound += abs(x) * acceleration
        y[r] = abs(residual)
        y[m + r] = bound
        if not y[r] <= worst:
            worst = y[r]
        if not size <= largest:
            largest = size
    info[offset + RESIDUAL] = worst
    info[offset + SCALE] = largest
    info[offset + EXCESS] = 0.0
    for r in range(m):
        excess = y[r] / (CONSISTENT * min(largest, y[m + r]) + NEGLIGIBLE)
        if not excess <= info[offset + EXCESS]:
            info[offset + EXCESS] = excess


@entry("void(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])")
def residuals_entry(A, b, start, out, info):
    """`put_residuals` of one state."""
    m = b.shape[0]
    put_residuals(A, b, start, out, 0, out.shape[0], m, np.empty(2 * m), info, 0)


@entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], boolean[::1], "
       "float64[::1], float64[::1], float64[::1], int64, float64[::1])", nogil=True)
def constrained_entry(B, C, q, v, a, tau, mask, wrench, user, options, states, out):
    """Constrained dynamics of `states` states: 0; −1 for invalid input or results not finite; singular node + 1.

    mask: empty (forward dynamics; a is ignored, efforts in out are undefined), or (nv,) with a like tau. out:
    accelerations of all states, then efforts, multipliers and info of all states.
    """
    nv = size_v(B)
    m = integer(C, ROWS)
    hybrid = mask.shape[0] > 0
    if B[SHARED] > 0.0 or not (positions_valid(B, q, states) and rates_valid(B, v, states)
                               and rates_valid(B, tau, states)):
        return -1
    if hybrid and not (mask.shape[0] == nv and rates_valid(B, a, states)):
        return -1
    work = np.empty(_size(node_count(B), nv, m))
    efforts = states * nv
    multipliers = 2 * efforts
    info = multipliers + states * m
    status = constrained_states(B, C, (q, v, tau, a), states, mask, (wrench, user), options, work, (
        out[:efforts], out[efforts:multipliers], out[multipliers:info], out[info:]))
    finite = (finite_range(out, 0, efforts) and finite_range(out, multipliers, info)
              and not (hybrid and not finite_range(out, efforts, multipliers)))
    return status if status != 0 or finite else -1


@quick_entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], "
             "float64[::1])")
def constrained_forward_entry(B, C, q, v, tau, options, work, out):
    """One state without wrenches and users' rows; out (nv + m + 5): accelerations, multipliers, info."""
    nv = size_v(B)
    m = integer(C, ROWS)
    if B[SHARED] > 0.0 or not (positions_valid(B, q, 1) and rates_valid(B, v, 1) and rates_valid(B, tau, 1)):
        return -1
    status = constrained_states(B, C, (q, v, tau, v), 1, work[:0].view(np.bool_), (tau[:0], tau[:0]), options, work,
                                (out[:nv], out[:nv], out[nv:nv + m], out[nv + m:]))
    return status if status != 0 or all_finite(out[:nv + m]) else -1


def work_size(nodes: int, nv: int, m: int) -> int:
    """Size of the workspace."""
    return (SIZE + POSES + 6 * m) * nodes + 3 * m * nv + 4 * m + 2 * m * m + nv


_size = kernel(work_size)
CONSTRAINED.takes(work_size)


@sweep
def constrained_states(B, C, inputs, states, mask, outside, options, S, results):
    """`constrained_recursion` of `states` states in turn, with workspace S, divided into its `work`: of bodies (W, X,
    G: factors, poses, forces of the simplified runs), of rows (A, f, b), of the multipliers (Y, Z, T, P, y, start).
    """
    nv = size_v(B)
    m = integer(C, ROWS)
    nodes = node_count(B)
    W, S = S[:SIZE * nodes], S[SIZE * nodes:]
    X, S = S[:POSES * nodes], S[POSES * nodes:]
    G, S = S[:6 * m * nodes], S[6 * m * nodes:]
    A, Y, Z, S = S[:m * nv], S[m * nv:2 * m * nv], S[2 * m * nv:3 * m * nv], S[3 * m * nv:]
    T, P, S = S[:m * m], S[m * m:2 * m * m], S[2 * m * m:]
    f, b, y, start = S[:m], S[m:2 * m], S[2 * m:4 * m], S[4 * m:]
    work = ((W, X, G), (A, f, b), (Y, Z, T, P, y, start))
    for s in range(states):
        status = constrained_recursion(B, C, inputs, s, states, mask, outside, options, work, results)
        if status != 0:
            return status
    return 0
