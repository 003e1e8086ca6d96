"""Derivatives of forward and hybrid dynamics (ABA) from those of RNEA: `∂q̈ = −M⁻¹ ∂ID` (K eq. 33, 34 differentiated).

One pass gives composite bodies, the mass matrix and the bias; the factors of the mass matrix give the accelerations,
which enter Ψ̈ and the composite wrenches only; then ∂ID, and the solution for all its columns.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..compiled.entry import entry, quick_entry
from ..compiled.kernel import kernel, routine
from ..dynamics.friction import Friction, friction_slopes_at, left_over
from ..dynamics.singular import completed, singular_coordinate, solved, wrenches_of
from ..lie.spatial import add, add_cross, dot, scale, symmetric_times
from ..model.block import (
    ARMATURE, all_finite, kind, node, node_count, parent, put, put_add, rates_valid, six, size_q, size_v, vector, zero,
)
from ..model.configuration import positions_valid
from ..model.inertia import Array
from ..model.joint_kinds import dof
from ..model.robot_model import RobotModel
from ..model.state import node_wrenches, shaped
from ..compiled.door import Call, door
from ..compiled.workspace import ONE_STATE
from .columns import (
    ACCEL, ALPHA, COLUMN, COMPOSITE, FIRST_MOMENT, FORCE, MOMENTUM, MOMENT_O, NODE_SIZE, TOTAL, I, S,
    acceleration_columns, count_columns, motion_sweep, put_pair,
)
from .mass_factors import (
    PARTS, RECORD, branches, effort_rows, factor, given_columns, pitch, row_length, solve_rows, solve_vector,
)
from .inverse import derivative_columns, matrices, pair_dot


class ForwardDerivatives(NamedTuple):
    """∂q̈ by `q` (along the tangent of `integrate`), `v` and `tau` (M⁻¹): (nv, nv) each, or (N, nv, nv).

    Row i belongs to the acceleration, column j to the coordinate by which it is derived.
    """

    q: Array
    v: Array
    tau: Array


@kernel
def mass_sweep(B, tau, j, mask, W, L, T, H, x):
    """Backward recursion: composite bodies in W, Î s in L, the mass matrix to H, and residual efforts to x.

    Entries of x with prescribed accelerations are unchanged.
    """
    n = node_count(B)
    nv = size_v(B)
    z = zero(B, tau, j)
    hybrid = mask.shape[0] > 0
    for i in range(nv * nv):
        H[i] = z
    for i in range(nv):
        if not (hybrid and mask[i]):
            x[i] = tau[j + i]
    last = T.shape[0] - n
    for i in range(n - 1, -1, -1):
        o = node(i)
        w = NODE_SIZE * i
        m = W[w + TOTAL]
        c = vector(W, w + FIRST_MOMENT)
        J = six(W, w + I)
        moment = vector(W, w + MOMENT_O)
        force = vector(W, w + FORCE)
        end = T[last + i]
        begin = end - dof(kind(B, o)) + 1
        for y in range(begin, end + 1):
            ly = COLUMN * y
            iy = T[2 * y]
            sa = vector(L, ly + S)
            sl = vector(L, ly + S + 3)
            ma = add_cross(symmetric_times(J, sa), c, sl)
            ml = add_cross(scale(m, sl), sa, c)
            put_pair(L, ly + MOMENTUM, ma, ml)
            if not (hybrid and mask[iy]):
                x[iy] -= dot(sa, moment) + dot(sl, force)
            H[iy * nv + iy] += B[o + ARMATURE + y - begin] + dot(sa, ma) + dot(sl, ml)
            u = T[2 * y + 1]
            while u >= 0:
                mass = pair_dot(ma, ml, L, COLUMN * u + S)
                iu = T[2 * u]
                H[iy * nv + iu] += mass
                H[iu * nv + iy] += mass
                u = T[2 * u + 1]
        h = parent(B, o)
        if h >= 0:
            h = NODE_SIZE * h + TOTAL
            for y in range(COMPOSITE):
                W[h + y] += W[w + TOTAL + y]


@kernel
def accelerate(B, x, mask, W, L, T, G):
    """Add the accelerations x of free coordinates to W's accelerations and composite wrenches; G: 6 per node."""
    n = node_count(B)
    hybrid = mask.shape[0] > 0
    z = zero(B, x, 0)
    last = T.shape[0] - n
    for i in range(6 * n):
        G[i] = z
    for i in range(n - 1, -1, -1):
        o = node(i)
        w = NODE_SIZE * i
        end = T[last + i]
        a = vector(G, 6 * i)
        b = vector(G, 6 * i + 3)
        for y in range(end - dof(kind(B, o)) + 1, end + 1):
            if not (hybrid and mask[T[2 * y]]):
                rate = x[T[2 * y]]
                a = add(a, scale(rate, vector(L, COLUMN * y + MOMENTUM)))
                b = add(b, scale(rate, vector(L, COLUMN * y + MOMENTUM + 3)))
        put_add(W, w + MOMENT_O, a)
        put_add(W, w + FORCE, b)
        h = parent(B, o)
        if h >= 0:
            put_add(G, 6 * h, a)
            put_add(G, 6 * h + 3, b)
    for i in range(n):
        o = node(i)
        w = NODE_SIZE * i
        h = parent(B, o)
        alpha = (z, z, z)
        accel = (z, z, z)
        if h >= 0:    # the contribution of the ancestors' accelerations: Î δV̇
            alpha = vector(G, 6 * h)
            accel = vector(G, 6 * h + 3)
            c = vector(W, w + FIRST_MOMENT)
            put_add(W, w + MOMENT_O, add_cross(symmetric_times(six(W, w + I), alpha), c, accel))
            put_add(W, w + FORCE, add_cross(scale(W[w + TOTAL], accel), alpha, c))
        end = T[last + i]
        for y in range(end - dof(kind(B, o)) + 1, end + 1):
            if not (hybrid and mask[T[2 * y]]):
                rate = x[T[2 * y]]
                alpha = add(alpha, scale(rate, vector(L, COLUMN * y + S)))
                accel = add(accel, scale(rate, vector(L, COLUMN * y + S + 3)))
        put(G, 6 * i, alpha)
        put(G, 6 * i + 3, accel)
        put_add(W, w + ALPHA, alpha)
        put_add(W, w + ACCEL, accel)


