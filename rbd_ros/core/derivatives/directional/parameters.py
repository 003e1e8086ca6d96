"""Derivatives of a node by model parameters: the kernel side of a `Tangent`.

One flat array per direction: the change of gravity (3), a record per node, and coefficients of cams as they lie behind
the nodes of the packed model.
"""
from __future__ import annotations

from ...compiled.kernel import kernel, routine
from ...lie.polynomial_series import polynomial
from ...lie.spatial import compose, cross, rotate_back, scale, sub
from ...model.block import (
    HEADER, NODE, OFFSET, PITCH, POSITION, RATIO, ROTATION, integer, kind, layout, matrix, node_count, vector,
)
from ...model.joint_kinds import CAM, advance, has_axis, screw
from .twists import pair, plus, times, to_child

D_GRAVITY, HEAD = 0, 3
# whether anything of it changes; T⁻¹∂T of the placement, in the node's axes at zero; ∂ of its screw s, T = exp(ŝ x), at
# x = ratio q + offset; of ratio and offset; of the inertia: m, m c (3), xx, xy, xz, yy, yz, zz; of the rotor's
CHANGED, PLACEMENT, SCREW, D_RATIO, D_OFFSET, D_INERTIA, D_ARMATURE, RECORD = layout(
    changed=1, placement=6, screw=6, ratio=1, offset=1, inertia=10, armature=6)


@kernel
def turned_back(E, p, o, B, x):
    """`Ad_{T_J⁻¹} x` for the motion T_J of the joint: its pose (E, p) without its place."""
    E0 = matrix(B, o + ROTATION)
    E_J = compose((E0[0], E0[3], E0[6], E0[1], E0[4], E0[7], E0[2], E0[5], E0[8]), E)
    return to_child(E_J, rotate_back(E0, sub(p, vector(B, o + POSITION))), x)


@kernel
def screw_motion(x, turned, w, u):
    """∂h of a screw about z (turned) or along z, whose s changes by (w, u): `∫₀ˣ Ad_exp(−s y) (w, u) dy`; about z, w
    and u are along z.
    """
    if turned != 0.0:
        return scale(x, w), scale(x, u)
    z = 0.0 * x
    return scale(x, w), sub(scale(x, u), scale(0.5 * x * x, cross((z, z, z + 1.0), w)))


@kernel
def curve_change(B, o, D, d0, i, x):
    """∂ of derivative i of a cam's advance at x, from its coefficients."""
    n = node_count(B)
    return polynomial(D, d0 + HEAD + RECORD * n + integer(B, o + PITCH) - HEADER - NODE * n, i, x)


@kernel
def axis_change(B, o, q, iq, D, d, d0):
    """∂S of a node with an axis."""
    z = 0.0 * q[iq]
    r = B[o + RATIO]
    turned, slid = screw(B, o, q, iq, kind(B, o))
    w, u = times(r, pair(D, d + SCREW))
    bend = z
    if kind(B, o) == CAM:
        dx = D[d + D_RATIO] * q[iq] + D[d + D_OFFSET]
        bend = r * (advance(B, o, q, iq, 2) * dx + curve_change(B, o, D, d0, 1, r * q[iq] + B[o + OFFSET]))
    return ((w[0], w[1], w[2] + D[d + D_RATIO] * turned),
            (u[0], u[1], u[2] + D[d + D_RATIO] * slid + bend))


@routine
def parameter_column(B, o, q, iq, D, d, d0):
    """∂S of its only column, or zero."""
    if has_axis(kind(B, o)):
        return axis_change(B, o, q, iq, D, d, d0)
    z = 0.0 * q[iq]
    return (z, z, z), (z, z, z)


@routine
def parameter_changes(B, o, q, iq, v, a, iv, D, d, d0, E, p):
    """∂h, ∂(S q̇) and ∂(S q̈ + Ṡ q̇) of a node with pose (E, p) that the record D[d:] causes."""
    z = 0.0 * q[iq]
    still = ((z, z, z), (z, z, z))
    dh = turned_back(E, p, o, B, pair(D, d + PLACEMENT))
    t = kind(B, o)
    if not has_axis(t):
        return dh, still, still
    r = B[o + RATIO]
    x = r * q[iq] + B[o + OFFSET]
    dx = D[d + D_RATIO] * q[iq] + D[d + D_OFFSET]
    turned, slid = screw(B, o, q, iq, t)
    dh = plus(dh, screw_motion(x, turned, vector(D, d + SCREW), vector(D, d + SCREW + 3)))
    dh = plus(dh, ((z, z, dx * turned), (z, z, dx * slid)))
    s = axis_change(B, o, q, iq, D, d, d0)
    acc = times(a[iv], s)
    if t == CAM:
        dh = plus(dh, ((z, z, z), (z, z, curve_change(B, o, D, d0, 0, x))))
        bend = 2.0 * r * D[d + D_RATIO] * advance(B, o, q, iq, 2) + r * r * (
            advance(B, o, q, iq, 3) * dx + curve_change(B, o, D, d0, 2, x))
        acc = plus(acc, ((z, z, z), (z, z, bend * v[iv] * v[iv])))
    return dh, times(v[iv], s), acc
