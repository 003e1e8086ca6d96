"""Values f, Jacobian A and accelerations A q̈ + Ȧq̇ of constraints, from the motion of the bodies (K eq. 55).

A loop closure compares two frames: R, p is the pose of the successor's frame in the predecessor's, ω = ω₂ − ω₁ its
relative angular velocity and ω̇ the derivative of the components, in axes of the predecessor's frame. Joints above the
last common ancestor do not change them. Rotation rows are in `turning`.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from ...compiled.kernel import kernel, sweep
from ...lie.spatial import add, compose, cross, rotate, rotate_back, scale, sub
from ...model.block import (
    GRAVITY, RATIO, first_position, first_velocity, integer, kind, matrix, node, node_count, parent, put, put_matrix,
    size_v, vector, zero,
)
from ...model.constraint_block import (
    CONSTANT, COUNT, COUPLING, FIRST_TERM, FLAGS, ITEMS, KIND, NODE_1, NODE_2, POSE, POSITION_1, POSITION_2, ROTATION_1,
    ROTATION_2, ROW, ROWS, SIZE, START, TERM_COUNT, TERM_FIRST, TERM_OFFSET, TERM_Q, TERM_RATIO, TERM_V, TERMS,
    USER_START,
)
from ...model.joint_kinds import column, dof, is_revolute
from ..turning import transpose, turned, turning_acceleration, turning_rate, turning_value

POSES = 12    # per node: pose in the world


class Motion(NamedTuple):
    """Arrays with the motion of the bodies, and offsets in them."""

    X: Any            # world poses of the nodes
    stride: int       # numbers per node in X
    W: Any            # motion of the nodes, in node axes
    size: int         # numbers per node in W
    omega: int        # offset of the angular velocity in a node's record
    alpha: int        # offset of the angular acceleration
    accel: int        # offset of the classical acceleration of the origin
    weight: float     # the world's acceleration is −weight·g in these accelerations


@sweep
def world_poses(B, W, stride, X):
    """World poses of the nodes into X, from poses in their parents at the start of the records of W."""
    for i in range(node_count(B)):
        R = matrix(W, stride * i)
        p = vector(W, stride * i + 9)
        h = parent(B, node(i))
        if h >= 0:
            R_h = matrix(X, POSES * h)
            p = add(rotate(R_h, p), vector(X, POSES * h + 9))
            R = compose(R_h, R)
        put_matrix(X, POSES * i, R)
        put(X, POSES * i + 9, p)


@kernel
def put_rows(C, o, offset, stride, x, y, out):
    """Into out[offset:], by rows, the values (x, y) of the constrained axes of record o."""
    r = offset + integer(C, o + ROW) * stride
    for c in range(6):
        if C[o + FLAGS + c].real != 0.0:
            out[r] = x[c] if c < 3 else y[c - 3]
            r += stride


@kernel
def add_rows(C, o, offset, stride, x, y, out):
    """`put_rows` with addition."""
    r = offset + integer(C, o + ROW) * stride
    for c in range(6):
        if C[o + FLAGS + c].real != 0.0:
            out[r] += x[c] if c < 3 else y[c - 3]
            r += stride


@kernel
def in_world(X, stride, i, R, p):
    """Pose (R, p) of node i's frame in the world; node −1 is the world."""
    if i < 0:
        return R, p
    R_i = matrix(X, stride * i)
    return compose(R_i, R), add(rotate(R_i, p), vector(X, stride * i + 9))


@kernel
def outer_node(B, a, h):
    """One step from nodes a and h towards their last common ancestor: the outer (larger) of the two, its sign in the
    motion of h minus that of a, and a and h with the parent of the outer one in its place.
    """
    if h > a:
        return h, 1.0, a, parent(B, node(h))
    return a, -1.0, parent(B, node(a)), h


@kernel
def column_at(B, i, q, k, c, sign, E, r):
    """Column c of S of node i, times sign, as motion of the point r (node axes), rotated by E: (angular, linear)."""
    o = node(i)
    if is_revolute(kind(B, o)):
        y = sign * B[o + RATIO]
        return scale(y, (E[2], E[5], E[8])), rotate(E, (-y * r[1], y * r[0], 0.0 * r[2]))
    angular, linear = column(B, o, q, k + first_position(B, o), c)
    return scale(sign, rotate(E, angular)), scale(sign, rotate(E, add(linear, cross(angular, r))))


@sweep
def frame_motion(B, C, k, i, motion, Rt):
    """ω, α, and acceleration of the frame at C[k:] on node i, rotated by Rt."""
    W = motion.W
    z = 0.0 * W[motion.omega]
    if i < 0:
        still = (z, z, z)
        return still, still, rotate(Rt, scale(-motion.weight, vector(B, GRAVITY)))
    w = motion.size * i
    p = vector(C, k)
    omega = vector(W, w + motion.omega)
    alpha = vector(W, w + motion.alpha)
    accel = add(vector(W, w + motion.accel), add(cross(alpha, p), cross(omega, cross(omega, p))))
    R = compose(Rt, matrix(motion.X, motion.stride * i))
    return rotate(R, omega), rotate(R, alpha), rotate(R, accel)


