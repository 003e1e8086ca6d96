"""Coriolis matrix of trees with Ṁ − 2C skew-symmetric: M eq. 54, by composite bodies, O(n · depth).

M eq. 54 reads `C̄ = Jᵀ (M J̇ + (M b − bᵀ M) J)` with `J̇ = −A a J`. With J_k = Ad S in the axes of body k and its
derivative `J̇_k = Ad σ − ad_{V_k} Ad S`, where `σ = ad_V S + Ṡ` belongs to the joint alone, the terms M b cancel:

    C̄_ij = Σ_k (Ad S_i)ᵀ (M_k Ad σ_j − ad_{V_k}ᵀ M_k Ad S_j)

over the bodies k behind both joints: only M_k and −ad_Vᵀ M_k are summed from the leaves. This holds for joints of
several coordinates, too, where ad_{S q̇} S and Ṡ do not vanish (M has joints of one coordinate).
"""
from __future__ import annotations


from numpy.typing import ArrayLike

from ..compiled.entry import quick_entry
from ..compiled.kernel import kernel
from ..lie.spatial import (
    add, add_cross, add_matrix, add_rotated, add_rotated_back, compose, cross, dot, hat, hat_times, rotate,
    rotate_back, rotate_matrix, scale, symmetric_times, unit,
)
from ..model.block import (
    INERTIA, MASS, MOMENT, all_finite, first_position, first_velocity, kind, layout, matrix, node, node_count, parent,
    put, put_add, put_matrix, rates_valid, six, size_q, size_v, vector,
)
from ..model.configuration import positions_valid
from ..model.inertia import Array
from ..model.joint_kinds import column, dof, joint_twist, slope_along, varies
from ..model.robot_model import RobotModel
from ..model.state import shaped
from ..compiled.door import Call, door
from ..compiled.workspace import ONE_STATE
from .mass_matrix import _H, _I, _MASS, _P, _R, SIZE, composite_inertias

# workspace X per node: twist, and blocks of the composite −ad_Vᵀ M = [[A, G], [C, d̃]]
_OMEGA, _V, _A, _G, _C, _D, EXTRA = layout(omega=3, v=3, a=9, g=9, c=9, d=3)


@kernel
def minus_times_hat(A, G, p):
    """`A − G p̃`."""
    X = compose(G, hat(p))
    return (A[0] - X[0], A[1] - X[1], A[2] - X[2], A[3] - X[3], A[4] - X[4], A[5] - X[5], A[6] - X[6], A[7] - X[7],
            A[8] - X[8])


@kernel
def put_add_matrix(W, k, A):
    for c in range(9):
        W[k + c] += A[c]


@kernel
def column_rate(B, o, q, k, v, j, c, omega, velo):
    """σ = ad_V S + Ṡ of column c, (angular, linear)."""
    sa, sl = column(B, o, q, k, c)
    ra = cross(omega, sa)
    rl = add_cross(cross(velo, sa), omega, sl)
    if varies(kind(B, o)):
        da, dl = slope_along(B, o, q, k, v, j, unit(c, q[k]))
        return add(ra, da), add(rl, dl)
    return ra, rl


@kernel
def coriolis_sums(B, q, k, v, j, W, X):
    """Composite inertias into W; twists and composite −ad_Vᵀ M into X."""
    composite_inertias(B, q, k, W)
    n = node_count(B)
    for i in range(n):
        o = node(i)
        x = EXTRA * i
        R = matrix(W, SIZE * i + _R)
        p = vector(W, SIZE * i + _P)
        omega, velo = joint_twist(B, o, q, k + first_position(B, o), v, j + first_velocity(B, o))
        h = parent(B, o)
        if h >= 0:
            above = vector(X, EXTRA * h + _OMEGA)
            omega = add_rotated_back(omega, R, above)
            velo = add_rotated_back(velo, R, add_cross(vector(X, EXTRA * h + _V), above, p))
        put(X, x + _OMEGA, omega)
        put(X, x + _V, velo)
        m = B[o + MASS]
        c = vector(B, o + MOMENT)
        I = six(B, o + INERTIA)
        G = hat_times(omega, hat(c))
        A = hat_times(omega, (I[0], I[1], I[2], I[1], I[3], I[4], I[2], I[4], I[5]))
        put_matrix(X, x + _A, add_matrix(A, hat_times(velo, hat(scale(-1.0, c)))))
        put_matrix(X, x + _G, add_matrix(G, hat(scale(m, velo))))
        put_matrix(X, x + _C, hat_times(omega, hat(scale(-1.0, c))))
        put(X, x + _D, scale(m, omega))
    for i in range(n - 1, -1, -1):
        h = parent(B, node(i))
        if h < 0:
            continue
        x = EXTRA * i
        R = matrix(W, SIZE * i + _R)
        p = vector(W, SIZE * i + _P)
        d = rotate(R, vector(X, x + _D))
        C = rotate_matrix(R, matrix(X, x + _C))
        G = add_matrix(rotate_matrix(R, matrix(X, x + _G)), hat_times(p, hat(d)))
        A = add_matrix(rotate_matrix(R, matrix(X, x + _A)), hat_times(p, C))
        y = EXTRA * h
        put_add_matrix(X, y + _A, minus_times_hat(A, G, p))
        put_add_matrix(X, y + _G, G)
        put_add_matrix(X, y + _C, minus_times_hat(C, hat(d), p))
        put_add(X, y + _D, d)


