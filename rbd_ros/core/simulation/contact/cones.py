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

from ...compiled.assign import assign
from ...compiled.entry import entry
from ...compiled.kernel import kernel, routine, sweep
from ...dynamics.constrained.minimum_norm import minimum_norm
from ...model.block import all_finite
from ...model.inertia import Array

Indices = NDArray[np.intp]
ROUNDS = 8
NEWTON = 12
HALVINGS = 4       # of a Newton step that does not help
SWEEPS = 30        # Gauss–Seidel sweeps per round
SOFTEST, SOFTENING, HARDEST = 1.0, 0.3, 1e-9    # shares of the diagonal of softer contacts
EXACT = 1e-11      # residual tolerance relative to the largest force
JAMMED = 100.0     # of the scale of forces: larger forces do not relax the tolerance
NORMAL, FIRST, SECOND, BOX = 0.0, 1.0, 2.0, 3.0    # values of ROLE; FIRST and SECOND: the two rows of a tangent
# Of roles (4, r): role; of FIRST the row of SECOND; of both that of their normal; their µ, or the limit of a box.
ROLE, PARTNER, OF, LEVEL = range(4)


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

    @property
    def roles(self) -> Array:
        """As kernels take them."""
        roles = np.zeros((4, len(self.normal) + 2 * len(self.bound) + len(self.box)))
        for role, at in ((FIRST, self.tangent[:, 0]), (SECOND, self.tangent[:, 1])):
            roles[ROLE, at], roles[OF, at], roles[LEVEL, at] = role, self.bound, self.friction
        roles[PARTNER, self.tangent[:, 0]] = self.tangent[:, 1]
        roles[ROLE, self.box], roles[LEVEL, self.box] = BOX, self.limit
        return roles


class Unsolved(Exception):
    """No solution found, or none exists (Painlevé's paradox)."""


def cone_forces(G: Array, c: Array, rows: Rows) -> Array:
    """λ (r,) for G (r, r), c (r,); raises `Unsolved` if none is found."""
    lam = np.zeros(len(c))
    if cone_forces_entry(np.ascontiguousarray(G), c, rows.roles, lam):
        return lam
    raise Unsolved


@entry("boolean(float64[:, ::1], float64[::1], float64[:, ::1], float64[::1])")
def cone_forces_entry(G, c, roles, lam):
    """`solve_cones`, exactly."""
    return solve_cones(G, c, roles, 0.0, lam)


@routine
def solve_cones(G, c, roles, nearly, lam):
    """lam (r,), in: a guess, zeros for none; out: λ for G (r, r), c (r,). False if none is found.

    nearly: accepted residual, relative to the largest force, if no exact solution is found. Where the search fails, it
    follows the solutions of softer contacts, with a share of its diagonal added to G, to the rigid one.
    """
    if search_cones(G, c, roles, nearly, lam):
        return True
    n = c.shape[0]
    trial, soft = np.empty(n), G.copy()
    lam[:] = 0.0
    share = SOFTEST
    while share > HARDEST:
        for i in range(n):
            soft[i, i] = (1.0 + share) * G[i, i]
        assign(trial, lam)
        if search_cones(soft, c, roles, 0.0, trial):
            assign(lam, trial)
            assign(trial, lam)
            if search_cones(G, c, roles, 0.0, trial):
                assign(lam, trial)
                return True
        share *= SOFTENING
    return False


