"""Simultaneous impacts of closing contacts: one solution, which never adds kinetic energy."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...dynamics.inverse_mass_matrix import inverse_mass_matrix
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ..constrained_motion import ConstrainedMotion
from .cones import Rows, Unsolved, cone_forces

REST = 1e-6       # m/s: slower impacts do not bounce, which ends infinite series of bounces
HALVINGS = 12     # bisections of the share of restitution without energy gain
ROUNDING = 1e-13  # relative tolerance of energy, for restitution 1


def inverse_inertia(model: RobotModel, constrained: ConstrainedMotion | None) -> Callable[[Array], Array]:
    """A function from q to the inverse inertia (nv, nv), with constraints."""
    def inverse(q: Array) -> Array:
        W = inverse_mass_matrix(model, q)
        W = 0.5 * (W + W.T)
        if constrained is not None:
            W = constrained.inverse_inertia(q, W, np.zeros(len(W)), np.zeros(len(W)))[0]
        return np.asarray(W)
    return inverse


def contact_rows(friction: Array, sliding: NDArray[np.bool_], limit: Array) -> tuple[Array, Rows]:
    """Indices of the independent rows (n, x, y of each of k contacts, flat, then boxes of these limits), and their
    roles: sliding and frictionless contacts have a normal row only.
    """
    indices: list[int] = []
    normal, tangent, bound = [], [], []
    for i, (mu, slides) in enumerate(zip(friction, sliding, strict=True)):
        normal.append(len(indices))
        indices.append(3 * i)
        if mu > 0.0 and not slides:
            tangent.append([len(indices), len(indices) + 1])
            bound.append(normal[-1])
            indices += [3 * i + 1, 3 * i + 2]
    boxes = np.arange(len(indices), len(indices) + len(limit))
    indices += range(3 * len(friction), 3 * len(friction) + len(limit))
    rubs = (friction > 0.0) & ~sliding
    return np.array(indices, dtype=np.intp), Rows(
        np.array(normal, dtype=np.intp), np.array(tangent, dtype=np.intp).reshape(-1, 2),
        np.array(bound, dtype=np.intp), friction[rubs], boxes, limit)


def impact(W: Array, J: Array, v: Array, friction: Array, bounce: Array) -> tuple[Array, Array]:
    """Velocities (nv,) after the impact of k closed contacts, and its impulses (k, 3).

    W (nv, nv): inverse inertia; J (k, 3, nv); v (nv,) before; bounce (k,): restitution of each. Newton's law of
    restitution with Coulomb's law for impulses and velocities after the impact (raises `Unsolved` without a solution);
    dissipative for restitution 0. Restitution is reduced if it would add energy by friction.
    """
    indices, rows = contact_rows(friction, np.zeros(len(friction), dtype=bool), np.zeros(0))
    A = J.reshape(-1, J.shape[-1])[indices]
    G = A @ W @ A.T
    rates = A @ v
    aim = np.zeros(len(indices))
    before = rates[rows.normal]
    aim[rows.normal] = np.where(before < -REST, bounce * np.minimum(before, 0.0), 0.0)
    p = impulses(G, rates, aim, rows)
    result = np.zeros(3 * len(friction))
    result[indices] = p
    return v + W @ (A.T @ p), result.reshape(-1, 3)


def impulses(G: Array, rates: Array, aim: Array, rows: Rows) -> Array:
    """Impulses under which `rates + G p + aim` obeys the laws of contact and friction: `cone_forces`.

    Negative aims are those of restitution, reduced if it would add kinetic energy, or if there is no solution.
    """
    bounce = np.minimum(aim, 0.0)

    def solved(share: float) -> tuple[Array, bool]:
        p = cone_forces(G, rates + (aim - bounce) + share * bounce, rows)
        lost, gained = -p @ rates, 0.5 * p @ G @ p
        return p, bool(gained - lost <= ROUNDING * gained)

    if not bounce.any():
        return solved(0.0)[0]
    low, share = 0.0, 1.0
    best = None
    for turn in range(HALVINGS):
        try:
            p, loses = solved(share)
        except Unsolved:
            loses = False
        if loses:
            if turn == 0:
                return p
            best, low = p, share
        else:
            high = share
        share = 0.5 * (low + high)
    return solved(0.0)[0] if best is None else best
