"""Forces or impulses of contacts with Coulomb friction: cone complementarity problem, solved exactly.

Rows are velocities (or accelerations) w = G λ + c under forces λ. Each is one of

    normal     0 ≤ λ ⟂ w ≥ 0
    tangent    two rows with a normal's: |λ_t| ≤ µ λ_n, and λ_t = −µ λ_n w_t/|w_t| unless w_t = 0
    box        |λ| ≤ limit, and λ = −limit sign(w) unless w = 0: dry friction of a joint

Newton's method on the projection equations (Alart and Curnier 1991), first from all contacts sticking; if that fails,
rounds of projected Gauss–Seidel find another start. Non-unique forces (four legs of a table) are those of least norm
for one set of active rows, so that equal legs carry equal loads.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...model.inertia import Array

Indices = NDArray[np.intp]
ROUNDS = 8
NEWTON = 12
SWEEPS = 30        # Gauss–Seidel sweeps per round
EXACT = 1e-11      # residual tolerance relative to the largest force
RANK = 1e-11       # relative singular value below which forces are not unique


class Rows(NamedTuple):
    """Roles of rows: `normal` (k,); `tangent` (t, 2), `bound` (t,): the row of their normal, `friction` (t,);
    `box` (b,), `limit` (b,).
    """

    normal: Indices
    tangent: Indices
    bound: Indices
    friction: Array
    box: Indices
    limit: Array


class Unsolved(Exception):
    """No solution found, or none exists (Painlevé's paradox)."""


def cone_forces(G: Array, c: Array, rows: Rows, nearly: float = 0.0) -> Array:
    """λ (r,) for G (r, r), c (r,); raises `Unsolved` if none is found. nearly: accepted residual, relative to the
    largest force, of an inexact solution.
    """
    problem = _Problem(G, c, rows)
    none = np.zeros(len(c))
    lam, y, rest = none, none.copy(), True    # all closed and sticking
    y[rows.normal] = 1.0
    for turn in range(ROUNDS):
        last = np.inf
        for _ in range(NEWTON):
            lam = problem.newton(lam, y, rest)
            y = lam - problem.rho * (G @ lam + c)
            residual = problem.left(lam, y)
            if residual <= EXACT:
                return problem.clean(lam, y)
            if residual > 0.5 * last or rest:
                problem.drop(lam, y)
            last, rest = residual, False
        lam = problem.sweeps(none.copy() if turn == 0 or not np.isfinite(lam).all() else lam, SWEEPS * (turn + 1))
        y = lam - problem.rho * (G @ lam + c)
    if problem.left(lam, y) <= nearly:
        return problem.clean(lam, y)
    raise Unsolved


class _Problem:
    def __init__(self, G: Array, c: Array, rows: Rows) -> None:
        self.G, self.c, self.rows = G, c, rows
        size = np.abs(np.diag(G))
        size = np.maximum(size, 1e-12 * max(float(size.max()), 1e-300))
        x, y = rows.tangent.T
        size[x] = size[y] = np.maximum(size[x], size[y]) + np.abs(G[x, y])    # the larger eigenvalue, or more
        self.rho = 1.0 / size
        self.scale = float(np.abs(c * self.rho).max()) + 1e-300

    def radius(self, lam: Array) -> Array:
        return np.asarray(self.rows.friction * np.maximum(lam[self.rows.bound], 0.0))

    def left(self, lam: Array, y: Array) -> float:
        """Residual of the equations, λ − its projection, relative to the largest force."""
        rows = self.rows
        out = lam.copy()
        out[rows.normal] -= np.maximum(y[rows.normal], 0.0)
        out[rows.box] -= np.clip(y[rows.box], -rows.limit, rows.limit)
        pull = y[rows.tangent]
        size = np.hypot(*pull.T)
        share = np.minimum(1.0, self.radius(lam) / np.maximum(size, 1e-300))
        out[rows.tangent] -= share[:, None] * pull
        return float(np.abs(out).max()) / max(self.scale, float(np.abs(lam).max()))

    def drop(self, lam: Array, y: Array) -> None:
        """Release, in y, the closed contact that separates most (on uneven ground, three of four legs stand)."""
        normals = self.rows.normal[y[self.rows.normal] > 0.0]
        apart = lam[normals] - y[normals]
        if normals.size and apart.max() > EXACT * self.scale:
            y[normals[np.argmax(apart)]] = -1.0

    def newton(self, lam: Array, y: Array, rest: bool) -> Array:
        """The next λ: sticking rows have w = 0, the others lie on their bounds. rest: all rows stick."""
        rows, G, rho = self.rows, self.G, self.rho
        K, b = rho[:, None] * G, -rho * self.c
        free = rows.normal[y[rows.normal] <= 0.0]
        K[free] = np.eye(len(b))[free]
        b[free] = 0.0
        if not rest:
            beyond = np.abs(y[rows.box]) > rows.limit
            at = rows.box[beyond]
            K[at] = np.eye(len(b))[at]
            b[at] = np.sign(y[at]) * rows.limit[beyond]
            for (i, j), n, mu in zip(rows.tangent, rows.bound, rows.friction, strict=True):
                pair, reach = [i, j], mu * max(lam[n], 0.0)
                size = np.hypot(*y[pair])
                if size <= reach and y[n] > 0.0:
                    continue
                K[pair], b[pair] = 0.0, 0.0
                K[i, i] = K[j, j] = 1.0
                if y[n] <= 0.0 or size == 0.0:
                    continue
                u = y[pair] / size
                turn = reach / size * (np.eye(2) - np.outer(u, u))    # how the direction follows y
                slope = -rho[i] * G[pair]
                slope[[0, 1], pair] += 1.0
                K[pair] -= turn @ slope
                K[pair, n] -= mu * u
                b[pair] = turn @ (y[pair] - slope @ lam)
        return np.asarray(np.linalg.lstsq(K, b, rcond=RANK)[0])

    def sweeps(self, lam: Array, count: int) -> Array:
        """Projected Gauss–Seidel."""
        rows, G, rho = self.rows, self.G, self.rho
        w = G @ lam + self.c
        parts = [([i], -1, np.inf) for i in rows.normal] + [([i], -2, f) for i, f in zip(rows.box, rows.limit,
                                                                                     strict=True)]
        parts += [(list(pair), n, mu) for pair, n, mu in zip(rows.tangent, rows.bound, rows.friction, strict=True)]
        for _ in range(count):
            for indices, n, most in parts:
                new = lam[indices] - rho[indices] * w[indices]
                if n == -1:
                    new = np.maximum(new, 0.0)
                elif n == -2:
                    new = np.clip(new, -most, most)
                else:
                    size, reach = np.hypot(*new), most * max(lam[n], 0.0)
                    new = new if size <= reach else new * (reach / size)
                w += G[:, indices] @ (new - lam[indices])
                lam[indices] = new
        return lam

    def clean(self, lam: Array, y: Array) -> Array:
        """Set forces of open contacts to exact zeros."""
        rows = self.rows
        lam[rows.normal] = np.where(y[rows.normal] > 0.0, np.maximum(lam[rows.normal], 0.0), 0.0)
        lam[rows.tangent[lam[rows.bound] == 0.0]] = 0.0
        return lam
