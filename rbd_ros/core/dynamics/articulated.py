"""Forward and hybrid dynamics of trees in O(n): K Tables 3 and 4, the articulated-body algorithm (ABA).

A joint of several coordinates is eliminated one column of S at a time (the articulated inertia as seen
through a chain of massless bodies at the same place), so a single boolean per velocity coordinate says
whether its acceleration is prescribed (K's set u) or its effort (K's set v), also inside one joint.

Articulated inertia: `(m, f) = [[A, G], [Gᵀ, C]] (α, a) + bias` about the node's origin, with A and C
symmetric. As in `inverse`, linear accelerations are those of the node's origin: `a = v̇ + ω × v`.
"""
from __future__ import annotations

import numpy as np

from ..compiled.kernel import kernel, routine
from ..lie.spatial import (
    add, add_cross, add_matrix, add_rotated, add_rotated_back, add_symmetric, cross, dot, rotate, rotate_back,
    rotate_matrix, rotate_symmetric, scale, symmetric_times,
)
from ..model.block import (
    ARMATURE, GRAVITY, INERTIA, MASS, MOMENT, RATIO, SHARED, first_position, first_velocity, kind, layout, matrix, node,
    node_count, parent, put, put_add, put_matrix, six, size_q, size_v, vector, zero,
)
from ..model.joint_kinds import column, dof, is_revolute, joint_bias, joint_pose, joint_twist
from .inverse import velocity_wrench
from .shared_coordinates import shared_recursion
from .singular import SINGULAR

# workspace of one node; per column of S: U = Î s (6), 1/D (D where the acceleration is prescribed), effort left over
# BRANCHES: whether children other than the next node add to A, G and C, which only then are used
_R, _P, _OMEGA, _ALPHA, _ACCEL, _ETA_A, _ETA_L, _N, _F, _A, _G, _C, _BRANCHES, _U, SIZE = layout(
    R=9, p=3, omega=3, alpha=3, accel=3, eta_a=3, eta_l=3, n=3, f=3, a=6, g=9, c=6, branches=1, u=48)


@kernel
def articulated_times(A, G, C, a, b):
    """The articulated inertia times (angular a, linear b)."""
    return (add_rotated(symmetric_times(A, a), G, b), add_symmetric(rotate_back(G, a), C, b))


@kernel
def add_articulated(N, F, A, G, C, a, b):
    """`(N, F) + articulated_times(A, G, C, a, b)`."""
    return (add_rotated(add_symmetric(N, A, a), G, b), add_symmetric(add_rotated_back(F, G, a), C, b))


@kernel
def articulated_recursion(B, q, k, v, tau, j, prescribed, wrenches, W, out, effort):
    """Evaluate one state. Returns 0, or the node + 1 with a vanishing pivot: its joint moves no inertia.

    prescribed: (mask, acc), mask empty or per velocity coordinate whether acc[j:] is prescribed. wrenches: (wrench, e),
    those of this state from wrench[e:], empty: none. out[j:] receives the accelerations, and with a mask effort[j:] the
    efforts, given ones copied.
    """
    singular = articulated_factors(B, q, k, v, tau, j, prescribed, wrenches, W)
    if singular == 0:
        articulated_accelerations(B, q, k, tau, j, prescribed, W, out, effort)
    return singular


@routine
def articulated_states(B, q, v, tau, prescribed, wrench, states, W, out, effort):
    """Evaluate `states` states, with mimic joints by the mass matrix; returns as `articulated_recursion`.
    """
    nq = size_q(B)
    nv = size_v(B)
    H = np.empty(shared_size(B))
    for s in range(states):
        singular = tree_recursion(B, q, s * nq, v, tau, s * nv, prescribed, (wrench, 6 * node_count(B) * s), W, H, out,
                                  effort)
        if singular != 0:
            return singular
    return 0


@kernel
def shared_size(B):
    """Size of the workspace H of `tree_recursion`."""
    return size_v(B) * (size_v(B) + 1) if B[SHARED] > 0.0 else 0


@kernel
def tree_recursion(B, q, k, v, tau, j, prescribed, wrenches, W, H, out, effort):
    """`articulated_recursion`, or with mimic joints `shared_recursion`, which returns INDEFINITE."""
    if B[SHARED] > 0.0:
        return shared_recursion(B, q, k, v, tau, j, prescribed, wrenches, W, H, out, effort)
    return articulated_recursion(B, q, k, v, tau, j, prescribed, wrenches, W, out, effort)


