"""Generalized momentum p = M v, and its rate without efforts, in one recursion of O(n).

`ṗ = τ + Ṁ v − b(q, v)`, where `Ṁ v − b = C̄ᵀ v − g` (M eq. 54). With S_i of body i in its own frame and H_i the momentum
of all bodies beyond joint i, p_i = S_iᵀ H_i; forces change H_i, and the joint's axes change by `Ṡ_i + ad_{V_i} S_i`, so
that `(C̄ᵀ v)_i = (Ṡ_i + ad_{V_i} S_i)ᵀ H_i`. No matrix, and no acceleration.
"""
from __future__ import annotations

from typing import NamedTuple

from numpy.typing import ArrayLike

from ..compiled.door import Call, door
from ..compiled.entry import quick_entry
from ..compiled.kernel import kernel
from ..compiled.workspace import ONE_STATE
from ..lie.spatial import add, add_cross, add_rotated, cross, rotate_back, scale, symmetric_times
from ..model.block import (
    ARMATURE, GRAVITY, INERTIA, MASS, MOMENT, RATIO, ZERO, all_finite, first_position, first_velocity, kind, layout,
    matrix, node, node_count, parent, put, put_add, put_matrix, rates_valid, six, size_q, size_v, vector,
)
from ..model.configuration import positions_valid
from ..model.inertia import Array
from ..model.joint_kinds import (
    dof, has_quaternion, is_free, is_revolute, joint_pose, joint_twist, project, rates, slope_dual, varies,
)
from ..model.robot_model import RobotModel
from ..model.state import shaped
from .inverse import add_to_parent

# per node: pose; twist of the parent, in the node's axes, and of the node; gravity; momentum, mass and first moment of
# all bodies beyond the joint
_R, _P, _OMEGA_P, _V_P, _OMEGA, _V, _G, _N, _F, _MASS, _C, SIZE = layout(
    R=9, p=3, omega_p=3, v_p=3, omega=3, v=3, g=3, n=3, f=3, mass=1, c=3)


