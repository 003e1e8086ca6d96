"""Mass matrix of trees, the composite-rigid-body algorithm (CRBA): K eq. 32 with M_ij = S_iᵀ Ad* Î_composite S_j."""
from __future__ import annotations


from numpy.typing import ArrayLike

from ..compiled.entry import quick_entry
from ..compiled.kernel import kernel
from ..lie.spatial import add, add_cross, dot, rotate, rotate_symmetric, scale, symmetric_times
from ..model.block import (
    ARMATURE, INERTIA, MASS, MOMENT, RATIO, first_position, first_velocity, kind, layout, matrix, node, node_count,
    parent, put, put_add, put_matrix, put_six, six, size_q, size_v, vector,
)
from ..model.configuration import positions_valid
from ..model.inertia import Array
from ..model.joint_kinds import column, dof, is_revolute, joint_pose
from ..model.robot_model import RobotModel
from ..model.state import shaped
from ..compiled.door import Call, door
from ..compiled.workspace import ONE_STATE

_R, _P, _MASS, _H, _I, SIZE = layout(R=9, p=3, mass=1, h=3, I=6)


@kernel
def composite_inertias(B, q, k, W):
    """Into W per node: pose, and mass, first moment and inertia about the node's origin of the composite body."""
    n = node_count(B)
    for i in range(n):
        o = node(i)
        w = SIZE * i
        R, p = joint_pose(B, o, q, k + first_position(B, o))
        put_matrix(W, w + _R, R)
        put(W, w + _P, p)
        W[w + _MASS] = B[o + MASS]
        put(W, w + _H, vector(B, o + MOMENT))
        put_six(W, w + _I, six(B, o + INERTIA))
    for i in range(n - 1, -1, -1):
        h = parent(B, node(i))
        if h < 0:
            continue
        w = SIZE * i
        x = SIZE * h
        R = matrix(W, w + _R)
        p = vector(W, w + _P)
        m = W[w + _MASS]
        c = rotate(R, vector(W, w + _H))
        I = rotate_symmetric(R, six(W, w + _I))
        g = add(scale(2.0, c), scale(m, p))
        s = dot(p, g)    # 2 p·c + m p·p
        d = add(c, scale(m, p))
        W[x + _MASS] += m
        put_add(W, x + _H, d)
        # 1 s − p cᵀ − c pᵀ − m p pᵀ
        W[x + _I] += I[0] + s - p[0] * g[0]
        W[x + _I + 1] += I[1] - p[0] * c[1] - d[0] * p[1]
        W[x + _I + 2] += I[2] - p[0] * c[2] - d[0] * p[2]
        W[x + _I + 3] += I[3] + s - p[1] * g[1]
        W[x + _I + 4] += I[4] - p[1] * c[2] - d[1] * p[2]
        W[x + _I + 5] += I[5] + s - p[2] * g[2]


@kernel
def mass_matrix_recursion(B, q, k, W, H, offset):
    """The nv × nv matrix into H[offset:], row by row."""
    n = node_count(B)
    nv = size_v(B)
    for i in range(nv * nv):
        H[offset + i] = 0.0 * B[0]
    composite_inertias(B, q, k, W)
    for i in range(n):
        o = node(i)
        w = SIZE * i
        iv = first_velocity(B, o)
        for c in range(dof(kind(B, o))):
            mass = W[w + _MASS]
            h = vector(W, w + _H)
            I = six(W, w + _I)
            # momentum of the composite body with this column as twist
            if is_revolute(kind(B, o)):
                r = B[o + RATIO]
                N = (r * I[2], r * I[4], r * I[5])
                F = (-r * h[1], r * h[0], 0.0 * r)
            else:
                sa, sl = column(B, o, q, k + first_position(B, o), c)
                N = add_cross(symmetric_times(I, sa), h, sl)
                F = add_cross(scale(mass, sl), sa, h)
            H[offset + (iv + c) * nv + iv + c] += B[o + ARMATURE + c]
            j = i
            while True:
                oj = node(j)
                jv = first_velocity(B, oj)
                for d in range(dof(kind(B, oj))):
                    if is_revolute(kind(B, oj)):
                        x = B[oj + RATIO] * N[2]
                    else:
                        ta, tl = column(B, oj, q, k + first_position(B, oj), d)
                        x = dot(ta, N) + dot(tl, F)
                    H[offset + (iv + c) * nv + jv + d] += x
                    if j != i:
                        H[offset + (jv + d) * nv + iv + c] += x
                above = parent(B, oj)
                if above < 0:
                    break
                R = matrix(W, SIZE * j + _R)
                F = rotate(R, F)
                N = add_cross(rotate(R, N), vector(W, SIZE * j + _P), F)
                j = above


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[:, ::1])")
def mass_matrix_entry(B, q, W, H):
    """Mass matrices H (N·nv, nv) of N states; False if an input is invalid or H not finite."""
    nq = size_q(B)
    nv = size_v(B)
    states = H.shape[0] // max(nv, 1)
    if not positions_valid(B, q, states):
        return False
    flat = H.reshape(-1)
    finite = True
    for s in range(states):
        mass_matrix_recursion(B, q, s * nq, W, flat, s * nv * nv)
        for i in range(nv):    # diagonal entries: finite ones bound all others
            x = flat[s * nv * nv + i * (nv + 1)]
            finite &= x - x == 0.0
    return finite


ONE_STATE.takes(lambda nodes, columns, nv: SIZE * nodes)


_door = door("mass_matrix", Call(mass_matrix_entry, "B q W >", lambda model: [(model.nv, model.nv)]))


def mass_matrix(model: RobotModel, q: ArrayLike) -> Array:
    """Mass matrix M(q) (nv, nv) or (N, nv, nv), symmetric, rotor inertia included: K eq. 32.

    The composite-rigid-body algorithm (CRBA; Walker and Orin 1982, Featherstone 1983). q (nq,) or (N, nq). Raises
    `RbdError` for a wrong shape or non-finite numbers.

        >>> model = rbd.sample("two_link")
        >>> rbd.mass_matrix(model, [0.0, 0.0]).round(3)
        array([[0.667, 0.208],
               [0.208, 0.083]])
    """
    if (M := _door(model, q)) is not None:
        return M    # type: ignore[no-any-return]
    inputs = shaped(model, positions={"q": q})
    H = inputs.empty(model.nv, model.nv)
    rows = H.reshape(inputs.count * model.nv, model.nv)
    if not mass_matrix_entry.call(model._block, *inputs.flat, model._work, rows):
        inputs.refuse(mass_matrix=H)
    return H
