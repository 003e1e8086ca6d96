"""Inverse dynamics along a motion, order by order, to any order N in O(n·N²): Leibniz rule on K Table 2.

All quantities are series in time, as Taylor coefficients x_k = x⁽ᵏ⁾/k!, for which the Leibniz rule is a convolution,
(f g)_k = Σ f_j g_{k−j}. As in `second_time_derivatives`, vectors are differentiated in the inertial frame and then
expressed in the node's axes. With U_k the coefficients of RᵀR(t), w those of the angular velocity and w' those of the
parent's, s and l of the joint's angular and linear rate, d of the position relative to the parent's origin:

    w_k = w'_k + Σ U_j s_{k−j},            (k+1) U_{k+1} = Σ w̃_j U_{k−j},
    (k+1) d_{k+1} = Σ w'_j × d_{k−j} + Σ U_j l_{k−j},     a_k = a'_k + (k+1)(k+2) d_{k+2},
    f_k = m a_k + (k+1)(k+2) U_{k+2} c,    n_k = Σ U_j c × a_{k−j} + (k+1) L_{k+1},   L = skew part of Ṙ J Rᵀ.

In the backward sweep f_k and n_k + Σ d_j × f_{k−j} are added to the parent's, and efforts are Sᵀ of the components
Σ U_jᵀ n_{k−j}. One order is one forward and one backward sweep and requires lower orders only: forward dynamics solves
for one order at a time.
"""
from __future__ import annotations

from typing import NamedTuple

from ..compiled.kernel import kernel, routine, sweep
from ..lie.spatial import add, add_matrix, cross, dot, hat_times, rotate, rotate_back, scale, sub
from ..model.block import (
    ARMATURE, GRAVITY, INERTIA, MASS, MOMENT, first_position, first_velocity, integer, kind, layout, matrix, node,
    node_count, parent, put, put_add, put_matrix, six, size_v, vector,
)
from ..model.joint_kinds import dof, joint_pose, joint_twist, project, series_dual, series_rate, series_size, varies
from .second_time_derivatives import pseudo_inertia, times_symmetric

# Workspace of one node: rotation; start of its record for a varying S; then the series of `Series`, with space for
# top + 3 coefficients each.
_R, _RECORD, _SERIES = layout(R=9, record=1)


@kernel
def node_size(top):
    """Workspace size per node for efforts up to order `top`."""
    return _SERIES + 42 * (top + 3)


class Series(NamedTuple):
    """Start of each series in a node's record, by the letters above."""

    U: int
    UJ: int
    d: int
    a: int
    n: int
    f: int
    s: int
    l: int
    above: int    # w'
    w: int


@kernel
def series(top):
    """The `Series` for efforts up to order `top`."""
    n = top + 3
    b = _SERIES + 18 * n
    return Series(_SERIES, _SERIES + 9 * n, b, b + 3 * n, b + 6 * n, b + 9 * n, b + 12 * n, b + 15 * n, b + 18 * n,
                  b + 21 * n)


@kernel
def workspace_size(B, top):
    """Workspace size of all nodes, including records."""
    n = node_count(B)
    records = 0
    for i in range(n):
        records += series_size(B, node(i), top + 1)
    return n * node_size(top) + records


@kernel
def turned_sum(W, U, X, k):
    """`Σ U_j X_{k−j}`, vectors at X."""
    total = rotate(matrix(W, U), vector(W, X + 3 * k))
    for j in range(1, k + 1):
        total = add(total, rotate(matrix(W, U + 9 * j), vector(W, X + 3 * (k - j))))
    return total


@kernel
def turned_back_sum(W, U, X, k):
    """`Σ U_jᵀ X_{k−j}`."""
    total = rotate_back(matrix(W, U), vector(W, X + 3 * k))
    for j in range(1, k + 1):
        total = add(total, rotate_back(matrix(W, U + 9 * j), vector(W, X + 3 * (k - j))))
    return total


@kernel
def cross_sum(W, X, Y, k):
    """`Σ X_j × Y_{k−j}`."""
    total = cross(vector(W, X), vector(W, Y + 3 * k))
    for j in range(1, k + 1):
        total = add(total, cross(vector(W, X + 3 * j), vector(W, Y + 3 * (k - j))))
    return total


@kernel
def skew_row(W, A, B, r, c):
    """Entry (r, c) of `A Bᵀ`."""
    return dot(vector(W, A + 3 * r), vector(W, B + 3 * c))


@kernel
def angular_momentum(W, U, K, k):
    """L_k, the vector of the skew part of `Σ (j+1) U_{j+1} J U_{k−j}ᵀ`."""
    x = 0.0 * W[U]
    y = x
    z = x
    for j in range(k + 1):
        A = K + 9 * (j + 1)
        B = U + 9 * (k - j)
        x += (j + 1) * (skew_row(W, A, B, 2, 1) - skew_row(W, A, B, 1, 2))
        y += (j + 1) * (skew_row(W, A, B, 0, 2) - skew_row(W, A, B, 2, 0))
        z += (j + 1) * (skew_row(W, A, B, 1, 0) - skew_row(W, A, B, 0, 1))
    return (x, y, z)


@kernel
def set_matrix(W, U, K, J, A):
    """Write A to the series at U, A J to that at K."""
    put_matrix(W, U, A)
    put_matrix(W, K, times_symmetric(A, J))