@routine
def search_cones(G, c, roles, nearly, lam):
    """`solve_cones` from this guess, then from none."""
    n = c.shape[0]
    rho, y, w, before = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    K, b, space = np.empty(n * n), np.empty(n), np.empty((2, n * n + 2 * n))
    scale = steps_of(G, c, roles, rho)
    guessed = False
    for i in range(n):
        guessed |= lam[i] != 0.0
    residual, rest = np.inf, False
    for turn in range(-1 if guessed else 0, ROUNDS):
        if turn == -1:
            ahead(G, c, rho, lam, w, y)
        elif turn == 0:
            rest = True    # all closed and sticking
            for i in range(n):
                lam[i] = 0.0
                y[i] = 1.0 if roles[ROLE, i] == NORMAL else 0.0
            residual = np.inf
        last = residual
        for _ in range(NEWTON):
            assign(before, lam)
            newton_step(G, c, roles, rho, lam, y, rest, K, b, space)
            ahead(G, c, rho, lam, w, y)
            residual = residual_of(roles, lam, y, scale)
            if turn > 0:    # no farther than it helps: full steps may go to and fro without end
                for _ in range(HALVINGS):
                    if residual < last:
                        break
                    for i in range(n):
                        lam[i] = 0.5 * (lam[i] + before[i])
                    ahead(G, c, rho, lam, w, y)
                    residual = residual_of(roles, lam, y, scale)
            if residual <= EXACT:
                clean(roles, lam, y)
                return True
            if residual > 0.5 * last or rest:
                drop(roles, lam, y, scale)
            last, rest = residual, False
        if turn == -1:
            continue
        if turn == 0 or not all_finite(lam):
            lam[:] = 0.0
        gauss_seidel(G, c, roles, rho, lam, w, SWEEPS * (turn + 1))
        ahead(G, c, rho, lam, w, y)
        residual = residual_of(roles, lam, y, scale)
    if residual <= nearly:
        clean(roles, lam, y)
        return True
    return False


@sweep
def steps_of(G, c, roles, rho):
    """rho (r,): steps of the projection; returns the scale of forces."""
    n = c.shape[0]
    largest = 1e-300
    for i in range(n):
        largest = max(largest, abs(G[i, i]))
    for i in range(n):
        rho[i] = max(abs(G[i, i]), 1e-12 * largest)
    for i in range(n):
        if roles[ROLE, i] == FIRST:
            j = int(roles[PARTNER, i])
            rho[i] = rho[j] = max(rho[i], rho[j]) + abs(G[i, j])    # the larger eigenvalue, or more
    scale = 0.0
    for i in range(n):
        rho[i] = 1.0 / rho[i]
        scale = max(scale, abs(c[i] * rho[i]))
    return scale + 1e-300


@kernel
def ahead(G, c, rho, lam, w, y):
    """w = G λ + c and y = λ − ρ w."""
    n = c.shape[0]
    for i in range(n):
        x = c[i]
        for k in range(n):
            x += G[i, k] * lam[k]
        w[i] = x
        y[i] = lam[i] - rho[i] * x


@sweep
def residual_of(roles, lam, y, scale):
    """Residual of the equations, λ − its projection, relative to the largest force, or to `JAMMED` times the scale if
    that is less: relative to immense forces, wrong rates would seem small.
    """
    worst, largest = 0.0, scale
    for i in range(lam.shape[0]):
        role, first, second = roles[ROLE, i], 0.0, 0.0
        if role == NORMAL:
            first = lam[i] - max(y[i], 0.0)
        elif role == BOX:
            first = lam[i] - min(max(y[i], -roles[LEVEL, i]), roles[LEVEL, i])
        elif role == FIRST:
            j = int(roles[PARTNER, i])
            reach = roles[LEVEL, i] * max(lam[int(roles[OF, i])], 0.0)
            share = min(1.0, reach / max(np.hypot(y[i], y[j]), 1e-300))
            first, second = lam[i] - share * y[i], lam[j] - share * y[j]
        if not abs(first) + abs(second) < np.inf:
            return np.inf
        worst, largest = max(worst, abs(first), abs(second)), max(largest, abs(lam[i]))
    return worst / min(largest, JAMMED * scale)


@kernel
def drop(roles, lam, y, scale):
    """Release, in y, the closed contact that separates most (on uneven ground, three of four legs stand)."""
    worst, at = EXACT * scale, -1
    for i in range(lam.shape[0]):
        if roles[ROLE, i] == NORMAL and y[i] > 0.0 and lam[i] - y[i] > worst:
            worst, at = lam[i] - y[i], i
    if at >= 0:
        y[at] = -1.0


