"""Derivatives of inverse dynamics by q, q̇ and q̈: K Table 5 for all coordinates at once, O(n · depth).

Pairs of coordinates on different branches have zero derivatives: only supporting ancestors are visited.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..compiled.entry import entry, quick_entry
from ..compiled.kernel import kernel, sweep
from ..dynamics.friction import Friction, friction_slopes_at
from ..dynamics.inverse import inverse_dynamics
from ..lie.spatial import add_cross, add_rotated, dot, rotate_back, scale, symmetric_times, unit
from ..model.block import (
    ARMATURE, all_finite, first_position, kind, matrix, node, node_count, parent, rates_valid, six, size_q, size_v,
    vector,
)
from ..model.configuration import positions_valid
from ..model.inertia import Array
from ..model.joint_kinds import dof, slope_dual, varies
from ..model.robot_model import RobotModel
from ..model.state import node_wrenches, shaped
from ..compiled.door import Call, Shape, door
from ..compiled.workspace import ONE_STATE
from .columns import (
    B_HAT, COLUMN, COMPOSITE, FIRST_MOMENT, FORCE, MOMENT_O, NODE_SIZE, PSI, PSI2, TOTAL, XI, H, I, P, R, S,
    acceleration_columns, count_columns, motion_sweep,
)


class InverseDerivatives(NamedTuple):
    """∂τ by `q` (along the tangent of `integrate`), `v` and `a` (the mass matrix): (nv, nv) each, or (N, nv, nv).

    Row i belongs to the effort, column j to the coordinate by which it is derived.
    """

    q: Array
    v: Array
    a: Array


@kernel
def pair_dot(x, y, A, k):
    """`x · A[k:k + 3] + y · A[k + 3:k + 6]`."""
    return dot(x, vector(A, k)) + dot(y, vector(A, k + 3))


@kernel
def derivative_columns(B, q, k, work, composed, out, row, column):
    """Backward recursion: add ∂τ/∂q, ∂τ/∂q̇ and, unless W holds composite bodies already, ∂τ/∂q̈ to the arrays `out`.

    These are flat, with entry (i, j) at `row * i + column * j`. work: (W, L, T) of `motion_sweep`.
    """
    W, L, T = work
    by_q, by_v, by_a = out
    n = node_count(B)
    last = T.shape[0] - n
    for i in range(n - 1, -1, -1):
        o = node(i)
        w = NODE_SIZE * i
        t = kind(B, o)
        m = W[w + TOTAL]
        c = vector(W, w + FIRST_MOMENT)
        J = six(W, w + I)
        B_hat = matrix(W, w + B_HAT)
        h = scale(2.0, vector(W, w + H))
        moment = vector(W, w + MOMENT_O)
        force = vector(W, w + FORCE)
        end = T[last + i]
        begin = end - dof(t) + 1
        for y in range(begin, end + 1):
            ly = COLUMN * y
            iy = T[2 * y]
            sa = vector(L, ly + S)
            sl = vector(L, ly + S + 3)
            ma = add_cross(symmetric_times(J, sa), c, sl)    # Î s
            ml = add_cross(scale(m, sl), sa, c)
            g = add_cross(rotate_back(B_hat, sa), h, sl)    # B̂ᵀ s
            x1 = vector(L, ly + XI)
            x2 = vector(L, ly + XI + 3)
            va = add_cross(add_rotated(symmetric_times(J, x1), B_hat, sa), c, x2)    # Î Ξ + B̂ s
            vl = add_cross(add_cross(scale(m, x2), x1, c), sa, h)
            x1 = vector(L, ly + PSI2)
            x2 = vector(L, ly + PSI2 + 3)
            psi = vector(L, ly + PSI)
            qa = add_cross(add_rotated(symmetric_times(J, x1), B_hat, psi), c, x2)    # Î Ψ̈ + B̂ Ψ̇
            ql = add_cross(add_cross(scale(m, x2), x1, c), psi, h)
            if not composed:
                by_a[row * iy + column * iy] += B[o + ARMATURE + y - begin]
            for x in range(begin, end + 1):
                lx = COLUMN * x
                ix = T[2 * x]
                by_q[row * ix + column * iy] += pair_dot(qa, ql, L, lx + S)
                by_v[row * ix + column * iy] += pair_dot(va, vl, L, lx + S)
                if not composed:
                    by_a[row * ix + column * iy] += pair_dot(ma, ml, L, lx + S)
            # the wrench on the ancestors moves with the bodies: − ad*_s F
            qa = add_cross(add_cross(qa, sa, moment), sl, force)
            ql = add_cross(ql, sa, force)
            x = T[2 * begin + 1]
            while x >= 0:
                lx = COLUMN * x
                ix = T[2 * x]
                ta = vector(L, lx + S)
                tl = vector(L, lx + S + 3)
                force_q = dot(qa, ta) + dot(ql, tl)
                force_v = dot(va, ta) + dot(vl, tl)
                mass = dot(ma, ta) + dot(ml, tl)
                motion_q = dot(g, vector(L, lx + PSI)) + pair_dot(ma, ml, L, lx + PSI2)
                motion_v = dot(g, ta) + pair_dot(ma, ml, L, lx + XI)
                by_q[row * ix + column * iy] += force_q
                by_v[row * ix + column * iy] += force_v
                by_q[row * iy + column * ix] += motion_q
                by_v[row * iy + column * ix] += motion_v
                if not composed:
                    by_a[row * ix + column * iy] += mass
                    by_a[row * iy + column * ix] += mass
                x = T[2 * x + 1]
            if varies(t):    # ∂Sᵀ times the wrench about the node's origin, in its axes
                E = matrix(W, w + R)
                iq = k + first_position(B, o)
                f = slope_dual(B, o, q, iq, unit(y - begin, q[iq]), rotate_back(
                    E, add_cross(moment, force, vector(W, w + P))), rotate_back(E, force))
                for d in range(dof(t)):
                    by_q[row * T[2 * (begin + d)] + column * iy] += f[d]
        b = parent(B, o)
        if b >= 0 and not composed:
            b = NODE_SIZE * b + TOTAL
            for x in range(COMPOSITE):
                W[b + x] += W[w + TOTAL + x]


@kernel
def inverse_derivatives(B, q, k, v, a, j, wrenches, work, out):
    """One state: three nv × nv matrices. wrenches and work as in `motion_sweep`."""
    by_q, by_v, by_a = out
    nv = size_v(B)
    z = 0.0 * B[0]
    for y in range(nv):
        for x in range(nv):
            by_q[y, x] = z
            by_v[y, x] = z
            by_a[y, x] = z
    motion_sweep(B, q, k, v, j, a, j, True, wrenches, work)
    acceleration_columns(B, q, k, v, j, a, j, work[0], work[1])
    derivative_columns(B, q, k, work, False, (by_q.reshape(-1), by_v.reshape(-1), by_a.reshape(-1)), nv, 1)


@sweep
def inverse_derivatives_states(B, q, v, a, wrench, states, work, out):
    """Evaluate `states` states in a loop."""
    nodes = node_count(B)
    nv = size_v(B)
    for s in range(states):
        inverse_derivatives(B, q, s * size_q(B), v, a, s * nv, (wrench, 6 * nodes * s), work,
                            (out[3 * s], out[3 * s + 1], out[3 * s + 2]))


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[:, ::1], "
             "float64[:, ::1], float64[:, ::1])")
def inverse_derivatives_entry(B, q, v, a, work, by_q, by_v, by_a):
    """Validate and evaluate one state. Returns False for invalid input or a non-finite result."""
    if not (positions_valid(B, q, 1) and rates_valid(B, v, 1) and rates_valid(B, a, 1)):
        return False
    nodes = node_count(B)
    count = count_columns(B)
    L = work[NODE_SIZE * nodes:]
    T = L[COLUMN * count:(COLUMN + 2) * count + nodes].view(np.int64)
    inverse_derivatives(B, q, 0, v, a, 0, (B[:0], 0), (work, L, T), (by_q, by_v, by_a))
    return all_finite(by_q.reshape(-1)) and all_finite(by_v.reshape(-1)) and all_finite(by_a.reshape(-1))


@entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], int64, float64[:, :, ::1])",
       nogil=True)
def inverse_derivatives_batch(B, q, v, a, wrench, states, out):
    """Validate and evaluate `states` states; out (3·N, nv, nv). Returns as the entry."""
    if not (positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, a, states)):
        return False
    nodes = node_count(B)
    count = count_columns(B)
    work = (np.empty(NODE_SIZE * nodes), np.empty(COLUMN * count), np.empty(2 * count + nodes, np.int64))
    inverse_derivatives_states(B, q, v, a, wrench, states, work, out)
    return all_finite(out.reshape(-1))


ONE_STATE.takes(lambda nodes, columns, nv: (NODE_SIZE + 1) * nodes + (COLUMN + 2) * columns)


def matrices(model: RobotModel) -> list[Shape]:
    """Shapes of the derivatives by q, v and a third quantity."""
    return [(model.nv, model.nv)] * 3


_door = door("inverse_dynamics_derivatives", Call(inverse_derivatives_entry, "B q v a W > > >", matrices,
                                                  InverseDerivatives))


def inverse_dynamics_derivatives(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                                 external_wrenches: Any = None, *,
                                 friction: Friction | None = None) -> InverseDerivatives:
    """Derivatives (nv, nv) or (N, nv, nv) of `inverse_dynamics` by q, v and a: K Table 5 for p = q, q̇, q̈.

    By q on the tangent space: column j is the derivative of τ(integrate(q, δ e_j), v, a) at δ = 0 (N m/rad, N/m, …).
    Arguments, including friction, and errors as of `inverse_dynamics`; external wrenches are constant in the frames of
    their links.

        >>> model = rbd.sample("two_link")
        >>> rbd.inverse_dynamics_derivatives(model, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]).a.round(3)    # the mass matrix
        array([[0.667, 0.208],
               [0.208, 0.083]])
    """
    if external_wrenches is None and friction is None and (result := _door(model, q, v, a)) is not None:
        return result    # type: ignore[no-any-return]
    if friction is not None:
        bare = inverse_dynamics_derivatives(model, q, v, a, external_wrenches)
        slope, gain = friction_slopes_at(model, friction, v, inverse_dynamics(model, q, v, a, external_wrenches))
        return InverseDerivatives(gain[..., None] * bare.q,
                                  gain[..., None] * bare.v + np.eye(model.nv) * slope[..., None, :],
                                  gain[..., None] * bare.a)
    inputs = shaped(model, positions={"q": q}, rates={"v": v, "a": a})
    nv = model.nv
    out = inputs.empty(3, nv, nv)
    if not inverse_derivatives_batch.call(
            model._block, *inputs.flat, node_wrenches(model, external_wrenches, inputs.batch), inputs.count,
            out.reshape(3 * inputs.count, nv, nv)):
        inputs.refuse(derivatives=out)
    return InverseDerivatives(out[..., 0, :, :], out[..., 1, :, :], out[..., 2, :, :])
