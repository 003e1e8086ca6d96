"""A closed-loop mechanism in independent coordinates u: all positions, velocities, accelerations, efforts.

`f(q) = 0` and A v = 0 leave as many independent coordinates as degrees of freedom: q = φ(u), v = T u̇, a = T ü + g with
T = [1; −P A_u], g = [0; −P Ȧq̇], P the pseudoinverse of A's columns of the dependent coordinates. Newton's method closes
the loops at any u, so that they are closed at all times, not only at a solver's knots. By virtual work,
`Tᵀ (ID + friction − τ) = 0`; redundant motors share the load by least effort or least multipliers (K eq. 59–66).
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...dynamics.friction import Friction
from ...derivatives.constrained import constraint_slopes
from ...dynamics.constrained.inverse import RANK_TOLERANCE
from ...dynamics.constrained.values import ConstraintRows, evaluate
from ...dynamics.inverse import inverse_dynamics
from ...model.constraints import ConstraintSet
from ...model.robot_model import RobotModel

Array = NDArray[np.float64]
Index = NDArray[np.int64]
CLOSED = 1e-11      # m, rad: residual below which loops count as closed
ITERATIONS = 12
LONGEST = 0.05      # rad, m: of the independent coordinates, per step along a motion
FAR = 0.3           # rad, m: largest Newton step
MOST_STEPS = 10_000
AT_ONCE = 512        # states compared at once


class Lifted(NamedTuple):
    """N states of all coordinates: q (N, nq), v, a (N, nv), T (N, nv, n), P (N, dependent, m), A (N, m, nv)."""

    q: Array
    v: Array
    a: Array
    T: Array
    P: Array
    A: Array


class Shared(NamedTuple):
    """Efforts of the actuated coordinates (N, actuated), ID with friction (N, nv), and the terms of their distribution.
    """

    effort: Array
    whole: Array
    means: Array      # µ (N, n) of least efforts, or ν (N, nv) of least multipliers, 0 where actuated
    multipliers: Array    # λ (N, m)


@dataclass(frozen=True, eq=False)
class ClosedChain:
    """Indices of velocity coordinates: independent (n,), dependent, actuated. start: a closed posture (nq,)."""

    model: RobotModel
    constraints: ConstraintSet
    independent: Index
    actuated: Index
    minimize: str
    weights: Array    # of efforts (actuated,)
    friction: Friction
    wrenches: Any
    start: Array

    @property
    def size(self) -> int:
        return len(self.independent)

    @cached_property
    def dependent(self) -> Index:
        return np.setdiff1d(np.arange(self.model.nv), self.independent)

    @cached_property
    def passive(self) -> Index:
        return np.setdiff1d(np.arange(self.model.nv), self.actuated)

    @cached_property
    def places(self) -> Index:
        """Where the position of each velocity coordinate is in q; −1 for those of quaternions."""
        return places(self.model)

    def coordinates(self, q: Array) -> Array:
        """Positions by velocity coordinate (…, nv), 0 for quaternions."""
        return np.where(self.places >= 0, q[..., self.places], 0.0)

    # ---- positions

    def closed(self, u: Array, guess: Array, most: float = FAR) -> Array:
        """q (N, nq) with these independent coordinates (N, n), from guesses; NaN if Newton's method fails, or ends
        farther than `most` from its guess, as near a bifurcation of the mechanism.
        """
        q = guess.copy()
        q[:, self.places[self.independent]] = u
        active = np.flatnonzero(np.isfinite(q).all(axis=1))
        for _ in range(ITERATIONS):
            if not len(active):
                break
            step = np.zeros((len(active), self.model.nv))
            rows = self._rows(q[active], 1)
            off = np.abs(rows.value).max(axis=1, initial=0.0)
            step[:, self.dependent] = -_apply(self.inverse(rows.jacobian), rows.value)
            wide = np.abs(step).max(axis=1, initial=0.0)
            step *= np.minimum(1.0, FAR / np.maximum(wide, 1e-300))[:, None]
            go = np.isfinite(wide)
            q[active[go]] = self.model.integrate(q[active[go]], step[go])    # closed ones, too: to rounding
            q[active[~go]] = np.nan
            active = active[go & (off > CLOSED)]
        q[active] = np.nan    # not converged
        good = np.flatnonzero(np.isfinite(q).all(axis=1))
        if len(good):
            apart = np.abs(self.model.difference(guess[good], q[good])).max(axis=1)
            q[good[apart > most]] = np.nan
        return q

    def _rows(self, q: Array, order: int) -> ConstraintRows:
        zero = np.zeros((len(q), self.model.nv))
        return evaluate(self.model, self.constraints, q, zero, zero, order)

    def inverse(self, A: Array) -> Array:
        """P of A (N, m, nv); NaN if the dependent columns are singular."""
        columns = A[:, :, self.dependent]
        if columns.shape[1] == columns.shape[2]:
            try:
                return np.asarray(np.linalg.inv(columns))
            except np.linalg.LinAlgError:
                pass
        try:
            return np.asarray(np.linalg.pinv(columns, rcond=RANK_TOLERANCE))
        except np.linalg.LinAlgError:
            return np.full(np.swapaxes(columns, 1, 2).shape, np.nan)

    def follow(self, u: Array, begin: Array) -> Array:
        """Guesses (N, nq) along a curve u (N, n), in short steps from the posture `begin`; NaN after the last closed
        one.
        """
        position, posture = begin[self.places[self.independent]], begin[None]
        postures, owner, k = [posture], np.zeros(len(u), dtype=np.int64), 0
        while k < len(u):
            far = np.abs(u[k:k + AT_ONCE] - position).max(axis=1) > LONGEST
            near = int(np.argmax(far)) if far.any() else len(far)
            owner[k:k + near] = len(postures) - 1
            k += near
            if k == len(u) or near == len(far):
                continue
            parts = int(np.ceil(min(np.abs(u[k] - position).max() / LONGEST, MOST_STEPS)))
            for i in range(parts):
                way = (u[k] - position) / (parts - i)
                posture = self.closed((position + way)[None], self.moved(posture, way[None]), LONGEST)
                if not np.isfinite(posture).all():
                    break
                position = position + way
            if not np.isfinite(posture).all():
                break
            postures.append(posture)
        out = np.full((len(u), self.model.nq), np.nan)
        if k:
            near_by = np.concatenate(postures)[owner[:k]]
            out[:k] = self.moved(near_by, u[:k] - near_by[:, self.places[self.independent]])
        return out

    def moved(self, q: Array, du: Array) -> Array:
        """q (N, nq) moved along the tangent."""
        A = self._rows(q, 1).jacobian
        step = np.zeros((len(q), self.model.nv))
        step[:, self.independent] = du
        step[:, self.dependent] = -_apply(self.inverse(A), _apply(A[:, :, self.independent], du))
        return self.model.integrate(q, np.where(np.isfinite(step), step, 0.0))

    def along(self, u: Array, begin: Array) -> Array:
        """q (N, nq) along a curve u (N, n) that begins near a posture (nq,)."""
        guess = self.follow(u, begin)
        good = np.isfinite(guess).all(axis=1)
        if good.any():
            guess[good] = self.closed(u[good], guess[good], LONGEST)
        return guess

    # ---- rates

    def lifted(self, q: Array, rates: Array, accelerations: Array) -> Lifted:
        """All coordinates at closed postures q (N, nq), for u̇ and ü (N, n)."""
        N, nv = len(q), self.model.nv
        A = self._rows(q, 1).jacobian
        P = self.inverse(A)
        T = np.zeros((N, nv, self.size))
        T[:, self.independent] = np.eye(self.size)
        T[:, self.dependent] = -P @ A[:, :, self.independent]
        v = _apply(T, rates)
        bias = evaluate(self.model, self.constraints, q, v, np.zeros((N, nv)), 2).acceleration
        a = _apply(T, accelerations)
        a[:, self.dependent] -= _apply(P, bias)
        return Lifted(q, v, a, T, P, A)

    def efforts(self, at: Lifted) -> Shared:
        """Efforts of the motors; redundant ones share the load by `minimize`."""
        h = inverse_dynamics(self.model, at.q, at.v, at.a, self.wrenches) + self.friction.effort(at.v)
        if self.minimize == "effort":
            Ta = at.T[:, self.actuated]
            WTa = Ta / self.weights[:, None]
            means = _solved(np.swapaxes(Ta, 1, 2) @ WTa, _apply(np.swapaxes(at.T, 1, 2), h))
            tau = _apply(WTa, means)
            residual = h.copy()
            residual[:, self.actuated] -= tau
            # Aᵀλ = residual has a solution, λ by P is one: Tᵀ residual is zero
            lam = _apply(np.swapaxes(at.P, 1, 2), residual[:, self.dependent])
            return Shared(tau, h, means, lam)
        Ap = at.A[:, :, self.passive]
        means = np.zeros_like(h)
        means[:, self.passive] = _apply(self.pinv(Ap), h[:, self.passive])
        lam = _apply(at.A, means)
        tau = h[:, self.actuated] - _apply(np.swapaxes(at.A[:, :, self.actuated], 1, 2), lam)
        return Shared(tau, h, means, lam)

    def pinv(self, B: Array) -> Array:
        """(Bᵀ B)⁺ for B (N, m, k)."""
        _, s, Vt = np.linalg.svd(B, full_matrices=False)
        kept = s > RANK_TOLERANCE * s.max(axis=1, initial=0.0, keepdims=True)
        inverse = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0) ** 2
        return np.asarray(np.swapaxes(Vt, 1, 2) @ (inverse[:, :, None] * Vt))

    def slopes(self, at: Lifted, lam: Array, y: Array) -> tuple[Array, ...]:
        """∂(A a + Ȧq̇)/∂q, /∂v, ∂(Aᵀλ)/∂q, ∂(A y)/∂q."""
        return constraint_slopes(self.model, self.constraints, at.q, at.v, at.a, lam, np.ascontiguousarray(y))


def _apply(matrix: Array, vector: Array) -> Array:
    return np.asarray(np.matmul(matrix, vector[:, :, None])[:, :, 0])


def _solved(G: Array, right: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(G, right[:, :, None])[:, :, 0])
    except np.linalg.LinAlgError:
        return np.full_like(right, np.nan)


def places(model: RobotModel) -> Index:
    """Where the position of each velocity coordinate is in q; −1 for those of quaternions."""
    indices = np.full(model.nv, -1)
    for joint in model.joints:
        if joint.nq == joint.nv:
            indices[joint.idx_v:joint.idx_v + joint.nv] = joint.idx_q + np.arange(joint.nq)
    return indices