@sweep
def motion_order(B, o, q, iq, v, iv, m, top, W, w, x):
    """w_m, U_{m+1}, d_{m+1} of the node at w with parent at x (−1: none), from coefficient m of the joint's rate."""
    places = series(top)
    U, K, D = places.U, places.UJ, places.d
    S, L, P, V = places.s, places.l, places.above, places.w
    nv = size_v(B)
    z = 0.0 * W[w]
    if varies(kind(B, o)):
        s, l = series_rate(B, o, q, iq, v, iv, nv, m, top + 1, W, integer(W, w + _RECORD))
    else:
        s, l = joint_twist(B, o, q, iq, v, m * nv + iv)
    above = (z, z, z)
    if x >= 0:
        above = rotate_back(matrix(W, w + _R), vector(W, x + V + 3 * m))
    put(W, w + S + 3 * m, s)
    put(W, w + L + 3 * m, l)
    put(W, w + P + 3 * m, above)
    put(W, w + V + 3 * m, add(above, turned_sum(W, w + U, w + S, m)))
    A = hat_times(vector(W, w + V), matrix(W, w + U + 9 * m))
    for j in range(1, m + 1):
        A = add_matrix(A, hat_times(vector(W, w + V + 3 * j), matrix(W, w + U + 9 * (m - j))))
    t = 1.0 / (m + 1)
    A = (t * A[0], t * A[1], t * A[2], t * A[3], t * A[4], t * A[5], t * A[6], t * A[7], t * A[8])
    set_matrix(W, w + U + 9 * (m + 1), w + K + 9 * (m + 1), pseudo_inertia(six(B, o + INERTIA)), A)
    put(W, w + D + 3 * (m + 1), scale(t, add(cross_sum(W, w + P, w + D, m), turned_sum(W, w + U, w + L, m))))


@routine
def taylor_start(B, q, k, v, top, W):
    """Order 0 of every node: pose at q[k:], angular velocity. v: successive coefficients, nv each."""
    n = node_count(B)
    places = series(top)
    U, K, D = places.U, places.UJ, places.d
    size = node_size(top)
    record = n * size
    z = 0.0 * B[0]
    for i in range(n):
        o = node(i)
        w = size * i
        iq = k + first_position(B, o)
        R, p = joint_pose(B, o, q, iq)
        put_matrix(W, w + _R, R)
        W[w + _RECORD] = z + record
        record += series_size(B, o, top + 1)
        identity = (z + 1.0, z, z, z, z + 1.0, z, z, z, z + 1.0)
        set_matrix(W, w + U, w + K, pseudo_inertia(six(B, o + INERTIA)), identity)
        put(W, w + D, rotate_back(R, p))
        h = parent(B, o)
        motion_order(B, o, q, iq, v, first_velocity(B, o), 0, top, W, w, size * h if h >= 0 else -1)


@routine
def taylor_order(B, q, k, v, wrench, e, orders, order, top, W, tau):
    """Coefficient `order` of the efforts to tau, from those of q̇ up to order + 1 and all lower orders in W.

    wrench[e:]: external wrenches on the nodes, `orders` successive coefficients (empty: none).
    """
    n = node_count(B)
    nv = size_v(B)
    places = series(top)
    U, K, D = places.U, places.UJ, places.d
    A, N, F = places.a, places.n, places.f
    size = node_size(top)
    factor = (order + 1.0) * (order + 2.0)
    for i in range(n):
        o = node(i)
        w = size * i
        h = parent(B, o)
        x = size * h if h >= 0 else -1
        iq = k + first_position(B, o)
        motion_order(B, o, q, iq, v, first_velocity(B, o), order + 1, top, W, w, x)
        z = 0.0 * W[w]
        if h >= 0:
            accel = vector(W, x + A + 3 * order)
        elif order == 0:
            accel = (z - B[GRAVITY], z - B[GRAVITY + 1], z - B[GRAVITY + 2])
        else:
            accel = (z, z, z)
        accel = add(rotate_back(matrix(W, w + _R), accel), scale(factor, vector(W, w + D + 3 * (order + 2))))
        put(W, w + A + 3 * order, accel)
        c = vector(B, o + MOMENT)
        force = add(scale(B[o + MASS], accel), scale(factor, rotate(matrix(W, w + U + 9 * (order + 2)), c)))
        moment = scale(order + 1.0, angular_momentum(W, w + U, w + K, order + 1))
        for j in range(order + 1):
            moment = add(moment, cross(rotate(matrix(W, w + U + 9 * j), c), vector(W, w + A + 3 * (order - j))))
        if wrench.shape[0] > 0:
            for j in range(max(0, order - orders + 1), order + 1):
                U_j = matrix(W, w + U + 9 * j)
                b = e + 6 * (n * (order - j) + i)
                moment = sub(moment, rotate(U_j, vector(wrench, b)))
                force = sub(force, rotate(U_j, vector(wrench, b + 3)))
        put(W, w + N + 3 * order, moment)
        put(W, w + F + 3 * order, force)
    for i in range(nv):
        tau[i] = 0.0 * v[i]
    for i in range(n - 1, -1, -1):
        o = node(i)
        w = size * i
        iv = first_velocity(B, o)
        t = kind(B, o)
        moment = turned_back_sum(W, w + U, w + N, order)
        force = turned_back_sum(W, w + U, w + F, order)
        if varies(t):
            series_dual(B, o, moment, force, order, top + 1, W, integer(W, w + _RECORD), tau, iv)
        else:
            project(B, o, q, k + first_position(B, o), moment, force, tau, iv)
        for c in range(dof(t)):
            tau[iv + c] += (order + 1.0) * B[o + ARMATURE + c] * v[(order + 1) * nv + iv + c]
        h = parent(B, o)
        if h >= 0:
            x = size * h
            R = matrix(W, w + _R)
            put_add(W, x + F + 3 * order, rotate(R, vector(W, w + F + 3 * order)))
            put_add(W, x + N + 3 * order, rotate(R, add(vector(W, w + N + 3 * order),
                                                         cross_sum(W, w + D, w + F, order))))
