"""Kernels of the variational integrator: motion and momentum on the group."""
from __future__ import annotations

from ..compiled.assign import assign
from ..compiled.kernel import kernel
from ..lie.so3 import right_jacobian
from ..lie.spatial import add, rotate, rotate_back, scale
from ..lie.steps import axes_at, turn
from ..model.block import OWNER, first_position, first_velocity, kind, node, node_count, put, size_v, vector
from ..model.joint_kinds import dof, has_quaternion, is_free, quaternion_at


@kernel
def half_step(B, q, v, half, first, out):
    """`out`: q moved by v (axes of the middle) over `half` (s), the first or the second half of a step."""
    if q.shape[0] == v.shape[0]:    # plain coordinates
        for i in range(v.shape[0]):
            out[i] = q[i] + half * v[i]
        return
    for i in range(node_count(B)):
        o = node(i)
        if B[o + OWNER].real == 0.0:
            continue
        t = kind(B, o)
        iq = first_position(B, o)
        iv = first_velocity(B, o)
        if has_quaternion(t):
            k = iq + quaternion_at(t)
            R = axes_at(q, k)
            turn(q, k, scale(half, vector(v, iv)), out)
            if is_free(t):
                if first:
                    R = axes_at(out, k)
                put(out, iq, add(vector(q, iq), scale(half, rotate(R, vector(v, iv + 3)))))
        else:
            for c in range(dof(t)):
                out[iq + c] = q[iq + c] + half * v[iv + c]


@kernel
def turn_axes(B, p, q, back, out):
    """Transform momentum p from body axes at q to parent axes, or back. Momentum is stored in parent axes between
    steps: it is constant there, without accumulation of rounding.
    """
    if q.shape[0] == p.shape[0]:    # plain coordinates
        assign(out, p)
        return
    for i in range(node_count(B)):
        o = node(i)
        if B[o + OWNER].real == 0.0:
            continue
        t = kind(B, o)
        iv = first_velocity(B, o)
        if has_quaternion(t):
            R = axes_at(q, first_position(B, o) + quaternion_at(t))
            for c in range(0, dof(t), 3):
                a = vector(p, iv + c)
                put(out, iv + c, rotate_back(R, a) if back else rotate(R, a))
        else:
            for c in range(dof(t)):
                out[iv + c] = p[iv + c]


@kernel
def mean_momentum(B, q, p0, p1, v, half, out):
    """`½ (J(−θ) p_0 + J(θ) p_1)`."""
    for i in range(size_v(B)):
        out[i] = 0.5 * (p0[i] + p1[i])
    if q.shape[0] == v.shape[0]:    # plain coordinates
        return
    for i in range(node_count(B)):
        o = node(i)
        t = kind(B, o)
        if has_quaternion(t) and B[o + OWNER].real != 0.0:
            iv = first_velocity(B, o)
            theta = scale(half, vector(v, iv))
            J = right_jacobian(theta)
            put(out, iv, scale(0.5, add(rotate_back(J, vector(p0, iv)), rotate(J, vector(p1, iv)))))
