"""Forces of contacts of which some slide, by Newton's method on systems as small and sparse as the inertia.

Rows of `sparse_rows`, of which those that hold have rates `w + A x = −e δ` for small e and H x = Cᵀ δ. The projection
equations of `cones`, linearised (Alart and Curnier 1991), leave a sliding contact two of them: its normal, with
friction along the way in C, and across the way, which turns with the slip, viscous friction, e = (|y_t| − µ λ_n)/(ρ µ
λ_n).

Newton's steps may cycle far from the solution. What leads near it is convex: contacts parted faster by µ |w_t| of the
iterate before (De Saxcé and Feng 1998) obey the law of maximum dissipation, whose forces are those of least energy
½ xᵀ H x + ½ e |P(λ − w/e)|², with P the projection onto the cones (method of multipliers): by Newton's method with a
search along each step, which cannot fail.
"""
from __future__ import annotations

import numpy as np

from ...compiled.assign import assign, assign_rows
from ...compiled.kernel import kernel, routine, sweep
from ..linear_equations import eliminate, substitute
from .cones import BOX, EXACT, FIRST, LEVEL, NORMAL, OF, PARTNER, ROLE, drop
from .sparse_rows import ahead_of, product, rate_of, settle, soften

SOFT = 1e-6       # e of Newton's method and of the convex problem, relative to the response of a row to its own force
SOFTER = 1e-2
NEWTON = 15       # largest number of Newton steps, each repeated so often from the rates that remain
REPEATS = 3
ROUNDS = 12       # largest number of new starts by the convex problem, each of so many iterates
ITERATES = 5
CONVEX = 20       # largest number of Newton steps in one of these,
LINE = 20         # and of trials along a step
NEAR = 1e-12      # relative energy of a last step


@routine
def choose(rows, C, roles, y, lam, rho, cone, turned, e, holds, ways):
    """Which rows hold by y, in place: their `turned` A and C, e (r,), in: without sliding, and ways (r, 2) of sliding.

    cone: as of a projection onto the cone, whose normal moves with the slip.
    """
    A, at, _, count = rows
    A1, C1 = turned
    assign_rows(A1, A)
    assign_rows(C1, C)
    for r in range(lam.shape[0]):
        ways[r, 0] = ways[r, 1] = 0.0
        if roles[ROLE, r] == NORMAL:
            holds[r] = y[r] > 0.0
        elif roles[ROLE, r] == BOX:
            holds[r] = abs(y[r]) <= roles[LEVEL, r]
        else:
            holds[r] = y[int(roles[OF, r])] > 0.0
    for r in range(lam.shape[0]):
        if roles[ROLE, r] != FIRST or not holds[r]:
            continue
        k, of, mu = int(roles[PARTNER, r]), int(roles[OF, r]), roles[LEVEL, r]
        size, reach = np.hypot(y[r], y[k]), mu * max(lam[of], 0.0)
        if size <= reach:
            continue
        u0, u1 = y[r] / size, y[k] / size
        holds[r], ways[r, 0], ways[r, 1] = False, u0, u1
        e[k] += min((size - reach) / max(rho[r] * reach, 1e-300), 1e300)
        for a in range(count[at[r]]):
            C1[of, a] += mu * (u0 * C[r, a] + u1 * C[k, a])
            C1[k, a] = u0 * C[k, a] - u1 * C[r, a]
            A1[k, a] = u0 * A[k, a] - u1 * A[r, a]
            if cone:
                A1[of, a] = C1[of, a]
        if cone:
            e[of] *= 1.0 + mu * mu


@routine
def softened_inverse(rows, C, H, e, holds):
    """(H + Cᵀ e⁻¹ A)⁻¹ (nv, nv) of the rows that hold, H (nv·nv); NaN where that is singular."""
    A, at, cols, count = rows
    nv = int(np.sqrt(H.shape[0]) + 0.5)
    K, inverse = np.empty((nv, nv)), np.zeros((nv, nv))
    for i in range(nv):
        inverse[i, i] = 1.0
        for j in range(i + 1):
            K[i, j] = K[j, i] = H[nv * i + j]
    for r in range(at.shape[0]):
        if holds[r]:
            k = at[r]
            for a in range(count[k]):
                x = C[r, a] / e[r]
                if x != 0.0:
                    for b in range(count[k]):
                        K[cols[k, a], cols[k, b]] += x * A[r, b]
    eliminate(K, inverse)
    return inverse


