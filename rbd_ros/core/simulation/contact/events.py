"""Contact modes of explicit integration: open, sliding or sticking, between events.

Accelerations follow at each evaluation from forces by Coulomb's law, of closed contacts and of sticking ones that may
start to slide. Opening and breakaway are continuous, because sticking and sliding have one coefficient of friction.
Where much friction leaves no solution with sliding, a sticking contact opens with a jump of its force: an event, of
compiled steps only. Events are discontinuous: a contact closes, comes to rest, or passes the edge of its face. The step
ends at an event (located to rounding), impacts act, modes are updated, and the remaining step follows, which keeps the
integrator's order. Dry friction of joints and stops are additional rows.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...dynamics.forward import forward_dynamics
from ...errors import RbdError
from ...model.inertia import Array
from ..constrained_motion import ConstrainedMotion
from ..first_event import FINEST, first_event
from ..integrators import runge_kutta_4
from .cones import Unsolved, cone_forces
from .contact_steps import GAP, STALE, STILL, TOUCH
from .event_steps import (
    BISECT, CLOSED, EVENTS, FACE, FARTHEST, FORCE, HOLDS, JOINT, LEAVING, SLIDING, SLIP, SMALL, STICKS, STIFF, TAKEN,
    TURN, TURNS, event_steps,
)
from .impacts import REST, contact_rows, impact, inverse_inertia
from .touching import Gaps, Touching

Mask = NDArray[np.bool_]
EffortLaw = Callable[[Array, Array, float], Array]
PAUSE = 5         # steps by time stepping after a step with more events than EVENTS
EXACT = np.array([GAP, SLIP, FACE, JOINT])


class Mode(NamedTuple):
    """closed, sliding (n,): of contacts; way (n, 2): unit direction in which each slides, pull (n, nv): that in
    coordinates; armed (n,): open ones that may close; held (nv,): joints that rest by dry friction, sign (nv,): in
    which direction the others move. slow (n,): what of them slides so slowly that the direction of its friction is
    stiff, load (n,): their normal forces; both are filled in by the first evaluation.
    """

    closed: Mask
    sliding: Mask
    way: Array
    pull: Array
    armed: Mask
    held: Mask
    sign: Array
    slow: Mask
    load: Array


class Taken(NamedTuple):
    """Result of an evaluation: forces (n, 3), in the contacts' axes at `q`; masks of closed contacts, of sticking ones,
    and of held joints.
    """

    q: Array
    force: Array
    holds: Mask
    sticks: Mask
    held: Mask


class Events:
    """Steps of a model by RK4. joints: dry friction (`joint_data`); level: the same (nv,) at velocities.

    pause: number of steps left to time stepping.
    """

    def __init__(self, touching: Touching, joints: Array, level: Callable[[Array], Array],
                 constrained: ConstrainedMotion | None) -> None:
        self.model, self.touching, self._constrained = touching.model, touching, constrained
        self._joints = joints
        self._inverse, self._level = inverse_inertia(self.model, constrained), level
        self._most = np.zeros(self.model.nv)
        self._rubs = self._most > 0.0
        self.taken: Taken | None = None
        self.pause = 0
        self.impulses: list[tuple[Array, Array]] = []    # state q and (n, 3) of each impact within the step

    def advance(self, q: Array, v: Array, t: float, h: float, effort: EffortLaw,
                wrenches: Any) -> tuple[Array, Array] | None:
        """The state h (s) after t; None for too many events, or equations without solution."""
        remaining = h
        self._most = self._level(np.zeros(self.model.nv))
        self._rubs = self._most > 0.0
        self.impulses = []
        if self.pause:
            self.pause -= 1
            return None
        try:
            for _ in range(EVENTS):
                gaps = self.touching.at(q, v)
                v, gaps = self._impact(q, v, gaps)
                mode = self._mode(v, gaps)
                end, gone = self._try(q, v, t, remaining, effort, wrenches, mode)
                if not (gone > 0.0).any():
                    return self._settled(*end)
                end, s = self._until(q, v, t, remaining, effort, wrenches, mode)
                q, v = self._settled(*end)
                t += s
                remaining -= s
                if remaining <= FINEST * h:
                    v, _ = self._impact(q, v, self.touching.at(q, v))
                    return q, v
        except (Unsolved, RbdError):
            pass
        self.pause = PAUSE
        return None

    @property
    def compiled(self) -> bool:
        """Whether `many` may be called."""
        return self._constrained is None

    def many(self, q: Array, v: Array, h: float, efforts: Array, wrench: Array, steps: int) -> int:
        """Advance q, v in place by at most `steps` steps of h (s); returns the number made. efforts (1 or steps, k,
        nv), see `effort_at`; wrench: in node frames, or empty.
        """
        if self.pause:
            return 0
        touching, nq = self.touching, self.model.nq
        taken, rests, place = np.zeros((touching.size, TAKEN)), np.zeros(self.model.nv, dtype=bool), q.copy()
        hits, count = np.empty((EVENTS + 1, nq + 3 * touching.size)), np.zeros(1, dtype=np.int64)
        if self.taken is not None:
            taken[:, :HOLDS] = self.taken.force
        done = int(event_steps.call(self.model._block, *touching.packed, touching.friction, touching.turns, q, v,
                                    efforts, wrench, self._joints, h, steps, taken, rests, place, touching.restitution,
                                    hits, count))
        if done < steps:
            self.pause = PAUSE + 1    # with the step that has no solution
        if done:
            self.impulses = [(each[:nq], each[nq:].reshape(-1, 3)) for each in hits[:count[0]]]
            self.taken = Taken(place, taken[:, FORCE:HOLDS].copy(), taken[:, HOLDS] != 0.0, taken[:, STICKS] != 0.0,
                               rests)
        return done

    def forget(self) -> None:
        """Reset after the state was set from outside."""
        self.pause, self.taken, self.impulses = 0, None, []

    # ---- modes

    def _impact(self, q: Array, v: Array, here: Gaps) -> tuple[Array, Gaps]:
        rates = here.J[:, 0] @ v
        closed = self._closed(here)
        if not (closed & (rates < -LEAVING)).any():
            return v, here
        touching = self.touching
        indices = np.flatnonzero(closed)
        v, p = impact(self._inverse(q), here.J[indices], v, touching.friction[indices], touching.restitution[indices])
        full = np.zeros((touching.size, 3))
        full[indices] = p
        self.impulses.append((q, full))
        after = here.J[:, 0] @ v
        pinned = closed & (after < REST)
        if rates[closed].min() > -REST and (pinned & (after > 0.0)).any():    # avoids endless slow impacts
            _, v = touching.onto(q, v, pinned, np.zeros(touching.size, dtype=bool))
        return v, touching.at(q, v)

    def _closed(self, here: Gaps) -> Mask:
        return (here.gap < CLOSED) & (here.gap > -STALE) & (here.margin > 0.0)

    def _mode(self, v: Array, here: Gaps) -> Mode:
        closed = self._closed(here) & (here.J[:, 0] @ v <= LEAVING)
        slip = here.J[:, 1:] @ v
        speed = np.hypot(*slip.T)
        sliding = closed & (speed > SLIDING) & (self.touching.friction > 0.0)
        way = np.where(sliding[:, None], slip / np.maximum(speed, 1e-300)[:, None], 0.0)
        moves = np.abs(v) > STILL
        return Mode(closed, sliding, way, np.einsum("ijk,ij->ik", here.J[:, 1:], way),
                    ~closed & (here.gap > -STALE), self._rubs & ~moves, np.where(self._rubs & moves, np.sign(v), 0.0),
                    np.zeros(len(closed), dtype=bool), np.zeros(len(closed)))

    def _ways(self, mode: Mode, J: Array) -> Array:
        """Initial directions of sliding (n, 2), in the present tangent axes, which jump between charts."""
        way = mode.way
        if (mode.sliding & self.touching.turns).any():
            way = way.copy()
            for i in np.flatnonzero(mode.sliding & self.touching.turns):
                direction = np.linalg.lstsq(J[i, 1:].T, mode.pull[i], rcond=None)[0]
                way[i] = direction / np.hypot(*direction)
        return way

    # ---- motion in one mode

    def _acceleration(self, q: Array, v: Array, tau: Array, wrenches: Any, mode: Mode, s: float) -> Array:
        """Accelerations (nv,) within a motion of s (s); forces and modes are stored in `taken`.

        Friction of slow sliding is turned by the implicit force across its way, `−µ λ_n (v_p + s a_p)/|v|`, which is
        found first; then all forces are, with friction along these directions.
        """
        model, touching, constrained = self.model, self.touching, self._constrained
        tau = tau - mode.sign * self._level(v)

        def free(tau: Array) -> Array:
            return forward_dynamics(model, q, v, tau, wrenches) if constrained is None else constrained.acceleration(
                q, v, tau, wrenches)

        a = free(tau)
        force = np.zeros((touching.size, 3))
        at, held = np.flatnonzero(mode.closed), np.flatnonzero(mode.held)
        sticks = mode.closed & ~mode.sliding & (touching.friction > 0.0)
        if not (at.size or held.size):
            self.taken = Taken(q, force, mode.closed, sticks, mode.held)
            return a
        here = touching.at(q, v)
        J, mu, slides = here.J[at], touching.friction[at], mode.sliding[at]
        slow = np.flatnonzero(mode.slow[at])
        own, rows = contact_rows(mu, slides, np.concatenate([self._most[held], TURN * mu[slow] * mode.load[at][slow]]))
        drag, across, slip = np.zeros((len(at), 2)), np.zeros((len(at), 2)), J[:, 1:] @ v
        old = self._ways(mode, here.J)[at]
        across[slow] = old[slow, ::-1] * [-1.0, 1.0]
        R = np.concatenate([J.reshape(-1, model.nv), np.eye(model.nv)[held],
                            np.einsum("ijk,ij->ik", J[:, 1:], across)[slow]])
        bias = np.concatenate([here.bias[at].ravel(), np.zeros(len(held)), (
            across * (here.bias[at, 1:] + slip / s)).sum(axis=1)[slow]])
        if slides.any():
            speed = np.hypot(*slip.T)[:, None]
            ahead = ((slip * old).sum(axis=1) > 0.5 * SLIDING)[:, None] & ~mode.slow[at, None]
            drag = np.where(slides[:, None], -mu[:, None] * np.where(ahead, slip / np.maximum(speed, 1e-300), old), 0.0)
        W, c = self._inverse(q), R[own] @ a + bias[own]
        soft = np.arange(len(own) - len(slow), len(own))

        def along(drag: Array) -> tuple[Array, Array]:
            C = R.copy()
            C[0:3 * len(at):3] += np.einsum("ijk,ij->ik", J[:, 1:], drag)
            G = R[own] @ W @ C[own].T
            G[soft, soft] += np.hypot(*slip[slow].T) / (s * mu[slow] * np.maximum(mode.load[at][slow], 1e-300))
            return C[own], G

        C, G = along(drag)
        lam = cone_forces(G, c, rows)
        if slow.size:
            sin = np.clip(lam[soft] / (mu[slow] * np.maximum(lam[rows.normal[slow]], 1e-300)), -TURN, TURN)[:, None]
            drag[slow] = np.sqrt(1.0 - sin**2) * drag[slow] + sin * drag[slow, ::-1] * [1.0, -1.0]
            C, G = along(drag)
            lam = cone_forces(G, c, rows._replace(limit=np.append(self._most[held], np.zeros(len(slow)))))
        full = np.zeros(len(bias))
        full[own] = lam
        load = C.T @ lam
        parts = full[:3 * len(at)].reshape(-1, 3)
        parts[:, 1:] += drag * parts[:, :1]
        force[at] = parts
        holds, held_now = mode.closed.copy(), mode.held.copy()
        holds[at] = parts[:, 0] > 0.0
        a = a + W @ load if constrained is None else free(tau + load)
        slips = R @ a + bias
        small = SMALL * (1.0 + float(np.abs(a).max()))
        sticks[at] &= holds[at] & (np.hypot(slips[1:3 * len(at):3], slips[2:3 * len(at):3]) < small)
        held_now[held] = np.abs(slips[3 * len(at):3 * len(at) + len(held)]) < small
        self.taken = Taken(q, force, holds, sticks, held_now)
        return a

    def _slow(self, q: Array, v: Array, tau: Array, wrenches: Any, mode: Mode, s: float) -> None:
        """Mark slowly sliding contacts for a motion of s (s) in the mode; raises `Unsolved` if friction would stop them
        within too small a part of it.
        """
        self._acceleration(q, v, tau, wrenches, mode, s)
        assert self.taken is not None
        J = self.touching.at(q, v).J[:, 1:]
        mode.load[:] = self.taken.force[:, 0]
        W, rub = self._inverse(q), self.touching.friction * mode.load
        if s * s * np.abs(W @ (rub @ mode.pull)).max() > FARTHEST:
            raise Unsolved
        turns = np.einsum("ijk,kl,ijl->i", J, W, J) * rub    # m/s²
        mode.slow[:] = mode.sliding & (s * turns > STIFF * np.hypot(*(J @ v).T))

    def _try(self, q: Array, v: Array, t: float, s: float, effort: EffortLaw, wrenches: Any,
             mode: Mode) -> tuple[tuple[Array, Array], Array]:
        """The state after s (s) in this mode, and the excess of each event, positive if passed, in units of its
        tolerance.
        """
        nodes = iter((0.0, 0.5, 0.5, 1.0))

        def acceleration(q: Array, v: Array) -> Array:
            return self._acceleration(q, v, effort(q, v, t + s * next(nodes)), wrenches, mode, s)

        if mode.sliding.any() and not mode.load.any():
            self._slow(q, v, effort(q, v, t), wrenches, mode, s)
        q, v = runge_kutta_4(self.model, acceleration, q, v, s)
        here = self.touching.at(q, v)
        slip = (here.J[:, 1:] @ v * self._ways(mode, here.J)).sum(axis=1)
        gone = (np.where(mode.armed & (here.margin > 0.0), -here.gap - TOUCH, -1.0),
                np.where(mode.sliding, -slip, -1.0),
                np.where(mode.closed & np.isfinite(here.margin), -here.margin, -1.0),
                np.where(mode.sign != 0.0, -mode.sign * v, -1.0))
        return (q, v), np.concatenate([value / least for value, least in zip(gone, EXACT, strict=True)])

    def _until(self, q: Array, v: Array, t: float, s: float, effort: EffortLaw, wrenches: Any,
               mode: Mode) -> tuple[tuple[Array, Array], float]:
        """The state just after the first event, by false position (Illinois) and bisection, and its time."""
        end, state, gone = first_event(
            lambda at: self._try(q, v, t, at, effort, wrenches, mode), s, TURNS, BISECT, 1.0)
        self._try(q, v, t, end, effort, wrenches, mode)    # forces at the end
        q, v = state
        v = v.copy()
        v[gone[3 * self.touching.size:] > 0.0] = 0.0
        return (q, v), end

    def _settled(self, q: Array, v: Array) -> tuple[Array, Array]:
        """The state without drift at closed contacts and held joints."""
        taken = self.taken
        assert taken is not None
        if taken.held.any():
            v = np.where(taken.held, 0.0, v)
        if taken.holds.any():
            return self.touching.onto(q, v, taken.holds, taken.sticks)
        return (q, v) if self._constrained is None else self._constrained.back(q, v)
