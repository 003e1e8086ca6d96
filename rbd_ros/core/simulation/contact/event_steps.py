"""Kernel of RK4 with contact modes (`events` has the method): many steps without impacts, which Python makes.

Contacts are followed by stops; rows `R` and margins are those of `touching_rows`. A mode has a row per contact (n,
MODE), `pull` (n, nv), the direction of sliding in coordinates, and per coordinate (2, nv) the direction of sliding
against dry friction, or 0, and whether it is held by it. An evaluation leaves a row of forces per contact (n, TAKEN),
and which coordinates stay held.
"""
from __future__ import annotations

import numpy as np

from ...compiled.assign import assign
from ...compiled.entry import entry
from ...compiled.kernel import routine
from ...dynamics.articulated import SIZE as ARTICULATED_SIZE
from ...dynamics.kinematics import SIZE
from ...dynamics.mass_matrix import SIZE as MASS_SIZE
from ...dynamics.mass_matrix import mass_matrix_recursion
from ...model.block import node_count
from ..first_event import END, FINEST, SEARCH, judge, next_trial, open_search
from ..joint_data import dry_friction, effort_at, finite
from ..linear_equations import inverse_of_symmetric
from ..rk4_steps import SIGN, mode_accelerations, rk4_end, rk4_place
from .cones import BOX, FIRST, LEVEL, NORMAL, OF, PARTNER, ROLE, SECOND, least_squares
from .contact_steps import STALE, STILL, TOUCH, onto, product, rate, solve_rows, touching_rows

CLOSED, LEAVING = 1e-10, 1e-10    # m: gap below which a contact counts as closed; m/s: separation that opens it
TURNS, BISECT = 60, 20            # trials of an event search, and those before bisection
EVENTS = 150                      # largest number of events in one step
GAP, SLIP, FACE, JOINT = 1e-14, 1e-11, 1e-12, 1e-11    # tolerances of events, m and m/s
STIFF = 1.0       # product of step and turning rate of the slip direction above which sliding is treated as slow
TURN = 0.3        # largest share of friction across the direction of slow sliding
SMALL = 1e-9      # relative acceleration below which a contact sticks
DRIFT = 1e-14     # m/s: rates of closed contacts that are left
FARTHEST = 1.0    # rad or m: largest motion of a coordinate by friction in a step; more is an impulse
# Of a contact in a mode: closed; sliding, in which direction; open but may close; slow, with this normal force (`slow`
# in `events.Mode`). After an evaluation: force along normal, x and y; whether it presses, and whether it sticks.
SHUT, SLIDES, WAY_X, WAY_Y, ARMED, SLOW, LOAD, MODE = range(8)
FORCE, HOLDS, STICKS, TAKEN = 0, 3, 4, 5
HELD = 1    # row of the joints' mode, after SIGN


@routine
def way_of(R, i, mode, pull, turns):
    """Initial direction of sliding of contact i in its present axes, which jump between charts if it `turns`."""
    x, y = mode[i, WAY_X], mode[i, WAY_Y]
    if turns[i]:
        xx = xy = yy = px = py = 0.0
        for j in range(pull.shape[1]):
            a, b = R[3 * i + 1, j], R[3 * i + 2, j]
            xx, xy, yy = xx + a * a, xy + a * b, yy + b * b
            px, py = px + a * pull[i, j], py + b * pull[i, j]
        x, y = yy * px - xy * py, xx * py - xy * px
        size = max(np.hypot(x, y), 1e-300)
        x, y = x / size, y / size
    return x, y


