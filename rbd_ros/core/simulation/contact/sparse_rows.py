"""Rows of contacts, kept for the coordinates of the trees of their two bodies alone, and forces that hold them.

A tree is all that hangs on one joint at the world: no entry of the inertia couples two of them. Entries A[r, :count[k]]
of row r belong to coordinates cols[k, :count[k]], with k = at[r] the contact, or n + j for coordinate j alone; `rows`
is (A, at, cols, count). Stacked boxes have 6 or 12 entries in a row, however many they are.

Forces λ along rows A with inertia H that bring rates w to rest, `w + A x = 0` with `H x = Aᵀ λ`, follow by the method
of multipliers (Hestenes 1969; Powell 1969): `w + A x = −e λ` with small e has (H + Aᵀ e⁻¹ A) x = −Aᵀ e⁻¹ w, as sparse
as the trees touch, and is repeated from the rates that remain. From λ = 0, with one e, it goes to λ of least norm.
"""
from __future__ import annotations

import numpy as np

from ...compiled.assign import assign
from ...compiled.kernel import routine, sweep
from ...model.block import first_velocity, integer, kind, node, node_count, parent, size_v
from ...model.joint_kinds import dof
from ...model.surfaces.contact_block import ITEMS, NODE_1, NODE_2, RECORD, START
from ..linear_equations import factor, substitute
from .cones import (
    BOX, EXACT, FIRST, LEVEL, NORMAL, OF, PARTNER, ROLE, SECOND, clean, drop, residual_of, solve_cones,
)

SOFT = 1e-9    # e relative to the response of a row to its own force
TURNS = 12     # largest number of repetitions, and of choices of the contacts that hold
STILL_RIGHT = 1e-10    # residual, as of `solve_cones`, of forces that stay those of the step before


@routine
def supports(B, C, held, cols, count):
    """cols (n + nv, nv) and count of contacts, stops, and single coordinates; returns the largest count.

    held (k,): the coordinates of stops.
    """
    nv = size_v(B)
    n, items = cols.shape[0] - nv, integer(C, ITEMS)
    root, tree = np.empty(node_count(B), np.int64), np.empty(nv, np.int64)
    for j in range(nv):
        tree[j] = -1
    for i in range(node_count(B)):
        h = parent(B, node(i))
        root[i] = i if h < 0 else root[h]
        for c in range(dof(kind(B, node(i)))):
            j = first_velocity(B, node(i)) + c
            old = tree[j]
            if old >= 0 and old != root[i]:    # a mimic joint: its coordinate moves two trees, which are one
                for k in range(i):
                    root[k] = root[i] if root[k] == old else root[k]
                for k in range(nv):
                    tree[k] = root[i] if tree[k] == old else tree[k]
            tree[j] = root[i]
    width = 0
    for r in range(n + nv):
        first = second = -1
        if r < items:
            o = START + RECORD * r
            i, h = integer(C, o + NODE_1), integer(C, o + NODE_2)
            first, second = root[i] if i >= 0 else -1, root[h] if h >= 0 else -1
        else:
            first = tree[r - n] if r >= n else tree[int(held[r - items])]
        count[r] = 0
        for j in range(nv):
            if tree[j] == first or tree[j] == second:
                cols[r, count[r]] = j
                count[r] += 1
        width = max(width, count[r])
    return width


@routine
def all_coordinates(n, nv):
    """cols (n + nv, nv) and count of rows for all coordinates."""
    cols, count = np.empty((n + nv, nv), np.int64), np.empty(n + nv, np.int64)
    for r in range(n + nv):
        count[r] = nv
        for j in range(nv):
            cols[r, j] = j
    return cols, count


@sweep
def alone(rows, r, j):
    """Row r, before zeros, becomes that of coordinate j."""
    A, at, cols, count = rows
    for a in range(count[at[r]]):
        if cols[at[r], a] == j:
            A[r, a] = 1.0


@sweep
def rate(R, row, cols, count, v):
    """Rate of a row of contact row // 3."""
    x, k = 0.0, row // 3
    for a in range(count[k]):
        x += R[row, a] * v[cols[k, a]]
    return x


