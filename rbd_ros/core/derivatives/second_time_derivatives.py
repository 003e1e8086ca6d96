"""Inverse dynamics with its first and second time derivative in one forward and one backward sweep, in O(n): τ, τ̇, τ̈.

As in `dynamics.inverse`, every vector (angular velocity, acceleration of the origin, force, moment) is differentiated
in the inertial frame and then expressed in the node's axes. Transport to another node is then a rotation for all
orders. With w0, w1, w2, w3 = ω and its derivatives, the derivatives of the rotation matrix are

    Rᵀ Ṙ = ω̃,   U2 = Rᵀ R̈ = w̃1 + ω̃ ω̃,   U3 = w̃2 + 2 w̃1 ω̃ + ω̃ U2,   U4 = w̃3 + 3 w̃2 ω̃ + 3 w̃1 U2 + ω̃ U3,

those of a point r of the body relative to its origin U2 r, U3 r, U4 r, and with the pseudo-inertia J = ∫ r rᵀ dm the
moment about the origin is the vector of the skew part of U2 J, its derivatives those of U3 J + U2 J ω̃ᵀ and
U4 J + 2 U3 J ω̃ᵀ. Same numbers as the Leibniz rule on K Table 2, at less cost. For any order: `taylor`.
"""
from __future__ import annotations

from ..compiled.kernel import kernel, sweep
from ..lie.spatial import add, add_matrix, cross, hat_times, rotate, rotate_back, scale
from ..model.block import (
    ARMATURE, GRAVITY, INERTIA, MASS, MOMENT, RATIO, first_position, first_velocity, kind, layout, matrix, node,
    node_count, parent, put, put_add, put_matrix, six, size_v, vector, zero,
)
from ..model.joint_kinds import dof, is_revolute, joint_pose, joint_twist, project

# workspace of one node: pose; w0 … w3; U2, U3, U4; acceleration and two derivatives; first and second derivative of the
# position relative to the parent's origin, in the parent's axes; moment and force with two derivatives
_R, _P, _OMEGA, _U2, _U3, _U4, _ACCEL, _ARM, _N, _F, SIZE = layout(
    R=9, p=3, omega=12, u2=9, u3=9, u4=9, accel=9, arm=6, n=9, f=9)


@kernel
def hat_hat(s, a, b):
    """`s ã b̃`, row by row."""
    x = s * a[0]
    y = s * a[1]
    z = s * a[2]
    return (-y * b[1] - z * b[2], y * b[0], z * b[0], x * b[1], -x * b[0] - z * b[2], z * b[1], x * b[2], y * b[2],
            -x * b[0] - y * b[1])


@kernel
def plus_hat(A, a):
    """`A + ã`."""
    return (A[0], A[1] - a[2], A[2] + a[1], A[3] + a[2], A[4], A[5] - a[0], A[6] - a[1], A[7] + a[0], A[8])


@kernel
def times_symmetric(U, S):
    """`U S`."""
    return (U[0] * S[0] + U[1] * S[1] + U[2] * S[2], U[0] * S[1] + U[1] * S[3] + U[2] * S[4],
            U[0] * S[2] + U[1] * S[4] + U[2] * S[5],
            U[3] * S[0] + U[4] * S[1] + U[5] * S[2], U[3] * S[1] + U[4] * S[3] + U[5] * S[4],
            U[3] * S[2] + U[4] * S[4] + U[5] * S[5],
            U[6] * S[0] + U[7] * S[1] + U[8] * S[2], U[6] * S[1] + U[7] * S[3] + U[8] * S[4],
            U[6] * S[2] + U[7] * S[4] + U[8] * S[5])


@kernel
def skew_part(A):
    """The vector of `A − Aᵀ`."""
    return (A[7] - A[5], A[2] - A[6], A[3] - A[1])


@kernel
def skew_part_turned(s, A, w):
    """The vector of the skew part of `s A w̃ᵀ`."""
    return (s * (w[2] * A[6] - w[0] * A[8] + w[1] * A[3] - w[0] * A[4]),
            s * (w[0] * A[1] - w[1] * A[0] + w[2] * A[7] - w[1] * A[8]),
            s * (w[1] * A[5] - w[2] * A[4] + w[0] * A[2] - w[2] * A[0]))


@kernel
def pseudo_inertia(I):
    """`J = ½ tr(I) 1 − I`, symmetric."""
    t = 0.5 * (I[0] + I[3] + I[5])
    return (t - I[0], -I[1], -I[2], t - I[3], -I[4], t - I[5])


