"""Partial derivatives of V, V̇ and F of each link by all coordinates: K Table 5, and G's partials.

G differentiates each quantity of the recursion in turn; here the columns of `columns` are used, which are common to all
links of a subtree. In link axes `∂V/∂q = Ψ̇`, `∂V̇/∂q = Ψ̈ − ad_V Ψ̇`, `∂V/∂q̇ = s`, `∂V̇/∂q̇ = Ξ − ad_V s`,
`∂V̇/∂q̈ = s`. F follows from the leaves to the root as in K Table 2; in the subtree of the joint, it gains `− ad*_s F`.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..compiled.entry import entry
from ..compiled.kernel import kernel, sweep
from ..dynamics.bodies.link_tree import (
    ABOVE, INDEX, INERTIA, MASS, MOMENT, ROW, link_count, link_record, link_tree, link_wrenches, to_link, to_node,
)
from ..lie.spatial import add_cross, add_rotated_back, cross, rotate, rotate_back, scale, sub, symmetric_times
from ..model.block import (
    GRAVITY, LINK_NODE, LINK_POSITION, LINK_ROTATION, all_finite, first_position, integer, kind, matrix, node,
    node_count, parent, put, put_add, rates_valid, six, size_q, size_v, vector, zero,
)
from ..model.configuration import positions_valid
from ..model.inertia import Array
from ..model.joint_kinds import dof, joint_pose
from ..model.robot_model import RobotModel
from ..model.state import shaped
from .columns import (
    ACCEL, ALPHA, COLUMN, NODE_SIZE, OMEGA, PSI, PSI2, XI, P, R, S, U, acceleration_columns, ad, count_columns,
    motion_sweep,
)

# order of the results of a link: ∂V, ∂V̇, ∂F, each by q, v, a
_V, _A, _F, RESULTS = 0, 3, 6, 9


class Partials(NamedTuple):
    """∂ by `q` (along the tangent of `integrate`), `v` and `a`: (nb, 6, nv) each, or (N, nb, 6, nv)."""

    q: Array
    v: Array
    a: Array


class BodyDerivatives(NamedTuple):
    """Partials of each link's twist V (`velocity`), V̇ (`acceleration`) and joint wrench F (`wrench`)."""

    velocity: Partials
    acceleration: Partials
    wrench: Partials


@kernel
def put_column(out, start, stride, x, y):
    """Add (x, y) to the six numbers at `start`, `start + stride`, …"""
    for r in range(3):
        out[start + r * stride] += x[r]
        out[start + (r + 3) * stride] += y[r]


@kernel
def column_of(out, start, stride):
    """The six numbers at `start`, `start + stride`, …, as two triples."""
    return ((out[start], out[start + stride], out[start + 2 * stride]),
            (out[start + 3 * stride], out[start + 4 * stride], out[start + 5 * stride]))


@kernel
def to_origin(E, p, x, y):
    """The twist (x, y) about O in world axes, transformed to a node with axes E and origin at p from O."""
    return rotate_back(E, x), rotate_back(E, add_cross(y, x, p))


@kernel
def wrench_change(m, c, J, motion, change):
    """∂(J V̇ − ad*_V J V) of a body with mass m, first moment c and inertia J, along a change of (V, V̇)."""
    (omega, u, h_a, h), (d_omega, d_u, d_alpha, d_accel) = motion, change
    dh_a = add_cross(symmetric_times(J, d_omega), c, d_u)
    dh = add_cross(scale(m, d_u), d_omega, c)
    moment = add_cross(add_cross(symmetric_times(J, d_alpha), c, d_accel), d_omega, h_a)
    moment = add_cross(add_cross(add_cross(moment, omega, dh_a), d_u, h), u, dh)
    force = add_cross(add_cross(add_cross(scale(m, d_accel), d_alpha, c), d_omega, h), omega, dh)
    return moment, force


