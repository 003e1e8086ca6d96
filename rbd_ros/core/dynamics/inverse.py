"""Inverse dynamics of trees in O(n): K Table 2, the recursive Newton–Euler algorithm (RNEA), about each node's origin.

The forward recursion has (ω, α, a): angular velocity, angular acceleration and classical acceleration of the node's
origin, in node axes, with gravity as acceleration −g of the world. That is K's (V, V̇) with `a = v̇ + ω × v`: transport
to a child needs no linear velocity, which saves a quarter of the work.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiled.entry import entry, quick_entry
from ..compiled.kernel import kernel
from ..lie.spatial import add, add_cross, add_symmetric, cross, rotate, rotate_back, scale, sub, symmetric_times
from ..model.block import (
    ARMATURE, GRAVITY, INERTIA, MASS, MOMENT, RATIO, all_finite, first_position, first_velocity, kind, layout, matrix,
    node, node_count, parent, put, put_add, put_matrix, rates_valid, six, size_q, size_v, vector, zero,
)
from ..model.configuration import positions_valid
from ..model.inertia import Array
from ..model.joint_kinds import dof, is_revolute, joint_bias, joint_pose, joint_twist, project
from ..model.robot_model import RobotModel
from ..model.state import node_wrenches, shaped
from ..compiled.door import Call, Shape, door
from ..compiled.workspace import ONE_STATE
from .friction import Friction, overcome

# workspace of one node
_R, _P, _OMEGA, _ALPHA, _ACCEL, _N, _F, SIZE = layout(R=9, p=3, omega=3, alpha=3, accel=3, n=3, f=3)


@kernel
def velocity_wrench(c, I, omega):
    """Moment and force of a body's velocity: the Newton–Euler equations without accelerations. c, I: first moment and
    inertia about the origin.
    """
    return cross(omega, symmetric_times(I, omega)), cross(omega, cross(omega, c))


@kernel
def newton_euler(m, c, I, omega, alpha, accel):
    """Moment about the origin and force that move a body; accel: of its origin."""
    moment, force = velocity_wrench(c, I, omega)
    return (add_cross(add_symmetric(moment, I, alpha), c, accel),
            add_cross(add(force, scale(m, accel)), alpha, c))


@kernel
def add_to_parent(W, k, R, p, N, F):
    """Add the wrench (N, F) on a node with pose (R, p) in its parent to the parent's, (W[k:], W[k + 3:])."""
    f = rotate(R, F)
    put_add(W, k, add_cross(rotate(R, N), p, f))
    put_add(W, k + 3, f)


@kernel
def inverse_dynamics_recursion(B, q, k, v, a, j, wrench, e, W, tau):
    """RNEA of one state q[k:], v[j:], a[j:], node wrenches wrench[e:] or empty; efforts into tau[j:]."""
    n = node_count(B)
    z = zero(B, v, j)
    for i in range(n):
        o = node(i)
        w = SIZE * i
        iq = k + first_position(B, o)
        iv = j + first_velocity(B, o)
        R, p = joint_pose(B, o, q, iq)
        h = parent(B, o)
        if h < 0:
            omega_p = (z, z, z)
            alpha_p = (z, z, z)
            accel_p = (z - B[GRAVITY], z - B[GRAVITY + 1], z - B[GRAVITY + 2])
        else:
            omega_p = vector(W, SIZE * h + _OMEGA)
            alpha_p = vector(W, SIZE * h + _ALPHA)
            accel_p = vector(W, SIZE * h + _ACCEL)
        omega = rotate_back(R, omega_p)
        alpha = rotate_back(R, alpha_p)
        accel = rotate_back(R, add_cross(add_cross(accel_p, alpha_p, p), omega_p, cross(omega_p, p)))
        if is_revolute(kind(B, o)):
            rate = B[o + RATIO] * v[iv]
            alpha = (alpha[0] + omega[1] * rate, alpha[1] - omega[0] * rate, alpha[2] + B[o + RATIO] * a[iv])
            omega = (omega[0], omega[1], omega[2] + rate)
        else:
            omega_r, velo_r = joint_twist(B, o, q, iq, v, iv)
            alpha_r, accel_r = joint_twist(B, o, q, iq, a, iv)
            bias_a, bias_l = joint_bias(B, o, q, iq, v, iv)
            alpha_r = add(alpha_r, bias_a)
            accel_r = add(accel_r, bias_l)
            accel = add_cross(add(accel, accel_r), add(scale(2.0, omega), omega_r), velo_r)
            alpha = add_cross(add(alpha, alpha_r), omega, omega_r)
            omega = add(omega, omega_r)

        moment, force = newton_euler(B[o + MASS], vector(B, o + MOMENT), six(B, o + INERTIA), omega, alpha, accel)
        if wrench.shape[0] > 0:
            moment = sub(moment, vector(wrench, e + 6 * i))
            force = sub(force, vector(wrench, e + 6 * i + 3))
        put_matrix(W, w + _R, R)
        put(W, w + _P, p)
        put(W, w + _OMEGA, omega)
        put(W, w + _ALPHA, alpha)
        put(W, w + _ACCEL, accel)
        put(W, w + _N, moment)
        put(W, w + _F, force)
    for i in range(size_v(B)):
        tau[j + i] = z
    for i in range(n - 1, -1, -1):
        o = node(i)
        w = SIZE * i
        iv = j + first_velocity(B, o)
        N = vector(W, w + _N)
        F = vector(W, w + _F)
        t = kind(B, o)
        if is_revolute(t):
            tau[iv] += B[o + RATIO] * N[2] + B[o + ARMATURE] * a[iv]
        else:
            project(B, o, q, k + first_position(B, o), N, F, tau, iv)
            for c in range(dof(t)):
                tau[iv + c] += B[o + ARMATURE + c] * a[iv + c]
        h = parent(B, o)
        if h >= 0:
            add_to_parent(W, SIZE * h + _N, matrix(W, w + _R), vector(W, w + _P), N, F)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])")