@kernel
def articulated_factors(B, q, k, v, tau, j, prescribed, wrenches, W):
    """First two sweeps of ABA, to W: columns U of the articulated inertias, pivots, and residual efforts."""
    mask, acc = prescribed
    wrench, e = wrenches
    n = node_count(B)
    z = zero(B, v, j)
    hybrid = mask.shape[0] > 0
    omega = (z, z, z)
    for i in range(n):
        o = node(i)
        w = SIZE * i
        iq = k + first_position(B, o)
        iv = j + first_velocity(B, o)
        R, p = joint_pose(B, o, q, iq)
        h = parent(B, o)
        if h < 0:
            omega = (z, z, z)
        elif h != i - 1:    # else that of the node before, in registers
            omega = vector(W, SIZE * h + _OMEGA)
        eta_l = rotate_back(R, cross(omega, cross(omega, p)))
        omega = rotate_back(R, omega)
        if is_revolute(kind(B, o)):
            rate = B[o + RATIO] * v[iv]
            eta_a = (omega[1] * rate, -omega[0] * rate, z)
            omega = (omega[0], omega[1], omega[2] + rate)
        else:
            omega_r, velo_r = joint_twist(B, o, q, iq, v, iv)
            bias_a, bias_l = joint_bias(B, o, q, iq, v, iv)
            eta_l = add_cross(add(eta_l, bias_l), add(scale(2.0, omega), omega_r), velo_r)
            eta_a = add_cross(bias_a, omega, omega_r)
            omega = add(omega, omega_r)
        put(W, w + _ETA_A, eta_a)
        put(W, w + _ETA_L, eta_l)

        m = B[o + MASS]
        c = vector(B, o + MOMENT)
        I = six(B, o + INERTIA)
        moment, force = velocity_wrench(c, I, omega)
        if wrench.shape[0] > 0:
            moment = add(moment, scale(-1.0, vector(wrench, e + 6 * i)))
            force = add(force, scale(-1.0, vector(wrench, e + 6 * i + 3)))
        put_matrix(W, w + _R, R)
        put(W, w + _P, p)
        put(W, w + _OMEGA, omega)
        put(W, w + _N, moment)
        put(W, w + _F, force)
        W[w + _BRANCHES] = 0.0
        u = SIZE * h
        if h >= 0 and h != i - 1 and W[u + _BRANCHES] == 0.0:
            W[u + _BRANCHES] = 1.0
            for d in range(21):
                W[u + _A + d] = 0.0

    h = -1
    N = F = (z, z, z)
    A = C = (z, z, z, z, z, z)
    G = (z, z, z, z, z, z, z, z, z)
    for i in range(n - 1, -1, -1):
        o = node(i)
        w = SIZE * i
        iq = k + first_position(B, o)
        iv = j + first_velocity(B, o)
        if h != i:    # a leaf; else with what the node before hands on
            N = F = (z, z, z)
            A = C = (z, z, z, z, z, z)
            G = (z, z, z, z, z, z, z, z, z)
        if W[w + _BRANCHES] != 0.0:
            A = add_six(A, six(W, w + _A))
            G = add_matrix(G, matrix(W, w + _G))
            C = add_six(C, six(W, w + _C))
        m = B[o + MASS]
        mx, my, mz = vector(B, o + MOMENT)
        A = add_six(A, six(B, o + INERTIA))
        G = (G[0], G[1] - mz, G[2] + my, G[3] + mz, G[4], G[5] - mx, G[6] - my, G[7] + mx, G[8])
        C = (C[0] + m, C[1], C[2], C[3] + m, C[4], C[5] + m)
        N = add(N, vector(W, w + _N))
        F = add(F, vector(W, w + _F))
        # bias force with the joint's own bias acceleration: B̂ + Î η
        N, F = add_articulated(N, F, A, G, C, vector(W, w + _ETA_A), vector(W, w + _ETA_L))
        t = kind(B, o)
        hinge = False
        for c in range(dof(t) - 1, -1, -1):
            if is_revolute(t):
                r = B[o + RATIO]
                bound = r * r * (A[0] + A[3] + A[5])
                ua = (r * A[2], r * A[4], r * A[5])
                ul = (r * G[6], r * G[7], r * G[8])
                residual = tau[iv] - r * N[2]
                size = r * ua[2]
            else:
                sa, sl = column(B, o, q, iq, c)
                bound = dot(sa, sa) * (A[0] + A[3] + A[5]) + dot(sl, sl) * (C[0] + C[3] + C[5])
                ua, ul = articulated_times(A, G, C, sa, sl)
                residual = tau[iv + c] - dot(sa, N) - dot(sl, F)
                size = dot(sa, ua) + dot(sl, ul)
            d = size + B[o + ARMATURE + c]
            u = w + _U + 8 * c
            put(W, u, ua)
            put(W, u + 3, ul)
            if hybrid and mask[iv - j + c]:
                W[u + 6] = d
                W[u + 7] = residual - tau[iv + c]
                N = add(N, scale(acc[iv + c], ua))
                F = add(F, scale(acc[iv + c], ul))
                continue
            if not d.real > SINGULAR * abs(bound):    # relative to an upper bound of D
                return i + 1
            psi = 1.0 / d
            W[u + 6] = psi
            W[u + 7] = residual
            # Π = Î − U Ψ Uᵀ, β = B̂ + Î η + U Ψ (τ − …)
            g = psi * residual
            N = add(N, scale(g, ua))
            F = add(F, scale(g, ul))
            A, G, C = downdate(A, G, C, ua, ul, psi)
            hinge = is_revolute(t) and B[o + ARMATURE] == 0.0
        h = parent(B, o)
        if h >= 0:
            R = matrix(W, w + _R)
            p = vector(W, w + _P)
            F = rotate(R, F)
            N = add_cross(rotate(R, N), p, F)
            if hinge:    # without rotor inertia Π s = 0: the last rows of A and G are zero
                A = rotate_planar(R, A)
                G = rotate_two_rows(R, G)
            else:
                A = rotate_symmetric(R, A)
                G = rotate_matrix(R, G)
            A, G, C = about(p, A, G, rotate_symmetric(R, C))
            if h != i - 1:    # else added at the next turn
                x = SIZE * h
                put_add(W, x + _F, F)
                put_add(W, x + _N, N)
                for c in range(6):
                    W[x + _A + c] += A[c]
                    W[x + _C + c] += C[c]
                for c in range(9):
                    W[x + _G + c] += G[c]
    return 0