@kernel
def pose_rows(B, C, o, state, motion, order, rows):
    """Rows of a POSE record; arguments as in `constraint_rows`."""
    q, k, v, j = state[:4]
    A, f, b, first = rows
    X = motion.X
    stride = motion.stride
    nv = size_v(B)
    i1 = integer(C, o + NODE_1)
    i2 = integer(C, o + NODE_2)
    R1, p1 = in_world(X, stride, i1, matrix(C, o + ROTATION_1), vector(C, o + POSITION_1))
    R2, p2 = in_world(X, stride, i2, matrix(C, o + ROTATION_2), vector(C, o + POSITION_2))
    Rt = transpose(R1)
    R = compose(Rt, R2)
    p = rotate(Rt, sub(p2, p1))
    count, c, u, s = turned(R, C[o + FLAGS], C[o + FLAGS + 1], C[o + FLAGS + 2])
    put_rows(C, o, first, 1, turning_value(R, count, c, u, s), p, f)
    if order == 0:
        return
    z = zero(B, v, j)
    p_dot = (z, z, z)
    a = i1
    h = i2
    while a != h:
        i, sign, a, h = outer_node(B, a, h)
        R_i = matrix(X, stride * i)
        r = rotate_back(R_i, sub(p2, vector(X, stride * i + 9)))    # the successor's frame, from the node
        E = compose(Rt, R_i)
        iv = first_velocity(B, node(i))
        for d in range(dof(kind(B, node(i)))):
            angular, linear = column_at(B, i, q, k, d, sign, E, r)
            add_rows(C, o, first * nv + iv + d, nv, turning_rate(R, count, c, u, s, angular), linear, A)
            p_dot = add(p_dot, scale(v[j + iv + d], linear))
    if order == 1:
        return
    omega1, alpha1, accel1 = frame_motion(B, C, o + POSITION_1, i1, motion, Rt)
    omega2, alpha2, accel2 = frame_motion(B, C, o + POSITION_2, i2, motion, Rt)
    omega = sub(omega2, omega1)
    alpha = sub(sub(alpha2, alpha1), cross(omega1, omega))
    # p' = v₂ − v₁ − ω₁ × p;  p'' = a₂ − a₁ − 2 ω₁ × p' − α₁ × p − ω₁ × (ω₁ × p)
    turn = add(add(scale(2.0, cross(omega1, p_dot)), cross(alpha1, p)), cross(omega1, cross(omega1, p)))
    put_rows(C, o, first, 1, turning_acceleration(R, count, c, u, s, omega, alpha), sub(sub(accel2, accel1), turn), b)


@sweep
def coupling_rows(C, o, state, order, nv, rows):
    """The row of a COUPLING record: Σ P(y) with y = ratio q + offset."""
    q, k, v, j, acc, x = state
    A, f, b, first = rows
    r = first + integer(C, o + ROW)
    value = 0.0 * q[k] - C[o + CONSTANT]
    second = 0.0 * value
    t = o + FIRST_TERM
    for _ in range(integer(C, o + TERMS)):
        iq = integer(C, t + TERM_Q)
        iv = integer(C, t + TERM_V)
        ratio = C[t + TERM_RATIO]
        y = ratio * q[k + iq] + C[t + TERM_OFFSET]
        n = integer(C, t + TERM_COUNT)
        p0 = 0.0 * y
        p1 = 0.0 * y
        p2 = 0.0 * y
        for c in range(n - 1, -1, -1):    # Horner, with derivatives; the coefficient of q⁰ is zero
            coefficient = C[t + TERM_FIRST + c]
            p2 = p2 * y + 2.0 * p1
            p1 = p1 * y + p0
            p0 = p0 * y + coefficient
        p2 = p2 * y + 2.0 * p1
        p1 = p1 * y + p0
        p0 = p0 * y
        value += p0
        if order > 0:
            A[r * nv + iv] += p1 * ratio
        if order > 1:
            rate = ratio * v[j + iv]
            second += p2 * rate * rate + p1 * ratio * acc[x + iv]
        t += TERM_FIRST + n
    f[r] = value
    if order > 1:
        b[r] = second


@kernel
def constraint_rows(B, C, state, motion, users, order, rows):
    """f (order 0), A (1) and b = A q̈ + Ȧq̇ (2) of one state.

    state: q, k, v, j, acc, x, for q[k:], v[j:], accelerations acc[x:]; motion: of the bodies; users: user,
    e, for the users' A, Ȧq̇, f at user[e:]; rows: A, f, b, first, for results in f[first:], b[first:], A[first·nv:].
    """
    v, j, acc, x = state[2:]
    user, e = users
    A, f, b, first = rows
    nv = size_v(B)
    if order > 0:
        for c in range(integer(C, ROWS) * nv):
            A[first * nv + c] = 0.0 * v[j]
    o, size = START, 0    # added first: with a literal START, functions called would be compiled once more
    for _ in range(integer(C, ITEMS)):
        o += size
        size = integer(C, o + SIZE)
        t = integer(C, o + KIND)
        if t == POSE:
            pose_rows(B, C, o, state, motion, order, rows)
        elif t == COUPLING:
            coupling_rows(C, o, state, order, nv, rows)
        else:
            r = first + integer(C, o + ROW)
            y = e + integer(C, o + USER_START)
            for _ in range(integer(C, o + COUNT)):
                f[r] = user[y + nv + 1]
                if order > 0:
                    for c in range(nv):
                        A[r * nv + c] = user[y + c]
                if order > 1:
                    b[r] = user[y + nv]
                    for c in range(nv):
                        b[r] += user[y + c] * acc[x + c]
                r += 1
                y += nv + 2
