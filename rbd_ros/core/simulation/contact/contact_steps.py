"""Kernel of time stepping with contacts: many steps in which nothing closes that was open (`stepping` has the method).

Contacts are followed by stops. A row of `R` (3 n, width + 2) is that of `contact_rows`, with the entries of
`sparse_rows`: rates of the gap and along x and y, then their bias, and the gap.
"""
from __future__ import annotations

import numpy as np

from ...compiled.assign import assign
from ...compiled.entry import entry
from ...compiled.kernel import routine
from ...dynamics.constrained.rows import Motion, in_world
from ...dynamics.contact.contact_rows import contact_record_rows
from ...dynamics.kinematics import _ACCEL, _ALPHA, _OMEGA, SIZE, node_motion
from ...dynamics.mass_matrix import SIZE as MASS_SIZE
from ...dynamics.mass_matrix import mass_matrix_recursion
from ...lie.spatial import add, rotate, rotate_back, sub
from ...model.block import all_finite, integer, matrix, node_count, size_v, vector
from ...model.surfaces.contact_block import ITEMS, RECORD, START
from ..discrete_mechanics import STEP_ROWS, variational_step
from ..joint_data import dry_friction, finite
from ..linear_equations import inverse_of_symmetric
from ..semi_implicit_steps import moved
from .cones import BOX, FIRST, LEVEL, NORMAL, OF, PARTNER, ROLE, SECOND, solve_cones
from .sparse_rows import (
    ahead_of, all_coordinates, alone, hold, product, rate, rate_of, responses, soft_of, soften, steps_of_rows, stick,
    supports,
)

TOUCH = 1e-14     # m: depth of a contact at closing
STILL = 1e-9      # m/s: slip below which a contact rests
STALE = 1e-8      # m: deeper contacts cannot close
EDGE = 1e-6       # m: tolerance at the edge of a face, for stacked boxes of equal size
CLOSE = 1e-12     # m: gaps that count as zero after projection,
ACCEPTED = 1e-9   # or these, where it gains no more
STILL_RIGHT = 1e-10    # residual, as of `solve_cones`, of forces that stay those of the step before
PROJECTIONS = 20  # largest number of Newton steps of it
# Of a stop: indices in q and v, sign of the gap's rate, limit. Of a face: its contact; node and pose (R, p) of the
# plane; half its size; node and centre of the other surface.
STOP_Q, STOP_V, STOP_SIGN, STOP_LIMIT, STOP = range(5)
CONTACT, NODE, ROTATION, POSITION, HALF, OTHER, CENTER, FACE = 0, 1, 2, 11, 14, 16, 17, 20


