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
from .cones import FIRST, LEVEL, NORMAL, OF, PARTNER, ROLE, SECOND, clean, residual_of

SOFT = 1e-9    # e relative to the response of a row to its own force


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


@sweep
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


@sweep
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


@sweep
def ahead_of(rows, Y, c, soft, roles, rho, scale, lam, change, w, y):
    """change = Yᵀ λ, w = A change + soft λ + c and y = λ − ρ w; returns the residual of the cone problem."""
    _, at, cols, count = rows
    product((Y, at, cols, count), lam, change)
    for r in range(c.shape[0]):
        w[r] = c[r] + soft[r] * lam[r] + rate_of(rows, r, change)
        y[r] = lam[r] - rho[r] * w[r]
    return residual_of(roles, lam, y, scale)


@sweep
def settle(responses, roles, lam, y, change):
    """Exact zeros in λ for open contacts, and change = Yᵀ λ, responses: Y as `rows`."""
    clean(roles, lam, y)
    product(responses, lam, change)


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


@sweep
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


@sweep
def scatter(near, friction, lam, pushes):
    """pushes (n, 3) of λ along the rows of `gather`."""
    r = 0
    for i in range(near.shape[0]):
        own = 0 if not near[i] else 3 if friction[i] > 0.0 else 1
        for k in range(3):
            pushes[i, k] = lam[r + k] if k < own else 0.0
        r += own