@kernel
def coriolis_recursion(B, q, k, v, j, W, X, H, offset):
    """The nv × nv matrix into H[offset:], row by row."""
    n = node_count(B)
    nv = size_v(B)
    for i in range(nv * nv):
        H[offset + i] = 0.0 * B[0]
    coriolis_sums(B, q, k, v, j, W, X)
    for i in range(n):
        o = node(i)
        w = SIZE * i
        x = EXTRA * i
        iq = k + first_position(B, o)
        iv = first_velocity(B, o)
        m = W[w + _MASS]
        h = vector(W, w + _H)
        I = six(W, w + _I)
        A = matrix(X, x + _A)
        G = matrix(X, x + _G)
        C = matrix(X, x + _C)
        d = vector(X, x + _D)
        for c in range(dof(kind(B, o))):
            sa, sl = column(B, o, q, iq, c)
            ra, rl = column_rate(B, o, q, iq, v, j + iv, c, vector(X, x + _OMEGA), vector(X, x + _V))
            # M σ − adᵀ M S; M S; the transpose of −adᵀ M times S
            N = add_cross(add_rotated(add_rotated(symmetric_times(I, ra), A, sa), G, sl), h, rl)
            F = add_cross(add_cross(add_rotated(scale(m, rl), C, sa), ra, h), d, sl)
            N1 = add_cross(symmetric_times(I, sa), h, sl)
            F1 = add_cross(scale(m, sl), sa, h)
            N2 = add_rotated_back(rotate_back(A, sa), C, sl)
            F2 = add_cross(rotate_back(G, sa), sl, d)
            b = i
            while b >= 0:
                ob = node(b)
                bq = k + first_position(B, ob)
                bv = first_velocity(B, ob)
                for e in range(dof(kind(B, ob))):
                    ta, tl = column(B, ob, q, bq, e)
                    H[offset + (bv + e) * nv + iv + c] += dot(ta, N) + dot(tl, F)
                    if b != i:
                        ua, ul = column_rate(B, ob, q, bq, v, j + bv, e, vector(X, EXTRA * b + _OMEGA),
                                             vector(X, EXTRA * b + _V))
                        H[offset + (iv + c) * nv + bv + e] += (dot(ua, N1) + dot(ul, F1) + dot(ta, N2) + dot(tl, F2))
                R = matrix(W, SIZE * b + _R)
                p = vector(W, SIZE * b + _P)
                F = rotate(R, F)
                F1 = rotate(R, F1)
                F2 = rotate(R, F2)
                N = add_cross(rotate(R, N), p, F)
                N1 = add_cross(rotate(R, N1), p, F1)
                N2 = add_cross(rotate(R, N2), p, F2)
                b = parent(B, ob)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[:, ::1])")
def coriolis_entry(B, q, v, W, H):
    """Coriolis matrices H (N·nv, nv) of N states; False if an input is invalid or H not finite."""
    nq = size_q(B)
    nv = size_v(B)
    states = H.shape[0] // max(nv, 1)
    if not (positions_valid(B, q, states) and rates_valid(B, v, states)):
        return False
    X = W[SIZE * node_count(B):]
    flat = H.reshape(-1)
    for s in range(states):
        coriolis_recursion(B, q, s * nq, v, s * nv, W, X, flat, s * nv * nv)
    return all_finite(flat)


ONE_STATE.takes(lambda nodes, columns, nv: (SIZE + EXTRA) * nodes)


_door = door("coriolis_matrix", Call(coriolis_entry, "B q v W >", lambda model: [(model.nv, model.nv)]))


def coriolis_matrix(model: RobotModel, q: ArrayLike, v: ArrayLike) -> Array:
    """Coriolis matrix C(q, v) (nv, nv) or (N, nv, nv): C v + gravity is the bias, and Ṁ − 2C is skew-symmetric.

    M's C̄ (eq. 54), linear in v, for all joint types; Ṁ is the derivative of the mass matrix along the motion. Other
    matrices have these properties, too, as that of the Christoffel symbols. q (nq,) or (N, nq), v (nv,) or
    (N, nv). Raises `RbdError` for a wrong shape or non-finite numbers.

        >>> model = rbd.sample("two_link")
        >>> rbd.coriolis_matrix(model, [0.0, 1.0], [1.0, 0.0]).round(3)
        array([[ 0.   , -0.105],
               [ 0.105,  0.   ]])
    """
    if (C := _door(model, q, v)) is not None:
        return C    # type: ignore[no-any-return]
    inputs = shaped(model, positions={"q": q}, rates={"v": v})
    H = inputs.empty(model.nv, model.nv)
    if not coriolis_entry.call(model._block, *inputs.flat, model._work, H.reshape(inputs.count * model.nv, model.nv)):
        inputs.refuse(coriolis_matrix=H)
    return H
