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
from ..lie.spatial import add, cross, rotate, rotate_back, scale, sub, symmetric_times
from ..model.block import (
    ARMATURE, GRAVITY, INERTIA, MASS, MOMENT, all_finite, first_position, first_velocity, kind, layout, matrix, node,
    node_count, parent, put, put_add, put_matrix, rates_valid, six, size_q, size_v, vector, zero,
)
from ..model.configuration import positions_valid
from ..model.inertia import Array
from ..model.joint_kinds import dof, joint_pose, joint_twist, project, rates, slope_dual, varies
from ..model.robot_model import RobotModel
from ..model.state import shaped

# per node: pose, twist (ω, u), acceleration −g of the world, momentum (L, P) about the origin, gravity's (N, F)
_R, _P, _OMEGA, _U, _G, _L, _LINEAR, _N, _F, SIZE = layout(R=9, p=3, omega=3, u=3, g=3, L=3, linear=3, n=3, f=3)


@kernel
def momentum_recursion(B, q, k, v, j, W, momentum, rate):
    """p and `C̄ᵀ v − g` of one state q[k:], v[j:] into momentum[j:] and rate[j:]."""
    n = node_count(B)
    z = zero(B, v, j)
    for i in range(n):
        o = node(i)
        w = SIZE * i
        iq = k + first_position(B, o)
        R, p = joint_pose(B, o, q, iq)
        omega_r, u_r = joint_twist(B, o, q, iq, v, j + first_velocity(B, o))
        h = parent(B, o)
        if h < 0:
            omega = omega_r
            u = u_r
            g = rotate_back(R, (z - B[GRAVITY], z - B[GRAVITY + 1], z - B[GRAVITY + 2]))
        else:
            x = SIZE * h
            omega_p = vector(W, x + _OMEGA)
            omega = add(rotate_back(R, omega_p), omega_r)
            u = add(rotate_back(R, add(vector(W, x + _U), cross(omega_p, p))), u_r)
            g = rotate_back(R, vector(W, x + _G))
        m = B[o + MASS]
        c = vector(B, o + MOMENT)
        put_matrix(W, w + _R, R)
        put(W, w + _P, p)
        put(W, w + _OMEGA, omega)
        put(W, w + _U, u)
        put(W, w + _G, g)
        put(W, w + _L, add(symmetric_times(six(B, o + INERTIA), omega), cross(c, u)))
        put(W, w + _LINEAR, sub(scale(m, u), cross(c, omega)))
        put(W, w + _N, cross(c, g))
        put(W, w + _F, scale(m, g))
    for i in range(size_v(B)):
        momentum[j + i] = z
        rate[j + i] = z
    for i in range(n - 1, -1, -1):
        o = node(i)
        w = SIZE * i
        iq = k + first_position(B, o)
        iv = j + first_velocity(B, o)
        omega = vector(W, w + _OMEGA)
        L = vector(W, w + _L)
        P = vector(W, w + _LINEAR)
        project(B, o, q, iq, L, P, momentum, iv)
        for d in range(dof(kind(B, o))):
            momentum[iv + d] += B[o + ARMATURE + d] * v[iv + d]
        # ad_V* (L, P), less gravity
        N = sub(add(cross(L, omega), cross(P, vector(W, w + _U))), vector(W, w + _N))
        F = sub(cross(P, omega), vector(W, w + _F))
        project(B, o, q, iq, N, F, rate, iv)
        if varies(kind(B, o)):
            turned = slope_dual(B, o, q, iq, rates(kind(B, o), v, iv), L, P)
            for d in range(dof(kind(B, o))):
                rate[iv + d] += turned[d]
        h = parent(B, o)
        if h >= 0:
            x = SIZE * h
            R = matrix(W, w + _R)
            p = vector(W, w + _P)
            f = rotate(R, P)
            put_add(W, x + _LINEAR, f)
            put_add(W, x + _L, add(rotate(R, L), cross(p, f)))
            f = rotate(R, vector(W, w + _F))
            put_add(W, x + _F, f)
            put_add(W, x + _N, add(rotate(R, vector(W, w + _N)), cross(p, f)))


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])")
def momentum_entry(B, q, v, W, momentum, rate):
    """p and `C̄ᵀ v − g` of as many states as v has; False if an input is invalid or a result not finite."""
    nq = size_q(B)
    nv = size_v(B)
    states = momentum.shape[0] // max(nv, 1)
    if not (positions_valid(B, q, states) and rates_valid(B, v, states)):
        return False
    for s in range(states):
        momentum_recursion(B, q, s * nq, v, s * nv, W, momentum, rate)
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
    if (found := _door(model, q, v)) is not None:
        return found    # type: ignore[no-any-return]
    inputs = shaped(model, positions={"q": q}, rates={"v": v})
    momentum, rate = inputs.empty(model.nv), inputs.empty(model.nv)
    if not momentum_entry.call(model._block, *inputs.flat, model._work, momentum.reshape(-1), rate.reshape(-1)):
        inputs.refuse(momentum=momentum, rate=rate)
    return GeneralizedMomentum(momentum, rate)
