"""A closed-loop mechanism in independent coordinates u: all positions, velocities and accelerations.

`f(q) = 0` and A v = 0 leave as many independent coordinates as degrees of freedom: q = φ(u), v = T u̇, a = T ü + g with
T = [1; −P A_u], g = [0; −P Ȧq̇], P the pseudoinverse of A's columns of the dependent coordinates. Newton's method closes
the loops at any u. An open chain is a mechanism without constraints, all of whose coordinates are independent.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import RbdError
from ...model.constraints import ConstraintSet, bound_to
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from .inverse import RANK_TOLERANCE
from .values import ConstraintRows, evaluate

Index = NDArray[np.int64]
CLOSED = 1e-11      # m, rad: residual below which loops count as closed
ITERATIONS = 12
LONGEST = 0.05      # rad, m: of the independent coordinates, per step along a motion
FAR = 0.3           # rad, m: largest Newton step
MOST_STEPS = 10_000
AT_ONCE = 512       # states compared at once
SINGULAR = 1e7      # largest condition number of the dependent columns


class Lifted(NamedTuple):
    """N states of all coordinates: q (N, nq), v, a (N, nv), T (N, nv, n), P (N, dependent, m), A (N, m, nv)."""

    q: Array
    v: Array
    a: Array
    T: Array
    P: Array
    A: Array


@dataclass(frozen=True, eq=False)
class Mechanism:
    """Indices of velocity coordinates: independent (n,), dependent."""

    model: RobotModel
    constraints: ConstraintSet
    independent: Index

    @property
    def size(self) -> int:
        return len(self.independent)

    @cached_property
    def dependent(self) -> Index:
        return np.setdiff1d(np.arange(self.model.nv), self.independent)

    @cached_property
    def places(self) -> Index:
        """Indices in q of the positions of the velocity coordinates; −1 for those of quaternions."""
        return places(self.model)

    @cached_property
    def own(self) -> Index:
        """Indices in q of u (n,)."""
        return self.places[self.independent]

    def coordinates(self, q: Array) -> Array:
        """Positions by velocity coordinate (…, nv), 0 for quaternions."""
        return np.where(self.places >= 0, q[..., self.places], 0.0)

    # ---- positions

    def closed(self, u: Array, guess: Array, most: float = FAR) -> Array:
        """q (N, nq) with these independent coordinates (N, n), from guesses; NaN if Newton's method fails, or ends
        farther than `most` from its guess, as near a bifurcation of the mechanism.
        """
        q = guess.copy()
        q[:, self.own] = u
        active = np.flatnonzero(np.isfinite(q).all(axis=1))
        for _ in range(ITERATIONS):
            if not len(active):
                break
            step = np.zeros((len(active), self.model.nv))
            rows = self._rows(q[active], 1)
            off = np.abs(rows.value).max(axis=1, initial=0.0)
            step[:, self.dependent] = -apply(self.inverse(rows.jacobian), rows.value)
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
        position, posture = begin[self.own], begin[None]
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
            out[:k] = self.moved(near_by, u[:k] - near_by[:, self.own])
        return out

    def moved(self, q: Array, du: Array) -> Array:
        """q (N, nq) moved along the tangent."""
        step = apply(self.tangents(q)[0], du)
        return self.model.integrate(q, np.where(np.isfinite(step), step, 0.0))

    def along(self, u: Array, begin: Array) -> Array:
        """q (N, nq) along a curve u (N, n) that begins near a posture (nq,); NaN from where loops cannot be closed."""
        if not len(self.dependent):
            q = np.tile(begin, (len(u), 1))
            q[:, self.own] = u
            return q
        guess = self.follow(u, begin)
        good = np.isfinite(guess).all(axis=1)
        if good.any():
            guess[good] = self.closed(u[good], guess[good], LONGEST)
        return guess

    # ---- rates

    def tangents(self, q: Array) -> tuple[Array, Array, Array]:
        """T, P and A at closed postures q (N, nq)."""
        A = self._rows(q, 1).jacobian
        P = self.inverse(A)
        T = np.zeros((len(q), self.model.nv, self.size))
        T[:, self.independent] = np.eye(self.size)
        T[:, self.dependent] = -P @ A[:, :, self.independent]
        return T, P, A

    def lifted(self, q: Array, rates: Array, accelerations: Array) -> Lifted:
        """All coordinates at closed postures q (N, nq), for u̇ and ü (N, n)."""
        T, P, A = self.tangents(q)
        v = apply(T, rates)
        bias = evaluate(self.model, self.constraints, q, v, np.zeros_like(v), 2).acceleration
        a = apply(T, accelerations)
        a[:, self.dependent] -= apply(P, bias)
        return Lifted(q, v, a, T, P, A)


def apply(matrix: Array, vector: Array) -> Array:
    """Product of matrices (N, m, n) and vectors (N, n)."""
    return np.asarray(np.matmul(matrix, vector[:, :, None])[:, :, 0])


def places(model: RobotModel) -> Index:
    """Indices in q of the positions of the velocity coordinates; −1 for those of quaternions."""
    indices = np.full(model.nv, -1)
    for joint in model.joints:
        if joint.nq == joint.nv:
            indices[joint.idx_v:joint.idx_v + joint.nv] = joint.idx_q + np.arange(joint.nq)
    return indices


def without_contacts(who: str, model: RobotModel, constraints: ConstraintSet) -> None:
    """Raise `RbdError` for contacts, which leave no positions that follow from others."""
    contacts = bound_to(model, constraints).contacts
    if contacts.rows:
        raise RbdError(f"{who}: rolling and sliding contacts ({', '.join(contacts.names)}) are not supported: what "
                       "rolls has no positions that follow from those of the motors")


def independent_coordinates(model: RobotModel, A: Array, preferred: NDArray[np.bool_]) -> Index:
    """Independent coordinates (n,), preferred ones first (mask (nv,)), such that the dependent ones are well
    conditioned for all of A (N, m, nv): of the choices at each, the best for all.
    """
    size = np.linalg.svd(A, compute_uv=False)
    rank = int(np.sum(size > RANK_TOLERANCE * size.max(axis=1, initial=0.0, keepdims=True), axis=1).max())
    if rank == model.nv:
        raise RbdError(f"model '{model.name}' cannot move: its constraints have rank {rank}, as many as coordinates")
    best, score = np.zeros(0, dtype=np.int64), (-1, -1.0)
    for chosen in {tuple(_independent(model, one, rank, preferred)): None for one in A}:
        sizes = np.linalg.svd(np.delete(A, chosen, axis=2), compute_uv=False)[:, :rank]
        worst = float((sizes[:, -1] / sizes[:, 0]).min()) if rank else 1.0
        if len(chosen) == model.nv - rank and (int(preferred[[*chosen]].sum()), worst) > score:
            best, score = np.array(chosen), (int(preferred[[*chosen]].sum()), worst)
    if not len(best):
        raise RbdError(f"model '{model.name}': no {model.nv - rank} coordinates of joints with a plain position say "
                       "where its other joints are")
    return best


def _independent(model: RobotModel, A: Array, rank: int, preferred: NDArray[np.bool_]) -> list[int]:
    """The choice for one A (m, nv); fewer than needed if positions of the others are no plain numbers."""
    from scipy.linalg import qr    # local import: saves 20 MB in nodes without planning

    tangent = np.linalg.svd(A)[2][rank:].T    # (nv, n), orthonormal
    plain = places(model) >= 0
    chosen: list[int] = []
    for usable in (np.flatnonzero(preferred & plain), np.flatnonzero(plain)):
        candidates = [int(j) for j in usable if j not in chosen]
        if not candidates or len(chosen) == tangent.shape[1]:
            continue
        # remaining freedom with the chosen coordinates fixed
        free = tangent @ np.linalg.svd(tangent[chosen])[2][len(chosen):].T if chosen else tangent
        triangle, order = qr(free[candidates].T, mode="r", pivoting=True)
        sizes = np.abs(np.diagonal(triangle))
        chosen += [candidates[i] for i in order[:len(sizes)][sizes > 1.0 / SINGULAR]]
        chosen = chosen[:tangent.shape[1]]
    return sorted(chosen)