@routine
def touching_rows(B, contacts, q, v, rest, order, W, R, margin, wanted, far):
    """R (3 n, width + 2), margin (n,): of wanted contacts (n,), and of others with a gap up to `far`; beyond it R has
    the gap alone, with far = −inf nothing. Returns −1, or the first contact whose closest points are not found.

    contacts: packed array of the surfaces, stops (k, STOP), faces (m, FACE), and cols, count: see `supports`. rest
    (nv,): zeros. order: 2, or 0 where the bias is not needed.
    """
    C, stops, faces, cols, count = contacts
    nv = size_v(B)
    width, stride, items = R.shape[1] - 2, nv + 2, integer(C, ITEMS)
    for i in range(margin.shape[0]):
        margin[i] = np.inf
    node_motion(B, q, 0, v, rest, 0, order, W)
    motion = Motion(W, SIZE, W, SIZE, _OMEGA, _ALPHA, _ACCEL, 0.0)
    line = np.zeros(3 * stride)
    for i in range(items):
        if not (wanted[i] or far >= 0.0):
            continue
        if not contact_record_rows(B, C, START + RECORD * i, (q, 0, v, 0), motion, line, 0, stride,
                                   np.inf if wanted[i] else far):
            return i
        R[3 * i, width + 1], line[nv + 1] = line[nv + 1], 0.0
        if not wanted[i] and R[3 * i, width + 1] > far:
            continue
        for k in range(3):
            for a in range(count[i]):
                R[3 * i + k, a], line[stride * k + cols[i, a]] = line[stride * k + cols[i, a]], 0.0
            R[3 * i + k, width], line[stride * k + nv] = line[stride * k + nv], 0.0
    for i in range(stops.shape[0]):
        r = 3 * (items + i)
        for k in range(3):
            for a in range(width + 2):
                R[r + k, a] = 0.0
        for a in range(count[items + i]):
            if cols[items + i, a] == int(stops[i, STOP_V]):
                R[r, a] = stops[i, STOP_SIGN]
        R[r, width + 1] = stops[i, STOP_SIGN] * (q[int(stops[i, STOP_Q])] - stops[i, STOP_LIMIT])
    for f in range(faces.shape[0]):
        face = faces[f]
        if not (wanted[int(face[CONTACT])] or far >= 0.0):
            continue
        Q, p = in_world(W, SIZE, int(face[NODE]), matrix(face, ROTATION), vector(face, POSITION))
        center = vector(face, CENTER)
        h = int(face[OTHER])
        if h >= 0:
            center = add(rotate(matrix(W, SIZE * h), center), vector(W, SIZE * h + 9))
        local = rotate_back(Q, sub(center, p))
        margin[int(face[CONTACT])] = min(face[HALF] - abs(local[0]), face[HALF + 1] - abs(local[1])) + EDGE
    return -1


@entry("int64(float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], "
       "float64[:, ::1], float64[::1])")
def touching_rows_entry(B, C, stops, faces, q, v, R, margin):
    """`touching_rows` of all contacts, for all coordinates (3 n, nv + 2); −2 where a row is not finite."""
    n = margin.shape[0]
    cols, count = all_coordinates(n, v.shape[0])
    R[:] = 0.0
    item = touching_rows(B, (C, stops, faces, cols, count), q, v, np.zeros(v.shape[0]), 2,
                         np.empty(SIZE * node_count(B)), R, margin, np.ones(n, np.bool_), np.inf)
    return item if item >= 0 or all_finite(R.reshape(-1)) else -2


@routine
def press(inertia, free, near_rows, margin, near, friction, joints, h, nearly, v, change, pushes):
    """Impulses of near contacts and of dry friction in h (s): velocities v (nv,) after them, their `change`, and those
    of contacts, pushes (n, 3), in: a guess, zeros for none. False where none are found.

    inertia: see `solve_rows`; free (nv,): velocities without impulses; near_rows: R, cols, count; nearly: accepted
    residual, see `solve_cones`.
    """
    R, cols, count = near_rows
    nv, n = free.shape[0], margin.shape[0]
    size = nv
    for i in range(n):
        size += 3 if near[i] else 0
    A, roles, c, lam = np.zeros((size, R.shape[1] - 2)), np.zeros((4, size)), np.empty(size), np.zeros(size)
    at, r = np.empty(size, np.int64), 0
    for i in range(n):
        if not (near[i] and margin[i] > 0.0):
            continue
        own = 3 if friction[i] > 0.0 else 1
        for k in range(own):
            for a in range(count[i]):
                A[r + k, a] = R[3 * i + k, a]
            c[r + k], at[r + k] = rate(R, 3 * i + k, cols, count, free), i
            roles[OF, r + k], roles[LEVEL, r + k], lam[r + k] = r, friction[i], pushes[i, k]
        roles[ROLE, r] = NORMAL
        if own == 3:
            roles[ROLE, r + 1], roles[ROLE, r + 2], roles[PARTNER, r + 1] = FIRST, SECOND, r + 2
        r += own
    boxes = r
    for j in range(nv):
        level = h * dry_friction(joints, j, free[j])
        if level > 0.0:
            at[r] = n + j
            alone((A, at, cols, count), r, j)
            c[r], roles[ROLE, r], roles[LEVEL, r], roles[OF, r] = free[j], BOX, level, j
            r += 1
    assign(v, free)
    for j in range(nv):
        change[j] = 0.0
    if r == 0:
        return True
    lam = lam[:r]
    rows = A[:r], at[:r], cols, count
    if not solve_rows(rows, A[:r], True, inertia, c[:r], np.zeros(r), roles[:, :r].copy(), nearly, lam, change):
        return False
    for j in range(nv):
        v[j] += change[j]
    for i in range(boxes, r):
        if abs(lam[i]) < roles[LEVEL, i]:
            v[int(roles[OF, i])] = 0.0
    r = 0
    for i in range(n):
        own = 0 if not (near[i] and margin[i] > 0.0) else 3 if friction[i] > 0.0 else 1
        for k in range(3):
            pushes[i, k] = lam[r + k] if k < own else 0.0
        r += own
    return True


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


