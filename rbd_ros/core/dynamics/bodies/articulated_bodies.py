"""Articulated-body inertia Î_i and bias B̂_i of each link (Featherstone 1983): K Tables 3 and 4.

From the factors of nodes by `articulated_factors`. Rigidly connected links are one node there; here each link has the
inertia and bias of itself and its descendants.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...compiled.entry import entry
from ...compiled.kernel import kernel, sweep
from ...errors import RbdError
from ...lie.spatial import add, cross, hat, rotate, rotate_back, scale, sub
from ...model.block import (
    LINK, LINK_NODE, LINK_POSITION, LINK_ROTATION, LINK_START, all_finite, first_velocity, integer, kind, layout,
    matrix, node, node_count, parent, put, put_add, put_matrix, put_six, rates_valid, six, size_q, size_v, vector, zero,
)
from ...model.configuration import positions_valid
from ...model.inertia import Array
from ...model.joint_kinds import dof
from ...model.robot_model import RobotModel
from ...model.state import node_wrenches, shaped
from ..articulated import (
    _ETA_A, _ETA_L, _OMEGA, _P, _R, _U, SIZE, articulated_factors, articulated_times, downdate,
    to_parent,
)
from ..hybrid import prescribed_mask
from ..inverse import velocity_wrench
from ..kinematics import body_velocities
from ..singular import solved
from .link_tree import (
    ABOVE, INDEX, INERTIA, MASS, MOMENT, ROW, link_count, link_record, link_tree, link_wrenches, to_link, to_node,
)

# workspace Y per link: articulated inertia and bias, in the axes of its node, about the node's origin
_LINK_A, _LINK_G, _LINK_C, _LINK_N, _LINK_F, LINK_SIZE = layout(A=6, G=9, C=6, n=3, f=3)


@kernel
def handed_on(B, o, w, mask, acc, W, A, G, C, N, F):
    """Π and β of the node with record o, workspace offset w, inertia (A, G, C) and bias (N, F), in the parent's axes.
    """
    moment, force = articulated_times(A, G, C, vector(W, w + _ETA_A), vector(W, w + _ETA_L))
    N = add(N, moment)
    F = add(F, force)
    iv = first_velocity(B, o)
    for c in range(dof(kind(B, o)) - 1, -1, -1):
        u = w + _U + 8 * c
        ua, ul = vector(W, u), vector(W, u + 3)
        if mask.shape[0] > 0 and mask[iv + c]:
            g = acc[iv + c]
        else:
            g = W[u + 6] * W[u + 7]
            A, G, C = downdate(A, G, C, ua, ul, W[u + 6])
        N = add(N, scale(g, ua))
        F = add(F, scale(g, ul))
    R = matrix(W, w + _R)
    p = vector(W, w + _P)
    f = rotate(R, F)
    A, G, C = to_parent(R, p, A, G, C)
    return A, G, C, add(rotate(R, N), cross(p, f)), f


@sweep
def link_sweep(B, L, v, mask, acc, wrench, e, W, Y):
    """Articulated inertias and biases of links into Y, from the W of `articulated_factors`."""
    z = zero(B, v, 0)
    for r in range(link_count(B)):
        t = ROW * r
        i = integer(L, t + INDEX)
        o = link_record(B, i)
        h = integer(B, o + LINK_NODE)
        omega = vector(W, SIZE * h + _OMEGA) if h >= 0 else (z, z, z)
        m = L[t + MASS]
        c = vector(L, t + MOMENT)
        I = six(L, t + INERTIA)
        N, F = velocity_wrench(c, I, omega)
        if wrench.shape[0] > 0:
            moment, force = to_node(B, o, vector(wrench, e + 6 * i), vector(wrench, e + 6 * i + 3))
            N = sub(N, moment)
            F = sub(F, force)
        y = LINK_SIZE * i
        put_six(Y, y + _LINK_A, I)
        put_matrix(Y, y + _LINK_G, hat(c))
        put_six(Y, y + _LINK_C, (m, 0.0, 0.0, m, 0.0, m))
        put(Y, y + _LINK_N, N)
        put(Y, y + _LINK_F, F)
    for r in range(link_count(B) - 1, 0, -1):
        i = integer(L, ROW * r + INDEX)
        h = integer(B, link_record(B, i) + LINK_NODE)
        up = integer(L, ROW * integer(L, ROW * r + ABOVE) + INDEX)
        last = integer(B, link_record(B, up) + LINK_NODE)
        y = LINK_SIZE * i
        A, G, C = six(Y, y + _LINK_A), matrix(Y, y + _LINK_G), six(Y, y + _LINK_C)
        N, F = vector(Y, y + _LINK_N), vector(Y, y + _LINK_F)
        while h != last:
            A, G, C, N, F = handed_on(B, node(h), SIZE * h, mask, acc, W, A, G, C, N, F)
            h = parent(B, node(h))
        y = LINK_SIZE * up
        for c in range(6):
            Y[y + _LINK_A + c] += A[c]
            Y[y + _LINK_C + c] += C[c]
        for c in range(9):
            Y[y + _LINK_G + c] += G[c]
        put_add(Y, y + _LINK_N, N)
        put_add(Y, y + _LINK_F, F)


@kernel
def put_links(B, Y, out, bias, first):
    """Y in the frames of the links: matrices into out[36·first:], biases into bias[6·first:]."""
    for i in range(link_count(B)):
        o = link_record(B, i)
        y = LINK_SIZE * i
        N, F = to_link(B, o, vector(Y, y + _LINK_N), vector(Y, y + _LINK_F))
        put(bias, 6 * (first + i), N)
        put(bias, 6 * (first + i) + 3, F)
        R = matrix(B, o + LINK_ROTATION)
        back = (R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8])
        p = scale(-1.0, rotate_back(R, vector(B, o + LINK_POSITION)))
        A, G, C = to_parent(back, p, six(Y, y + _LINK_A), matrix(Y, y + _LINK_G), six(Y, y + _LINK_C))
        k = 36 * (first + i)
        full = (A[0], A[1], A[2], G[0], G[1], G[2], A[1], A[3], A[4], G[3], G[4], G[5], A[2], A[4], A[5], G[6], G[7],
                G[8], G[0], G[3], G[6], C[0], C[1], C[2], G[1], G[4], G[7], C[1], C[3], C[4], G[2], G[5], G[8], C[2],
                C[4], C[5])
        for c in range(36):
            out[k + c] = full[c]


@entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], boolean[::1], float64[::1], "
       "float64[::1], float64[::1], int64, float64[::1], float64[::1])", nogil=True)
def articulated_bodies_entry(B, L, q, v, tau, mask, a, wrench, gathered, states, out, bias):
    """`articulated_bodies` of `states` states: 0; −1 for invalid input or results not finite; singular node + 1.

    wrench: of links, or empty; gathered: the same per node. mask: empty, or (nv,) with accelerations a like tau.
    """
    if not (positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, tau, states)
            and rates_valid(B, a, states)):
        return -1
    n = size_v(B)
    links = link_count(B)
    W = np.empty(SIZE * node_count(B))
    Y = np.empty(LINK_SIZE * links)
    for s in range(states):
        rates = v[s * n:(s + 1) * n]
        acc = a[s * n:(s + 1) * n]
        status = articulated_factors(B, q, s * size_q(B), rates, tau[s * n:(s + 1) * n], 0, (mask, acc),
                                     (gathered, 6 * node_count(B) * s), W)
        if status != 0:
            return status
        link_sweep(B, L, rates, mask, acc, wrench, 6 * links * s, W, Y)
        put_links(B, Y, out, bias, s * links)
    return 0 if all_finite(out) and all_finite(bias) else -1


class ArticulatedBodies(NamedTuple):
    """`inertia` Î (nb, 6, 6) and `bias` B̂ (nb, 6) of the links, in their frames; a batch adds an axis."""

    inertia: Array
    bias: Array


def articulated_bodies(model: RobotModel, q: ArrayLike, v: ArrayLike, tau: ArrayLike, external_wrenches: Any = None, *,
                       prescribed: ArrayLike | Sequence[str] | None = None,
                       a: ArrayLike | None = None) -> ArticulatedBodies:
    """Articulated-body inertia Î_i and bias B̂_i of each link with its descendants: K Tables 3 and 4, O(n).

    `F_i = Î_i (V̇_i − (0, Rᵀ g)) + B̂_i` is the wrench of the joint above on the link (`joint_wrenches`) at any spatial
    acceleration V̇_i (`body_accelerations`), with the descendants' joints under tau (and prescribed a); Rᵀ g: gravity
    in link axes. SI units. Arguments as in `forward_dynamics`, or with prescribed and a as in `hybrid_dynamics`. Raises
    `RbdError` for undetermined accelerations, and for models with mimic joints, which couple branches of the tree.

        >>> model = rbd.sample("two_link")
        >>> rbd.articulated_bodies(model, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]).inertia.shape
        (4, 6, 6)
    """
    rates = {"v": v, "tau": tau, "a": getattr(model, "_zeros", ()) if a is None else a}
    inputs = shaped(model, positions={"q": q}, rates=rates)
    if model.mimics:
        raise RbdError(f"model '{model.name}' has mimic joints ({', '.join(mimic.name for mimic in model.mimics)}), "
                       "which move bodies that are not below them: there are no articulated bodies. Load it with "
                       "mimic='independent'")
    mask = np.zeros(0, dtype=bool) if prescribed is None else prescribed_mask(model, prescribed)
    if (a is None) != (prescribed is None):
        raise RbdError("a: expected accelerations of prescribed coordinates exactly where `prescribed` names some")
    q, v, tau, a = inputs.arrays
    V = body_velocities(model, q, v)
    inertia = inputs.empty(len(model.body_names), 6, 6)
    bias = inputs.empty(len(model.body_names), 6)
    status = articulated_bodies_entry.call(
        model._block, link_tree(model), *(array.reshape(-1) for array in (q, v, tau)), mask, a.reshape(-1),
        link_wrenches(model, external_wrenches, inputs.batch), node_wrenches(model, external_wrenches, inputs.batch),
        inputs.count, inertia.reshape(-1), bias.reshape(-1))
    solved(status, inputs, inertia=inertia, bias=bias)
    # the kernels' linear accelerations are classical ones of the nodes' origins: v̇ + ω × v
    with np.errstate(all="ignore"):
        omega = V[..., :3]
        velocity = V[..., 3:] - np.cross(omega, _origins(model))
        bias += (inertia[..., 3:] @ np.cross(omega, velocity)[..., None])[..., 0]
    return ArticulatedBodies(*inputs.finite(inertia=inertia, bias=bias))


def _origins(model: RobotModel) -> Array:
    """Positions (nb, 3) of the links' origins from those of their nodes, in link axes."""
    start, count = int(model._block[LINK_START]), len(model.body_names)
    records = model._block[start:start + LINK * count].reshape(count, LINK)
    R = records[:, LINK_ROTATION:LINK_ROTATION + 9].reshape(count, 3, 3)
    return np.einsum("bij,bi->bj", R, records[:, LINK_POSITION:LINK_POSITION + 3])
