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

REST = 1e-6       # m/s: slower impacts do not bounce, which ends the series of ever smaller bounces
HALVINGS = 12     # of the share of restitution that loses energy
ROUNDING = 1e-13  # of the energies that cancel: restitution 1 loses none


def inverse_inertia(model: RobotModel, constrained: ConstrainedMotion | None) -> Callable[[Array], Array]:
    """A function from q to the velocities (nv, nv) that unit impulses give, through the constraints."""
    def inverse(q: Array) -> Array:
        W = inverse_mass_matrix(model, q)
        W = 0.5 * (W + W.T)
        if constrained is not None:
            W = constrained.inverse_inertia(q, W, np.zeros(len(W)), np.zeros(len(W)))[0]
        return np.asarray(W)
    return inverse


def contact_rows(friction: Array, sliding: NDArray[np.bool_], limit: Array) -> tuple[Array, Rows]:
    """Which of the rows (n, x, y of each of k contacts, flat, then boxes of these limits) have a force of their own,
    as indices, and what they are there: contacts that slide, or without friction, have a normal alone.
    """
    own: list[int] = []
    normal, tangent, bound = [], [], []
    for i, (mu, slides) in enumerate(zip(friction, sliding, strict=True)):
        normal.append(len(own))
        own.append(3 * i)
        if mu > 0.0 and not slides:
            tangent.append([len(own), len(own) + 1])
            bound.append(normal[-1])
            own += [3 * i + 1, 3 * i + 2]
    boxes = np.arange(len(own), len(own) + len(limit))
    own += range(3 * len(friction), 3 * len(friction) + len(limit))
    rubs = (friction > 0.0) & ~sliding
    return np.array(own, dtype=np.intp), Rows(
        np.array(normal, dtype=np.intp), np.array(tangent, dtype=np.intp).reshape(-1, 2),
        np.array(bound, dtype=np.intp), friction[rubs], boxes, limit)


def impact(W: Array, J: Array, v: Array, friction: Array, bounce: Array) -> tuple[Array, Array]:
    """Velocities (nv,) after the impact of k closed contacts, and its impulses (k, 3).

    W (nv, nv): inverse inertia; J (k, 3, nv); v (nv,) before; bounce (k,): restitution of each. Newton's law of
    restitution with Coulomb's law for the impulses and the velocities after it (`Unsolved` where there are none): with
    restitution 0 that takes energy in any case. Where friction would let restitution add some, there is as much less
    of it.
    """
    own, rows = contact_rows(friction, np.zeros(len(friction), dtype=bool), np.zeros(0))
    A = J.reshape(-1, J.shape[-1])[own]
    G = A @ W @ A.T
    rates = A @ v
    aim = np.zeros(len(own))
    before = rates[rows.normal]
    aim[rows.normal] = np.where(before < -REST, bounce * np.minimum(before, 0.0), 0.0)
    p = impulses(G, rates, aim, rows)
    found = np.zeros(3 * len(friction))
    found[own] = p
    return v + W @ (A.T @ p), found.reshape(-1, 3)


def impulses(G: Array, rates: Array, aim: Array, rows: Rows, nearly: float = 0.0) -> Array:
    """Impulses under which `rates + G p + aim` obeys the laws of contact and friction: `cone_forces`.

    Negative aims are those of restitution: less of it where it would add kinetic energy, or leave no solution.
    """
    bounce = np.minimum(aim, 0.0)

    def solved(share: float) -> tuple[Array, bool]:
        p = cone_forces(G, rates + (aim - bounce) + share * bounce, rows, nearly)
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