@entry("boolean(float64[::1], float64[::1], float64[:, ::1], float64[::1], boolean[::1], float64[::1], "
       "float64[:, ::1], float64, float64, float64[::1], float64[::1], float64[:, ::1])")
def press_entry(W, free, R, margin, near, friction, joints, h, nearly, v, change, pushes):
    """`press` with the inverse inertia W (nv·nv), which may be singular, and rows for all coordinates."""
    cols, count = all_coordinates(margin.shape[0], free.shape[0])
    return press((W[:0], W), free, (R, cols, count), margin, near, friction, joints, h, nearly, v, change, pushes)


@routine
def onto(B, contacts, q, v, rest, closed, W, R, margin, dv, other):
    """Project q onto zero gaps of closed contacts by Newton steps of least norm; R and margin are those of the new q,
    with rows as far as STALE. False without convergence.
    """
    cols, count = contacts[3:]
    nv, n, width = size_v(B), margin.shape[0], R.shape[1] - 2
    last = np.inf
    A, at, gaps, e = np.zeros((n, width)), np.empty(n, np.int64), np.empty(n), np.empty(n)
    holds, lam, K, step = np.ones(n, np.bool_), np.zeros(n), np.empty(nv * nv), np.empty(nv)
    for _ in range(PROJECTIONS):
        r, worst = 0, 0.0
        for i in range(n):
            if closed[i]:
                at[r], gaps[r] = i, R[3 * i, width + 1]
                worst = max(worst, abs(gaps[r]))
                for a in range(count[i]):
                    A[r, a] = R[3 * i, a]
                r += 1
        if worst <= CLOSE:
            return True
        if not worst < 0.5 * last:
            return worst <= ACCEPTED
        last = worst
        rows = A[:r], at[:r], cols, count
        soft_of(rows, K[:0], e)
        soften(rows, K[:0], e, holds, K)
        hold(rows, K, e, holds, gaps, lam, step)
        assign(other, q)
        moved(B, other, step, 1.0, dv, q)
        if touching_rows(B, contacts, q, v, rest, 0, W, R, margin, closed, STALE) >= 0:
            return False
    return False


@entry("int64(float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], "
       "float64[::1], float64[::1], float64[::1], boolean[::1], float64[:, :, ::1], float64[::1], float64[:, ::1], "
       "float64[::1], float64[:, ::1], float64[:, ::1], float64, int64, float64[:, ::1])", nogil=True)