@kernel
def slips(roles, ways, r):
    """Whether r is the first tangential row of a sliding contact."""
    return roles[ROLE, r] == FIRST and (ways[r, 0] != 0.0 or ways[r, 1] != 0.0)


@sweep
def turn_back(roles, holds, ways, d, lam):
    """lam (r,) of forces d along turned rows."""
    for r in range(lam.shape[0]):
        lam[r] = d[r]
    for r in range(lam.shape[0]):
        if slips(roles, ways, r):
            k, push = int(roles[PARTNER, r]), roles[LEVEL, r] * d[int(roles[OF, r])]
            lam[r] = push * ways[r, 0] - d[k] * ways[r, 1]
            lam[k] = push * ways[r, 1] + d[k] * ways[r, 0]


@routine
def slide(rows, C, M, Y, c, soft, roles, rho, scale, kept, lam, change):
    """λ (r,), in: a guess, zeros for none, of a cone problem, and change = Yᵀ λ; False if none is found. M
    (nv·nv): the inertia, of which Y has the responses to C; kept: 0.0 for forces of least norm, 1.0 for those near the
    guess, if they are not unique.
    """
    A, at, cols, count = rows
    n, nv = c.shape[0], change.shape[0]
    w, y, e, d, x, push = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(nv), np.empty(nv)
    A1, C1, holds, ways = A.copy(), A.copy(), np.empty(n, np.bool_), np.empty((n, 2))
    turned = A1, at, cols, count
    known, hardest = False, np.inf
    for r in range(n):
        hardest = min(hardest, rho[r])
        known |= lam[r] != 0.0
    last = ahead_of(rows, Y, c, soft, roles, rho, scale, lam, change, w, y)
    for r in range(n if not known else 0):    # all hold, and stick
        y[r] = 1.0 if roles[ROLE, r] == NORMAL else 0.0
    for _ in range(NEWTON):
        for r in range(n):
            e[r] = SOFT / hardest
        choose(rows, C, roles, y, lam, rho, False, (A1, C1), e, holds, ways)
        for r in range(n):
            d[r] = kept * lam[r] if holds[r] else 0.0
            if roles[ROLE, r] == BOX and not holds[r]:
                d[r] = np.sign(y[r]) * roles[LEVEL, r]
        for r in range(n):
            if slips(roles, ways, r):
                k = int(roles[PARTNER, r])
                d[k] = kept * (ways[r, 0] * lam[k] - ways[r, 1] * lam[r])
        turn_back(roles, holds, ways, d, lam)
        residual = ahead_of(rows, Y, c, soft, roles, rho, scale, lam, change, w, y)
        for r in range(n):
            e[r] += soft[r]
        K = softened_inverse(turned, C1, M, e, holds)
        for _ in range(REPEATS):
            for j in range(nv):
                push[j] = 0.0
            for r in range(n):
                if slips(roles, ways, r):
                    k = int(roles[PARTNER, r])
                    w[k] = ways[r, 0] * w[k] - ways[r, 1] * w[r] + (e[k] - SOFT / hardest) * d[k]
            for r in range(n):
                if holds[r]:
                    for a in range(count[at[r]]):
                        push[cols[at[r], a]] -= C1[r, a] * (w[r] / e[r])
            for i in range(nv):
                x[i] = 0.0
                for j in range(nv):
                    x[i] += K[i, j] * push[j]
            for r in range(n):
                if holds[r]:
                    d[r] -= (w[r] + rate_of(turned, r, x)) / e[r]
            turn_back(roles, holds, ways, d, lam)
            residual = ahead_of(rows, Y, c, soft, roles, rho, scale, lam, change, w, y)
        if residual <= EXACT:
            settle((Y, at, cols, count), roles, lam, y, change)
            return True
        if not residual < np.inf:
            return False
        if residual > 0.5 * last:
            drop(roles, lam, y, scale)
        last = residual
    return False


@sweep
def onto_cones(roles, z, lam):
    """lam (r,): the projection of z (r,)."""
    for r in range(z.shape[0]):
        if roles[ROLE, r] == NORMAL:
            lam[r] = max(z[r], 0.0)
        elif roles[ROLE, r] == BOX:
            lam[r] = min(max(z[r], -roles[LEVEL, r]), roles[LEVEL, r])
    for r in range(z.shape[0]):
        if roles[ROLE, r] == FIRST:
            k, of, mu = int(roles[PARTNER, r]), int(roles[OF, r]), roles[LEVEL, r]
            size, share = np.hypot(z[r], z[k]), 1.0
            if size > mu * z[of]:
                lam[of] = max(z[of] + mu * size, 0.0) / (1.0 + mu * mu)
                share = mu * lam[of] / size
            lam[r], lam[k] = share * z[r], share * z[k]