def inverse_dynamics_entry(B, q, v, a, W, tau):
    """`inverse_dynamics` of one state; False for invalid input or a result that is not finite."""
    if not (positions_valid(B, q, 1) and rates_valid(B, v, 1) and rates_valid(B, a, 1)):
        return False
    inverse_dynamics_recursion(B, q, 0, v, a, 0, W[:0], 0, W, tau)
    return all_finite(tau)


@entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], int64, float64[::1])", nogil=True)
def inverse_dynamics_batch(B, q, v, a, wrench, states, tau):
    """`inverse_dynamics` of `states` states, wrenches in node frames or empty; returns as `inverse_dynamics_entry`."""
    if not (positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, a, states)):
        return False
    nodes = node_count(B)
    W = np.empty(SIZE * nodes)
    for s in range(states):
        inverse_dynamics_recursion(B, q, s * size_q(B), v, a, s * size_v(B), wrench, 6 * nodes * s, W, tau)
    return all_finite(tau)


ONE_STATE.takes(lambda nodes, columns, nv: SIZE * nodes)


def _effort(model: RobotModel) -> list[Shape]:
    return [(model.nv,)]


_inverse = door("inverse_dynamics", Call(inverse_dynamics_entry, "B q v a W >", _effort))
_bias = door("bias_effort", Call(inverse_dynamics_entry, "B q v 0 W >", _effort))
_gravity = door("gravity_effort", Call(inverse_dynamics_entry, "B q 0 0 W >", _effort))


def inverse_dynamics(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                     external_wrenches: Any = None, *, friction: Friction | None = None) -> Array:
    """Joint efforts τ (nv,) or (N, nv) that give accelerations a at (q, v): K Table 2, eq. 42, O(n).

    The recursive Newton–Euler algorithm (RNEA; Luh, Walker and Paul 1980). q (nq,) or (N, nq); v, a (nv,) or (N, nv);
    rad, m, s. external_wrenches: `{body: (6,)}` or (nb, 6), moment first, acting on the body, in its URDF link frame; a
    batch adds a leading axis. Rotor inertia of the model is included; joint friction only with
    friction=joint_friction(model). Raises `RbdError` for wrong shapes, names or non-finite numbers, and, as all
    functions, for states so large that results overflow.

        >>> model = rbd.sample("two_link")
        >>> rbd.inverse_dynamics(model, [0.3, 0.5], [0.0, 0.0], [1.0, 2.0]).round(3)
        array([4.956, 2.119])
    """
    if external_wrenches is None and friction is None and (tau := _inverse(model, q, v, a)) is not None:
        return tau
    if friction is not None:
        return overcome(model, friction, v, inverse_dynamics(model, q, v, a, external_wrenches))
    inputs = shaped(model, positions={"q": q}, rates={"v": v, "a": a})
    tau = inputs.empty(model.nv)
    wrenches = node_wrenches(model, external_wrenches, inputs.batch)
    if not inverse_dynamics_batch.call(model._block, *inputs.flat, wrenches, inputs.count, tau.reshape(-1)):
        inputs.refuse(effort=tau)
    return tau


def bias_effort(model: RobotModel, q: ArrayLike, v: ArrayLike, external_wrenches: Any = None) -> Array:
    """Bias efforts `b(q, v)` of `τ = M a + b` (K eq. 32): (nv,) or (N, nv); RNEA with a = 0.

        >>> model = rbd.sample("two_link")
        >>> rbd.bias_effort(model, [0.0, 0.0], [1.0, 0.0]).round(3)
        array([0., 0.])
    """
    if external_wrenches is None and (bias := _bias(model, q, v)) is not None:
        return bias
    return inverse_dynamics(model, q, v, getattr(model, "_zeros", ()), external_wrenches)


def gravity_effort(model: RobotModel, q: ArrayLike) -> Array:
    """Gravity compensation efforts at q: (nv,) or (N, nv), N m or N; RNEA with v = a = 0.

        >>> model = rbd.sample("two_link")
        >>> rbd.gravity_effort(model, [0.0, 0.0]).round(3)
        array([0., 0.])
    """
    if (gravity := _gravity(model, q)) is not None:
        return gravity
    zeros = getattr(model, "_zeros", ())    # `inverse_dynamics` raises if `model` is not one
    return inverse_dynamics(model, q, zeros, zeros)