@kernel
def articulated_accelerations(B, q, k, tau, j, prescribed, W, out, effort):
    """The last sweep, from the W of `articulated_factors`: accelerations, and with a mask efforts."""
    mask, acc = prescribed
    n = node_count(B)
    z = zero(B, tau, j)
    hybrid = mask.shape[0] > 0
    alpha = accel = (z, z, z)
    for i in range(n):
        o = node(i)
        w = SIZE * i
        iq = k + first_position(B, o)
        iv = j + first_velocity(B, o)
        R = matrix(W, w + _R)
        p = vector(W, w + _P)
        h = parent(B, o)
        if h < 0:
            alpha = (z, z, z)
            accel = (z - B[GRAVITY], z - B[GRAVITY + 1], z - B[GRAVITY + 2])
        elif h != i - 1:    # else those of the node before
            alpha = vector(W, SIZE * h + _ALPHA)
            accel = vector(W, SIZE * h + _ACCEL)
        t = kind(B, o)
        of_parent = alpha, accel
        # without η: it is in the left-over effort already
        accel = rotate_back(R, add_cross(accel, alpha, p))
        alpha = rotate_back(R, alpha)
        if is_revolute(t) and not hybrid:
            # Uᵀ V̇ with U in the parent's frame: does not wait for V̇ in the node's
            ul = rotate(R, vector(W, w + _U + 3))
            ua = add_cross(rotate(R, vector(W, w + _U)), p, ul)
            x = W[w + _U + 6] * (W[w + _U + 7] - dot(ua, of_parent[0]) - dot(ul, of_parent[1]))
            out[iv] = x
            alpha = (alpha[0], alpha[1], alpha[2] + B[o + RATIO] * x)
        else:
            for c in range(dof(t)):
                u = w + _U + 8 * c
                residual = W[u + 7] - dot(vector(W, u), alpha) - dot(vector(W, u + 3), accel)
                if hybrid and mask[iv - j + c]:    # Sᵀ (Î V̇ + B̂)
                    x = acc[iv + c]
                    effort[iv + c] = W[u + 6] * x - residual
                else:
                    x = W[u + 6] * residual
                    if hybrid:
                        effort[iv + c] = tau[iv + c]
                out[iv + c] = x
                sa, sl = column(B, o, q, iq, c)
                alpha = add(alpha, scale(x, sa))
                accel = add(accel, scale(x, sl))
        alpha = add(alpha, vector(W, w + _ETA_A))
        accel = add(accel, vector(W, w + _ETA_L))
        put(W, w + _ALPHA, alpha)
        put(W, w + _ACCEL, accel)


