"""Simultaneous impacts of closing contacts: one solution, which never adds kinetic energy."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...compiled.assign import assign
from ...compiled.entry import entry
from ...compiled.kernel import routine
from ...dynamics.inverse_mass_matrix import inverse_mass_matrix
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ..constrained_motion import ConstrainedMotion
from .cones import NORMAL, ROLE, Rows, Unsolved
from .sparse_forces import row_space, solve_rows
from .sparse_rows import all_coordinates, gather, rate_of, scatter

REST = 1e-6       # m/s: slower impacts do not bounce, which ends infinite series of bounces
HALVINGS = 12     # bisections of the share of restitution without energy gain
ROUNDING = 1e-13  # relative tolerance of energy, for restitution 1
NONE, GAINS, LOSES = range(3)    # of impulses: none found; kinetic energy grows, or does not


def inverse_inertia(model: RobotModel, constrained: ConstrainedMotion | None) -> Callable[[Array], Array]:
    """A function from q to the inverse inertia (nv, nv), with constraints."""
    def inverse(q: Array) -> Array:
        W = inverse_mass_matrix(model, q)
        W = 0.5 * (W + W.T)
        if constrained is not None:
            W = constrained.inverse_inertia(q, W, np.zeros(len(W)), np.zeros(len(W)))[0]
        return np.asarray(W)
    return inverse


def contact_rows(friction: Array, sliding: NDArray[np.bool_], limit: Array) -> tuple[Array, Rows]:
    """Indices of the independent rows (n, x, y of each of k contacts, flat, then boxes of these limits), and their
    roles: sliding and frictionless contacts have a normal row only.
    """
    indices: list[int] = []
    normal, tangent, bound = [], [], []
    for i, (mu, slides) in enumerate(zip(friction, sliding, strict=True)):
        normal.append(len(indices))
        indices.append(3 * i)
        if mu > 0.0 and not slides:
            tangent.append([len(indices), len(indices) + 1])
            bound.append(normal[-1])
            indices += [3 * i + 1, 3 * i + 2]
    boxes = np.arange(len(indices), len(indices) + len(limit))
    indices += range(3 * len(friction), 3 * len(friction) + len(limit))
    rubs = (friction > 0.0) & ~sliding
    return np.array(indices, dtype=np.intp), Rows(
        np.array(normal, dtype=np.intp), np.array(tangent, dtype=np.intp).reshape(-1, 2),
        np.array(bound, dtype=np.intp), friction[rubs], boxes, limit)


def impact(W: Array, J: Array, v: Array, friction: Array, bounce: Array) -> tuple[Array, Array]:
    """`strike` of k contacts with rows J (k, 3, nv) and inverse inertia W (nv, nv): v (nv,) after it and its impulses
    (k, 3); raises `Unsolved` without a solution.
    """
    rows = np.zeros((3 * len(J), len(v) + 2))
    rows[:, :len(v)] = J.reshape(-1, len(v))
    after, p = np.array(v), np.empty((len(J), 3))
    if strike_entry(np.empty(0), np.ascontiguousarray(W).reshape(-1), rows, friction, bounce, after, p):
        return after, p
    raise Unsolved


@entry("boolean(float64[::1], float64[::1], float64[:, ::1], float64[::1], float64[::1], float64[::1], "
       "float64[:, ::1])")
def strike_entry(M, W, R, friction, bounce, v, pushes):
    """`strike` of all contacts with M (nv·nv), or (0,), and W (nv·nv): see `solve_rows`; rows for all coordinates."""
    cols, count = all_coordinates(friction.shape[0], v.shape[0])
    return strike((M, W), (R, cols, count), np.ones(friction.shape[0], np.bool_), friction, bounce, v, pushes)


@routine
def strike(inertia, hit_rows, closed, friction, bounce, v, pushes):
    """Impact of closed contacts: v (nv,) after it, in place, and impulses, pushes (n, 3). False, with v as before,
    without a solution. inertia, hit_rows: as of `press`; bounce (n,): restitution.

    Newton's law of restitution with Coulomb's law for impulses and velocities after the impact, dissipative for
    restitution 0. Restitution is less where it would add kinetic energy by friction, or have no solution.
    """
    nv, size = v.shape[0], 0
    for i in range(closed.shape[0]):
        size += 3 if closed[i] else 0
    A, roles, at = np.zeros((size, hit_rows[0].shape[1] - 2)), np.zeros((4, size)), np.empty(size, np.int64)
    rates, aim, lam, change = np.empty(size), np.zeros(size), np.zeros(size), np.empty(nv)
    best, effect = np.zeros(size), np.zeros(nv)
    pushes[:] = 0.0
    r = gather(hit_rows, closed, friction, v, pushes, A, at, roles, rates, lam)
    space = row_space(size, nv, A.shape[1])
    case = (A[:r], at[:r], hit_rows[1], hit_rows[2]), inertia, rates[:r], aim[:r], roles, space
    bounces = solved = False
    for k in range(r):
        if roles[ROLE, k] == NORMAL and rates[k] < -REST and bounce[at[k]] > 0.0:
            aim[k], bounces = bounce[at[k]] * rates[k], True
    low, high, share = 0.0, 1.0, 1.0
    for turn in range(HALVINGS if bounces else 0):
        if rebound(case, share, lam[:r], change) == LOSES:
            low, solved = share, True
            assign(best, lam)
            assign(effect, change)
            if turn == 0:
                break
        else:
            high = share
        share = 0.5 * (low + high)
    if not solved:
        if rebound(case, 0.0, lam[:r], change) == NONE:
            return False
        assign(best, lam)
        assign(effect, change)
    for j in range(nv):
        v[j] += effect[j]
    scatter(closed, friction, best, pushes)
    return True


@routine
def rebound(case, share, lam, change):
    """Impulses lam (r,), from none, with this share of restitution, and their change of v (nv,); whether there are any,
    and kinetic energy is lost.
    """
    rows, inertia, rates, aim, roles, space = case
    c = np.empty(rates.shape[0])
    for k in range(c.shape[0]):
        c[k], lam[k] = rates[k] + share * aim[k], 0.0
    if not solve_rows(rows, rows[0], True, inertia, c, np.zeros(c.shape[0]), roles, 0.0, lam, change, space):
        return NONE
    work = gained = 0.0
    for k in range(c.shape[0]):
        gained += 0.5 * lam[k] * rate_of(rows, k, change)
        work += lam[k] * rates[k]
    return LOSES if gained + work <= ROUNDING * gained else GAINS