@sweep
def second_order_recursion(B, q, k, rates, starts, W, tau):
    """One state: q[k:]; rates: v, a, jerk, snap, each from its index in `starts`; τ, τ̇, τ̈ to the rows of tau (3, nv).

    For models with constant S.
    """
    v, a, b, c = rates
    iv0, ia0, ib0, ic0 = starts
    n = node_count(B)
    nv = size_v(B)
    z = zero(B, v, iv0)
    o3 = (z, z, z)
    o9 = (z, z, z, z, z, z, z, z, z)
    for i in range(n):
        o = node(i)
        w = SIZE * i
        iq = k + first_position(B, o)
        iv = first_velocity(B, o)
        R, p = joint_pose(B, o, q, iq)
        h = parent(B, o)
        if h < 0:
            w0, w1, w2, w3 = o3, o3, o3, o3
            P2, P3, P4 = o9, o9, o9
            a0, a1, a2 = (z - B[GRAVITY], z - B[GRAVITY + 1], z - B[GRAVITY + 2]), o3, o3
        else:
            x = SIZE * h
            w0, w1 = vector(W, x + _OMEGA), vector(W, x + _OMEGA + 3)
            w2, w3 = vector(W, x + _OMEGA + 6), vector(W, x + _OMEGA + 9)
            P2, P3, P4 = matrix(W, x + _U2), matrix(W, x + _U3), matrix(W, x + _U4)
            a0, a1, a2 = vector(W, x + _ACCEL), vector(W, x + _ACCEL + 3), vector(W, x + _ACCEL + 6)
        arm1 = cross(w0, p)
        arm2 = rotate(P2, p)
        a0 = rotate_back(R, add(a0, arm2))
        a1 = rotate_back(R, add(a1, rotate(P3, p)))
        a2 = rotate_back(R, add(a2, rotate(P4, p)))
        w0 = rotate_back(R, w0)
        w1 = rotate_back(R, w1)
        w2 = rotate_back(R, w2)
        w3 = rotate_back(R, w3)
        if is_revolute(kind(B, o)):
            r = B[o + RATIO]
            s0, s1, s2, s3 = r * v[iv0 + iv], r * a[ia0 + iv], r * b[ib0 + iv], r * c[ic0 + iv]
            w0 = (w0[0], w0[1], w0[2] + s0)
            w1 = (w1[0] + w0[1] * s0, w1[1] - w0[0] * s0, w1[2] + s1)
            U2 = plus_hat(hat_hat(1.0, w0, w0), w1)
            w2 = (w2[0] + 2.0 * w0[1] * s1 + U2[2] * s0, w2[1] - 2.0 * w0[0] * s1 + U2[5] * s0, w2[2] + s2 + U2[8] * s0)
            U3 = plus_hat(add_matrix(hat_hat(2.0, w1, w0), hat_times(w0, U2)), w2)
            w3 = (w3[0] + 3.0 * (w0[1] * s2 + U2[2] * s1) + U3[2] * s0,
                  w3[1] + 3.0 * (U2[5] * s1 - w0[0] * s2) + U3[5] * s0, w3[2] + s3 + 3.0 * U2[8] * s1 + U3[8] * s0)
        else:
            sa0, sl0 = joint_twist(B, o, q, iq, v, iv0 + iv)
            sa1, sl1 = joint_twist(B, o, q, iq, a, ia0 + iv)
            sa2, sl2 = joint_twist(B, o, q, iq, b, ib0 + iv)
            sa3, sl3 = joint_twist(B, o, q, iq, c, ic0 + iv)
            p0, p1, p2 = w0, w1, w2    # the parent's, in the node's axes
            w0 = add(w0, sa0)
            w1 = add(w1, add(sa1, cross(w0, sa0)))
            U2 = plus_hat(hat_hat(1.0, w0, w0), w1)
            w2 = add(w2, add(sa2, add(scale(2.0, cross(w0, sa1)), rotate(U2, sa0))))
            U3 = plus_hat(add_matrix(hat_hat(2.0, w1, w0), hat_times(w0, U2)), w2)
            w3 = add(w3, add(sa3, add(scale(3.0, add(cross(w0, sa2), rotate(U2, sa1))), rotate(U3, sa0))))
            # contribution of the joint's linear motion and the parent's rotation to the derivatives of the arm
            d0 = sl0
            e1 = add(sl1, cross(w0, sl0))
            e2 = add(sl2, add(scale(2.0, cross(w0, sl1)), rotate(U2, sl0)))
            e3 = add(sl3, add(scale(3.0, add(cross(w0, sl2), rotate(U2, sl1))), rotate(U3, sl0)))
            d1 = add(e1, cross(p0, d0))
            d2 = add(e2, add(scale(2.0, cross(p1, d0)), cross(p0, d1)))
            d3 = add(e3, add(scale(3.0, add(cross(p2, d0), cross(p1, d1))), cross(p0, d2)))
            arm1 = add(arm1, rotate(R, d0))
            arm2 = add(arm2, rotate(R, d1))
            a0 = add(a0, d1)
            a1 = add(a1, d2)
            a2 = add(a2, d3)
        U4 = plus_hat(add_matrix(hat_hat(3.0, w2, w0), hat_times(scale(3.0, w1), U2)), w3)
        U4 = add_matrix(U4, hat_times(w0, U3))

        m = B[o + MASS]
        g = vector(B, o + MOMENT)
        J = pseudo_inertia(six(B, o + INERTIA))
        K2 = times_symmetric(U2, J)
        K3 = times_symmetric(U3, J)
        g1 = cross(w0, g)
        g2 = rotate(U2, g)
        put_matrix(W, w + _R, R)
        put(W, w + _P, p)
        put(W, w + _OMEGA, w0)
        put(W, w + _OMEGA + 3, w1)
        put(W, w + _OMEGA + 6, w2)
        put(W, w + _OMEGA + 9, w3)
        put_matrix(W, w + _U2, U2)
        put_matrix(W, w + _U3, U3)
        put_matrix(W, w + _U4, U4)
        put(W, w + _ACCEL, a0)
        put(W, w + _ACCEL + 3, a1)
        put(W, w + _ACCEL + 6, a2)
        put(W, w + _ARM, arm1)
        put(W, w + _ARM + 3, arm2)
        put(W, w + _F, add(scale(m, a0), g2))
        put(W, w + _F + 3, add(scale(m, a1), rotate(U3, g)))
        put(W, w + _F + 6, add(scale(m, a2), rotate(U4, g)))
        put(W, w + _N, add(cross(g, a0), skew_part(K2)))
        put(W, w + _N + 3, add(add(cross(g, a1), cross(g1, a0)), add(skew_part(K3), skew_part_turned(1.0, K2, w0))))
        put(W, w + _N + 6, add(add(cross(g, a2), add(scale(2.0, cross(g1, a1)), cross(g2, a0))),
                               add(skew_part(times_symmetric(U4, J)), skew_part_turned(2.0, K3, w0))))
    tau0, tau1, tau2 = tau[0], tau[1], tau[2]
    for i in range(nv):
        tau0[i] = tau1[i] = tau2[i] = z
    for i in range(n - 1, -1, -1):
        o = node(i)
        w = SIZE * i
        iv = first_velocity(B, o)
        n0, n1, n2 = vector(W, w + _N), vector(W, w + _N + 3), vector(W, w + _N + 6)
        f0, f1, f2 = vector(W, w + _F), vector(W, w + _F + 3), vector(W, w + _F + 6)
        w0, w1 = vector(W, w + _OMEGA), vector(W, w + _OMEGA + 3)
        t = kind(B, o)
        if is_revolute(t):
            r = B[o + RATIO]
            e0 = w1[1] + w0[0] * w0[2]    # U2 (0, 0, 1)
            e1 = w0[1] * w0[2] - w1[0]
            e2 = -w0[0] * w0[0] - w0[1] * w0[1]
            tau0[iv] += r * n0[2] + B[o + ARMATURE] * a[ia0 + iv]
            tau1[iv] += r * (n1[2] + w0[1] * n0[0] - w0[0] * n0[1]) + B[o + ARMATURE] * b[ib0 + iv]
            tau2[iv] += (r * (n2[2] + 2.0 * (w0[1] * n1[0] - w0[0] * n1[1]) + e0 * n0[0] + e1 * n0[1] + e2 * n0[2])
                         + B[o + ARMATURE] * c[ic0 + iv])
        else:    # derivatives of the components in the node's axes
            U2 = plus_hat(hat_hat(1.0, w0, w0), w1)
            iq = k + first_position(B, o)
            project(B, o, q, iq, n0, f0, tau0, iv)
            project(B, o, q, iq, add(n1, cross(n0, w0)), add(f1, cross(f0, w0)), tau1, iv)
            project(B, o, q, iq, add(n2, add(scale(2.0, cross(n1, w0)), rotate_back(U2, n0))),
                    add(f2, add(scale(2.0, cross(f1, w0)), rotate_back(U2, f0))), tau2, iv)
            for s in range(dof(t)):
                tau0[iv + s] += B[o + ARMATURE + s] * a[ia0 + iv + s]
                tau1[iv + s] += B[o + ARMATURE + s] * b[ib0 + iv + s]
                tau2[iv + s] += B[o + ARMATURE + s] * c[ic0 + iv + s]
        h = parent(B, o)
        if h >= 0:
            R = matrix(W, w + _R)
            p, p1, p2 = vector(W, w + _P), vector(W, w + _ARM), vector(W, w + _ARM + 3)
            x = SIZE * h
            f0 = rotate(R, f0)
            f1 = rotate(R, f1)
            f2 = rotate(R, f2)
            put_add(W, x + _F, f0)
            put_add(W, x + _F + 3, f1)
            put_add(W, x + _F + 6, f2)
            put_add(W, x + _N, add(rotate(R, n0), cross(p, f0)))
            put_add(W, x + _N + 3, add(rotate(R, n1), add(cross(p, f1), cross(p1, f0))))
            put_add(W, x + _N + 6, add(rotate(R, n2), add(cross(p, f2), add(scale(2.0, cross(p1, f1)), cross(p2, f0)))))
