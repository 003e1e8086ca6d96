"""∂V̇_i and ∂F_i: directional derivatives of body accelerations and joint wrenches (K Tables 5–7).

By the kernels of `body_accelerations` and `joint_wrenches` with an imaginary step of 1e-30 of all their inputs: of
every link, including those behind fixed joints, exact to rounding, O(n) per direction.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...compiled.entry import entry
from ...dynamics.bodies.joint_wrenches import joint_wrenches_recursion
from ...dynamics.bodies.link_tree import INDEX, MASS, ROW, link_tree, link_wrenches
from ...dynamics.inverse import SIZE
from ...dynamics.kinematics import SIZE as MOTION
from ...dynamics.kinematics import link_motions, node_motion
from ...model.block import LINKS, integer, node_count, size_q, size_v
from ...imaginary_step import STEP, step_numbers, step_state
from ...model.inertia import Array
from .run import Perturbation


class InverseDirectional(NamedTuple):
    """∂/∂p of `effort` (nv,), `body_accelerations` V̇_i and `joint_wrenches` F_i (nb, 6), as the functions of these
    names return them; a batch adds an axis, several directions one before it.
    """

    effort: Array
    body_accelerations: Array
    joint_wrenches: Array


class ForwardDirectional(NamedTuple):
    """∂/∂p of `acceleration` (nv,), otherwise as `InverseDirectional`."""

    acceleration: Array
    body_accelerations: Array
    joint_wrenches: Array


class HybridDirectional(NamedTuple):
    """∂/∂p of `acceleration` and `effort` (nv,), otherwise as `InverseDirectional`. Prescribed quantities have the
    tangent's derivatives.
    """

    acceleration: Array
    effort: Array
    body_accelerations: Array
    joint_wrenches: Array


@entry("void(float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], float64[::1], "
       "float64[:, :, :, ::1], float64[::1], float64[:, ::1], float64[:, :, ::1], float64[:, :, ::1])", nogil=True)
def bodies_entry(B, L, dB, dL, q, v, a, X, wrench, dwrench, accelerations, wrenches):
    """∂ of accelerations and joint wrenches (directions, states, 6 nb) along X (directions, 4, states, nv), dB, dL and
    dwrench; wrench and dwrench of all states per link (empty: none).
    """
    nv = size_v(B)
    size = 6 * integer(B, LINKS)
    loaded = wrench.shape[0] > 0
    model = B.astype(np.complex128)
    links = np.empty(L.shape[0], dtype=np.complex128)
    x = np.empty(size_q(B), dtype=np.complex128)
    rates = np.empty(nv, dtype=np.complex128)
    acc = np.empty(nv, dtype=np.complex128)
    F = np.empty(size, dtype=np.complex128)
    load = np.empty(size if loaded else 0, dtype=np.complex128)
    W = np.empty(SIZE * node_count(B) + nv, dtype=np.complex128)
    U = np.empty(MOTION * node_count(B), dtype=np.complex128)
    for r in range(X.shape[0]):
        if dB.shape[0] > 0:
            step_numbers(B, 0, dB[r], model)
        step_numbers(L, 0, dL[r], links)
        for s in range(X.shape[2]):
            step_state(B, (q, v, a), s, X[r], (x, rates, acc))
            step_numbers(wrench, s * size, dwrench[r, s * size:], load)
            node_motion(model, x, 0, rates, acc, 0, 2, False, U)
            link_motions(model, U, 2, F, 0)
            for i in range(size):
                accelerations[r, s, i] = F[i].imag / STEP
            joint_wrenches_recursion(model, links, x, 0, rates, acc, 0, load, 0, W, F, 0)
            for i in range(size):
                wrenches[r, s, i] = F[i].imag / STEP


def body_changes(perturbed: Perturbation, a: Array, da: Array, external_wrenches: Any) -> tuple[Array, Array]:
    """∂V̇ and ∂F of all links, at accelerations a (…, nv) with changes da (directions, …, nv)."""
    states, tangents = perturbed.states, perturbed.tangents
    model: Any = states.model
    count, nb = tangents.count, len(model.body_names)
    q, v = (x.reshape(-1) for x in perturbed.inputs[:2])
    X = np.array(perturbed.changes)
    X[:, 2] = da.reshape(X[:, 2].shape)
    tree = link_tree(model)
    links = np.zeros((count, len(tree)))
    records = links.reshape(count, len(tree) // ROW, ROW)
    records[:, :, MASS:] = tangents.inertias[:, tree.reshape(-1, ROW)[:, INDEX].astype(int)]
    link_changes = [link_wrenches(model, tangent.external_wrenches, states.batch) for tangent in tangents.tangents]
    load = link_wrenches(model, external_wrenches, states.batch)
    changes = np.zeros((count, 0))
    if len(load) or any(len(change) for change in link_changes):
        zero = np.zeros(states.count * nb * 6)
        load = load if len(load) else zero
        changes = np.array([change if len(change) else zero for change in link_changes]).reshape(count, -1)
    out = np.empty((2, count, states.count, 6 * nb))
    bodies_entry.call(tangents.start, tree, tangents.models, links, q, v, a.reshape(-1), X, load, changes, out[0],
                      out[1])
    shape = (count, nb, 6) if states.batch is None else (count, states.count, nb, 6)
    accelerations, wrenches = states.finite(body_accelerations=out[0].reshape(shape),
                                           joint_wrenches=out[1].reshape(shape))
    return perturbed.result(accelerations), perturbed.result(wrenches)