@sweep
def rate_of(rows, r, v):
    """Rate of row r."""
    A, at, cols, count = rows
    x, k = 0.0, at[r]
    for a in range(count[k]):
        x += A[r, a] * v[cols[k, a]]
    return x


@sweep
def responses(rows, W, Y):
    """Y (r, width) = A W, W (nv·nv): inverse inertia."""
    A, at, cols, count = rows
    nv = int(np.sqrt(W.shape[0]) + 0.5)
    for r in range(at.shape[0]):
        k = at[r]
        for a in range(count[k]):
            Y[r, a] = 0.0
        for b in range(count[k]):
            if A[r, b] != 0.0:
                for a in range(count[k]):
                    Y[r, a] += A[r, b] * W[nv * cols[k, b] + cols[k, a]]


@sweep
def product(rows, lam, out):
    """out (nv,) = Aᵀ λ."""
    A, at, cols, count = rows
    for j in range(out.shape[0]):
        out[j] = 0.0
    for r in range(at.shape[0]):
        if lam[r] != 0.0:
            k = at[r]
            for a in range(count[k]):
                out[cols[k, a]] += A[r, a] * lam[r]


@sweep
def soft_of(rows, H, e):
    """e (r,) for an inertia H (nv·nv), or (0,) for 1."""
    A, at, cols, count = rows
    nv = int(np.sqrt(H.shape[0]) + 0.5)
    for r in range(at.shape[0]):
        k = at[r]
        e[r] = 1e-300
        for a in range(count[k]):
            e[r] += SOFT * A[r, a] * A[r, a] / (H[(nv + 1) * cols[k, a]] if nv > 0 else 1.0)


@routine
def soften(rows, H, e, holds, K):
    """K (nv·nv): the factor of H + Aᵀ e⁻¹ A of the rows that hold; H (nv·nv): the inertia, or (0,) for 1."""
    A, at, cols, count = rows
    nv = int(np.sqrt(K.shape[0]) + 0.5)
    if H.shape[0] > 0:
        assign(K, H)
    else:
        for j in range(nv * nv):
            K[j] = 0.0
        for j in range(nv):
            K[nv * j + j] = 1.0
    for r in range(at.shape[0]):
        if holds[r]:
            k = at[r]
            for a in range(count[k]):
                x = A[r, a] / e[r]
                if x != 0.0:
                    for b in range(a + 1):
                        K[nv * cols[k, a] + cols[k, b]] += x * A[r, b]
    factor(K, nv)


@routine
def hold(rows, K, e, holds, w, lam, x):
    """Add forces to λ that bring the rates w (r,) of the rows that hold to rest, but for e λ; x (nv,): their effect."""
    A, at, cols, count = rows
    for j in range(x.shape[0]):
        x[j] = 0.0
    for r in range(at.shape[0]):
        if holds[r]:
            k = at[r]
            for a in range(count[k]):
                x[cols[k, a]] -= A[r, a] * (w[r] / e[r])
    substitute(K, x.shape[0], x)
    for r in range(at.shape[0]):
        if holds[r]:
            lam[r] -= (w[r] + rate_of(rows, r, x)) / e[r]


@routine
def ahead_of(rows, Y, c, soft, roles, rho, scale, lam, change, w, y):
    """change = Yᵀ λ, w = A change + soft λ + c and y = λ − ρ w; returns the residual of the cone problem."""
    _, at, cols, count = rows
    product((Y, at, cols, count), lam, change)
    for r in range(c.shape[0]):
        w[r] = c[r] + soft[r] * lam[r] + rate_of(rows, r, change)
        y[r] = lam[r] - rho[r] * w[r]
    return residual_of(roles, lam, y, scale, np.empty(c.shape[0]))