@kernel
def forward_derivatives(B, q, k, v, tau, j, prescribed, wrenches, work, out):
    """One state: ∂ by q, v and by the given quantities, (nv, nv) each. Returns 0, or the singular coordinate + 1.

    prescribed: (mask, a), mask empty or per coordinate whether a[j:] is prescribed and the effort unknown.
    wrenches as in `motion_sweep`. work: that of `motion_sweep`, and (branch, H, X), with H of nv (nv + 2) + 6 nodes.
    """
    mask, a = prescribed
    motion, (branch, H, X) = work
    W, L, T = motion
    by_q, by_v, by_given = out
    nv = size_v(B)
    hybrid = mask.shape[0] > 0
    x = H[nv * nv + nv:nv * nv + 2 * nv]
    for i in range(nv):
        x[i] = a[j + i] if hybrid and mask[i] else 0.0 * tau[j]
    motion_sweep(B, q, k, v, j, x, 0, hybrid, wrenches, motion)
    mass_sweep(B, tau, j, mask, W, L, T, H, x)
    branches(B, T, mask, branch)
    singular = factor(nv, mask, branch, H)
    if singular != 0:
        return singular
    solve_vector(nv, mask, branch, H, x)
    accelerate(B, x, mask, W, L, T, H[nv * nv + 2 * nv:])
    acceleration_columns(B, q, k, v, j, x, 0, W, L)
    p = pitch(nv)
    for i in range(nv * p):
        X[i] = 0.0 * tau[j]
    derivative_columns(B, q, k, motion, True, (X, X[1:], X), p, PARTS)
    given_columns(nv, mask, H, X)
    solve_rows(nv, mask, branch, H, X)
    if hybrid:
        effort_rows(nv, mask, H, X)
    for y in range(nv):
        for i in range(nv):
            by_q[y, i] = X[y * p + PARTS * i]
            by_v[y, i] = X[y * p + PARTS * i + 1]
            by_given[y, i] = X[y * p + PARTS * i + 2]
    return 0


@routine
def forward_derivatives_states(B, q, v, tau, prescribed, wrench, states, out):
    """Evaluate `states` states in a loop, with its own workspace; returns as `forward_derivatives`."""
    nodes = node_count(B)
    nv = size_v(B)
    count = count_columns(B)
    motion = (np.empty(NODE_SIZE * nodes), np.empty(COLUMN * count), np.empty(2 * count + nodes, np.int64))
    solution = (np.empty(RECORD * nv, np.int64), np.empty(nv * nv + 2 * nv + 6 * nodes), np.empty(nv * pitch(nv)))
    work = (motion, solution)
    for s in range(states):
        singular = forward_derivatives(B, q, s * size_q(B), v, tau, s * nv, prescribed, (wrench, 6 * nodes * s), work,
                                       (out[3 * s], out[3 * s + 1], out[3 * s + 2]))
        if singular != 0:
            return singular
    return 0