@sweep
def times_inertia(M, x, out):
    """out (nv,) = M x, of the lower half of M (nv·nv)."""
    n = x.shape[0]
    for i in range(n):
        out[i] = M[(n + 1) * i] * x[i]
        for j in range(i):
            out[i] += M[n * i + j] * x[j]
            out[j] += M[n * i + j] * x[i]


@routine
def approach(rows, C, M, Y, c, soft, roles, rho, lam, change):
    """λ (r,) nearer to a solution of a cone problem, in place, and change = Yᵀ λ; see `slide`."""
    A, at, cols, count = rows
    n, nv = c.shape[0], change.shape[0]
    z, y, aim, before, along = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    steps, e, firm, holds, ways = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.bool_), np.empty((n, 2))
    K, x, d, push, pull = np.empty(nv * nv), np.empty(nv), np.empty(nv), np.empty(nv), np.empty(nv)
    Mx, Md, A1, C1, across = np.empty(nv), np.empty(nv), A.copy(), A.copy(), C - A
    hardest = np.inf
    for r in range(n):
        hardest = min(hardest, rho[r])
    for r in range(n):
        firm[r] = SOFTER / hardest + soft[r]
        steps[r] = 1.0 / firm[r]
    product((Y, at, cols, count), lam, x)
    for _ in range(ITERATES):
        for r in range(n):
            before[r], along[r] = lam[r], c[r] + rate_of(rows, r, x)
        for r in range(n):
            aim[r] = c[r] - before[r] * SOFTER / hardest
        for r in range(n):
            if roles[ROLE, r] == FIRST:
                aim[int(roles[OF, r])] += roles[LEVEL, r] * np.hypot(along[r], along[int(roles[PARTNER, r])])
        product((across, at, cols, count), before, push)    # friction of what slides in a mode
        for _ in range(CONVEX):
            for r in range(n):
                z[r] = -steps[r] * (aim[r] + rate_of(rows, r, x))
            onto_cones(roles, z, lam)
            product(rows, lam, pull)
            times_inertia(M, x, Mx)
            energy = 0.0
            for j in range(nv):
                Mx[j] -= push[j]
                pull[j] -= Mx[j]
                energy += x[j] * (Mx[j] + push[j])
            for r in range(n):
                y[r], e[r] = lam[r] if roles[ROLE, r] == NORMAL else z[r], firm[r]
            choose(rows, A, roles, y, lam, steps, True, (A1, C1), e, holds, ways)
            soften((A1, at, cols, count), M, e, holds, K)
            assign(d, pull)
            substitute(K, nv, d)
            times_inertia(M, d, Md)
            start = work = inertia = 0.0
            for j in range(nv):
                start, work, inertia = start + d[j] * pull[j], work + d[j] * Mx[j], inertia + d[j] * Md[j]
            if not start > NEAR * energy:
                break
            for r in range(n):
                along[r] = rate_of(rows, r, d)
            low, high, part = 0.0, np.inf, 1.0
            for _ in range(LINE):
                slope = work + part * inertia
                for r in range(n):
                    y[r] = z[r] - part * steps[r] * along[r]
                onto_cones(roles, y, lam)
                for r in range(n):
                    slope -= along[r] * lam[r]
                if abs(slope) <= 0.1 * start:
                    break
                if slope < 0.0:
                    low = part
                else:
                    high = part
                part = 2.0 * part if high == np.inf else 0.5 * (low + high)
            for j in range(nv):
                x[j] += part * d[j]
        product((Y, at, cols, count), lam, x)
    assign(change, x)


@routine
def slide_from_near(rows, C, M, Y, c, soft, roles, rho, scale, lam, change):
    """λ (r,) and change as of `slide`, from starts by the convex problem; False, with λ as before, if none is found."""
    near, trial = np.zeros(c.shape[0]), np.empty(c.shape[0])
    for _ in range(ROUNDS):
        approach(rows, C, M, Y, c, soft, roles, rho, near, change)
        assign(trial, near)
        if slide(rows, C, M, Y, c, soft, roles, rho, scale, 1.0, trial, change):
            assign(lam, trial)
            return True
    return False
