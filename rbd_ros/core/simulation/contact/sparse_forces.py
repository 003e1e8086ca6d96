"""Forces along sparse rows: those of the step before, or by Newton's methods on the inertia, or by the dense search."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...compiled.assign import assign
from ...compiled.kernel import allocating, routine, sweep
from .cones import BOX, EXACT, FIRST, LEVEL, NORMAL, OF, PARTNER, ROLE, drop, solve_cones
from .sliding import slide, slide_from_near
from .sparse_rows import SOFT, ahead_of, hold, product, rate_of, responses, settle, soften, steps_of_rows

TURNS = 12     # largest number of repetitions, and of choices of the contacts that hold
STILL_RIGHT = 1e-10    # residual, as of `solve_cones`, of forces that stay those of the step before
W, AHEAD, RHO, GUESS, E, NUMBERS = range(6)    # of `RowSpace.numbers`


class RowSpace(NamedTuple):
    """Workspace of `solve_rows`: responses (r, width), numbers (NUMBERS, r), a factor (nv·nv), a velocity (nv,), and
    which rows hold (r,).
    """

    responses: Any
    numbers: Any
    factor: Any
    velocity: Any
    holds: Any


@routine
def row_space(size, nv, width):
    """Workspace for at most `size` rows."""
    return RowSpace(np.empty((size, width)), np.empty((NUMBERS, size)), np.empty(nv * nv), np.empty(nv),
                    np.empty(size, np.bool_))


@sweep
def stick(rows, M, Y, c, soft, roles, rho, scale, lam, change, space):
    """λ (r,), in: a guess, zeros for none, of a cone problem in whose solution nothing slides; change = Yᵀ λ. False,
    with λ as before, if none is found. M (nv·nv): inertia, of which Y has the responses.
    """
    _, at, cols, count = rows
    n = c.shape[0]
    w, y, guess, e = space.numbers[W][:n], space.numbers[AHEAD][:n], space.numbers[GUESS][:n], space.numbers[E][:n]
    x, holds, K = space.velocity, space.holds, space.factor
    assign(guess, lam)
    known, least = False, np.inf
    for r in range(n):
        holds[r] = False
        least = min(least, rho[r])
    for r in range(n):
        e[r] = soft[r] + SOFT / least    # alike for all, by which the norm is that of λ
        known |= lam[r] != 0.0
    ahead_of(rows, Y, c, soft, roles, rho, scale, lam, change, w, y)
    last, slides = np.inf, False
    for turn in range(TURNS):
        same = turn > 0
        for r in range(n):
            role, now = roles[ROLE, r], True
            if known or turn > 0:    # else all hold
                if role == NORMAL:
                    now = y[r] > 0.0
                elif role == BOX:
                    now = abs(y[r]) <= roles[LEVEL, r]
                else:
                    of = int(roles[OF, r])
                    now = y[of] > 0.0
                    if role == FIRST and now:
                        slides |= np.hypot(y[r], y[int(roles[PARTNER, r])]) > roles[LEVEL, r] * max(lam[of], 0.0)
            same &= now == holds[r]
            holds[r] = now
        if slides:
            break
        if not same:    # from zero: what is not unique is of least norm
            for r in range(n):
                lam[r] = np.sign(y[r]) * roles[LEVEL, r] if roles[ROLE, r] == BOX and not holds[r] else 0.0
            ahead_of(rows, Y, c, soft, roles, rho, scale, lam, change, w, y)
            soften(rows, M, e, holds, K)
        hold(rows, K, e, holds, w, lam, x)
        residual = ahead_of(rows, Y, c, soft, roles, rho, scale, lam, change, w, y)
        if residual <= EXACT:
            settle((Y, at, cols, count), roles, lam, y, change)
            return True
        if not residual < np.inf:
            break
        if same and residual > 0.5 * last:
            drop(roles, lam, y, scale)
        last = residual
    assign(lam, guess)
    return False


@sweep
def solve_rows(rows, C, symmetric, inertia, c, soft, roles, nearly, lam, change, space):
    """lam (r,), in: a guess, zeros for none: forces along rows C, as sparse as `rows`, of which the velocities (or
    accelerations) of `rows` are A W Cᵀ λ + soft λ + c; change (nv,): W Cᵀ λ. False if none are found.

    symmetric: whether C is A; inertia: M (nv·nv), or (0,) where it has no inverse, and its inverse W; roles (4, r or
    more); nearly: see `solve_cones`; space: `row_space`.
    """
    M, inverse = inertia
    _, at, cols, count = rows
    r = at.shape[0]
    Y, w, y, rho = space.responses[:r], space.numbers[W][:r], space.numbers[AHEAD][:r], space.numbers[RHO][:r]
    responses((C, at, cols, count), inverse, Y)
    scale = steps_of_rows(rows, Y, c, soft, roles, rho)
    if ahead_of(rows, Y, c, soft, roles, rho, scale, lam, change, w, y) <= STILL_RIGHT or (
            symmetric and M.shape[0] > 0 and stick(rows, M, Y, c, soft, roles, rho, scale, lam, change, space)):
        return True
    return search_rows(rows, C, symmetric, M, Y, c, soft, roles, rho, scale, nearly, lam, change)


@allocating
def search_rows(rows, C, symmetric, M, Y, c, soft, roles, rho, scale, nearly, lam, change):
    """`solve_rows` where forces have changed and a contact slides or `stick` fails. Y: responses of C; rho, scale: of
    `steps_of_rows`.
    """
    _, at, cols, count = rows
    r = at.shape[0]
    guess = np.empty(r)
    if M.shape[0] > 0:
        assign(guess, lam)
        for kept in (0.0, 1.0):
            if slide(rows, C, M, Y, c, soft, roles, rho, scale, kept, lam, change):
                return True
            assign(lam, guess)
        if slide_from_near(rows, C, M, Y, c, soft, roles, rho, scale, lam, change):
            return True
    G, one, effect = np.empty((r, r)), np.zeros(r), np.empty(change.shape[0])
    for k in range(r):
        one[k] = 1.0
        product((Y, at, cols, count), one, effect)
        one[k] = 0.0
        for i in range(k if symmetric else 0, r):
            G[i, k] = rate_of(rows, i, effect)
            if symmetric:
                G[k, i] = G[i, k]
        G[k, k] += soft[k]
    if not solve_cones(G, c, roles, nearly, lam):
        return False
    product((Y, at, cols, count), lam, change)
    return True
