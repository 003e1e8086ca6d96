"""Momentum and force of a tree from its Lagrangian, and motion of its state on the group: kernels of the variational
integrator.
"""
from __future__ import annotations

from ..compile import kernel, routine
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


@kernel
def lagrangian_recursion(M, q, v, wrench, W, p, g):
    """p = ∂L/∂v = M v and g = ∂L/∂q along the group plus `Sᵀ` wrenches: what moves p but for its change of axes.

    A composite body with momentum H behind a joint with columns S, seen from a parent of twist V, adds `(ad_V S)ᵀ H`
    to g: all that a motion of the joint changes is in which axes the parent's twist arrives.
    """
    n = node_count(M)
    for i in range(n):
        o = node(i)
        w = SIZE * i
        iq = first_position(M, o)
        R, x = joint_pose(M, o, q, iq)
        h = parent(M, o)
        omega = ZERO
        velo = ZERO
        gravity = vector(M, GRAVITY)
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
        omega_r, velo_r = joint_twist(M, o, q, iq, v, first_velocity(M, o))
        omega = add(omega, omega_r)
        velo = add(velo, velo_r)
        put(W, w + _OMEGA, omega)
        put(W, w + _V, velo)
        put(W, w + _G, gravity)
        m = M[o + MASS]
        c = vector(M, o + MOMENT)
        put(W, w + _N, add(symmetric_times(six(M, o + INERTIA), omega), cross(c, velo)))
        put(W, w + _F, sub(scale(m, velo), cross(c, omega)))
        torque = cross(c, gravity)
        force = scale(m, gravity)
        if wrench.shape[0] > 0:
            torque = add(torque, vector(wrench, 6 * i))
            force = add(force, vector(wrench, 6 * i + 3))
        put(W, w + _TORQUE, torque)
        put(W, w + _FORCE, force)
    for i in range(size_v(M)):
        p[i] = 0.0
        g[i] = 0.0
    for i in range(n - 1, -1, -1):
        o = node(i)
        w = SIZE * i
        iq = first_position(M, o)
        iv = first_velocity(M, o)
        t = kind(M, o)
        N = vector(W, w + _N)
        F = vector(W, w + _F)
        torque = vector(W, w + _TORQUE)
        force = vector(W, w + _FORCE)
        omega = vector(W, w + _OMEGA_P)
        velo = vector(W, w + _V_P)
        if varies(t):    # plain coordinates: the joint's own twist counts, and S depends on q
            omega = vector(W, w + _OMEGA)
            velo = vector(W, w + _V)
            e = slope_dual(M, o, q, iq, rates(t, v, iv), N, F)
            for c in range(dof(t)):
                g[iv + c] += e[c]
        project(M, o, q, iq, N, F, p, iv)
        project(M, o, q, iq, add(torque, add(cross(N, omega), cross(F, velo))), add(force, cross(F, omega)), g, iv)
        if is_free(t):    # at a given velocity of the position, not of the body
            put_add(g, iv, cross(F, vector(v, iv + 3)))
        for c in range(dof(t)):
            p[iv + c] += M[o + ARMATURE + c] * v[iv + c]
        if has_quaternion(t):    # rotors add inertia to the coordinates, no gyroscopic moments
            spin = vector(v, iv)
            for c in range(0, dof(t), 3):
                a = (M[o + ARMATURE + c] * v[iv + c], M[o + ARMATURE + c + 1] * v[iv + c + 1],
                     M[o + ARMATURE + c + 2] * v[iv + c + 2])
                put_add(g, iv + c, cross(spin, a))
        h = parent(M, o)
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
def half_step(M, q, v, half, first, out):
    """`out`: q moved by v (axes of the middle) over `half` (s), the first or the second half of a step."""
    for i in range(node_count(M)):
        o = node(i)
        if M[o + OWNER].real == 0.0:
            continue
        t = kind(M, o)
        iq = first_position(M, o)
        iv = first_velocity(M, o)
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
def turn_axes(M, p, q, back, out):
    """Momentum p from the axes of the bodies at q to those of their parents, or back. What is kept between steps is
    in the axes of the parents: there it is constant by itself, and rounding does not add up.
    """
    for i in range(node_count(M)):
        o = node(i)
        if M[o + OWNER].real == 0.0:
            continue
        t = kind(M, o)
        iv = first_velocity(M, o)
        if has_quaternion(t):
            R = axes_at(q, first_position(M, o) + quaternion_at(t))
            for c in range(0, dof(t), 3):
                a = vector(p, iv + c)
                put(out, iv + c, rotate_back(R, a) if back else rotate(R, a))
        else:
            for c in range(dof(t)):
                out[iv + c] = p[iv + c]


@kernel
def mean_momentum(M, p0, p1, v, half, out):
    """`½ (J(−θ) p_0 + J(θ) p_1)`."""
    for i in range(size_v(M)):
        out[i] = 0.5 * (p0[i] + p1[i])
    for i in range(node_count(M)):
        o = node(i)
        t = kind(M, o)
        if has_quaternion(t) and M[o + OWNER].real != 0.0:
            iv = first_velocity(M, o)
            theta = scale(half, vector(v, iv))
            J = right_jacobian(theta)
            put(out, iv, scale(0.5, add(rotate_back(J, vector(p0, iv)), rotate(J, vector(p1, iv)))))


@routine
def lagrangian(M, q, v, wrench, W, p, g):
    lagrangian_recursion(M, q, v, wrench, W, p, g)