@routine
def evaluate(B, contacts, friction, turns, q, v, effort, joints, wrench, s, mode, pull, joint_mode, work, a, taken,
             rests):
    """Accelerations a (nv,), taken and rests in a mode, within a motion of s (s); False without a solution.

    Friction of slow sliding: along the direction, as in the mode; across, implicit: `−µ λ_n (v_p + s a_p)/|v|`.
    """
    W, kinematics, mass_work, M, inverse, R, margin, zero, free = work
    nv, n = v.shape[0], friction.shape[0]
    rows = np.empty((2, nv))
    if mode_accelerations(B, q, v, effort, joints, joint_mode, free, wrench, rows[0], W, a, rows[1]) != 0:
        return False
    size = 0
    for i in range(n):
        sticks = friction[i] > 0.0 and mode[i, SLIDES] == 0.0
        shut = mode[i, SHUT] != 0.0
        for k in range(3 if shut else 0, TAKEN):    # forces of the evaluation before are a guess
            taken[i, k] = 0.0
        if shut:
            taken[i, HOLDS], taken[i, STICKS] = 1.0, 1.0 if sticks else 0.0
            size += (3 if sticks else 1) + int(mode[i, SLOW])
    for j in range(nv):
        rests[j] = joint_mode[HELD, j] != 0.0
        size += int(rests[j])
    if size == 0:
        return True
    if touching_rows(B, contacts, q, v, zero, 2, kinematics, R, margin) >= 0:
        return False
    mass_matrix_recursion(B, q, 0, mass_work, M, 0)
    inverse_of_symmetric(M, nv, inverse)
    A, C, roles = np.zeros((size, nv)), np.zeros((size, nv)), np.zeros((4, size))
    c, soft, lam, drag = np.zeros(size), np.zeros(size), np.zeros(size), np.zeros((n, 2))
    change, r = np.empty(nv), 0
    for i in range(n):
        if mode[i, SHUT] == 0.0:
            continue
        own = 3 if taken[i, STICKS] != 0.0 else 1
        for k in range(own):
            for j in range(nv):
                A[r + k, j] = C[r + k, j] = R[3 * i + k, j]
            c[r + k], lam[r + k] = R[3 * i + k, nv], taken[i, k]
            roles[OF, r + k], roles[LEVEL, r + k] = r, friction[i]
        roles[ROLE, r] = NORMAL
        if own == 3:
            roles[ROLE, r + 1], roles[ROLE, r + 2], roles[PARTNER, r + 1] = FIRST, SECOND, r + 2
        if mode[i, SLIDES] != 0.0:
            x, y = way_of(R, i, mode, pull, turns)
            along, across = rate(R, 3 * i + 1, v), rate(R, 3 * i + 2, v)
            if mode[i, SLOW] == 0.0 and x * along + y * across > 0.5 * STILL:
                speed = np.hypot(along, across)
                x, y = along / speed, across / speed
            drag[i, 0], drag[i, 1] = -friction[i] * x, -friction[i] * y
            for j in range(nv):
                C[r, j] += drag[i, 0] * R[3 * i + 1, j] + drag[i, 1] * R[3 * i + 2, j]
        r += own
    for j in range(nv):
        if rests[j]:
            A[r, j] = C[r, j] = 1.0
            roles[ROLE, r], roles[LEVEL, r] = BOX, dry_friction(joints, j, 0.0)
            r += 1
    for i in range(n):
        if mode[i, SHUT] != 0.0 and mode[i, SLOW] != 0.0:
            x, y = way_of(R, i, mode, pull, turns)
            for j in range(nv):
                A[r, j] = C[r, j] = x * R[3 * i + 2, j] - y * R[3 * i + 1, j]
            along, across = rate(R, 3 * i + 1, v), rate(R, 3 * i + 2, v)
            c[r] = x * (R[3 * i + 2, nv] + across / s) - y * (R[3 * i + 1, nv] + along / s)
            roles[ROLE, r], roles[LEVEL, r] = BOX, TURN * friction[i] * mode[i, LOAD]
            soft[r] = np.hypot(along, across) / (s * friction[i] * max(mode[i, LOAD], 1e-300))
            r += 1
    for r in range(size):
        for j in range(nv):
            c[r] += A[r, j] * a[j]
    if not solve_rows(A, C, False, inverse, c, soft, roles, 0.0, lam, change):
        return False
    largest = 1.0
    for j in range(nv):
        a[j] += change[j]
        largest = max(largest, 1.0 + abs(a[j]))
    small = SMALL * largest
    r = 0
    for i in range(n):
        if mode[i, SHUT] == 0.0:
            continue
        taken[i, FORCE] = lam[r]
        taken[i, HOLDS] = 1.0 if lam[r] > 0.0 else 0.0
        if taken[i, STICKS] != 0.0:
            taken[i, FORCE + 1], taken[i, FORCE + 2] = lam[r + 1], lam[r + 2]
            slips = np.hypot(rate(R, 3 * i + 1, a) + R[3 * i + 1, nv], rate(R, 3 * i + 2, a) + R[3 * i + 2, nv])
            taken[i, STICKS] = 1.0 if taken[i, HOLDS] != 0.0 and slips < small else 0.0
            r += 3
        else:
            taken[i, FORCE + 1], taken[i, FORCE + 2] = drag[i, 0] * lam[r], drag[i, 1] * lam[r]
            r += 1
    for j in range(nv):
        if rests[j]:
            rests[j] = abs(a[j]) < small
            r += 1
    for i in range(n):
        if mode[i, SHUT] != 0.0 and mode[i, SLOW] != 0.0:
            x, y = way_of(R, i, mode, pull, turns)
            taken[i, FORCE + 1] -= y * lam[r]
            taken[i, FORCE + 2] += x * lam[r]
            r += 1
    return True


