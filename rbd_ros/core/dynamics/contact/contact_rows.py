"""Rows of contacts: gap, rolling and spin, with A and Ȧq̇, exact on and off the manifold (Montana 1988).

All vectors are in contact axes, of the first surface's chart at the contact: x, y tangential, z outward. P is the
second surface's point, n = z, `v = v₂(P) − v₁(P)` and `ω = ω₂ − ω₁`. Rows: v_z, the rate of the gap; v_x, v_y, the
sliding velocity; ω_z, the spin. As P moves on both surfaces, by s₁ and s₂, and the axes rotate with
`Ω = ω₁ + n × S₁ s₁ + (τ·s₁) n`,

    v' = a₂(P) − a₁(P) + ω × s₂ − (ω₁ + Ω) × v,   ω_z' = n·(α₂ − α₁) + (Ω × n)·ω.
"""
from __future__ import annotations

import numpy as np

from ...compiled.entry import entry
from ...compiled.kernel import kernel, sweep
from ...lie.spatial import add, compose, cross, dot, rotate, rotate_back, scale, sub
from ...model.block import (
    finite_range, first_velocity, integer, kind, matrix, node, node_count, rates_valid, size_q, size_v, vector, zero,
)
from ...model.configuration import positions_valid
from ...model.constraint_block import Bound
from ...imaginary_step import STEP, step_numbers, step_state
from ...model.inertia import Array
from ...model.joint_kinds import dof
from ...model.surfaces.contact_block import (
    COUNT, FIRST, ITEMS, NODE_1, NODE_2, POSITION_1, POSITION_2, RECORD, ROTATION_1, ROTATION_2, ROW, ROWS, SECOND,
    START, WALKS,
)
from ...model.surfaces.shapes import chart_axis, normal, polar
from ..constrained.rows import Motion, column_at, in_world, outer_node
from ..kinematics import _ACCEL, _ALPHA, _OMEGA, SIZE, node_motion
from ..turning import transpose
from .closest import curvatures, second_curvatures, shape_of, stepped, touching


@sweep
def contact_axes(first, second, R, x, y):
    """At closest points x, y: rotation to the first's frame (columns x, y, z), both Weingarten maps as xx, xy, yy, and
    the torsion of the first's chart.
    """
    n = normal(first, x)
    t, torsion = chart_axis(first, x, n, polar(first, n))
    u = cross(n, t)
    return ((t[0], u[0], n[0], t[1], u[1], n[1], t[2], u[2], n[2]), curvatures(first, x, n, t, u),
            second_curvatures(first, second, R, y, t, u), (dot(torsion, t), dot(torsion, u)))


@sweep
def point_motion(i, motion, P, E):
    """ω, α and acceleration of the point P (world) of node i, in the axes E."""
    W = motion.W
    z = 0.0 * P[0]
    if i < 0:
        still = (z, z, z)
        return still, still, still
    w = motion.size * i
    R = matrix(motion.X, motion.stride * i)
    r = rotate_back(R, sub(P, vector(motion.X, motion.stride * i + 9)))
    omega = vector(W, w + motion.omega)
    alpha = vector(W, w + motion.alpha)
    accel = add(vector(W, w + motion.accel), add(cross(alpha, r), cross(omega, cross(omega, r))))
    Q = compose(transpose(E), R)
    return rotate(Q, omega), rotate(Q, alpha), rotate(Q, accel)


@kernel
def put_row(out, offset, stride, count, linear, angular):
    """Components of a relative motion in the contact's axes: normal, x, y, spin."""
    out[offset] += linear[2]
    if count > 1:
        out[offset + stride] += linear[0]
        out[offset + 2 * stride] += linear[1]
    if count > 3:
        out[offset + 3 * stride] += angular[2]


@sweep
def contact_record_rows(B, C, o, state, motion, out, offset, stride, far):
    """Into out[offset:] the rows of the contact with record o, each A (nv numbers), A q̈ + Ȧq̇ and f; of a contact with
    a gap beyond `far` f alone.

    Returns whether it has closest points. stride: numbers per row. The rows must be zero before.
    """
    q, k, v, j = state
    X = motion.X
    nv = size_v(B)
    i1 = integer(C, o + NODE_1)
    i2 = integer(C, o + NODE_2)
    count = integer(C, o + COUNT)
    R1, p1 = in_world(X, motion.stride, i1, matrix(C, o + ROTATION_1), vector(C, o + POSITION_1))
    R2, p2 = in_world(X, motion.stride, i2, matrix(C, o + ROTATION_2), vector(C, o + POSITION_2))
    R = compose(transpose(R1), R2)
    p = rotate_back(R1, sub(p2, p1))
    first, second = shape_of(C, o + FIRST), shape_of(C, o + SECOND)
    x, y, valid = touching(first, second, integer(C, o + WALKS) > 0, R, p)
    if not valid:
        return False
    d = dot(normal(first, x), sub(add(rotate(R, y), p), x))
    out[offset + nv + 1] += d
    if d.real > far:
        return True
    axes, K1, K2, torsion = contact_axes(first, second, R, x, y)
    E = compose(R1, axes)
    P = add(rotate(R2, y), p2)
    z = zero(B, v, j)
    speed = (z, z, z)
    a = i1
    h = i2
    while a != h:
        i, sign, a, h = outer_node(B, a, h)
        R_i = matrix(X, motion.stride * i)
        r = rotate_back(R_i, sub(P, vector(X, motion.stride * i + 9)))
        Q = compose(transpose(E), R_i)
        iv = first_velocity(B, node(i))
        for c in range(dof(kind(B, node(i)))):
            angular, linear = column_at(B, i, q, k, c, sign, Q, r)
            put_row(out, offset + iv + c, stride, count, linear, angular)
            speed = add(speed, scale(v[j + iv + c], linear))
    omega1, alpha1, accel1 = point_motion(i1, motion, P, E)
    omega2, alpha2, accel2 = point_motion(i2, motion, P, E)
    omega = sub(omega2, omega1)
    e = (speed[0], speed[1])
    s, s2 = stepped(first, second, K1, K2, d, omega, e)
    tilt = (K1[0] * s[0] + K1[1] * s[1], K1[1] * s[0] + K1[2] * s[1])    # n' in contact axes, relative to the body
    turn = add(omega1, (-tilt[1], tilt[0], torsion[0] * s[0] + torsion[1] * s[1]))
    linear = sub(add(sub(accel2, accel1), cross(omega, (s2[0], s2[1], z))), cross(add(omega1, turn), speed))
    alpha = sub(alpha2, alpha1)
    spin = alpha[2] + turn[1] * omega[0] - turn[0] * omega[1]
    put_row(out, offset + nv, stride, count, linear, (z, z, spin))
    return True