@routine
def newton_step(G, c, roles, rho, lam, y, rest, K, b, space):
    """The next λ: sticking rows have w = 0, the others lie on their bounds. rest: all rows stick."""
    n = c.shape[0]
    for i in range(n):
        for k in range(n):
            K[n * i + k] = rho[i] * G[i, k]
        b[i] = -rho[i] * c[i]
    for i in range(n):
        role = roles[ROLE, i]
        if role == NORMAL:
            if y[i] <= 0.0:
                fixed(K, b, n, i, 0.0)
        elif role == BOX:
            if not rest and abs(y[i]) > roles[LEVEL, i]:
                fixed(K, b, n, i, np.sign(y[i]) * roles[LEVEL, i])
        elif role == FIRST and not rest:
            j, of, mu = int(roles[PARTNER, i]), int(roles[OF, i]), roles[LEVEL, i]
            reach, size = mu * max(lam[of], 0.0), np.hypot(y[i], y[j])
            if size <= reach and y[of] > 0.0:
                continue
            fixed(K, b, n, i, 0.0)
            fixed(K, b, n, j, 0.0)
            if y[of] <= 0.0 or size == 0.0:
                continue
            u0, u1, share = y[i] / size, y[j] / size, reach / size
            # how the direction turns
            t00, t01, t11 = share * (1.0 - u0 * u0), -share * u0 * u1, share * (1.0 - u1 * u1)
            along0, along1 = y[i], y[j]
            for k in range(n):
                s0 = (1.0 if k == i else 0.0) - rho[i] * G[i, k]
                s1 = (1.0 if k == j else 0.0) - rho[i] * G[j, k]
                along0 -= s0 * lam[k]
                along1 -= s1 * lam[k]
                K[n * i + k] -= t00 * s0 + t01 * s1
                K[n * j + k] -= t01 * s0 + t11 * s1
            K[n * i + of] -= mu * u0
            K[n * j + of] -= mu * u1
            b[i] = t00 * along0 + t01 * along1
            b[j] = t01 * along0 + t11 * along1
    least_squares(K, b, n, space, lam)


@kernel
def fixed(K, b, n, i, value):
    """Row i of K x = b becomes x_i = value."""
    for k in range(n):
        K[n * i + k] = 1.0 if k == i else 0.0
    b[i] = value


@routine
def least_squares(K, b, n, space, x):
    """x (n,): the solution of K x = b of least norm, Kᵀ (K Kᵀ)⁺ b, in the least-squares sense. space (2, n² + 2 n)."""
    Z, T = space[0][:n * n], space[1][:n * n]
    z, y = space[0][n * n:], space[1][n * n:]
    P = np.empty(n * n)
    assign(Z, K)
    minimum_norm(Z, n, n, b, 0, 0.0, T, P, y, z, 0)
    for k in range(n):
        x[k] = 0.0
        for i in range(n):
            x[k] -= K[n * i + k] * z[i]


@routine
def gauss_seidel(G, c, roles, rho, lam, w, count):
    """Projected Gauss–Seidel: so many sweeps."""
    n = c.shape[0]
    for i in range(n):
        w[i] = c[i]
        for k in range(n):
            w[i] += G[i, k] * lam[k]
    for _ in range(count):
        for i in range(n):
            role = roles[ROLE, i]
            if role == SECOND:
                continue
            j = int(roles[PARTNER, i])
            new, other = lam[i] - rho[i] * w[i], 0.0
            if role == NORMAL:
                new = max(new, 0.0)
            elif role == BOX:
                new = min(max(new, -roles[LEVEL, i]), roles[LEVEL, i])
            else:
                other = lam[j] - rho[j] * w[j]
                size, reach = np.hypot(new, other), roles[LEVEL, i] * max(lam[int(roles[OF, i])], 0.0)
                if size > reach:
                    new, other = new * (reach / size), other * (reach / size)
                change = other - lam[j]
                for k in range(n):
                    w[k] += G[k, j] * change
                lam[j] = other
            change = new - lam[i]
            for k in range(n):
                w[k] += G[k, i] * change
            lam[i] = new


@kernel
def clean(roles, lam, y):
    """Set forces of open contacts to exact zeros."""
    for i in range(lam.shape[0]):
        if roles[ROLE, i] == NORMAL:
            lam[i] = max(lam[i], 0.0) if y[i] > 0.0 else 0.0
    for i in range(lam.shape[0]):
        if (roles[ROLE, i] == FIRST or roles[ROLE, i] == SECOND) and lam[int(roles[OF, i])] == 0.0:
            lam[i] = 0.0
