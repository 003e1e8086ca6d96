"""Kernel of time stepping with contacts: many steps, with their impacts (`stepping` has the method).

Contacts are followed by stops. A row of `R` (3 n, width + 2) is that of `contact_rows`, with the entries of
`sparse_rows`: rates of the gap and along x and y, then their bias, and the gap.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...compiled.assign import assign, assign_rows
from ...compiled.entry import entry
from ...compiled.kernel import allocating, kernel, routine, sweep
from ...dynamics.constrained.rows import Motion, in_world
from ...dynamics.contact.contact_rows import contact_record_rows
from ...dynamics.energy import _KINETIC, RESULTS, totals
from ...dynamics.inverse import SIZE as INVERSE_SIZE
from ...dynamics.inverse import inverse_dynamics_recursion
from ...dynamics.kinematics import _ACCEL, _ALPHA, _OMEGA, SIZE, node_motion
from ...dynamics.mass_matrix import mass_matrix_recursion
from ...dynamics.momentum import momentum_recursion
from ...lie.spatial import add, rotate, rotate_back, sub
from ...model.block import all_finite, integer, matrix, node_count, size_q, size_v, vector
from ...model.surfaces.contact_block import ITEMS, RECORD, START
from ..discrete_mechanics import inertia_of, step_space, variational_step
from ..first_event import BEFORE, END, FINEST, SEARCH, judge, next_trial, open_search
from ..joint_data import dry_friction, effort_at, finite
from ..lagrangian import turn_axes
from ..linear_equations import inverse_of_symmetric
from ..semi_implicit_steps import moved
from .cones import BOX, LEVEL, OF, ROLE
from .impacts import strike
from .share import AIM, ASIDE, CHOICE, ENERGY, GAIN, GAINS, HELD, MOST, SHARE, SLOPE, STEEPER, next_share, open_choice
from .sparse_forces import row_space, solve_rows
from .sparse_rows import all_coordinates, alone, gather, hold, rate, scatter, soft_of, soften, supports

TOUCH = 1e-14     # m: depth of a contact at closing
STILL = 1e-9      # m/s: slip below which a contact rests
FAST = 10.0       # slip relative to its change in a step, above which friction opposes the mean slip
STALE = 1e-8      # m: deeper contacts cannot close
EDGE = 1e-6       # m: tolerance at the edge of a face, for stacked boxes of equal size
CLOSE = 1e-13     # m: gaps that count as zero after projection,
ACCEPTED = 1e-9   # or these, where it gains no more
ROUNDING = 1e-15  # m: error of gaps of which a gain of energy may come
PROJECTIONS = 20  # largest number of Newton steps of it
IMPACTS = 10      # largest number in a step; a contact that closes later is held closed for the rest of the step
ADDED = 10        # largest number of additions of contacts then
HALVES = 5        # largest number of parts of a step that are halved, where these gain energy
TRIALS, BISECT = 60, 20    # of the search for an impact, and those before bisection
GAP = 1e-14       # m: tolerance of it
NEARLY = 1e-3     # accepted residual, relative to the largest impulse, if Newton's method cycles
NO_GAIN = 1e-13   # of the kinetic energy: what counts as no gain in a step
# Of a stop: indices in q and v, sign of the gap's rate, limit. Of a face: its contact; node and pose (R, p) of the
# plane; half its size; node and centre of the other surface.
STOP_Q, STOP_V, STOP_SIGN, STOP_LIMIT, STOP = range(5)
CONTACT, NODE, ROTATION, POSITION, HALF, OTHER, CENTER, FACE = 0, 1, 2, 11, 14, 16, 17, 20
# Of a contact after a step (`contact_steps`), behind impulses of what stays closed; LATER: of the first ASIDE
# and STEEPER.
SLIDING, IMPULSE, LATER, OUT = 3, 4, 7, 9
FRESH, KNOWN, GOES_ON, NEARBY = range(4)    # see `flight`
NEAR_PLACE = 1e-6    # rad, m: largest distance of NEARBY
# Rows (nv,) of workspace: velocity at the end without impulses; change by these; velocity after them; generalised
# forces; displacement onto gaps; space, and space of `onto`.
FREE, CHANGE, AFTER, FORCES, LIFTED, SPARE, STEP, VELOCITIES = 0, 1, 2, 3, 4, 5, 6, 8


class PressSpace(NamedTuple):
    """Workspace of `press` and `onto`: rows (size, width), what they belong to, roles (4, size), rates, forces and
    zeros (3, size), which contacts take part (n,), and `row_space`.
    """

    rows: Any
    at: Any
    roles: Any
    numbers: Any
    now: Any
    solver: Any


class Space(NamedTuple):
    """Workspace of `contact_step`: that of flights (`step_space`) and of `touching_rows`; rows R and margin, and the
    state q, v, where impulses act, before them; zeros (nv,); positions (2, nq), the second that of the inertia in
    `flight`, or NaN; VELOCITIES; M and M⁻¹ (2, nv·nv) at impacts; efforts (nv,); which coordinates friction holds.

    Of contacts (n,): those that are near, and that are closed by projection; depth at which they close, infinite where
    they cannot; speed of sliding; largest rates that do not bounce. Of contacts (n, 3): rates and their changes;
    impulses of what stays closed, of impacts, and of a part of the step. Then choice and energy of `share`, `totals`,
    the search for an impact, `press_space`.
    """

    flight: Any
    bodies: Any
    R: Any
    margin: Any
    q: Any
    v: Any
    rest: Any
    positions: Any
    velocities: Any
    inertia: Any
    effort: Any
    held: Any
    near: Any
    closed: Any
    depth: Any
    slip: Any
    slow: Any
    rates: Any
    curve: Any
    force: Any
    impulse: Any
    pushes: Any
    choice: Any
    energy: Any
    totals: Any
    search: Any
    press: Any


@routine
def press_space(n, nv, width):
    """Workspace of `press` for n contacts."""
    size = 3 * n + nv
    return PressSpace(np.zeros((size, width)), np.empty(size, np.int64), np.zeros((4, size)), np.zeros((3, size)),
                      np.empty(n, np.bool_), row_space(size, nv, width))


@routine
def contact_space(B, damping, n, width):
    """Workspace of `contact_step` for n contacts."""
    nq, nv = size_q(B), size_v(B)
    return Space(
        step_space(B, damping, 0), np.zeros(rows_size(B)), np.zeros((3 * n, width + 2)), np.empty(n), np.empty(nq),
        np.empty(nv), np.zeros(nv), np.full((2, nq), np.nan), np.empty((VELOCITIES, nv)), np.empty((2, nv * nv)),
        np.empty(nv), np.empty(nv, np.bool_), np.empty(n, np.bool_), np.zeros(n, np.bool_), np.empty(n),
        np.zeros(n), np.empty(n), np.zeros((n, 3)), np.zeros((n, 3)), np.empty((n, 3)), np.empty((n, 3)),
        np.empty((n, 3)), np.zeros(CHOICE), np.empty(ENERGY), np.empty(RESULTS), np.empty(SEARCH),
        press_space(n, nv, width))


@kernel
def rows_size(B):
    """Size of the workspace W of `touching_rows`."""
    return max(SIZE, INVERSE_SIZE) * node_count(B) + 3 * (size_v(B) + 2)


@sweep
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
    node_motion(B, q, 0, v, rest, 0, order, True, W)
    motion = Motion(W, SIZE, W, SIZE, _OMEGA, _ALPHA, _ACCEL, 0.0)
    line = W[SIZE * node_count(B):]
    for k in range(3 * stride):
        line[k] = 0.0
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
                         np.empty(rows_size(B)), R, margin, np.ones(n, np.bool_), np.inf)
    return item if item >= 0 or all_finite(R.reshape(-1)) else -2


@sweep
def press(inertia, free, rates, near_rows, margin, near, friction, joints, h, nearly, change, pushes, held, space):
    """Impulses of near contacts and of dry friction in h (s): the `change` of velocities (nv,) by them, those of
    contacts, pushes (n, 3), in: a guess, zeros for none, and which coordinates friction holds, held (nv,). False where
    none are found.

    inertia: see `solve_rows`; free (nv,) and rates (n, 3): velocities and rates of near rows without impulses;
    near_rows: R, cols, count; nearly: accepted residual, see `solve_cones`; space: `press_space`.
    """
    _, cols, count = near_rows
    nv, n = free.shape[0], margin.shape[0]
    A, at, roles, now = space.rows, space.at, space.roles, space.now
    c, lam, soft = space.numbers[0], space.numbers[1], space.numbers[2]
    for i in range(n):
        now[i] = near[i] and margin[i] > 0.0
    r = gather(near_rows, now, friction, free, pushes, A, at, roles, c, lam)
    for k in range(r):
        c[k] = rates[at[k], k - int(roles[OF, k])]    # tangents follow their normal
    boxes = r
    for j in range(nv):
        change[j], held[j] = 0.0, False
        level = h * dry_friction(joints, j, free[j])
        if level > 0.0:
            at[r], A[r] = n + j, 0.0
            alone((A, at, cols, count), r, j)
            c[r], lam[r], roles[ROLE, r], roles[LEVEL, r], roles[OF, r] = free[j], 0.0, BOX, level, j
            r += 1
    if r == 0:
        return True
    lam = lam[:r]
    rows = A[:r], at[:r], cols, count
    if not solve_rows(rows, A[:r], True, inertia, c[:r], soft[:r], roles, nearly, lam, change, space.solver):
        return False
    for i in range(boxes, r):
        held[int(roles[OF, i])] = abs(lam[i]) < roles[LEVEL, i]
    scatter(now, friction, lam, pushes)
    return True


@entry("boolean(float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[::1], "
       "boolean[::1], float64[::1], float64[:, ::1], float64, float64, float64[::1], float64[:, ::1], boolean[::1])")
def press_entry(M, W, free, rates, R, margin, near, friction, joints, h, nearly, change, pushes, held):
    """`press` with M (nv·nv), or (0,), and W (nv·nv): see `solve_rows`; with rows for all coordinates."""
    n, nv = margin.shape[0], free.shape[0]
    cols, count = all_coordinates(n, nv)
    return press((M, W), free, rates, (R, cols, count), margin, near, friction, joints, h, nearly, change, pushes, held,
                 press_space(n, nv, nv))


@sweep
def onto(B, contacts, q, v, rest, closed, H, W, R, margin, shift, other, moves, space):
    """Project q onto zero gaps of closed contacts by Newton steps, with the sum shift (nv,); R and margin are those of
    the new q, with rows as far as STALE. False without convergence. H (nv·nv): the inertia that measures steps, or (0,)
    for 1. other (nq,), moves (2, nv), `press_space`: space.
    """
    cols, count = contacts[3:]
    nv, n, width = size_v(B), margin.shape[0], R.shape[1] - 2
    last = np.inf
    A, at, gaps, lam, step = space.rows, space.at, space.numbers[0], space.numbers[1], moves[0]
    e, K, holds = space.solver.numbers[0], space.solver.factor, space.solver.holds
    shift[:] = 0.0
    for i in range(n):
        holds[i] = True
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
        soft_of(rows, H, e)
        soften(rows, H, e, holds, K)
        hold(rows, K, e, holds, gaps, lam, step)
        assign(other, q)
        moved(B, other, step, 1.0, moves[1], q)
        for j in range(nv):
            shift[j] += step[j]
        if touching_rows(B, contacts, q, v, rest, 0, W, R, margin, closed, STALE) >= 0:
            return False
    return False


@sweep
def part_of_step(robot, contacts, laws, begin, begin_rows, known, effort, s, near, end, end_rows, pushes, space):
    """The end of s (s) from a state: a flight, or while any contact is near a step that presses these; pushes (n, 3):
    their impulses, in: a guess. False without a solution.

    begin, end: q, v and momentum p, frame (`variational_steps`), which is known or not, before and after; begin_rows:
    R before; end_rows: R, as far as STALE, and margin after. In space: the state (q, v) after a share of s without
    impulses, of a flight its end; the speed of sliding that friction of near contacts takes, −1 of others.
    """
    touches, space.choice[GAINS] = False, 0.0
    for i in range(near.shape[0]):
        touches |= near[i]
        space.slip[i] = -1.0
    if touches:
        return pressed(robot, contacts, laws, begin, begin_rows, effort, s, near, end, end_rows, pushes, space)
    q, v = end[:2]
    for k in range(4):
        assign(end[k], begin[k])
    if not known:
        end[2][v.shape[0]:] = np.nan
    space.positions[1, :1] = np.nan
    if not flight(robot, robot[1], end, robot[5], KNOWN if known else FRESH, effort, s, space.flight):
        return False
    pushes[:], space.choice[SHARE] = 0.0, 1.0
    assign(space.q, q)
    assign(space.v, v)
    return touching_rows(robot[0], contacts, q, v, space.rest, 0, space.bodies, end_rows[0], end_rows[1], near,
                         STALE) < 0


@kernel
def pressed(robot, contacts, laws, begin, begin_rows, effort, s, near, end, end_rows, pushes, space):
    """`part_of_step` with near contacts: flight, impulses, flight. The impulses act in the middle of s, of order 2;
    where that gains energy, beside it, where a quarter of the gain is lost.
    """
    choice, unsolved = space.choice, False
    open_choice(choice, s)
    while True:
        if not pressed_at(robot, contacts, laws, begin, begin_rows, effort, s, near, end, end_rows, pushes, space):
            if choice[SHARE] == 0.5:
                return False
            choice[SHARE], choice[ASIDE], unsolved = 0.5, 0.0, True
        elif unsolved or not next_share(choice, s, space.energy):
            return True


@sweep
def flight(robot, F, state, joints, start, effort, s, space):
    """Advance the state (q, v, p, frame) by a flight of s (s) of the robot F, with friction and limits of these joints.

    start: FRESH; KNOWN: the momentum p is; GOES_ON: the last flight in this space ended at q; NEARBY: p is known, and
    that flight ended near q, so that its inertia serves the iteration.
    """
    q, v, p, frame = state
    return variational_step(F, q, v, p, frame, start in (KNOWN, NEARBY), start >= GOES_ON, effort, robot[2], joints[:0],
                            robot[3], robot[4], joints, s, space)


@kernel
def flight_of_pressed(robot, state, start, effort, s, space):
    """`flight` of bodies in contact. p[3 nv:4 nv]: (ξ − v)/s, ξ the mean velocity and v the first; in: of the last
    flight, from which `foresee` guesses; out: of this one.
    """
    p, nv = state[2], state[1].shape[0]
    p[nv:3 * nv] = np.nan
    p[4 * nv:] = np.nan
    for j in range(3 * nv, 4 * nv):
        p[j] *= s
    if not flight(robot, robot[0], state, robot[6], start, effort, s, space):
        return False
    for j in range(3 * nv, 4 * nv):
        p[j] /= s
    return True


@kernel
def start_of(B, q, v, p, place, work):
    """NEARBY, with the momentum in p, if the last flight ended near q, at `place`; else FRESH."""
    for k in range(q.shape[0]):
        if not abs(q[k] - place[k]) <= NEAR_PLACE:
            return FRESH
    momentum_recursion(B, q, v, work[0], False, p[:v.shape[0]], work[2][0])
    turn_axes(B, p[:v.shape[0]], q, False, p[:v.shape[0]])
    return NEARBY


@kernel
def pressed_at(robot, contacts, laws, begin, begin_rows, effort, s, near, end, end_rows, pushes, space):
    """`pressed`, with the impulses after the chosen share of s.

    In space.energy, as of `next_share`: the gain by impulses and by projection onto gaps; zeros without centripetal or
    Coriolis acceleration of contacts.
    """
    B, joints = robot[0], robot[5]
    q1, v1, p, frame = end
    R1, margin1 = end_rows
    W, R0, margin0, q0, v0, rest = space.bodies, space.R, space.margin, space.q, space.v, space.rest
    free, change, after = space.velocities[FREE], space.velocities[CHANGE], space.velocities[AFTER]
    rates, curve, held, energy = space.rates, space.curve, space.held, space.energy
    share, slip, place = space.choice[SHARE], space.slip, space.positions[1]
    cols, count = contacts[3:]
    n, nv = near.shape[0], v1.shape[0]
    assign(q0, begin[0])
    assign(v0, begin[1])
    assign(p, begin[2])
    start = start_of(B, q0, v0, p, place, space.flight[7])
    place[:1] = np.nan    # until the second flight has ended
    if not flight_of_pressed(robot, (q0, v0, p, frame[:0]), start, effort, share * s, space.flight):
        return False
    if touching_rows(B, contacts, q0, begin[1], rest, 2, W, R0, margin0, near, -np.inf) >= 0:
        return False
    for j in range(nv):
        after[j] = (v0[j] - begin[1][j]) / share
        free[j] = v0[j] + (1.0 - share) * after[j]
    expect(contacts, begin[1], begin_rows, near, v0, after, R0, laws, share, s, curve, rates)
    M, inverse = space.flight[1][0].reshape(-1), space.flight[1][1].reshape(-1)
    inertia, rows, friction = (M, inverse), (R0, cols, count), laws[0]
    if not press(inertia, free, rates, rows, margin0, near, friction, joints, s, 0.0, change, pushes, held,
                 space.press):
        pushes[:] = 0.0
        if not press(inertia, free, rates, rows, margin0, near, friction, joints, s, NEARLY, change, pushes, held,
                     space.press):
            return False
    moves = False
    for j in range(nv):
        after[j] = v0[j] + change[j]
        moves |= abs(begin[1][j]) > STILL
    for i in range(n):
        if near[i]:
            slip[i] = np.hypot(rates[i, 1] + rate(R0, 3 * i + 1, cols, count, change),
                               rates[i, 2] + rate(R0, 3 * i + 2, cols, count, change))
    energy[:] = 0.0
    if moves:
        forces_at(robot, q0, v0, rest, effort, W, space.velocities[FORCES])
        moves = work_of_impulses(contacts, inertia, change, near, R0, s, pushes, space)
    assign(q1, q0)
    assign(v1, after)
    if not flight_of_pressed(robot, (q1, v1, p, frame[:0]), GOES_ON, effort, (1.0 - share) * s, space.flight):
        return False
    assign(place, q1)
    for j in range(nv):
        if held[j] and abs(v1[j]) < STILL:
            v1[j] = 0.0
    if touching_rows(B, contacts, q1, v1, rest, 0, W, R1, margin1, near, STALE) >= 0:
        return False
    kinetic = 0.0
    for j in range(nv if moves else 0):
        momentum = 0.0
        for k in range(nv):
            momentum += M[nv * j + k] * v1[k]    # M is of q1 now
        kinetic += 0.5 * momentum * v1[j]
    if not close_gaps(B, contacts, near, q1, v1, M, pushes, R1, margin1, space):
        return False
    if moves:
        work_of_gaps(robot, q1, v1, effort, kinetic, space)
        energy[AIM] = energy[MOST] = NO_GAIN * kinetic
        for i in range(n):
            energy[MOST] += ROUNDING / s * abs(pushes[i, 0])
    return True


@kernel
def expect(contacts, v, begin_rows, near, v0, dv, R0, laws, share, s, curve, rates):
    """Extrapolated rates (n, 3) of near contacts without impulses, at the end of s, the slip of fast sliding in its
    middle, and their change in s, curve (n, 3). v, begin_rows: velocities and rows before; v0, R0: after a share of s;
    dv: change of velocities in s.
    """
    cols, count, width = contacts[3], contacts[4], R0.shape[1] - 2
    friction, turns = laws[0], laws[2]
    for i in range(near.shape[0]):
        for k in range(3 if near[i] else 0):
            r = 3 * i + k
            now = rate(R0, r, cols, count, v0)
            if k > 0 and turns[i] != 0.0:    # tangents of now and before are not the same
                curve[i, k] = rate(R0, r, cols, count, dv) + s * R0[r, width]
            else:
                curve[i, k] = (now - rate(begin_rows, r, cols, count, v)) / share
            rates[i, k] = now + (1.0 - share) * curve[i, k]
        if near[i] and np.hypot(rates[i, 1] - curve[i, 1], rates[i, 2] - curve[i, 2]) > FAST * (
                np.hypot(curve[i, 1], curve[i, 2]) + friction[i] * abs(curve[i, 0])):
            rates[i, 1] -= 0.5 * curve[i, 1]
            rates[i, 2] -= 0.5 * curve[i, 2]


@kernel
def work_of_impulses(contacts, inertia, change, near, R0, s, pushes, space):
    """The gain and its slope by impulses; whether anything else than forces accelerates the contacts."""
    M, inverse = inertia
    cols, count = contacts[3:]
    Q, dv, v0, curve, energy = space.velocities[FORCES], space.velocities[SPARE], space.v, space.curve, space.energy
    nv, largest = v0.shape[0], 0.0
    for j in range(nv):
        impulse = dv[j] = 0.0
        for k in range(nv):
            impulse += M[nv * j + k] * change[k]
            dv[j] += s * inverse[nv * j + k] * Q[k]
        energy[GAIN] += impulse * (v0[j] + 0.5 * change[j])
    for i in range(near.shape[0]):
        for k in range(3 if near[i] else 0):
            by_forces = rate(R0, 3 * i + k, cols, count, dv)
            largest = max(largest, abs(curve[i, k] - by_forces))
            energy[SLOPE] += pushes[i, k] * (curve[i, k] - (by_forces if k == 0 else 0.0))
    if largest <= STILL:
        energy[:] = 0.0
    return largest > STILL


@kernel
def close_gaps(B, contacts, near, q1, v1, M, pushes, R1, margin1, space):
    """Project q1, the place of the inertia, onto zero gaps of contacts that press or are deep, by LIFTED: zeros if they
    cannot be closed now, which the next step does.
    """
    closed, width = space.closed, R1.shape[1] - 2
    lifted, shift = space.velocities[LIFTED], space.velocities[FREE]
    holds = False
    for i in range(near.shape[0]):
        closed[i] = near[i] and (R1[3 * i, width + 1] < 0.0 or pushes[i, 0] > 0.0)
        holds |= closed[i]
    lifted[:] = 0.0
    while holds:
        if not onto(B, contacts, q1, v1, space.rest, closed, M, space.bodies, R1, margin1, shift, space.positions[0],
                    space.velocities[STEP:STEP + 2], space.press):
            assign(q1, space.positions[1])
            lifted[:] = 0.0
            return touching_rows(B, contacts, q1, v1, space.rest, 0, space.bodies, R1, margin1, near, STALE) < 0
        for j in range(shift.shape[0]):
            lifted[j] += shift[j]
        holds = False
        for i in range(near.shape[0]):    # what others have pushed in
            if near[i] and not closed[i] and R1[3 * i, width + 1] < -ACCEPTED:
                closed[i] = holds = True
    return True


@kernel
def work_of_gaps(robot, q1, v1, effort, kinetic, space):
    """Add the change of energy by the displacement LIFTED to q1 to the gain; kinetic: energy before."""
    B, Q, sums, lifted = robot[0], space.velocities[FORCES], space.totals, space.velocities[LIFTED]
    moved_at_all = False
    for j in range(v1.shape[0]):
        moved_at_all |= lifted[j] != 0.0
    if moved_at_all:
        forces_at(robot, q1, v1, space.rest, effort, space.bodies, Q)
        totals(B, q1, 0, v1, 0, 1, space.bodies, sums, 0)
        space.energy[GAIN] += sums[_KINETIC] - kinetic
        for j in range(v1.shape[0]):
            space.energy[GAIN] -= Q[j] * lifted[j]


@sweep
def forces_at(robot, q, v, rest, effort, W, Q):
    """Q (nv,): generalised forces at q: effort, weight, wrenches and damping at v."""
    B, wrench, damping = robot[0], robot[2], robot[3]
    inverse_dynamics_recursion(B, q, 0, rest, rest, 0, wrench, 0, W, Q)
    for j in range(v.shape[0]):
        Q[j] = effort[j] - Q[j]
        for k in range(damping.shape[0]):
            Q[j] -= damping[j, k] * v[k]


@sweep
def closed_at(R, margin, closed):
    """closed (n,): contacts whose gap is zero."""
    for i in range(margin.shape[0]):
        closed[i] = -STALE < R[3 * i, R.shape[1] - 1] <= STALE and margin[i] > 0.0


@sweep
def deepest(R, depth):
    """Largest excess of gaps over the depth (n,) at which contacts close, in units of its tolerance."""
    largest = -np.inf
    for i in range(depth.shape[0]):
        largest = max(largest, (-R[3 * i, R.shape[1] - 1] - depth[i]) / GAP)
    return largest


@allocating
def too_slow_to_bounce(B, contacts, begin, part, slow, space):
    """slow (n,): rates of gaps that do not bounce, by their change in this part of a step."""
    W, R0, margin0, q0, v0, rest = space.bodies, space.R, space.margin, space.q, space.v, space.rest
    flown = space.choice[SHARE] * part
    cols, count = contacts[3:]
    q, v = begin[:2]
    every = np.ones(slow.shape[0], np.bool_)
    if touching_rows(B, contacts, q0, v0, rest, 0, W, R0, margin0, every, np.inf) >= 0:
        return False
    for i in range(slow.shape[0]):
        slow[i] = rate(R0, 3 * i, cols, count, v0)
    if touching_rows(B, contacts, q, v, rest, 0, W, R0, margin0, every, np.inf) >= 0:
        return False
    for i in range(slow.shape[0]):
        slow[i] = abs(slow[i] - rate(R0, 3 * i, cols, count, v)) * (2.0 / flown) + STILL
    return True


@allocating
def struck(B, contacts, laws, begin, R, closed, slow, impulse, space):
    """Impact of closed contacts at a state with rows R, which changes v; its impulses are added. False without a
    solution. laws: see `contact_steps`.
    """
    M, inverse = space.inertia[0], space.inertia[1]
    cols, count = contacts[3:]
    q, v = begin[:2]
    bounce, pushes = laws[1].copy(), np.empty(impulse.shape)
    for i in range(bounce.shape[0]):
        if not (closed[i] and rate(R, 3 * i, cols, count, v) < -slow[i]):
            bounce[i] = 0.0
    mass_matrix_recursion(B, q, 0, space.flight[7][0], M, 0)
    inverse_of_symmetric(M.copy(), v.shape[0], inverse)
    if not strike((M, inverse), (R, cols, count), closed, laws[0], bounce, v, pushes):
        return False
    for i in range(impulse.shape[0]):
        for k in range(3):
            impulse[i, k] += pushes[i, k]
    return True


@sweep
def take(state, new, rows, new_rows):
    """The new state and its rows in place of the old."""
    for k in range(4):
        assign(state[k], new[k])
    assign_rows(rows[0], new_rows[0])
    assign(rows[1], new_rows[1])


@sweep
def contact_step(robot, contacts, laws, begin, known, efforts, h, rows, end, out, space):
    """Advance the state `begin`, with its rows, in place by a step of h (s); whether its momentum is known then, or −1
    without a solution. out (n, OUT): as of `contact_steps`; efforts: of the step, see `effort_at`; end: space.
    """
    B = robot[0]
    R, margin, R1, margin1 = rows
    near, depth, slow, effort, search = space.near, space.depth, space.slow, space.effort, space.search
    force, impulse, pushes, choice = space.force, space.impulse, space.pushes, space.choice
    cols, count = contacts[3:]
    n, last = margin.shape[0], R.shape[1] - 1
    x, part = 0.0, 1.0    # of the step: what is done, and the next part
    hits = closes = flies = ended = False
    choice[ASIDE], choice[STEEPER] = out[0, LATER], 1.0 + out[0, LATER + 1]
    for i in range(n):
        for k in range(3):
            pushes[i, k], force[i, k], impulse[i, k] = out[i, k], 0.0, 0.0
    closed_at(R, margin, near)
    for turn in range(IMPACTS + ADDED):
        effort_at(efforts, x + 0.5 * part, effort)
        if not part_of_step(robot, contacts, laws, begin, R, known, effort, part * h, near, end, (R1, margin1), pushes,
                            space):
            return -1
        if choice[GAINS] != 0.0 and turn < HALVES:
            part *= 0.5
            continue
        flies, hits, closes, flown = True, False, False, choice[SHARE] * part
        for i in range(n):
            flies &= not near[i]
            if near[i] and turn < IMPACTS:    # closed, and approaching
                now = rate(R, 3 * i, cols, count, begin[1])
                hits |= now < -2.0 / flown * abs(rate(space.R, 3 * i, cols, count, space.v) - now) - STILL
            depth[i] = np.inf
            if not near[i] and R[3 * i, last] > -STALE and min(margin[i], margin1[i]) > 0.0:
                depth[i] = max(TOUCH, GAP - R[3 * i, last])    # opening from below zero: deeper than now
            closes |= R1[3 * i, last] < -depth[i]
        halved = part < 1.0 - x
        if not (hits or closes or halved):
            break
        if turn >= IMPACTS:
            for i in range(n):
                near[i] |= R1[3 * i, last] < -depth[i]
            continue
        if (hits or closes) and not too_slow_to_bounce(B, contacts, begin, part, slow, space):
            return -1
        if closes and not hits:
            open_search(search, part, deepest(R1, depth))
            search[BEFORE] = min(deepest(R, depth), -1.0)
            trial = part
            while trial > 0.0:
                trial = next_trial(search, TRIALS, BISECT, 1.0)
                part = trial if trial > 0.0 else search[END]
                effort_at(efforts, x + 0.5 * part, effort)
                if not part_of_step(robot, contacts, laws, begin, R, known, effort, part * h, near, end, (R1, margin1),
                                    pushes, space):
                    return -1
                if trial > 0.0:
                    judge(search, deepest(R1, depth))
                    choice[HELD] = 1.0    # for all trials: gaps are continuous in the length
            choice[ASIDE], choice[STEEPER], choice[HELD] = 0.0, 1.0, 0.0
            ended = 1.0 - x - part <= FINEST
        if not hits:
            x += part
            take(begin, end, (R, margin), (R1, margin1))
            known = flies
            for i in range(n):
                for k in range(3):
                    force[i, k] += pushes[i, k]
            closed_at(R, margin, near)
            for i in range(n):
                hits |= closes and near[i] and rate(R, 3 * i, cols, count, begin[1]) < 0.0
        if hits:
            known = False
            if not struck(B, contacts, laws, begin, R, near, slow, impulse, space):
                return -1
            space.slip[:] = -1.0
        for i in range(n):
            near[i] &= rate(R, 3 * i, cols, count, begin[1]) <= STILL
        pushes[:], part = 0.0, 1.0 - x
        if ended:
            break
    if not ended:
        take(begin, end, (R, margin), (R1, margin1))
        known = flies
    out[0, LATER], out[0, LATER + 1] = choice[ASIDE], choice[STEEPER] - 1.0
    bounced = False    # or let go: R has no rows of such contacts
    for i in range(n):
        for k in range(3):
            out[i, k], out[i, IMPULSE + k] = force[i, k] + pushes[i, k], impulse[i, k]
        out[i, SLIDING] = max(space.slip[i], 0.0)
        near[i] = space.slip[i] < 0.0 and out[i, 0] + impulse[i, 0] > 0.0
        bounced |= near[i]
    if bounced:
        if touching_rows(B, contacts, begin[0], begin[1], space.rest, 0, space.bodies, space.R, space.margin, near,
                         -np.inf) >= 0:
            return -1
        for i in range(n):
            if near[i]:
                out[i, SLIDING] = np.hypot(rate(space.R, 3 * i + 1, cols, count, begin[1]),
                                           rate(space.R, 3 * i + 2, cols, count, begin[1]))
    return 1 if known else 0


@entry("int64(float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], "
       "float64[::1], float64[::1], float64[::1], float64[::1], boolean[::1], float64[::1], float64[:, :, ::1], "
       "float64[::1], float64[:, ::1], float64[::1], float64[:, ::1], float64[:, ::1], float64, int64, "
       "float64[:, ::1])", nogil=True)
def contact_steps(B, F, C, stops, faces, laws, q, v, p, frame, known, place, efforts, wrench, damping, gravity, joints,
                  still, h, steps, out):
    """Advance q, v in place by at most `steps` steps of h (s); returns the number made, fewer where one has no solution
    or is not finite.

    B: of the model; F, damping, gravity, p, frame, known (1,): as of `variational_steps`; wrench, joints: too. p, where
    not known, and place (nq,): of the step before, see `flight_of_pressed` and `start_of`; zeros, and NaN, without one.
    efforts: as of `rk4_steps`; still: joints without friction and limits. C, stops, faces: see `touching_rows`; laws
    (3, n): friction, restitution, and whether tangents jump. out (n, OUT): of the step before the first, in, and of the
    last: impulses of each contact along its normal, x and y, where the solver begins; its speed of sliding; its
    impulses of impacts; LATER.
    """
    nv, n = size_v(B), laws.shape[1]
    cols, count = np.zeros((n + nv, nv), np.int64), np.zeros(n + nv, np.int64)
    width = supports(B, C, stops[:, STOP_V].copy(), cols, count)
    contacts, robot = (C, stops, faces, cols, count), (B, F, wrench, damping, gravity, joints, still)
    space = contact_space(B, damping, n, width)
    assign(space.positions[1], place)
    if place[0] == place[0]:
        inertia_of(B, place, v, space.v, space.flight[1], space.flight[7])
    rows = np.zeros((3 * n, width + 2)), np.empty(n), np.zeros((3 * n, width + 2)), np.empty(n)
    begin, end = (q.copy(), v.copy(), p.copy(), frame.copy()), (q.copy(), v.copy(), p.copy(), frame.copy())
    out1 = out.copy()
    if touching_rows(B, contacts, q, v, space.rest, 0, space.bodies, rows[0], rows[1], space.closed, STALE) >= 0:
        return 0
    for s in range(steps):
        effort = efforts[min(s, efforts.shape[0] - 1)]
        knows = contact_step(robot, contacts, (laws[0], laws[1], laws[2]), begin, known[0], effort, h, rows, end, out1,
                             space)
        if knows < 0 or not finite(begin[0], begin[1]):
            return s
        assign(q, begin[0])
        assign(v, begin[1])
        assign(p, begin[2])
        assign(frame, begin[3])
        assign(place, space.positions[1])
        assign_rows(out, out1)
        known[0] = knows > 0
    return steps