@sweep
def contact_rows(B, C, state, motion, out, offset):
    """Rows of all contacts, nv + 2 numbers each, into out[offset:]; −1, or the first contact without closest points."""
    stride = size_v(B) + 2
    z = zero(B, state[2], state[3])
    for c in range(integer(C, ROWS) * stride):
        out[offset + c] = z
    for item in range(integer(C, ITEMS)):
        o = START + RECORD * item
        if not contact_record_rows(B, C, o, state, motion, out, offset + integer(C, o + ROW) * stride, stride, np.inf):
            return item
    return -1


@entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], int64, float64[::1])")
def contact_rows_entry(B, C, q, v, a, states, out):
    """A, A a + Ȧq̇ and f of `states` states by rows, flat. Returns −1; −2 for invalid input or results not finite; or
    state · contacts + contact for a contact without closest points.
    """
    nq = size_q(B)
    nv = size_v(B)
    if not (positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, a, states)):
        return -2
    W = np.empty(SIZE * node_count(B))
    size = integer(C, ROWS) * (nv + 2)
    for s in range(states):
        node_motion(B, q, s * nq, v, a, s * nv, 2, True, W)
        item = contact_rows(B, C, (q, s * nq, v, s * nv), Motion(W, SIZE, W, SIZE, _OMEGA, _ALPHA, _ACCEL, 0.0), out,
                            s * size)
        if item >= 0:
            return item + s * integer(C, ITEMS)
    return -1 if finite_range(out, 0, states * size) else -2


@entry("void(float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], float64[::1], "
       "float64[:, :, :, ::1], float64[:, :, :, ::1])", nogil=True)
def contact_changes_entry(B, C, dB, dC, q, v, a, X, out):
    """∂rows (directions, states, rows, nv + 2) along X (directions, 4, states, nv), dB and dC."""
    nv = size_v(B)
    model = np.empty(B.shape[0], dtype=np.complex128)
    contacts = np.empty(C.shape[0], dtype=np.complex128)
    x = np.empty(size_q(B), dtype=np.complex128)
    rates = np.empty(nv, dtype=np.complex128)
    acc = np.empty(nv, dtype=np.complex128)
    rows = np.empty(integer(C, ROWS) * (nv + 2), dtype=np.complex128)
    W = np.empty(SIZE * node_count(B), dtype=np.complex128)
    motion = Motion(W, SIZE, W, SIZE, _OMEGA, _ALPHA, _ACCEL, 0.0)
    for r in range(X.shape[0]):
        step_numbers(B, 0, dB[r], model)
        step_numbers(C, 0, dC[r], contacts)
        for s in range(X.shape[2]):
            step_state(B, (q, v, a), s, X[r], (x, rates, acc))
            node_motion(model, x, 0, rates, acc, 0, 2, True, W)
            contact_rows(model, contacts, (x, 0, rates, 0), motion, rows, 0)
            for i in range(rows.shape[0]):
                out[r, s, i // (nv + 2), i % (nv + 2)] = rows[i].imag / STEP


def contact_changes(bound: Bound, q: Array, v: Array, a: Array, X: Array, model: Array | None = None,
                    dB: Array | None = None, dC: Array | None = None) -> Array:
    """`contact_changes_entry` of a batch of states; dB and dC are zero by default."""
    count, contacts = len(X), bound.contacts
    B = bound.model._block if model is None else model
    out = np.empty((count, len(q), contacts.rows, bound.model.nv + 2))
    contact_changes_entry.call(B, contacts.block, np.zeros((count, len(B))) if dB is None else dB,
                               np.zeros((count, len(contacts.block))) if dC is None else dC, q.reshape(-1),
                               v.reshape(-1), a.reshape(-1), np.ascontiguousarray(X), out)
    return out