@sweep
def link_columns(B, k, nv, r, work, links, out, start):
    """Contribution of the link itself: ∂V, ∂V̇ in link axes, ∂F in world axes about O. k: its record; r: its row of
    `links`.
    """
    W, L, T = work
    h = integer(B, k + LINK_NODE)
    z = zero(B, W, NODE_SIZE * h)
    still = (z, z, z)
    w = NODE_SIZE * h
    E = matrix(W, w + R)
    p = vector(W, w + P)
    Omega = vector(W, w + OMEGA)
    Up = vector(W, w + U)
    omega, u = to_origin(E, p, Omega, Up)
    g = (z + B[GRAVITY], z + B[GRAVITY + 1], z + B[GRAVITY + 2])
    m = links[r + MASS]
    c = vector(links, r + MOMENT)
    J = six(links, r + INERTIA)
    motion = (omega, u, add_cross(symmetric_times(J, omega), c, u), add_cross(scale(m, u), omega, c))
    R_l = matrix(B, k + LINK_ROTATION)
    p_l = vector(B, k + LINK_POSITION)
    size = links.shape[0] // ROW * 6 * nv    # of one result
    x = T[T.shape[0] - node_count(B) + h]
    while x >= 0:
        l = COLUMN * x
        sa = vector(L, l + S)
        sl = vector(L, l + S + 3)
        for by in range(3):    # q, v, a: changes of V and V̇ about O
            if by == 0:
                va = vector(L, l + PSI)
                vl = vector(L, l + PSI + 3)
                da, dl = ad(Omega, Up, va, vl)
                aa = sub(vector(L, l + PSI2), da)
                al = sub(vector(L, l + PSI2 + 3), dl)
            elif by == 1:
                va = sa
                vl = sl
                da, dl = ad(Omega, Up, va, vl)
                aa = sub(vector(L, l + XI), da)
                al = sub(vector(L, l + XI + 3), dl)
            else:
                va = still
                vl = still
                aa = sa
                al = sl
            d_omega, d_u = to_origin(E, p, va, vl)
            d_alpha, d_accel = to_origin(E, p, aa, al)
            N, F = wrench_change(m, c, J, motion, (d_omega, d_u, d_alpha, d_accel))
            F = rotate(E, F)
            put_column(out, start + (_F + by) * size + T[2 * x], nv, add_cross(rotate(E, N), p, F), F)
            if by == 0:    # accelerations without gravity
                d_accel = add_rotated_back(d_accel, E, cross(g, sa))
            put_column(out, start + (_V + by) * size + T[2 * x], nv, rotate_back(R_l, d_omega),
                       rotate_back(R_l, add_cross(d_u, d_omega, p_l)))
            put_column(out, start + (_A + by) * size + T[2 * x], nv, rotate_back(R_l, d_alpha),
                       rotate_back(R_l, add_cross(d_accel, d_alpha, p_l)))
        x = T[2 * x + 1]


@sweep
def own_wrench(B, k, r, work, links, wrench, e):
    """Inertial minus external wrench of a link, in world axes about O."""
    W = work[0]
    h = integer(B, k + LINK_NODE)
    w = NODE_SIZE * h
    E = matrix(W, w + R)
    p = vector(W, w + P)
    omega, u = to_origin(E, p, vector(W, w + OMEGA), vector(W, w + U))
    alpha, accel = to_origin(E, p, vector(W, w + ALPHA), vector(W, w + ACCEL))
    m = links[r + MASS]
    c = vector(links, r + MOMENT)
    J = six(links, r + INERTIA)
    momentum = add_cross(scale(m, u), omega, c)
    N = add_cross(add_cross(add_cross(symmetric_times(J, alpha), c, accel), omega,
                            add_cross(symmetric_times(J, omega), c, u)), u, momentum)
    F = add_cross(add_cross(scale(m, accel), alpha, c), omega, momentum)
    if wrench.shape[0] > 0:
        moment, force = to_node(B, k, vector(wrench, e), vector(wrench, e + 3))
        N = sub(N, moment)
        F = sub(F, force)
    F = rotate(E, F)
    return add_cross(rotate(E, N), p, F), F