@kernel
def add_six(a, b):
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5])


@kernel
def downdate(A, G, C, a, l, s):
    """`Î − s U Uᵀ` for U = (a, l)."""
    x = scale(s, a)
    y = scale(s, l)
    return ((A[0] - x[0] * a[0], A[1] - x[0] * a[1], A[2] - x[0] * a[2],
             A[3] - x[1] * a[1], A[4] - x[1] * a[2], A[5] - x[2] * a[2]),
            (G[0] - x[0] * l[0], G[1] - x[0] * l[1], G[2] - x[0] * l[2],
             G[3] - x[1] * l[0], G[4] - x[1] * l[1], G[5] - x[1] * l[2],
             G[6] - x[2] * l[0], G[7] - x[2] * l[1], G[8] - x[2] * l[2]),
            (C[0] - y[0] * l[0], C[1] - y[0] * l[1], C[2] - y[0] * l[2],
             C[3] - y[1] * l[1], C[4] - y[1] * l[2], C[5] - y[2] * l[2]))


@kernel
def to_parent(R, p, A, G, C):
    """`Ad*_{T⁻¹} Π Ad_{T⁻¹}`: the articulated inertia in the parent's axes, about the parent's origin."""
    return about(p, rotate_symmetric(R, A), rotate_matrix(R, G), rotate_symmetric(R, C))


@kernel
def rotate_planar(R, S):
    """`R S Rᵀ` for symmetric `S` whose last row is zero."""
    a = (R[0] * S[0] + R[1] * S[1], R[0] * S[1] + R[1] * S[3])
    b = (R[3] * S[0] + R[4] * S[1], R[3] * S[1] + R[4] * S[3])
    c = (R[6] * S[0] + R[7] * S[1], R[6] * S[1] + R[7] * S[3])
    return (R[0] * a[0] + R[1] * a[1], R[3] * a[0] + R[4] * a[1], R[6] * a[0] + R[7] * a[1],
            R[3] * b[0] + R[4] * b[1], R[6] * b[0] + R[7] * b[1], R[6] * c[0] + R[7] * c[1])


@kernel
def rotate_two_rows(R, B):
    """`R B Rᵀ` for `B` whose last row is zero."""
    a = rotate(R, (B[0], B[1], B[2]))
    b = rotate(R, (B[3], B[4], B[5]))
    return (R[0] * a[0] + R[1] * b[0], R[0] * a[1] + R[1] * b[1], R[0] * a[2] + R[1] * b[2],
            R[3] * a[0] + R[4] * b[0], R[3] * a[1] + R[4] * b[1], R[3] * a[2] + R[4] * b[2],
            R[6] * a[0] + R[7] * b[0], R[6] * a[1] + R[7] * b[1], R[6] * a[2] + R[7] * b[2])


@kernel
def about(p, A, G, C):
    """An articulated inertia about the origin of a frame in which its own origin is at p."""
    x, y, z = p
    E = (G[0] + y * C[2] - z * C[1], G[1] + y * C[4] - z * C[3], G[2] + y * C[5] - z * C[4],
         G[3] + z * C[0] - x * C[2], G[4] + z * C[1] - x * C[4], G[5] + z * C[2] - x * C[5],
         G[6] + x * C[1] - y * C[0], G[7] + x * C[3] - y * C[1], G[8] + x * C[4] - y * C[2])    # G + [p] C
    # A + [p] Gᵀ − E [p]
    return ((A[0] + y * G[2] - z * G[1] + y * E[2] - z * E[1],
             A[1] + y * G[5] - z * G[4] + z * E[0] - x * E[2],
             A[2] + y * G[8] - z * G[7] + x * E[1] - y * E[0],
             A[3] + z * G[3] - x * G[5] + z * E[3] - x * E[5],
             A[4] + z * G[6] - x * G[8] + x * E[4] - y * E[3],
             A[5] + x * G[7] - y * G[6] + x * E[7] - y * E[6]), E, C)