def contact_steps(B, F, C, stops, faces, friction, q, v, p, frame, known, efforts, wrench, damping, gravity, joints,
                  still, h, steps, out):
    """Advance q, v in place by at most `steps` steps of h (s); returns the number made: it returns before a step in
    which another contact closes or a closed one hits, which has no solution, or is not finite.

    B: of the model; F, damping, gravity, p, frame, known (1,): as of `variational_steps`; efforts, wrench, joints: too.
    still: joints without friction and limits. C, stops, faces: see `touching_rows`; friction (n,). out (n, 4): of the
    step before the first, in, and of the last: impulses of each contact along its normal, x and y, where the solver
    begins; its speed of sliding.
    """
    nv, n = size_v(B), friction.shape[0]
    cols, count = np.zeros((n + nv, nv), np.int64), np.zeros(n + nv, np.int64)
    width = supports(B, C, stops[:, STOP_V].copy(), cols, count)
    contacts = C, stops, faces, cols, count
    space = (np.empty((4, nv, nv)), np.empty((nv, nv)), np.zeros((STEP_ROWS, nv)), np.empty((2, q.shape[0])),
             np.empty((2, 9)))
    W = np.zeros(SIZE * node_count(B))
    R, R0, R1 = np.zeros((3 * n, width + 2)), np.zeros((3 * n, width + 2)), np.zeros((3 * n, width + 2))
    margin, margin0, margin1 = np.empty(n), np.empty(n), np.empty(n)
    q0, v0, q1, v1, other = q.copy(), v.copy(), q.copy(), v.copy(), q.copy()
    p1, frame1, change, dv = p.copy(), frame.copy(), v.copy(), v.copy()
    rest, M, inverse, work = np.zeros(nv), np.empty(nv * nv), np.empty(nv * nv), np.empty(nv * nv)
    mass_work = np.empty(MASS_SIZE * node_count(B))
    near, closed, pushes = np.zeros(n, np.bool_), np.zeros(n, np.bool_), out[:, :3].copy()
    if touching_rows(B, contacts, q, v, rest, 0, W, R, margin, near, STALE) >= 0:
        return 0
    for s in range(steps):
        effort = efforts[min(s, efforts.shape[0] - 1), 0]
        touches = False
        for i in range(n):
            near[i] = -STALE < R[3 * i, width + 1] <= STALE and margin[i] > 0.0
            touches |= near[i]
        if touches:
            assign(q0, q)
            assign(v0, v)
            if not variational_step(F, q0, v0, p1, frame1, False, effort, wrench, damping, gravity, still, h, space):
                return s
            if touching_rows(B, contacts, q0, v0, rest, 0, W, R0, margin0, near, -np.inf) >= 0:
                return s
            for i in range(n):
                now = rate(R, 3 * i, cols, count, v) if near[i] else 0.0
                if near[i] and now < -2.0 * abs(rate(R0, 3 * i, cols, count, v0) - now) - STILL:
                    return s
            mass_matrix_recursion(B, q0, 0, mass_work, M, 0)
            assign(work, M)
            inverse_of_symmetric(work, nv, inverse)
            if not press((M, inverse), v0, (R0, cols, count), margin0, near, friction, joints, h, 0.0, v1, change,
                         pushes):
                return s
            moved(B, q0, change, 0.5 * h, dv, q1)
            if touching_rows(B, contacts, q1, v1, rest, 0, W, R1, margin1, near, STALE) >= 0:
                return s
            holds = False
            for i in range(n):
                closed[i] = near[i] and (R1[3 * i, width + 1] < 0.0 or pushes[i, 0] > 0.0)
                holds |= closed[i]
            if holds and not onto(B, contacts, q1, v1, rest, closed, W, R1, margin1, dv, other):
                return s
        else:
            pushes[:] = 0.0
            assign(q1, q)
            assign(v1, v)
            assign(p1, p)
            assign(frame1, frame)
            if not variational_step(F, q1, v1, p1, frame1, known[0], effort, wrench, damping, gravity, joints, h,
                                    space) or touching_rows(B, contacts, q1, v1, rest, 0, W, R1, margin1, near,
                                                            STALE) >= 0:
                return s
        for i in range(n):
            if (not near[i] and R[3 * i, width + 1] > -STALE and margin[i] > 0.0 and margin1[i] > 0.0
                    and R1[3 * i, width + 1] < -TOUCH):
                return s
        if not finite(q1, v1):
            return s
        assign(q, q1)
        assign(v, v1)
        assign(p, p1)
        assign(frame, frame1)
        known[0] = not touches
        R, R1 = R1, R
        margin, margin1 = margin1, margin
        for i in range(n):
            for k in range(3):
                out[i, k] = pushes[i, k]
            out[i, 3] = np.hypot(rate(R, 3 * i + 1, cols, count, v), rate(R, 3 * i + 2, cols, count, v))
    return steps
