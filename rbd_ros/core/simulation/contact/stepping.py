"""Time stepping of contacts by impulses (Moreau 1988) between impacts: any step length, order 1, dissipative.

What is closed at the start of a step stays so or lets go: a step of the variational integrator without contacts,
friction and stops comes first; impulses at its end then make the velocity obey Signorini's and Coulomb's laws. They act
evenly over the step, so that a body at rest does not creep. Remaining gap errors are projected away.

Where another contact closes, the step ends at that time, found to rounding; impacts act there, at one position, by
which they conserve momentum and add no energy; and the rest of the step follows.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...dynamics.friction import Friction
from ...dynamics.mass_matrix import mass_matrix
from ...errors import RbdError
from ...model.inertia import Array
from .. import variational
from ..bounds import Bounds
from ..constrained_motion import ConstrainedMotion
from ..first_event import FINEST, first_event
from ..integrators import move
from .cones import Unsolved
from .contact_steps import (
    ADDED, BISECT, GAP, IMPACTS, IMPULSE, NEARLY, OUT, SLIDING, STALE, STILL, TOUCH, TRIALS, contact_steps, press_entry,
)
from .events import EffortLaw, Mask
from .impacts import impact, inverse_inertia
from .touching import Gaps, Touching

Flight = Callable[[Array, Array, float, float], tuple[Array, Array]]


class Ended(NamedTuple):
    """End of a part of a step: state q (nq,), v (nv,); impulses p (n, 3) of contacts in it; coming (n,): rates of all
    gaps before these impulses; gaps there; momentum for the integrator's next step, None: that of v.
    """

    q: Array
    v: Array
    p: Array
    coming: Array
    gaps: Gaps
    momentum: tuple[Array, Array] | None


class Stepping:
    """Steps of a model. joints: their dry friction (`joint_data`). flying: the integrator of flights.

    After `advance`: force, impulse (n, 3), in the contacts' axes, of what stays closed and of impacts; slip (n,): speed
    of sliding.
    """

    def __init__(self, touching: Touching, joints: Array, constrained: ConstrainedMotion | None,
                 flying: variational.Variational) -> None:
        self.model, self.touching, self._joints, self._constrained = touching.model, touching, joints, constrained
        self._free = variational.Variational(
            self.model, Bounds(self.model, False, False).joints(self.model, Friction()), None, constrained)
        self._inverse, self._flying = inverse_inertia(self.model, constrained), flying
        self._laws = np.stack([touching.friction, touching.restitution])
        self.forget()

    def forget(self) -> None:
        """Reset after the state was set from outside."""
        nothing = np.zeros((self.touching.size, 3))
        self.force, self.impulse, self.slip = nothing, nothing, nothing[:, 0]
        self._last = np.zeros((self.touching.size, OUT))    # see `contact_steps`

    def advance(self, q: Array, v: Array, t: float, h: float, effort: EffortLaw, wrenches: Any,
                fly: Flight | None) -> tuple[Array, Array]:
        """The state h (s) after t. effort: (q, v, t) to efforts (nv,) without friction and damping; fly: (q, v, t, s)
        to the state after a flight of s (s), while nothing is closed.
        """
        touching, flying = self.touching, self._flying
        self.forget()
        force, impulse = np.zeros((2, touching.size, 3))
        remaining = h
        momentum = flying.momentum
        start = touching.at(q, v)
        near = self._closed(start)
        for turn in range(IMPACTS + ADDED):
            rates = start.J[:, 0] @ v

            def part(s: float, q: Array = q, v: Array = v, near: Mask = near, begin: Any = momentum,
                     t: float = t + h - remaining) -> Ended:
                if fly is not None and not near.any():
                    flying.momentum = begin
                    q1, v1 = fly(q, v, t, s)
                    gaps = touching.at(q1, v1)
                    return Ended(q1, v1, np.zeros((touching.size, 3)), gaps.J[:, 0] @ v1, gaps, flying.momentum)
                return self._pressed(q, v, s, effort(q, v, t + 0.5 * s), wrenches, near)

            end = part(remaining)
            slow = np.abs(end.coming - rates) * (2.0 * h / remaining) + STILL    # rates that do not bounce
            if turn < IMPACTS and (near & (rates < -slow)).any():    # closed, and approaching
                v, p = self._impact(q, v, start, near, slow)
                impulse += p
                momentum, start = None, touching.at(q, v)
                near = near & (start.J[:, 0] @ v <= STILL)
                continue
            can = ~near & (start.gap > -STALE) & (np.minimum(start.margin, end.gaps.margin) > 0.0)
            late = can & (end.gaps.gap < -TOUCH)
            if not late.any():
                break
            if turn >= IMPACTS:
                near = near | late
                continue

            def attempt(s: float, can: Mask = can, part: Callable[[float], Ended] = part) -> tuple[Ended, Array]:
                end = part(s)
                return end, np.where(can, -end.gaps.gap - TOUCH, -1.0) / GAP

            s, end, _ = first_event(attempt, remaining, TRIALS, BISECT, 1.0)
            q, v, momentum = end.q, end.v, end.momentum
            force += end.p
            remaining -= s
            if remaining <= FINEST * h:
                remaining = 0.0
            start = end.gaps
            closing = self._closed(start)
            if (closing & (start.J[:, 0] @ v < 0.0)).any():
                v, p = self._impact(q, v, start, closing, slow)
                impulse += p
                momentum, start = None, touching.at(q, v)
            near = self._closed(start) & (start.J[:, 0] @ v <= STILL)
            if remaining == 0.0:
                end = end._replace(q=q, v=v, p=np.zeros_like(force), gaps=start, momentum=momentum)
                break
        self.force, self.impulse = (force + end.p) / h, impulse
        self.slip = np.hypot(*(end.gaps.J[:, 1:] @ end.v).T)
        flying.momentum = end.momentum
        return end.q, end.v

    @property
    def compiled(self) -> bool:
        """Whether `many` may be called."""
        flying = self._flying
        return self._constrained is None and flying.central == self._free.central

    def many(self, q: Array, v: Array, h: float, efforts: Array, wrench: Array, steps: int) -> int:
        """Advance q, v in place by at most `steps` steps of h (s); returns the number made. efforts (1 or steps, k,
        nv), see `effort_at`; wrench: in node frames, or empty.
        """
        flying, touching = self._flying, self.touching
        begun, p, frame = flying.begin()
        known, out = np.array([begun]), self._last.copy()
        done = int(contact_steps.call(
            self.model._block, flying.block, *touching.packed, self._laws, q, v, p, frame, known, efforts,
            wrench, flying.damping, flying.gravity, self._joints, self._free.joints, h, steps, out))
        if done:
            flying.momentum = (p, frame) if known[0] else None
            self._last = out
            self.force, self.impulse, self.slip = out[:, :3] / h, out[:, IMPULSE:], out[:, SLIDING]
        return done

    def _closed(self, here: Gaps) -> Mask:
        return np.asarray((here.gap <= STALE) & (here.gap > -STALE) & (here.margin > 0.0))

    def _impact(self, q: Array, v: Array, here: Gaps, closed: Mask, slow: Array) -> tuple[Array, Array]:
        """Velocities (nv,) after the impact of what is closed, and its impulses (n, 3). slow (n,): rates that do not
        bounce.
        """
        touching, at = self.touching, np.flatnonzero(closed)
        bounce = np.where(here.J[at, 0] @ v < -slow[at], touching.restitution[at], 0.0)
        v, p = impact(self._inverse(q), here.J[at], v, touching.friction[at], bounce)
        full = np.zeros((touching.size, 3))
        full[at] = p
        return v, full

    def _pressed(self, q: Array, v: Array, s: float, tau: Array, wrenches: Any, near: Mask) -> Ended:
        """The state after s (s) under the effort tau (nv,), damping, dry friction, and impulses of near contacts."""
        touching = self.touching
        self._free.forget()
        try:
            q0, free = self._free.advance(q, v, s, tau, wrenches)
        except variational.Unsolved:
            raise Unsolved from None
        here = touching.at(q0, free)
        v1, change, p = np.empty_like(free), np.empty_like(free), np.zeros((touching.size, 3))
        W = np.ascontiguousarray(self._inverse(q0)).reshape(-1)
        M = np.empty(0) if self._constrained is not None else mass_matrix(self.model, q0).reshape(-1)
        if not press_entry(M, W, free, here.rows, here.margin, near, touching.friction, self._joints, s, NEARLY, v1,
                           change, p):
            raise Unsolved
        q1 = move(self.model, q0, 0.5 * s * change)
        gaps = touching.at(q1, v1)
        closed = near & ((gaps.gap < 0.0) | (p[:, 0] > 0.0))
        try:
            if closed.any():
                q1, _ = touching.onto(q1, v1, closed, np.zeros(len(closed), dtype=bool), moving=False)
                gaps = touching.at(q1, v1)
        except RbdError:
            pass    # gaps that cannot be closed now are closed in the next step
        if self._constrained is not None:
            q1, v1 = self._constrained.back(q1, v1)
            gaps = touching.at(q1, v1)
        return Ended(q1, v1, p, here.J[:, 0] @ free, gaps, None)