@routine
def choose_contact_mode(B, contacts, friction, q, v, joints, work, mode, pull, joint_mode):
    """The mode at a state, without slow sliding; False before an impact, or without closest points."""
    kinematics, R, margin, zero = work[1], work[5], work[6], work[7]
    nv, n = v.shape[0], friction.shape[0]
    if touching_rows(B, contacts, q, v, zero, 0, kinematics, R, margin) >= 0:
        return False
    for i in range(n):
        gap, rates = R[3 * i, nv + 1], rate(R, 3 * i, v)
        closed = -STALE < gap < CLOSED and margin[i] > 0.0
        if closed and rates < -LEAVING:
            return False
        closed = closed and rates <= LEAVING
        x, y = rate(R, 3 * i + 1, v), rate(R, 3 * i + 2, v)
        speed = np.hypot(x, y)
        slides = closed and speed > STILL and friction[i] > 0.0
        for k in range(MODE):
            mode[i, k] = 0.0
        mode[i, SHUT], mode[i, ARMED] = 1.0 if closed else 0.0, 1.0 if gap > -STALE and not closed else 0.0
        if slides:
            mode[i, SLIDES], mode[i, WAY_X], mode[i, WAY_Y] = 1.0, x / speed, y / speed
        for j in range(nv):
            pull[i, j] = mode[i, WAY_X] * R[3 * i + 1, j] + mode[i, WAY_Y] * R[3 * i + 2, j]
    for j in range(nv):
        rubs, moves = dry_friction(joints, j, 0.0) > 0.0, abs(v[j]) > STILL
        joint_mode[SIGN, j] = np.sign(v[j]) if rubs and moves else 0.0
        joint_mode[HELD, j] = 1.0 if rubs and not moves else 0.0
    return True


@routine
def mark_slow(B, contacts, friction, turns, q, v, effort, joints, wrench, s, mode, pull, joint_mode, work, a, taken,
              rests):
    """Mark slow sliding for a motion of s (s), with its load; False if friction would stop it within too small a part.
    """
    inverse, R = work[4], work[5]
    nv, n = v.shape[0], friction.shape[0]
    if not evaluate(B, contacts, friction, turns, q, v, effort, joints, wrench, s, mode, pull, joint_mode, work, a,
                    taken, rests):
        return False
    brake = np.zeros(nv)
    for i in range(n):
        mode[i, LOAD] = taken[i, FORCE]
        if mode[i, SLIDES] != 0.0:
            rub = friction[i] * mode[i, LOAD]
            turn = 0.0
            for k in range(1, 3):
                for j in range(nv):
                    x = 0.0
                    for l in range(nv):
                        x += inverse[nv * j + l] * R[3 * i + k, l]
                    turn += R[3 * i + k, j] * x
            mode[i, SLOW] = 1.0 if s * turn * rub > STIFF * np.hypot(
                rate(R, 3 * i + 1, v), rate(R, 3 * i + 2, v)) else 0.0
            for j in range(nv):
                brake[j] += rub * pull[i, j]
    for j in range(nv):
        x = 0.0
        for k in range(nv):
            x += inverse[nv * j + k] * brake[k]
        if s * s * abs(x) > FARTHEST:
            return False
    return True


