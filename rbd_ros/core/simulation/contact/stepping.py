"""Time stepping of contacts by impulses (Moreau 1988): any step length, order 1, dissipative.

A step of the variational integrator without contacts, friction and stops comes first; impulses at its end then make the
velocity obey Signorini's, Newton's and Coulomb's laws. Forces of closed contacts act evenly over the step, so that a
body at rest does not creep; impacts act at the end and conserve momentum. Remaining gap errors are projected away.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...dynamics.friction import Friction
from ...errors import RbdError
from ...model.inertia import Array
from .. import variational
from ..bounds import Bounds
from ..constrained_motion import ConstrainedMotion
from ..integrators import move
from .cones import Unsolved
from .events import STALE, STILL, Mask
from .impacts import contact_rows, impulses, inverse_inertia
from .touching import Gaps, Touching

ADDED = 10       # largest number of additions of contacts in a step
NEARLY = 1e-3    # accepted residual, relative to the largest impulse, if Newton's method cycles


class Stepping:
    """Steps of a model. level: dry friction (nv,) of joints at velocities."""

    def __init__(self, touching: Touching, level: Callable[[Array], Array],
                 constrained: ConstrainedMotion | None) -> None:
        self.model, self.touching, self._level, self._constrained = touching.model, touching, level, constrained
        self._free = variational.Variational(
            self.model, Bounds(self.model, False, False).joints(self.model, Friction()), None, constrained)
        self._inverse = inverse_inertia(self.model, constrained)
        nothing = np.zeros((touching.size, 3))
        self.force, self.impulse = nothing, nothing    # of the last step, in the contacts' axes
        self.slip = np.zeros(touching.size)    # speed of sliding

    def free_of_contact(self, q: Array, v: Array, h: float) -> bool:
        """Whether a step to (q, v) from one without closed contacts stays free of contact."""
        gaps = self.touching.at(q, v)
        return not ((gaps.gap <= 0.0) & (gaps.margin > 0.0) & (gaps.gap > -STALE - 2.0 * h * np.abs(
            gaps.J[:, 0] @ v))).any()

    def closed(self, q: Array, v: Array) -> bool:
        """Whether a contact is closed at the start of a step."""
        gaps = self.touching.at(q, v)
        return bool(((gaps.gap <= STALE) & (gaps.gap > -STALE) & (gaps.margin > 0.0)).any())

    def advance(self, q: Array, v: Array, h: float, tau: Array, wrenches: Any) -> tuple[Array, Array]:
        """The state after h (s) under the effort tau (nv,), damping and dry friction."""
        touching = self.touching
        self._free.forget()
        try:
            q0, free = self._free.advance(q, v, h, tau, wrenches)
        except variational.Unsolved:
            raise Unsolved from None
        W, start, end = self._inverse(q0), touching.at(q, v), touching.at(q0, free)
        rates = start.J[:, 0] @ v
        coming = end.J[:, 0] @ free
        can = (start.gap > -STALE) & (np.minimum(start.margin, end.margin) > 0.0)
        near = can & ((end.gap <= 0.0) | (start.gap <= STALE))
        hits = (touching.restitution > 0.0) & (rates < -2.0 * np.abs(coming - rates) - STILL)
        aim = np.where(hits, touching.restitution * rates, 0.0)
        for _ in range(ADDED):
            v1, p, pressed = self._solved(W, free, end, np.flatnonzero(near), aim, h, hits)
            q1 = move(self.model, q0, 0.5 * h * pressed)
            more = can & ~near & (touching.at(q1, v1).gap < 0.0)
            if not more.any():
                break
            near |= more
        slow = np.abs(rates) <= 2.0 * np.abs(coming - rates) + STILL
        resting = ~hits & ((start.gap <= STALE) | (near & slow))    # also what a step of falling brings there
        self.force = np.where(resting[:, None], p / h, 0.0)
        self.impulse = np.where(resting[:, None], 0.0, p)
        self.slip = np.hypot(*(end.J[:, 1:] @ v1).T)
        closed = near & ((touching.at(q1, v1).gap < 0.0) | (resting & (p[:, 0] > 0.0)))
        try:
            if closed.any():
                q1, _ = touching.onto(q1, v1, closed, np.zeros(len(closed), dtype=bool), moving=False)
        except RbdError:
            pass    # gaps that cannot be closed now are closed in the next step
        return (q1, v1) if self._constrained is None else self._constrained.back(q1, v1)

    def _solved(self, W: Array, free: Array, here: Gaps, at: Any, aim: Array, h: float,
                hits: Mask) -> tuple[Array, Array, Array]:
        """Velocities after the impulses, the impulses (n, 3), and the velocity change (nv,) by those of closed
        contacts.
        """
        nv, mu = self.model.nv, self.touching.friction[at]
        limit = h * self._level(free)
        rubs = np.flatnonzero(limit > 0.0)
        full, out = np.zeros(3 * len(at) + len(rubs)), np.zeros((self.touching.size, 3))
        if not full.size:
            return free, out, np.zeros(nv)
        own, rows = contact_rows(mu, np.zeros(len(at), dtype=bool), limit[rubs])
        A = np.concatenate([here.J[at].reshape(-1, nv), np.eye(nv)[rubs]])[own]
        G, rates = A @ W @ A.T, A @ free
        target = np.zeros(len(own))
        target[rows.normal] = aim[at]
        p = impulses(G, rates, target, rows, NEARLY)
        full[own] = p
        out[at] = full[:3 * len(at)].reshape(-1, 3)
        v = free + W @ (A.T @ p)
        v[rubs[np.abs(p[rows.box]) < limit[rubs]]] = 0.0
        lasting = np.concatenate([np.repeat(~hits[at], 3), np.ones(len(rubs), dtype=bool)])[own]
        return v, out, W @ (A.T @ (p * lasting))
