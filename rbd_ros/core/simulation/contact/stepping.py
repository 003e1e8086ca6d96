"""Contacts by impulses in each step (Moreau; Stewart and Trinkle): for any step, of order 1, dissipative.

The velocity after the step obeys Signorini's and Coulomb's laws with the impulses of the step, at the rows of its
middle, and moves the positions: a contact that is apart by a gap g comes no nearer than `v_n ≥ −g/h`, one that hits
bounces by Newton's law from where it is. Contacts at rest have velocity zero exactly, so nothing creeps; what the
curvature of the motion leaves of gaps is projected away.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...dynamics.forward import forward_dynamics
from ...dynamics.mass_matrix import mass_matrix
from ...errors import RbdError
from ...model.inertia import Array
from ..constrained_motion import ConstrainedMotion
from ..integrators import move
from .events import STALE, STILL
from .impacts import contact_rows, impulses
from .touching import Gaps, Touching

ADDED = 10       # times that contacts are added to those of a step
NEARLY = 1e-3    # of the largest impulse: what one step may leave where Newton's method ends in a circle


class Stepping:
    """Steps of a model. level: dry friction (nv,) of joints at velocities, None: none."""

    def __init__(self, touching: Touching, level: Callable[[Array], Array] | None,
                 constrained: ConstrainedMotion | None) -> None:
        self.model, self.touching, self._level, self._constrained = touching.model, touching, level, constrained
        nothing = np.zeros((touching.size, 3))
        self.force, self.impulse = nothing, nothing    # of the last step, in the contacts' axes
        self.slip = np.zeros(touching.size)    # speed of sliding

    def free_of_contact(self, q: Array, v: Array, h: float) -> bool:
        """Whether a step to (q, v) from one without closed contacts needs none of this."""
        here = self.touching.at(q, v)
        return not ((here.gap <= 0.0) & (here.margin > 0.0) & (here.gap > -STALE - 2.0 * h * np.abs(
            here.J[:, 0] @ v))).any()

    def closed(self, q: Array, v: Array) -> bool:
        """Whether a contact is closed at the begin of a step."""
        here = self.touching.at(q, v)
        return bool(((here.gap <= STALE) & (here.gap > -STALE) & (here.margin > 0.0)).any())

    def advance(self, q: Array, v: Array, h: float, tau: Array, wrenches: Any) -> tuple[Array, Array]:
        """The state after h (s) under the effort tau (nv,) besides damping and dry friction."""
        W, free = self._free(q, v, h, tau, wrenches)
        touching = self.touching
        start = touching.at(q, v)
        middle = touching.at(move(self.model, q, 0.5 * h * v), v)
        rates, wanted = start.J[:, 0] @ v, middle.J[:, 0] @ free
        can = (start.gap > -STALE) & (np.minimum(start.margin, middle.margin) > 0.0)
        near = can & (start.gap + h * np.minimum(wanted, 0.0) <= STALE)
        hits = (touching.restitution > 0.0) & (rates < -2.0 * np.abs(wanted - rates) - STILL)
        aim = np.where(hits, touching.restitution * rates, np.where(start.gap > STALE, start.gap, 0.0) / h)
        for _ in range(ADDED):
            v1, p = self._solved(W, free, middle, np.flatnonzero(near), aim, h)
            q1 = move(self.model, q, h * v1)
            more = can & ~near & (touching.at(q1, v1).gap < 0.0)
            if not more.any():
                break
            near |= more
        resting = ~hits & (start.gap <= STALE)
        self.force = np.where(resting[:, None], p / h, 0.0)
        self.impulse = np.where(resting[:, None], 0.0, p)
        self.slip = np.hypot(*(middle.J[:, 1:] @ v1).T)
        lands = (p[:, 0] > 0.0) & ~hits
        try:
            if lands.any():
                q1, _ = touching.onto(q1, v1, lands, np.zeros(len(lands), dtype=bool), moving=False)
        except RbdError:
            pass    # gaps that cannot be closed at once: those of the next step are
        return (q1, v1) if self._constrained is None else self._constrained.back(q1, v1)

    def _free(self, q: Array, v: Array, h: float, tau: Array, wrenches: Any) -> tuple[Array, Array]:
        """What impulses give, and the velocity without them; damping is implicit."""
        M, constrained = np.asarray(mass_matrix(self.model, q)), self._constrained
        damping = self.model.damping
        if constrained is None:
            explicit = v + h * forward_dynamics(self.model, q, v, tau, wrenches)
        else:
            explicit = v + h * constrained.acceleration(q, v, tau, wrenches)
        W = np.linalg.inv(M + np.diag(h * damping))
        free = W @ (M @ explicit) if damping.any() else explicit
        if constrained is not None:
            W, free = constrained.inverse_inertia(q, W, free, explicit)
        return 0.5 * (W + W.T), free

    def _solved(self, W: Array, free: Array, here: Gaps, at: Any, aim: Array, h: float) -> tuple[Array, Array]:
        nv, mu = self.model.nv, self.touching.friction[at]
        limit = np.zeros(0) if self._level is None else h * np.broadcast_to(self._level(free), nv)
        rubs = np.flatnonzero(limit > 0.0)
        full, out = np.zeros(3 * len(at) + len(rubs)), np.zeros((self.touching.size, 3))
        if not full.size:
            return free, out
        own, rows = contact_rows(mu, np.zeros(len(at)), limit[rubs])
        A = np.concatenate([here.J[at].reshape(-1, nv), np.eye(nv)[rubs]])[own]
        G, rates = A @ W @ A.T, A @ free
        target = np.zeros(len(own))
        target[rows.normal] = aim[at]
        p = impulses(G, rates, target, rows, NEARLY)
        full[own] = p
        out[at] = full[:3 * len(at)].reshape(-1, 3)
        v = free + W @ (A.T @ p)
        v[rubs[np.abs(p[rows.box]) < limit[rubs]]] = 0.0
        return v, out