def work_size(nodes: int, columns: int, nv: int) -> int:
    """Size of the workspace of `hybrid_derivatives_entry`."""
    motion = NODE_SIZE * nodes + COLUMN * columns
    return motion + nv * (nv + 2) + 6 * nodes + nv * row_length(nv) + 2 * columns + nodes + RECORD * nv


@quick_entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], boolean[::1], float64[::1], "
             "float64[:, ::1], float64[:, ::1], float64[:, ::1])")
def hybrid_derivatives_entry(B, q, v, a, tau, mask, work, by_q, by_v, by_given):
    """Validate and evaluate one state; mask empty: forward dynamics. Returns 0, −1 for invalid input or a non-finite
    result, or the singular coordinate + 1.
    """
    nv = size_v(B)
    if mask.shape[0] not in (0, nv) or not (
            positions_valid(B, q, 1) and rates_valid(B, v, 1) and rates_valid(B, a, 1) and rates_valid(B, tau, 1)):
        return -1
    nodes = node_count(B)
    count = count_columns(B)
    L = work[NODE_SIZE * nodes:]
    H = L[COLUMN * count:]
    X = H[nv * nv + 2 * nv + 6 * nodes:]
    marks = X[nv * pitch(nv):]
    T = marks[:2 * count + nodes].view(np.int64)
    branch = marks[2 * count + nodes:].view(np.int64)
    singular = forward_derivatives(B, q, 0, v, tau, 0, (mask, a), (B[:0], 0), ((work, L, T), (branch, H, X)),
                                   (by_q, by_v, by_given))
    finite = all_finite(by_q.reshape(-1)) and all_finite(by_v.reshape(-1)) and all_finite(by_given.reshape(-1))
    return singular if singular != 0 or finite else -1


@entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], boolean[::1], float64[::1], int64, "
       "float64[:, :, ::1])", nogil=True)
def hybrid_derivatives_batch(B, q, v, a, tau, mask, wrench, states, out):
    """Validate and evaluate `states` states; mask empty: forward dynamics; out (3·N, nv, nv). Returns as the entry."""
    if not (positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, a, states)
            and rates_valid(B, tau, states)):
        return -1
    singular = forward_derivatives_states(B, q, v, tau, (mask, a), wrench, states, out)
    return singular if singular != 0 or all_finite(out.reshape(-1)) else -1


_NO_MASK = np.empty(0, dtype=np.bool_)


ONE_STATE.takes(work_size)


_door = door("forward_dynamics_derivatives", Call(
    hybrid_derivatives_entry, "B q v v tau none W > > >", matrices, ForwardDerivatives,
    constants={"none": lambda model: _NO_MASK}))


def forward_dynamics_derivatives(model: RobotModel, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                                 external_wrenches: Any = None, *,
                                 friction: Friction | None = None) -> ForwardDerivatives:
    """Derivatives (nv, nv) or (N, nv, nv) of `forward_dynamics` by q, v and tau, by q on the tangent space.

    `−M⁻¹ ∂ID` at the accelerations under tau, with the branch-induced LTDL factors of M: K Table 6 for all coordinates
    at once. Arguments, including friction, and errors as of `forward_dynamics`; external wrenches are constant in the
    frames of their links.

        >>> model = rbd.sample("two_link")
        >>> rbd.forward_dynamics_derivatives(model, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]).q.shape
        (2, 2)
    """
    if external_wrenches is None and friction is None and (result := _door(model, q, v, tau)) is not None:
        return result    # type: ignore[no-any-return]
    if friction is not None:
        unloaded = left_over(model, friction, v, tau)
        slope, gain = (x[..., None, :] for x in friction_slopes_at(model, friction, v, unloaded))
        with_friction: ForwardDerivatives = completed(
            lambda: forward_dynamics_derivatives(model, q, v, unloaded, external_wrenches),
            lambda by: ForwardDerivatives(by.q, by.v - by.tau * (slope / gain), by.tau / gain))
        return with_friction
    inputs = shaped(model, positions={"q": q}, rates={"v": v, "tau": tau})
    q, v, tau = inputs.flat
    out = inputs.empty(3, model.nv, model.nv)
    result = ForwardDerivatives(out[..., 0, :, :], out[..., 1, :, :], out[..., 2, :, :])

    def of_row(row: int) -> ForwardDerivatives:
        q, v, tau = (x[row] for x in inputs.arrays)
        return forward_dynamics_derivatives(model, q, v, tau, wrenches_of(external_wrenches, row))

    solved(hybrid_derivatives_batch.call(
        model._block, q, v, v, tau, _NO_MASK, node_wrenches(model, external_wrenches, inputs.batch), inputs.count,
        out.reshape(3 * inputs.count, model.nv, model.nv)), inputs, singular_coordinate, (result, of_row),
        derivatives=out)
    return result
