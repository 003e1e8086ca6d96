"""Time stepping of contacts by impulses (Moreau 1988) between impacts: any step length, order 2, no gain of energy.

What is closed at the start of a step stays so or lets go. Impulses act in the middle of the step, between flights of
the variational integrator without contacts, friction and stops, such that at the end the velocity obeys Signorini's and
Coulomb's laws: a body at rest falls for half a step and rises for the other. Remaining gap errors are projected away.

Impulses λ after a share α of the step h add the energy `(α − ½) h λ·J̇v`, to lowest order: nothing in the middle. What
remains is of higher order, of either sign; where it is a gain, α is shifted so that a quarter of it is lost.

Where another contact closes, the step ends at that time, found to rounding; impacts act there, at one position, by
which they conserve momentum and add no energy; and the rest of the step follows.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...dynamics.energy import kinetic_energy
from ...dynamics.friction import Friction
from ...dynamics.inverse import inverse_dynamics
from ...dynamics.mass_matrix import mass_matrix
from ...errors import RbdError
from ...model.inertia import Array
from .. import variational
from ..bounds import Bounds
from ..constrained_motion import ConstrainedMotion
from ..discrete_mechanics import CARRIED
from ..first_event import FINEST, first_event
from .cones import Unsolved
from .contact_steps import (
    ACCEPTED, ADDED, BISECT, FAST, GAP, HALVES, IMPACTS, IMPULSE, LATER, NEARLY, NO_GAIN, OUT, ROUNDING, SLIDING, STALE,
    STILL, TOUCH, TRIALS, contact_steps, press_entry,
)
from .events import EffortLaw, Mask
from .impacts import impact, inverse_inertia
from .share import ASIDE, CHOICE, GAINS, HELD, SHARE, STEEPER, next_share_entry, open_choice_entry
from .touching import Gaps, Touching

Flight = Callable[[Array, Array, float, float], tuple[Array, Array]]


class Ended(NamedTuple):
    """End of a part of a step: state q (nq,), v (nv,); impulses p (n, 3) of contacts in it; change (n,): of the rates
    of all gaps, without impulses; gaps there; momentum for the integrator's next step, None: that of v; slip (n,):
    speed of sliding that the law of friction takes.
    """

    q: Array
    v: Array
    p: Array
    change: Array
    gaps: Gaps
    momentum: tuple[Array, Array] | None
    slip: Array


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
        self._laws = np.stack([touching.friction, touching.restitution, touching.turns])
        self.forget()

    def forget(self) -> None:
        """Reset after the state was set from outside."""
        nothing = np.zeros((self.touching.size, 3))
        self.force, self.impulse, self.slip = nothing, nothing, nothing[:, 0]
        self._last = np.zeros((self.touching.size, OUT))    # see `contact_steps`
        self._choice = np.zeros(CHOICE)    # see `share`
        self._choice[STEEPER] = 1.0
        self._p, self._place = np.zeros(CARRIED * self.model.nv), np.full(self.model.nq, np.nan)    # as `_last`

    def advance(self, q: Array, v: Array, t: float, h: float, effort: EffortLaw, wrenches: Any,
                fly: Flight | None) -> tuple[Array, Array]:
        """The state h (s) after t. effort: (q, v, t) to efforts (nv,) without friction and damping; fly: (q, v, t, s)
        to the state after a flight of s (s), while nothing is closed.
        """
        touching, flying, choice = self.touching, self._flying, self._choice
        self.forget()
        self._choice = choice
        choice[HELD] = 0.0    # a search without a solution leaves it
        force, impulse = np.zeros((2, touching.size, 3))
        length = remaining = h
        momentum = flying.momentum
        start = touching.at(q, v)
        near = self._closed(start)
        for turn in range(IMPACTS + ADDED):
            rates = start.J @ v

            def part(s: float, q: Array = q, v: Array = v, near: Mask = near, begin: Any = momentum,
                     t: float = t + h - remaining, rates: Array = rates) -> Ended:
                if fly is not None and not near.any():
                    flying.momentum = begin
                    q1, v1 = fly(q, v, t, s)
                    gaps = touching.at(q1, v1)
                    return Ended(q1, v1, np.zeros((touching.size, 3)), gaps.J[:, 0] @ v1 - rates[:, 0], gaps,
                                 flying.momentum, gaps.slip(v1))
                return self._pressed(q, v, s, effort(q, v, t + 0.5 * s), wrenches, near, rates)

            choice[GAINS] = 0.0
            end = part(length)
            if choice[GAINS] != 0.0 and turn < HALVES:
                length *= 0.5
                continue
            slow = np.abs(end.change) * (2.0 * h / length) + STILL    # rates that do not bounce
            if turn < IMPACTS and (near & (rates[:, 0] < -slow)).any():    # closed, and approaching
                v, p = self._impact(q, v, start, near, slow)
                impulse += p
                momentum, start = None, touching.at(q, v)
                near = near & (start.J[:, 0] @ v <= STILL)
                continue
            can = ~near & (start.gap > -STALE) & (np.minimum(start.margin, end.gaps.margin) > 0.0)
            # at which contacts close: of one that opens from below zero, deeper than now
            depth = np.where(can, np.maximum(TOUCH, GAP - start.gap), np.inf)
            late = end.gaps.gap < -depth
            closes, halved = late.any(), length < remaining
            if not (closes or halved):
                break
            if turn >= IMPACTS:
                near = near | late
                continue

            def attempt(s: float, depth: Array = depth, part: Callable[..., Ended] = part,
                        whole: float = length) -> tuple[Ended, Array]:
                end = part(s)
                choice[HELD] = float(s < whole)    # for all trials: gaps are continuous in the length
                return end, (-end.gaps.gap - depth) / GAP

            if closes:
                before = float((-start.gap - depth).max()) / GAP
                length, end, _ = first_event(attempt, length, TRIALS, BISECT, 1.0, before)
                choice[ASIDE], choice[STEEPER], choice[HELD] = 0.0, 1.0, 0.0
            q, v, momentum = end.q, end.v, end.momentum
            force += end.p
            remaining -= length
            if remaining <= FINEST * h:
                remaining = 0.0
            length = remaining
            start = end.gaps
            closing = self._closed(start)
            if closes and (closing & (start.J[:, 0] @ v < 0.0)).any():
                v, p = self._impact(q, v, start, closing, slow)
                impulse += p
                momentum, start = None, touching.at(q, v)
            near = self._closed(start) & (start.J[:, 0] @ v <= STILL)
            if remaining == 0.0:
                end = end._replace(q=q, v=v, p=np.zeros_like(force), gaps=start, momentum=momentum, slip=start.slip(v))
                break
        self.force, self.impulse = (force + end.p) / h, impulse
        self.slip = end.slip
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
        p = p if begun else self._p.copy()
        known, place, out = np.array([begun]), self._place.copy(), self._last.copy()
        done = int(contact_steps.call(
            self.model._block, flying.block, *touching.packed, self._laws, q, v, p, frame, known, place,
            efforts, wrench, flying.damping, flying.gravity, self._joints, self._free.joints, h, steps, out))
        if done:
            flying.momentum = (p, frame) if known[0] else None
            self._p, self._place, self._last = p, place, out
            self.force, self.impulse, self.slip = out[:, :3] / h, out[:, IMPULSE:LATER], out[:, SLIDING]
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

    def _pressed(self, q: Array, v: Array, s: float, tau: Array, wrenches: Any, near: Mask, rates: Array) -> Ended:
        """The state after s (s) under the effort tau (nv,), damping, dry friction, and impulses of near contacts, with
        these rates (n, 3); as `contact_steps.pressed`.
        """
        choice = self._choice
        open_choice_entry(choice, s)
        while True:
            try:
                end, energy = self._pressed_at(q, v, s, tau, wrenches, near, rates, choice[SHARE])
            except Unsolved:
                if choice[SHARE] == 0.5:
                    raise
                choice[SHARE], choice[ASIDE] = 0.5, 0.0
                return self._pressed_at(q, v, s, tau, wrenches, near, rates, 0.5)[0]
            if not next_share_entry(choice, s, energy):
                return end

    def _pressed_at(self, q: Array, v: Array, s: float, tau: Array, wrenches: Any, near: Mask, rates: Array,
                    share: float) -> tuple[Ended, Array]:
        """`_pressed`, with the impulses after a share of s; energy (ENERGY,) as of `next_share`."""
        touching, model = self.touching, self.model
        q0, free = self._flown(q, v, share * s, tau, wrenches)
        middle, n = touching.at(q0, v), touching.size    # with the bias of what holds
        dv, now = (free - v) / share, middle.J @ free
        curve = (now - rates) / share
        curve[touching.turns, 1:] = (middle.J @ dv + s * middle.bias)[touching.turns, 1:]    # tangents jump
        expected = now + (1.0 - share) * curve
        slip, turn = (np.hypot(*x[:, 1:].T) for x in (expected - curve, curve))
        fast = slip > FAST * (turn + touching.friction * np.abs(curve[:, 0]))
        expected[fast, 1:] -= 0.5 * curve[fast, 1:]    # what friction opposes
        change, p, held = np.empty_like(free), np.zeros((n, 3)), np.zeros(len(v), dtype=bool)
        W = np.ascontiguousarray(self._inverse(q0)).reshape(-1)
        inertia = mass_matrix(model, q0)
        M = np.empty(0) if self._constrained is not None else inertia.reshape(-1)
        if not press_entry(M, W, free + (1.0 - share) * dv, expected, middle.rows, middle.margin, near,
                           touching.friction, self._joints, s, NEARLY, change, p, held):
            raise Unsolved
        gain = float((inertia @ change) @ (free + 0.5 * change))
        by_forces = s * (middle.J @ (W.reshape(inertia.shape) @ self._forces(q0, free, tau, wrenches)))
        turning = np.abs(curve - by_forces)[near].max(initial=0.0)
        by_forces[:, 1:] = 0.0
        slope = float((p * (curve - by_forces))[near].sum())
        q1, v1 = self._flown(q0, free + change, (1.0 - share) * s, tau, wrenches)
        v1[held & (np.abs(v1) < STILL)] = 0.0
        gaps = touching.at(q1, v1)
        closed = near & ((gaps.gap < 0.0) | (p[:, 0] > 0.0))
        kinetic = float(kinetic_energy(model, q1, v1))
        q2, again = q1, closed.any()
        try:
            while again:
                q2 = touching.close(q2, closed)
                deep = near & ~closed & (touching.at(q2, v1).gap < -ACCEPTED)    # what others have pushed in
                closed, again = closed | deep, deep.any()
        except RbdError:
            q2 = q1    # gaps that cannot be closed now are closed in the next step
        gain += float(kinetic_energy(model, q2, v1)) - kinetic - float(
            self._forces(q1, v1, tau, wrenches) @ model.difference(q1, q2))
        q1 = q2
        if self._constrained is not None:
            q1, v1 = self._constrained.back(q1, v1)
        gaps = touching.at(q1, v1)
        slip = np.where(near, np.hypot(*(expected + middle.J @ change)[:, 1:].T), gaps.slip(v1))
        end = Ended(q1, v1, p, (now - rates)[:, 0] / share, gaps, None, slip)
        aim = NO_GAIN * kinetic
        energy = gain if turning > STILL else 0.0, slope, aim, aim + ROUNDING / s * float(p[:, 0].sum())
        return end, np.array(energy)

    def _flown(self, q: Array, v: Array, s: float, tau: Array, wrenches: Any) -> tuple[Array, Array]:
        """The state after s (s) without contacts, dry friction and limits."""
        self._free.forget()
        try:
            return self._free.advance(q, v, s, tau, wrenches)
        except variational.Unsolved:
            raise Unsolved from None

    def _forces(self, q: Array, v: Array, tau: Array, wrenches: Any) -> Array:
        """Generalised forces (nv,): effort, weight, wrenches and damping."""
        rest, damping = np.zeros(len(v)), self._free.damping
        Q = tau - inverse_dynamics(self.model, q, rest, rest, wrenches)
        return np.asarray(Q - damping @ v if damping.size else Q)
