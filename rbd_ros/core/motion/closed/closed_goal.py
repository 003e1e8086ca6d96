"""A pose of a body as start or end of a motion of a closed-loop mechanism, in independent coordinates u."""
from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from ...errors import RbdError
from ...model.robot_model import RobotModel
from ..places.body_goal import (
    DAMPING, ENOUGH, LONGEST, REACHED, RESTARTS, RESTORATIONS, RESTORED, STEP, STEPS, BodyGoal,
)
from .closed_chain import ClosedChain

Array = NDArray[np.float64]
WAY = 40         # postures checked on a line between two postures
SHORTER = 0.25   # factor of a step whose end has open loops
SMALLEST = 1e-3  # smallest share of a step
WIDE = 0.5       # rad, m: range of a restart without limits


class ClosedGoal:
    """`BodyGoal` as a function of u (n,): q = φ(u), in the assembly mode of a given posture."""

    def __init__(self, goal: BodyGoal, chain: ClosedChain, near: Array) -> None:
        self.goal, self.chain = goal, chain
        self.body, self.size = goal.body, goal.size
        self._near = near    # the latest closed posture (nq,)

    def closed(self, u: Array) -> Array:
        """q (nq,) of u; NaN if the loops cannot be closed on the way from the last posture."""
        q: Array = self.chain.along(u[None], self._near)[0]
        if np.isfinite(q).all():
            self._near = q
        return q

    def equations(self, _: RobotModel, u: Array) -> Array:
        """Values of `BodyGoal.equations` at u."""
        return self._equations(self.closed(u))

    def _equations(self, q: Array) -> Array:
        return self.goal.equations(self.chain.model, q) if np.isfinite(q).all() else np.full(self.size, np.nan)

    def jacobian(self, _: RobotModel, u: Array) -> Array:
        """Derivatives (size, n) of the equations."""
        return self._jacobians(self.closed(u)[None])[0]

    def _jacobians(self, q: Array) -> Array:
        out = np.full((len(q), self.size, self.chain.size), np.nan)
        good = np.flatnonzero(np.isfinite(q).all(axis=1))
        rest = np.zeros((len(good), self.chain.size))
        T = self.chain.lifted(q[good], rest, rest).T
        for k, tangent in zip(good, T, strict=True):
            out[k] = self.goal.jacobian(self.chain.model, q[k]) @ tangent
        return out

    def curvature(self, _: RobotModel, u: Array, weights: Array) -> Array:
        """Second derivatives (n, n) of weights · equations, by differences of the first ones; 0 where unknown."""
        posture = self.closed(u)
        steps = np.concatenate([np.zeros((1, len(u))), STEP * np.eye(len(u))])
        slopes = weights @ self._jacobians(self.chain.along(u + steps, posture))
        out = (slopes[1:] - slopes[0]) / STEP
        return 0.5 * (out + out.T) if np.isfinite(out).all() else np.zeros_like(out)

    def reached(self, _: RobotModel, u: Array) -> Array:
        """Coordinates close to u that satisfy the equations, at least nearly."""
        for _attempt in range(RESTORATIONS):
            q = self.closed(u)
            c = self._equations(q)
            if not np.abs(c).max() > RESTORED:    # or NaN
                break
            u = u - np.linalg.lstsq(self._jacobians(q[None])[0], c, rcond=1e-8)[0]
        return u

    def holds(self, model: RobotModel, u: Array) -> bool:
        """Whether the body is at the goal, and not rotated by half a turn, which also satisfies the equations."""
        q = self.closed(u)
        return bool(np.isfinite(q).all()) and self.goal.holds(model, q)

    def posture(self, lower: Array, upper: Array, until: float, name: str) -> Array:
        """A closed posture (nq,) at the goal within limits (nv,), reachable along a line of u from the known posture;
        the nearest of several. Raises `RbdError` if none is found by the time `until` (`time.perf_counter`).
        """
        chain, begin = self.chain, self._near
        independent = chain.places[chain.independent]
        middle = begin[independent]
        low, high = (np.where(np.isfinite(limit[chain.independent]), limit[chain.independent], middle + side * WIDE)
                     for limit, side in ((lower, -1.0), (upper, 1.0)))
        rng = np.random.default_rng(2)
        postures: list[Array] = []
        best = np.inf
        for attempt in range(RESTARTS):
            q = begin
            if attempt:    # restart: as far towards random postures as loops can be closed
                way = chain.along(np.linspace(middle, rng.uniform(low, high), WAY), begin)
                closed = int(np.sum(np.isfinite(way).all(axis=1)))
                q = way[int(rng.integers(1, closed))] if closed > 1 else begin
            q = self._sought(q, low, high)
            off = float(np.abs(self._equations(q)).max())
            best = min(best, off)
            positions = chain.coordinates(q)
            if (off <= 1e3 * REACHED and self.goal._upright(chain.model, q) and (positions >= lower).all()
                    and (positions <= upper).all() and self._led_to(q, begin)):
                postures.append(q)
            if len(postures) >= ENOUGH or time.perf_counter() > until:
                break
        if not postures:
            raise RbdError(f"{name}: no posture within the position limits, with loops closed on a straight way of the "
                           f"independent joints, was found that brings '{self.body}' to "
                           f"{np.array2string(np.asarray(self.goal.position), precision=4)}; the best is off by "
                           f"{best:.3g}")
        self._near = min(postures, key=lambda q: float(np.abs(q[independent] - middle).max()))
        return self._near

    def _sought(self, q: Array, low: Array, high: Array) -> Array:
        """The posture found by a damped Newton's method from a closed one."""
        chain = self.chain
        independent = chain.places[chain.independent]
        for _ in range(STEPS):
            c = self._equations(q)
            if np.abs(c).max() <= REACHED:
                break
            J = self._jacobians(q[None])[0]
            step = -J.T @ np.linalg.solve(J @ J.T + DAMPING * np.abs(c).max() * np.eye(len(c)), c)
            step *= min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
            share = 1.0
            while share > SMALLEST:
                candidate = chain.along(np.clip(q[independent] + share * step, low, high)[None], q)[0]
                if np.isfinite(candidate).all():
                    break
                share *= SHORTER
            if share <= SMALLEST:
                break
            q = candidate
        return q

    def _led_to(self, q: Array, begin: Array) -> bool:
        chain = self.chain
        independent = chain.places[chain.independent]
        end = chain.along(np.linspace(begin[independent], q[independent], WAY), begin)[-1]
        return bool(np.isfinite(end).all() and np.abs(chain.model.difference(q, end)).max() <= 1e-6)