@kernel
def momentum_recursion(B, q, v, W, turning, p, rate):
    """p = ∂L/∂v = M v (nv,) and its rate without efforts, under gravity.

    turning: True: `C̄ᵀ v − g`. False: ∂L/∂q along the group, the rate of p apart from its change of axes: a joint motion
    only changes the axes in which the parent's twist acts.
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
            velo = rotate_back(R, add_cross(vector(W, SIZE * h + _V), above, x))
            gravity = vector(W, SIZE * h + _G)
        put_matrix(W, w + _R, R)
        put(W, w + _P, x)
        if is_revolute(kind(B, o)):
            omega = (omega[0], omega[1], omega[2] + B[o + RATIO] * v[first_velocity(B, o)])
        else:
            put(W, w + _OMEGA_P, omega)
            put(W, w + _V_P, velo)
            omega_r, velo_r = joint_twist(B, o, q, iq, v, first_velocity(B, o))
            omega = add(omega, omega_r)
            velo = add(velo, velo_r)
        put(W, w + _OMEGA, omega)
        put(W, w + _V, velo)
        put(W, w + _G, rotate_back(R, gravity))
        m = B[o + MASS]
        c = vector(B, o + MOMENT)
        put(W, w + _N, add_cross(symmetric_times(six(B, o + INERTIA), omega), c, velo))
        put(W, w + _F, add_cross(scale(m, velo), omega, c))
        W[w + _MASS] = m
        put(W, w + _C, c)
    for i in range(size_v(B)):
        p[i] = 0.0
        rate[i] = 0.0
    for i in range(n - 1, -1, -1):
        o = node(i)
        w = SIZE * i
        iv = first_velocity(B, o)
        t = kind(B, o)
        N = vector(W, w + _N)
        F = vector(W, w + _F)
        m = W[w + _MASS]
        c = vector(W, w + _C)
        gravity = vector(W, w + _G)
        if is_revolute(t):    # of its own twist the z axis feels nothing
            omega = vector(W, w + _OMEGA)
            velo = vector(W, w + _V)
            r = B[o + RATIO]
            p[iv] += r * N[2] + B[o + ARMATURE] * v[iv]
            rate[iv] += r * (c[0] * gravity[1] - c[1] * gravity[0] + N[0] * omega[1] - N[1] * omega[0]
                             + F[0] * velo[1] - F[1] * velo[0])
        else:
            iq = first_position(B, o)
            own = turning or varies(t)    # the joint's own twist turns its axes; plain coordinates: also in ∂L/∂q
            omega = vector(W, w + _OMEGA) if own else vector(W, w + _OMEGA_P)
            velo = vector(W, w + _V) if own else vector(W, w + _V_P)
            torque = add_cross(add_cross(cross(c, gravity), N, omega), F, velo)
            project(B, o, q, iq, N, F, p, iv)
            project(B, o, q, iq, torque, add_cross(scale(m, gravity), F, omega), rate, iv)
            if varies(t):    # S depends on q
                e = slope_dual(B, o, q, iq, rates(t, v, iv), N, F)
                for d in range(dof(t)):
                    rate[iv + d] += e[d]
            for d in range(dof(t)):
                p[iv + d] += B[o + ARMATURE + d] * v[iv + d]
            if not turning and is_free(t):    # at constant velocity of the position, not of the body
                put_add(rate, iv, cross(F, vector(v, iv + 3)))
            if not turning and has_quaternion(t):    # rotors add inertia to the coordinates, no gyroscopic moments
                spin = vector(v, iv)
                for d in range(0, dof(t), 3):
                    a = (B[o + ARMATURE + d] * v[iv + d], B[o + ARMATURE + d + 1] * v[iv + d + 1],
                         B[o + ARMATURE + d + 2] * v[iv + d + 2])
                    put_add(rate, iv + d, cross(spin, a))
        h = parent(B, o)
        if h >= 0:
            R = matrix(W, w + _R)
            x = vector(W, w + _P)
            y = SIZE * h
            add_to_parent(W, y + _N, R, x, N, F)
            W[y + _MASS] += m
            put_add(W, y + _C, add_rotated(scale(m, x), R, c))


@kernel
def add_wrench_efforts(B, q, wrench, W, rate):
    """Add `Sᵀ` wrenches in node frames (6 n,) to rate (nv,). W: of `momentum_recursion` at q; its momenta are
    overwritten.
    """
    for i in range(node_count(B)):
        put(W, SIZE * i + _N, vector(wrench, 6 * i))
        put(W, SIZE * i + _F, vector(wrench, 6 * i + 3))
    for i in range(node_count(B) - 1, -1, -1):
        o = node(i)
        w = SIZE * i
        N = vector(W, w + _N)
        F = vector(W, w + _F)
        project(B, o, q, first_position(B, o), N, F, rate, first_velocity(B, o))
        h = parent(B, o)
        if h >= 0:
            add_to_parent(W, SIZE * h + _N, matrix(W, w + _R), vector(W, w + _P), N, F)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])")
def momentum_entry(B, q, v, W, momentum, rate):
    """p and `C̄ᵀ v − g` of as many states as v has; False if an input is invalid or a result not finite."""
    nq = size_q(B)
    nv = size_v(B)
    states = momentum.shape[0] // max(nv, 1)
    if not (positions_valid(B, q, states) and rates_valid(B, v, states)):
        return False
    for s in range(states):
        rows = slice(s * nv, s * nv + nv)
        momentum_recursion(B, q[s * nq:s * nq + nq], v[rows], W, True, momentum[rows], rate[rows])
    return all_finite(momentum) and all_finite(rate)


ONE_STATE.takes(lambda nodes, columns, nv: SIZE * nodes)


class GeneralizedMomentum(NamedTuple):
    """momentum p = M v (nv,) or (N, nv), N m s or N s; rate: of it without efforts, so that ṗ = τ + rate, N m or N."""

    momentum: Array
    rate: Array


_door = door("generalized_momentum", Call(momentum_entry, "B q v W > >", lambda model: [(model.nv,), (model.nv,)],
                                          GeneralizedMomentum))


def generalized_momentum(model: RobotModel, q: ArrayLike, v: ArrayLike) -> GeneralizedMomentum:
    """Generalized momentum `M v`, rotors included, and its rate `C̄ᵀ v − g` without efforts, in O(n).

    q (nq,) or (N, nq), v (nv,) or (N, nv). Under efforts τ, external ones included and friction taken off, `ṗ = τ +
    rate` (De Luca and Mattone 2003). Raises `RbdError` for wrong shapes and non-finite numbers.

        >>> model = rbd.sample("two_link")
        >>> rbd.generalized_momentum(model, [0.0, 0.0], [1.0, 0.0]).momentum.round(3)
        array([0.667, 0.208])
    """
    if (result := _door(model, q, v)) is not None:
        return result    # type: ignore[no-any-return]
    inputs = shaped(model, positions={"q": q}, rates={"v": v})
    momentum, rate = inputs.empty(model.nv), inputs.empty(model.nv)
    if not momentum_entry.call(model._block, *inputs.flat, model._work, momentum.reshape(-1), rate.reshape(-1)):
        inputs.refuse(momentum=momentum, rate=rate)
    return GeneralizedMomentum(momentum, rate)