@routine
def attempt(B, contacts, friction, turns, q, v, x, part, h, efforts, joints, wrench, mode, pull, joint_mode, work, q1,
            v1, excess, taken, rests, place):
    """q1, v1: the state after the part `part` of a step of h (s), from x on, in a mode; returns its largest excess, in
    units of the tolerances, positive where an event has passed, or NaN without a solution. excess (4 n or nv): of
    closing, coming to rest and leaving a face of each contact, and of the joints; place (nq,): of the last evaluation.
    """
    kinematics, R, margin, zero = work[1], work[5], work[6], work[7]
    nv, n = v.shape[0], friction.shape[0]
    a, u, effort, dv, q2 = np.empty((4, nv)), np.empty((4, nv)), np.empty(nv), np.empty(nv), q.copy()
    assign(u[0], v)
    assign(place, q)
    for k in range(4):
        if k > 0:
            rk4_place(B, q, k, part * h, u, a, dv, q2, place)
        effort_at(efforts, x + part * 0.5 * ((k + 1) // 2), effort)
        if not evaluate(B, contacts, friction, turns, place, u[k], effort, joints, wrench, part * h, mode, pull,
                        joint_mode, work, a[k], taken, rests):
            return np.nan
    rk4_end(B, q, part * h, u, a, dv, q2, q1, v1)
    if not finite(q1, v1) or touching_rows(B, contacts, q1, v1, zero, 0, kinematics, R, margin) >= 0:
        return np.nan
    largest = -1.0 / GAP
    for i in range(n):
        excess[i], excess[n + i], excess[2 * n + i] = -1.0 / GAP, -1.0 / SLIP, -1.0 / FACE
        if mode[i, ARMED] != 0.0 and margin[i] > 0.0:
            excess[i] = (-R[3 * i, nv + 1] - TOUCH) / GAP
        if mode[i, SLIDES] != 0.0:
            wx, wy = way_of(R, i, mode, pull, turns)
            excess[n + i] = -(wx * rate(R, 3 * i + 1, v1) + wy * rate(R, 3 * i + 2, v1)) / SLIP
        if mode[i, SHUT] != 0.0 and margin[i] < np.inf:
            excess[2 * n + i] = -margin[i] / FACE
    for j in range(nv):
        excess[3 * n + j] = -joint_mode[SIGN, j] * v1[j] / JOINT if joint_mode[SIGN, j] != 0.0 else -1.0 / JOINT
    for k in range(3 * n + nv):
        largest = max(largest, excess[k])
    return largest


@routine
def settle(B, contacts, q, v, work, taken, rests):
    """Remove drift in place: at contacts that press and stick, and at joints that rest; False without convergence."""
    kinematics, mass_work, M, inverse, R, margin, zero = work[1:8]
    nv, n = v.shape[0], margin.shape[0]
    closed, size, drift = np.zeros(n, np.bool_), 0, 0.0
    for j in range(nv):
        v[j] = 0.0 if rests[j] else v[j]
    for i in range(n):
        closed[i] = taken[i, HOLDS] != 0.0
        size += (3 if taken[i, STICKS] != 0.0 else 1) if closed[i] else 0
    if size == 0:
        return True
    if touching_rows(B, contacts, q, v, zero, 0, kinematics, R, margin) >= 0 or not onto(
            B, contacts, q, v, zero, closed, kinematics, R, margin, np.empty(nv), q.copy()):
        return False
    rows, c, lam = np.empty(size, np.int64), np.empty(size), np.empty(size)
    r = 0
    for i in range(n):
        for k in range((3 if taken[i, STICKS] != 0.0 else 1) if closed[i] else 0):
            rows[r], c[r] = 3 * i + k, -rate(R, 3 * i + k, v)
            drift = max(drift, abs(c[r]))
            r += 1
    if drift <= DRIFT:
        return True
    mass_matrix_recursion(B, q, 0, mass_work, M, 0)
    inverse_of_symmetric(M, nv, inverse)
    X, G = np.zeros((size, nv)), np.empty(size * size)
    for r in range(size):
        for m in range(nv):
            for j in range(nv):
                X[r, j] += R[rows[r], m] * inverse[nv * m + j]
        for k in range(r + 1):
            G[size * r + k] = G[size * k + r] = rate(R, rows[k], X[r])
    least_squares(G, c, size, np.empty((2, size * size + 2 * size)), lam)
    product(X, lam, zero)
    for j in range(nv):
        v[j] += zero[j]
        zero[j] = 0.0
    return True


@routine
def step_in_modes(B, contacts, friction, turns, q, v, h, efforts, joints, wrench, work, mode, pull, joint_mode, taken,
                  rests, place):
    """Advance q, v in place by a step of h (s); False before an impact, or without a solution."""
    nv, n = v.shape[0], friction.shape[0]
    end_q, end_v, effort, a = q.copy(), v.copy(), np.empty(nv), np.empty(nv)
    excess, search = np.empty(3 * n + nv), np.empty(SEARCH)
    x = 0.0
    for _ in range(EVENTS):
        if not choose_contact_mode(B, contacts, friction, q, v, joints, work, mode, pull, joint_mode):
            return False
        slides = False
        for i in range(n):
            slides |= mode[i, SLIDES] != 0.0
        effort_at(efforts, x, effort)
        if slides and not mark_slow(B, contacts, friction, turns, q, v, effort, joints, wrench, (1.0 - x) * h, mode,
                                    pull, joint_mode, work, a, taken, rests):
            return False
        part = 1.0 - x
        largest = attempt(B, contacts, friction, turns, q, v, x, part, h, efforts, joints, wrench, mode, pull,
                          joint_mode, work, end_q, end_v, excess, taken, rests, place)
        if not largest < np.inf:
            return False
        if largest > 0.0:
            open_search(search, part, largest)
            while True:
                length = next_trial(search, TURNS, BISECT, 1.0)
                if length == 0.0:
                    break
                largest = attempt(B, contacts, friction, turns, q, v, x, length, h, efforts, joints, wrench, mode, pull,
                                  joint_mode, work, end_q, end_v, excess, taken, rests, place)
                if not largest < np.inf:
                    return False
                judge(search, largest)
            part = search[END]
            attempt(B, contacts, friction, turns, q, v, x, part, h, efforts, joints, wrench, mode, pull, joint_mode,
                    work, end_q, end_v, excess, taken, rests, place)
            for i in range(n):
                if excess[i] > 0.0:    # it closes
                    return False
            for j in range(nv):
                if excess[3 * n + j] > 0.0:
                    end_v[j] = 0.0
        assign(q, end_q)
        assign(v, end_v)
        if not settle(B, contacts, q, v, work, taken, rests):
            return False
        x += part
        if 1.0 - x <= FINEST:
            return True
    return False


@entry("int64(float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[::1], boolean[::1], float64[::1], "
       "float64[::1], float64[:, :, ::1], float64[::1], float64[:, ::1], float64, int64, float64[:, ::1], "
       "boolean[::1], float64[::1])", nogil=True)
def event_steps(B, C, stops, faces, friction, turns, q, v, efforts, wrench, joints, h, steps, taken, rests, place):
    """Advance q, v in place by at most `steps` steps of h (s); returns the number made: it returns before a step with
    an impact or without a solution. B: of the model; efforts, wrench, joints: as of `rk4_steps`; C, stops, faces: see
    `touching_rows`; friction (n,), turns (n,): whether axes jump between charts. Out, of the last step: taken (n,
    TAKEN), rests (nv,), place (nq,).
    """
    nv, n = v.shape[0], friction.shape[0]
    work = (np.empty(ARTICULATED_SIZE * node_count(B)), np.zeros(SIZE * node_count(B)),
            np.empty(MASS_SIZE * node_count(B)), np.empty(nv * nv), np.empty(nv * nv), np.empty((3 * n, nv + 2)),
            np.empty(n), np.zeros(nv), np.zeros(nv, np.bool_))
    mode, pull, joint_mode = np.empty((n, MODE)), np.empty((n, nv)), np.empty((2, nv))
    q1, v1, taken1, rests1, place1 = q.copy(), v.copy(), taken.copy(), rests.copy(), place.copy()
    for s in range(steps):
        assign(q1, q)
        assign(v1, v)
        effort = efforts[min(s, efforts.shape[0] - 1)]
        if not step_in_modes(B, (C, stops, faces), friction, turns, q1, v1, h, effort, joints, wrench, work, mode, pull,
                             joint_mode, taken1, rests1, place1) or not finite(q1, v1):
            return s
        assign(q, q1)
        assign(v, v1)
        assign(place, place1)
        for j in range(nv):
            rests[j] = rests1[j]
        for i in range(n):
            for k in range(TAKEN):
                taken[i, k] = taken1[i, k]
    return steps