@sweep
def steps_of_rows(rows, Y, c, soft, roles, rho):
    """rho (r,): steps of the projection, as of `cones.steps_of`; returns the scale of forces."""
    A, at, _, count = rows
    largest, scale = 1e-300, 1e-300
    for r in range(c.shape[0]):
        rho[r] = soft[r]
        for a in range(count[at[r]]):
            rho[r] += A[r, a] * Y[r, a]
        largest = max(largest, rho[r])
    for r in range(c.shape[0]):
        if roles[ROLE, r] == FIRST:
            k = int(roles[PARTNER, r])
            rho[r] = rho[k] = rho[r] + rho[k]
    for r in range(c.shape[0]):
        rho[r] = 1.0 / max(rho[r], 1e-12 * largest)
        scale = max(scale, abs(c[r] * rho[r]))
    return scale


@routine
def stick(rows, M, Y, c, soft, roles, rho, scale, lam, change):
    """λ (r,), in: a guess, zeros for none, of a cone problem in whose solution nothing slides; change = Yᵀ λ. False,
    with λ as before, if none is found. M (nv·nv): inertia, of which Y has the responses.
    """
    _, at, cols, count = rows
    n, nv = c.shape[0], change.shape[0]
    guess, w, y, e, x = lam.copy(), np.empty(n), np.empty(n), np.empty(n), np.empty(nv)
    holds, K = np.zeros(n, np.bool_), np.empty(nv * nv)
    known, least = False, np.inf
    for r in range(n):
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
            clean(roles, lam, y)
            product((Y, at, cols, count), lam, change)
            return True
        if not residual < np.inf:
            break
        if same and residual > 0.5 * last:
            drop(roles, lam, y, scale)
        last = residual
    assign(lam, guess)
    return False


@routine
def gather(near_rows, near, friction, v, pushes, A, at, roles, c, lam):
    """Rows of near contacts, along x and y only with friction: A, at, roles, their rates c at v, and λ of these
    pushes (n, 3); returns their number. near_rows: R (`contact_steps`), cols, count.
    """
    R, cols, count = near_rows
    r = 0
    for i in range(near.shape[0]):
        own = 0 if not near[i] else 3 if friction[i] > 0.0 else 1
        for k in range(own):
            for a in range(count[i]):
                A[r + k, a] = R[3 * i + k, a]
            c[r + k], at[r + k] = rate(R, 3 * i + k, cols, count, v), i
            roles[OF, r + k], roles[LEVEL, r + k], lam[r + k] = r, friction[i], pushes[i, k]
        if own > 0:
            roles[ROLE, r] = NORMAL
        if own == 3:
            roles[ROLE, r + 1], roles[ROLE, r + 2], roles[PARTNER, r + 1] = FIRST, SECOND, r + 2
        r += own
    return r


@routine
def scatter(near, friction, lam, pushes):
    """pushes (n, 3) of λ along the rows of `gather`."""
    r = 0
    for i in range(near.shape[0]):
        own = 0 if not near[i] else 3 if friction[i] > 0.0 else 1
        for k in range(3):
            pushes[i, k] = lam[r + k] if k < own else 0.0
        r += own


@routine
def solve_rows(rows, C, symmetric, inertia, c, soft, roles, nearly, lam, change):
    """lam (r,), in: a guess, zeros for none: forces along rows C, as sparse as `rows`, of which the velocities (or
    accelerations) of `rows` are A W Cᵀ λ + soft λ + c; change (nv,): W Cᵀ λ. False if none are found.

    symmetric: whether C is A; inertia: M (nv·nv), or (0,) where it has no inverse, and W; nearly: see `solve_cones`.
    """
    M, W = inertia
    A, at, cols, count = rows
    r = at.shape[0]
    Y, w, y, rho = np.empty(A.shape), np.empty(r), np.empty(r), np.empty(r)
    responses((C, at, cols, count), W, Y)
    scale = steps_of_rows(rows, Y, c, soft, roles, rho)
    if ahead_of(rows, Y, c, soft, roles, rho, scale, lam, change, w, y) <= STILL_RIGHT or (
            symmetric and M.shape[0] > 0 and stick(rows, M, Y, c, soft, roles, rho, scale, lam, change)):
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