@sweep
def body_derivatives_recursion(B, links, state, wrench, e, work, G, out, start):
    """One state: the nine results of every link to out[start:]. wrench[e:] per link or empty; G: 6 numbers per link."""
    q, k, v, a, j = state
    W, L, T = work
    nv = size_v(B)
    count = link_count(B)
    last = T.shape[0] - node_count(B)
    motion_sweep(B, q, k, v, j, a, j, True, (wrench[:0], 0), work)
    acceleration_columns(B, q, k, v, j, a, j, W, L)
    out[start:start + RESULTS * count * 6 * nv] = 0.0 * B[0]
    G[:] = 0.0 * B[0]
    size = count * 6 * nv
    O = (0.0 * B[0], 0.0 * B[0], 0.0 * B[0])
    if node_count(B) > 0:    # P is the place of a node from O
        O = sub(joint_pose(B, node(0), q, k + first_position(B, node(0)))[1], vector(W, P))
    for r in range(count):
        i = integer(links, ROW * r + INDEX)
        o = link_record(B, i)
        if integer(B, o + LINK_NODE) >= 0:
            link_columns(B, o, nv, ROW * r, work, links, out, start + 6 * nv * i)
            N, F = own_wrench(B, o, ROW * r, work, links, wrench, e + 6 * i)
            put(G, 6 * i, N)
            put(G, 6 * i + 3, F)
    for r in range(count - 1, -1, -1):
        i = integer(links, ROW * r + INDEX)
        o = link_record(B, i)
        h = integer(B, o + LINK_NODE)
        above = integer(links, ROW * r + ABOVE)
        b = start + _F * size + 6 * nv * i
        if above >= 0:
            up = integer(links, ROW * above + INDEX)
            to = start + _F * size + 6 * nv * up
            N = vector(G, 6 * i)
            F = vector(G, 6 * i + 3)
            put_add(G, 6 * up, N)
            put_add(G, 6 * up + 3, F)
            for by in range(3):
                for x in range(6 * nv):
                    out[to + by * size + x] += out[b + by * size + x]
            g = h
            stop = integer(B, link_record(B, up) + LINK_NODE)
            while g != stop:    # the joints in between move the subtree
                end = T[last + g]
                for x in range(end - dof(kind(B, node(g))) + 1, end + 1):
                    sa = vector(L, COLUMN * x + S)
                    sl = vector(L, COLUMN * x + S + 3)
                    put_column(out, to + T[2 * x], nv, add_cross(cross(sa, N), sl, F), cross(sa, F))
                g = parent(B, node(g))
        for by in range(3):
            for x in range(nv):
                N, F = column_of(out, b + by * size + x, nv)
                if h >= 0:
                    E = matrix(W, NODE_SIZE * h + R)
                    N = rotate_back(E, add_cross(N, F, vector(W, NODE_SIZE * h + P)))
                    F = rotate_back(E, F)
                else:
                    N = add_cross(N, O, F)
                N, F = to_link(B, o, N, F)
                for y in range(6):
                    out[b + by * size + x + y * nv] = 0.0 * B[0]
                put_column(out, b + by * size + x, nv, N, F)


@entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], int64, "
       "float64[::1])", nogil=True)
def body_derivatives_batch(B, links, q, v, a, wrench, states, out):
    """Validate and evaluate `states` states, with external wrenches (empty: none) in link frames."""
    if not (positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, a, states)):
        return False
    nodes = node_count(B)
    count = count_columns(B)
    work = (np.empty(NODE_SIZE * nodes), np.empty(COLUMN * count), np.empty(2 * count + nodes, np.int64))
    G = np.empty(6 * link_count(B))
    for s in range(states):
        body_derivatives_recursion(B, links, (q, s * size_q(B), v, a, s * size_v(B)), wrench, 6 * s * link_count(B),
                                   work, G, out, s * RESULTS * link_count(B) * 6 * size_v(B))
    return all_finite(out)


def body_derivatives(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                     external_wrenches: Any = None) -> BodyDerivatives:
    """Partials of `body_velocities`, `body_accelerations` and `joint_wrenches` of every link by q, v and a of every
    joint, (nb, 6, nv) or (N, nb, 6, nv) each: the partials of G's recursion, K Table 5 for p = q, q̇, q̈. O(nb · nv).

    By q on the tangent space of `integrate`. Arguments and errors as of `inverse_dynamics`; external wrenches are
    constant in the frames of their links. `Sᵀ ∂F`, with the joint's rotor, is the derivative of its effort. G's
    quantities: ω = V[:3], ω̇ = V̇[:3], s̈ = V̇[3:] + ω × V[3:] − g, η = F[:3], f = F[3:].

        >>> model = rbd.sample("two_link")
        >>> rbd.body_derivatives(model, [0.3, 0.5], [0.0, 0.0], [1.0, 0.0]).velocity.q.shape
        (4, 6, 2)
    """
    inputs = shaped(model, positions={"q": q}, rates={"v": v, "a": a})
    out = inputs.empty(RESULTS, len(model.body_names), 6, model.nv)
    if not body_derivatives_batch.call(model._block, link_tree(model), *inputs.flat,
                                       link_wrenches(model, external_wrenches, inputs.batch), inputs.count,
                                       out.reshape(-1)):
        inputs.refuse(body_derivatives=out)
    parts = [out[..., i, :, :, :] for i in range(RESULTS)]
    return BodyDerivatives(Partials(*parts[_V:_A]), Partials(*parts[_A:_F]), Partials(*parts[_F:]))
