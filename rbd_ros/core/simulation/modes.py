"""Modes of dry friction and stops in explicit integration: sliding or held coordinates, between events.

While a coordinate slides, friction is the smooth effort `−sign(v) F(v)`. A coordinate at rest is held (prescribed zero
acceleration) while friction and stops can provide the required effort. Events are: a velocity reaches zero, a held
coordinate breaks away, a position reaches its stop. The step ends at an event (located to rounding), impulses of stops
act, modes are updated, and the remaining step follows, which keeps the integrator's order.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..dynamics.forward import forward_dynamics
from ..dynamics.hybrid import hybrid_dynamics
from ..dynamics.inverse_mass_matrix import inverse_mass_matrix
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from .bounds import Bounds
from .first_event import FINEST, first_event
from .impulses import impulses_entry
from .integrators import runge_kutta_4

Mask = NDArray[np.bool_]
CLOSE = 1e-4      # relative distance of events below which they may repeat without end
PAUSE = 20        # steps without events after such a step: impacts of coaxial joints' stops may repeat for long
ROUNDING = 1e-11  # relative tolerance of the effort of a held coordinate
TURNS = 70        # iterations of an event search


class Mode(NamedTuple):
    """Per coordinate (nv,): direction of sliding (0: no friction, or held), whether it is held, and the range of
    efforts by which friction and stops can hold it.
    """

    sign: Array
    held: Mask
    low: Array
    high: Array


class Modes:
    """Steps of one robot by RK4. effort: (q, v, t) to the smooth efforts (nv,), without dry friction; level: dry
    friction (nv,) at velocities; bounds: coordinates that can stop, and where.
    """

    def __init__(self, model: RobotModel, level: Callable[[Array], Array], bounds: Bounds) -> None:
        self.model, self._level = model, level
        self._plain_q, self._plain_v, self._lower, self._upper = (
            bounds.plain_q, bounds.plain_v, bounds.lower, bounds.upper)
        self._breakaway = np.zeros(model.nv)
        self._rubs = self._breakaway > 0.0
        self._pause: int = 0

    def advance(self, q: Array, v: Array, t: float, h: float, effort: Callable[[Array, Array, float], Array],
                wrenches: Any) -> tuple[Array, Array] | None:
        """The state h (s) after t; None for endless events, and for `PAUSE` steps after these."""
        if self._pause:
            self._pause -= 1
            return None
        remaining = h
        released = np.zeros(self.model.nv)
        self._breakaway = self._level(released)
        self._rubs = self._breakaway > 0.0
        close = 0
        for _ in range(2 * self.model.nv + 6):
            v = self._impact(q, v)
            mode = self._mode(q, v, t, effort, wrenches, released)
            end, gone = self._try(q, v, t, remaining, effort, wrenches, mode)
            if not (gone > 0.0).any():
                return end
            q, v, s, released = self._until(q, v, t, remaining, effort, wrenches, mode)
            t += s
            remaining -= s
            close += s < CLOSE * h
            if close > 1:
                break
            if remaining <= FINEST * h:
                return q, self._impact(q, v)
        self._pause = PAUSE
        return None

    def forget(self) -> None:
        """Reset after the state was set from outside."""
        self._pause = 0

    # ---- modes

    def _at_stops(self, q: Array) -> tuple[Mask, Mask]:
        """Masks of velocity coordinates at their lower and upper stops."""
        low, high = np.zeros((2, self.model.nv), dtype=bool)
        plain = q[self._plain_q]
        low[self._plain_v] = plain <= self._lower
        high[self._plain_v] = plain >= self._upper
        return low, high

    def _impact(self, q: Array, v: Array) -> Array:
        """Velocities after inelastic impulses of stops; friction has no impulse in zero time."""
        low, high = self._at_stops(q)
        if not ((low & (v < 0.0)) | (high & (v > 0.0))).any():
            return v
        v = np.array(v)
        impulses_entry(self._inverse(q), np.where(high, -np.inf, 0.0), np.where(low, np.inf, 0.0), v)
        return v

    def _inverse(self, q: Array) -> Array:
        W = inverse_mass_matrix(self.model, q)
        return np.ascontiguousarray(0.5 * (W + W.T)).reshape(-1)

    def _mode(self, q: Array, v: Array, t: float, effort: Callable[[Array, Array, float], Array],
              wrenches: Any, released: Array) -> Mode:
        """The mode at a state. released: directions (nv,) in which coordinates break away, 0: none."""
        sign = np.where(self._rubs, np.where(v == 0.0, released, np.sign(v)), 0.0)
        at_low, at_high = self._at_stops(q)
        rest = (v == 0.0) & (released == 0.0) & (self._rubs | at_low | at_high)
        low = np.where(rest, np.where(at_high, -np.inf, -self._breakaway), 0.0)
        high = np.where(rest, np.where(at_low, np.inf, self._breakaway), 0.0)
        if not rest.any():
            return Mode(sign, rest, low, high)
        a = forward_dynamics(self.model, q, v, effort(q, v, t) - sign * self._level(v), wrenches)
        impulses_entry(self._inverse(q), low, high, a)
        return Mode(np.where(rest & self._rubs, np.sign(a), sign), rest & (a == 0.0), low, high)

    # ---- motion in one mode

    def _try(self, q: Array, v: Array, t: float, s: float, effort: Callable[[Array, Array, float], Array],
             wrenches: Any, mode: Mode) -> tuple[tuple[Array, Array], Array]:
        """The state after s (s) in this mode, and the excess (3 nv,) of velocity, effort of held coordinates, and
        position beyond the mode's validity, positive if exceeded.
        """
        model, held = self.model, mode.held
        nodes = iter((0.0, 0.5, 0.5, 1.0))
        none, any_held = np.zeros(model.nv), bool(held.any())

        def acceleration(q: Array, v: Array) -> Array:
            tau = effort(q, v, t + s * next(nodes))
            tau = tau - mode.sign * self._level(v) if self._rubs.any() else tau
            if any_held:
                return hybrid_dynamics(model, q, v, none, tau, held, wrenches).acceleration
            return forward_dynamics(model, q, v, tau, wrenches)

        q, v = runge_kutta_4(model, acceleration, q, v, s)
        gone = np.full(3 * model.nv, -1.0)
        gone[:model.nv] = np.where(mode.sign != 0.0, -mode.sign * v, -1.0)
        if any_held:
            tau = effort(q, v, t + s) - mode.sign * self._level(v)
            taken = hybrid_dynamics(model, q, v, none, tau, held, wrenches).effort - tau
            slack = ROUNDING * (1.0 + np.abs(tau).max() + np.abs(taken).max())
            gone[model.nv:2 * model.nv] = np.where(held, np.maximum(taken - mode.high, mode.low - taken) - slack, -1.0)
        plain = q[self._plain_q]
        free = ~held[self._plain_v]
        gone[2 * model.nv + self._plain_v] = np.where(free, np.maximum(plain - self._upper, self._lower - plain), -1.0)
        return (q, v), gone

    def _until(self, q: Array, v: Array, t: float, s: float, effort: Callable[[Array, Array, float], Array],
               wrenches: Any, mode: Mode) -> tuple[Array, Array, float, Array]:
        """The state at the first event, by false position (Illinois) and bisection, its time, and the directions in
        which held coordinates break away there.
        """
        end, state, gone = first_event(
            lambda at: self._try(q, v, t, at, effort, wrenches, mode), s, TURNS, 12)
        n = self.model.nv
        q1, v1 = np.array(state[0]), np.array(state[1])
        v1[gone[:n] > 0.0] = 0.0
        over = gone[2 * n + self._plain_v] > 0.0
        at_q = self._plain_q[over]
        q1[at_q] = np.clip(q1[at_q], self._lower[over], self._upper[over])
        broken = gone[n:2 * n] > 0.0
        tau = effort(q1, v1, t + end) - mode.sign * self._level(v1)
        taken = hybrid_dynamics(self.model, q1, v1, np.zeros(n), tau, mode.held, wrenches).effort - tau
        return q1, v1, end, np.where(broken, np.where(taken > mode.high, -1.0, 1.0), 0.0)
