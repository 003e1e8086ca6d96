"""Kernels of the variational integrator: momentum and force of a tree from its Lagrangian, motion on the group.
"""
from __future__ import annotations

from ..compiled.kernel import kernel, routine, sweep
from ..lie.so3 import right_jacobian
from ..lie.spatial import add, cross, rotate, rotate_back, scale, sub, symmetric_times
from ..lie.steps import axes_at, turn
from ..model.block import (
    ARMATURE, GRAVITY, INERTIA, MASS, MOMENT, OWNER, ZERO, first_position, first_velocity, kind, layout, matrix, node,
    node_count, parent, put, put_add, put_matrix, six, size_v, vector,
)
from ..model.joint_kinds import (
    dof, has_quaternion, is_free, joint_pose, joint_twist, project, quaternion_at, rates, slope_dual, varies,
)

# workspace of one node: pose in the parent, twist of the parent and of the node, gravity, momentum, wrench; node axes
_R, _P, _OMEGA_P, _V_P, _OMEGA, _V, _G, _N, _F, _TORQUE, _FORCE, SIZE = layout(
    R=9, p=3, omega_p=3, v_p=3, omega=3, v=3, g=3, n=3, f=3, torque=3, force=3)


@sweep
def lagrangian_recursion(B, q, v, wrench, W, p, g):
    """p = ∂L/∂v = M v and g = ∂L/∂q along the group plus `Sᵀ` wrenches: the rate of p apart from its change of axes.

    A composite body with momentum H behind a joint with columns S and a parent of twist V adds `(ad_V S)ᵀ H` to g,
    because a joint motion only changes the axes in which the parent's twist acts.
    """
    n = node_count(B)
    for i in range(n):
        o = node(i)
        w = SIZE * i
        iq = first_position(B, o)
        R, x = joint_pose(B, o, q, iq)
        h = parent(B, o)
        omega = ZERO
        velo = ZERO
        gravity = vector(B, GRAVITY)
        if h >= 0:
            above = vector(W, SIZE * h + _OMEGA)
            omega = rotate_back(R, above)
            velo = rotate_back(R, add(vector(W, SIZE * h + _V), cross(above, x)))
            gravity = vector(W, SIZE * h + _G)
        gravity = rotate_back(R, gravity)
        put_matrix(W, w + _R, R)
        put(W, w + _P, x)
        put(W, w + _OMEGA_P, omega)
        put(W, w + _V_P, velo)
        omega_r, velo_r = joint_twist(B, o, q, iq, v, first_velocity(B, o))
        omega = add(omega, omega_r)
        velo = add(velo, velo_r)
        put(W, w + _OMEGA, omega)
        put(W, w + _V, velo)
        put(W, w + _G, gravity)
        m = B[o + MASS]
        c = vector(B, o + MOMENT)
        put(W, w + _N, add(symmetric_times(six(B, o + INERTIA), omega), cross(c, velo)))
        put(W, w + _F, sub(scale(m, velo), cross(c, omega)))
        torque = cross(c, gravity)
        force = scale(m, gravity)
        if wrench.shape[0] > 0:
            torque = add(torque, vector(wrench, 6 * i))
            force = add(force, vector(wrench, 6 * i + 3))
        put(W, w + _TORQUE, torque)
        put(W, w + _FORCE, force)
    for i in range(size_v(B)):
        p[i] = 0.0
        g[i] = 0.0
    for i in range(n - 1, -1, -1):
        o = node(i)
        w = SIZE * i
        iq = first_position(B, o)
        iv = first_velocity(B, o)
        t = kind(B, o)
        N = vector(W, w + _N)
        F = vector(W, w + _F)
        torque = vector(W, w + _TORQUE)
        force = vector(W, w + _FORCE)
        omega = vector(W, w + _OMEGA_P)
        velo = vector(W, w + _V_P)
        if varies(t):    # plain coordinates: the joint's own twist counts, and S depends on q
            omega = vector(W, w + _OMEGA)
            velo = vector(W, w + _V)
            e = slope_dual(B, o, q, iq, rates(t, v, iv), N, F)
            for c in range(dof(t)):
                g[iv + c] += e[c]
        project(B, o, q, iq, N, F, p, iv)
        project(B, o, q, iq, add(torque, add(cross(N, omega), cross(F, velo))), add(force, cross(F, omega)), g, iv)
        if is_free(t):    # at constant velocity of the position, not of the body
            put_add(g, iv, cross(F, vector(v, iv + 3)))
        for c in range(dof(t)):
            p[iv + c] += B[o + ARMATURE + c] * v[iv + c]
        if has_quaternion(t):    # rotors add inertia to the coordinates, no gyroscopic moments
            spin = vector(v, iv)
            for c in range(0, dof(t), 3):
                a = (B[o + ARMATURE + c] * v[iv + c], B[o + ARMATURE + c + 1] * v[iv + c + 1],
                     B[o + ARMATURE + c + 2] * v[iv + c + 2])
                put_add(g, iv + c, cross(spin, a))
        h = parent(B, o)
        if h >= 0:
            R = matrix(W, w + _R)
            x = vector(W, w + _P)
            y = SIZE * h
            f = rotate(R, F)
            put_add(W, y + _F, f)
            put_add(W, y + _N, add(rotate(R, N), cross(x, f)))
            f = rotate(R, force)
            put_add(W, y + _FORCE, f)
            put_add(W, y + _TORQUE, add(rotate(R, torque), cross(x, f)))


@kernel
def half_step(B, q, v, half, first, out):
    """`out`: q moved by v (axes of the middle) over `half` (s), the first or the second half of a step."""
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
def mean_momentum(B, p0, p1, v, half, out):
    """`½ (J(−θ) p_0 + J(θ) p_1)`."""
    for i in range(size_v(B)):
        out[i] = 0.5 * (p0[i] + p1[i])
    for i in range(node_count(B)):
        o = node(i)
        t = kind(B, o)
        if has_quaternion(t) and B[o + OWNER].real != 0.0:
            iv = first_velocity(B, o)
            theta = scale(half, vector(v, iv))
            J = right_jacobian(theta)
            put(out, iv, scale(0.5, add(rotate_back(J, vector(p0, iv)), rotate(J, vector(p1, iv)))))


@routine
def lagrangian(B, q, v, wrench, W, p, g):
    lagrangian_recursion(B, q, v, wrench, W, p, g)
