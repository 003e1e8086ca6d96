"""Kernel of RK4 with contact modes (`events` has the method): many steps, with their events and impacts.

Contacts are followed by stops; rows `R` and margins are those of `touching_rows`. A mode has a row per contact (n,
MODE), `pull` (n, width), the direction of sliding in coordinates, and per coordinate (2, nv) the direction of sliding
against dry friction, or 0, and whether it is held by it. An evaluation leaves a row of forces per contact (n, TAKEN),
and which coordinates stay held.
"""
from __future__ import annotations

import numpy as np

from ...compiled.assign import assign, assign_rows
from ...compiled.entry import entry
from ...compiled.kernel import allocating, sweep
from ...dynamics.mass_matrix import SIZE as MASS_SIZE
from ...dynamics.mass_matrix import mass_matrix_recursion
from ...model.block import node_count
from ..first_event import END, FINEST, SEARCH, TRIALS, judge, next_trial, open_search
from ..joint_data import dry_friction, effort_at, finite
from ..linear_equations import inverse_of_symmetric
from ..rk4_steps import SIGN, mode_accelerations, rk4_end, rk4_place, tree_size
from .cones import BOX, FIRST, LEVEL, NORMAL, OF, PARTNER, ROLE, SECOND
from .contact_steps import GAP, STALE, STILL, STOP_V, TOUCH, onto, press_space, rows_size, touching_rows
from .impacts import REST, strike
from .sparse_forces import row_space, solve_rows
from .sparse_rows import alone, hold, rate, rate_of, soft_of, soften, supports

CLOSED, LEAVING = 1e-10, 1e-10    # m: gap below which a contact counts as closed; m/s: separation that opens it
TURNS, BISECT = 60, 20            # trials of an event search, and those before bisection
EVENTS = 150                      # largest number of events in one step
SLIP, FACE, JOINT = 1e-11, 1e-12, 1e-11    # tolerances of events, m and m/s, besides GAP
STIFF = 1.0       # product of step and turning rate of the slip direction above which sliding is treated as slow
SLIDING = 1e-8    # m/s: slip above which a closed contact slides; of corners that stop at once, later ones are slower
TURN = 0.6        # largest share of friction across the way of slow sliding
SMALL = 1e-9      # relative acceleration below which a contact sticks
JUMP = 0.05       # relative jump of the acceleration at which a sticking contact that lets go is an event,
JUMPED = 1e30     # with this excess
DRIFT = 1e-14     # m/s: rates of closed contacts that are left,
SETTLING = 3      # or as many repetitions
FARTHEST = 1.0    # rad or m: largest motion of a coordinate by friction in a step; more is an impulse
# Of a contact in a mode: closed; sliding, in which direction; open but may close; slow, with this normal force (`slow`
# in `events.Mode`). After an evaluation: force along normal, x and y; whether it presses, and whether it sticks.
SHUT, SLIDES, WAY_X, WAY_Y, ARMED, SLOW, LOAD, MODE = range(8)
FORCE, HOLDS, STICKS, TAKEN = 0, 3, 4, 5
HELD = 1    # row of the joints' mode, after SIGN


@sweep
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


@sweep
def evaluate(B, contacts, friction, turns, q, v, effort, joints, loads, s, mode, pull, joint_mode, work, a, taken,
             rests):
    """Accelerations a (nv,), taken and rests in a mode, within a motion of s (s); False without a solution."""
    W, free, lines = work[0], work[8], work[12]
    if mode_accelerations(B, q, v, effort, joints, joint_mode, free, loads, lines[0], W, a, lines[1]) != 0:
        return False
    size = 0
    for i in range(friction.shape[0]):
        sticks = friction[i] > 0.0 and mode[i, SLIDES] == 0.0
        closed = mode[i, SHUT] != 0.0
        for k in range(3 if closed else 0, TAKEN):    # forces of the evaluation before are a guess
            taken[i, k] = 0.0
        if closed:
            taken[i, HOLDS], taken[i, STICKS] = 1.0, 1.0 if sticks else 0.0
            size += (3 if sticks else 1) + int(mode[i, SLOW])
    for j in range(v.shape[0]):
        rests[j] = joint_mode[HELD, j] != 0.0
        size += int(rests[j])
    return size == 0 or held_by_forces(B, contacts, friction, turns, q, v, joints, s, mode, pull, work, a, taken, rests,
                                       size)


@allocating
def held_by_forces(B, contacts, friction, turns, q, v, joints, s, mode, pull, work, a, taken, rests, size):
    """`evaluate` from the accelerations without forces of the mode, which has `size` of them.

    Friction of slow sliding is turned by the implicit force across its way, `−µ λ_n (v_p + s a_p)/|v|`, which is
    found first; then all forces are, with friction along these directions.
    """
    kinematics, mass_work, M, inverse, R, margin, zero = work[1:8]
    wanted, spare = work[9], work[10]
    cols, count = contacts[3:]
    width = R.shape[1] - 2
    nv, n = v.shape[0], friction.shape[0]
    for i in range(n):
        wanted[i] = mode[i, SHUT] != 0.0
    if touching_rows(B, contacts, q, v, zero, 2, kinematics, R, margin, wanted, -np.inf) >= 0:
        return False
    mass_matrix_recursion(B, q, 0, mass_work, M, 0)
    assign(spare, M)
    inverse_of_symmetric(spare, nv, inverse)
    A, C, roles = np.zeros((size, width)), np.zeros((size, width)), np.zeros((4, size))
    c, soft, lam, drag = np.zeros(size), np.zeros(size), np.zeros(size), np.zeros((n, 2))
    at, change, r, symmetric = np.empty(size, np.int64), np.empty(nv), 0, True
    for i in range(n):
        if mode[i, SHUT] == 0.0:
            continue
        own = 3 if taken[i, STICKS] != 0.0 else 1
        for k in range(own):
            for b in range(count[i]):
                A[r + k, b] = C[r + k, b] = R[3 * i + k, b]
            at[r + k], c[r + k], lam[r + k] = i, R[3 * i + k, width], taken[i, k]
            roles[OF, r + k], roles[LEVEL, r + k] = r, friction[i]
        roles[ROLE, r] = NORMAL
        if own == 3:
            roles[ROLE, r + 1], roles[ROLE, r + 2], roles[PARTNER, r + 1] = FIRST, SECOND, r + 2
        if mode[i, SLIDES] != 0.0:
            x, y = way_of(R, i, mode, pull, turns)
            along, across = rate(R, 3 * i + 1, cols, count, v), rate(R, 3 * i + 2, cols, count, v)
            if mode[i, SLOW] == 0.0 and x * along + y * across > 0.5 * SLIDING:
                speed = np.hypot(along, across)
                x, y = along / speed, across / speed
            drag[i, 0], drag[i, 1], symmetric = -friction[i] * x, -friction[i] * y, False
            for b in range(count[i]):
                C[r, b] += drag[i, 0] * R[3 * i + 1, b] + drag[i, 1] * R[3 * i + 2, b]
        r += own
    for j in range(nv):
        if rests[j]:
            at[r] = n + j
            alone((A, at, cols, count), r, j)
            alone((C, at, cols, count), r, j)
            roles[ROLE, r], roles[LEVEL, r] = BOX, dry_friction(joints, j, 0.0)
            r += 1
    slow = r
    for i in range(n):
        if mode[i, SHUT] != 0.0 and mode[i, SLOW] != 0.0:
            x, y = way_of(R, i, mode, pull, turns)
            for b in range(count[i]):
                A[r, b] = C[r, b] = x * R[3 * i + 2, b] - y * R[3 * i + 1, b]
            along, across = rate(R, 3 * i + 1, cols, count, v), rate(R, 3 * i + 2, cols, count, v)
            at[r] = i
            c[r] = x * (R[3 * i + 2, width] + across / s) - y * (R[3 * i + 1, width] + along / s)
            roles[ROLE, r], roles[LEVEL, r] = BOX, TURN * friction[i] * mode[i, LOAD]
            soft[r] = np.hypot(along, across) / (s * friction[i] * max(mode[i, LOAD], 1e-300))
            r += 1
    rows, space = (A, at, cols, count), row_space(size, nv, width)
    for r in range(size):
        c[r] += rate_of(rows, r, a)
    if not solve_rows(rows, C, symmetric, (M, inverse), c, soft, roles, 0.0, lam, change, space):
        return False
    if slow < size:
        k, r = 0, slow
        for i in range(n):
            if mode[i, SHUT] != 0.0 and mode[i, SLOW] != 0.0:
                rub = friction[i] * max(lam[k], 1e-300)
                sin = min(max(lam[r] / rub, -TURN), TURN)
                cos, x, y = np.sqrt(1.0 - sin * sin), drag[i, 0], drag[i, 1]
                drag[i, 0], drag[i, 1] = cos * x + sin * y, cos * y - sin * x
                for b in range(count[i]):
                    C[k, b] = R[3 * i, b] + drag[i, 0] * R[3 * i + 1, b] + drag[i, 1] * R[3 * i + 2, b]
                roles[LEVEL, r] = lam[r] = 0.0
                r += 1
            if mode[i, SHUT] != 0.0:
                k += 3 if taken[i, STICKS] != 0.0 else 1
        if not solve_rows(rows, C, False, (M, inverse), c, soft, roles, 0.0, lam, change, space):
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
            slips = np.hypot(rate(R, 3 * i + 1, cols, count, a) + R[3 * i + 1, width],
                             rate(R, 3 * i + 2, cols, count, a) + R[3 * i + 2, width])
            taken[i, STICKS] = 1.0 if taken[i, HOLDS] != 0.0 and slips < small else 0.0
            r += 3
        else:
            taken[i, FORCE + 1], taken[i, FORCE + 2] = drag[i, 0] * lam[r], drag[i, 1] * lam[r]
            r += 1
    for j in range(nv):
        if rests[j]:
            rests[j] = abs(a[j]) < small
            r += 1
    return True


@sweep
def hit(B, contacts, friction, restitution, q, v, work, hits, made):
    """Impacts of what is closed and approaches at a state, which change v (nv,); hits: a row (nq + 3 n) of q and
    impulses for each so far, `made`. Returns their number, or −1 without a solution. In work: R as far as STALE.
    """
    kinematics, R, margin, zero, wanted = work[1], work[5], work[6], work[7], work[9]
    cols, count = contacts[3:]
    n, last = friction.shape[0], R.shape[1] - 1
    for i in range(n):
        wanted[i] = False
    if touching_rows(B, contacts, q, v, zero, 0, kinematics, R, margin, wanted, STALE) >= 0:
        return -1
    lowest = 0.0
    for i in range(n):
        wanted[i] = -STALE < R[3 * i, last] < CLOSED and margin[i] > 0.0
        if wanted[i]:
            lowest = min(lowest, rate(R, 3 * i, cols, count, v))
    if lowest >= -LEAVING:
        return made
    return struck(B, contacts, friction, restitution, q, v, work, hits, made, lowest)


@allocating
def struck(B, contacts, friction, restitution, q, v, work, hits, made, lowest):
    """`hit` where contacts, the wanted ones, approach, the fastest at the rate `lowest`."""
    mass_work, M, inverse, R = work[2:6]
    wanted, spare = work[9], work[10]
    cols, count = contacts[3:]
    nv, n = v.shape[0], friction.shape[0]
    mass_matrix_recursion(B, q, 0, mass_work, M, 0)
    assign(spare, M)
    inverse_of_symmetric(spare, nv, inverse)
    pushes = hits[made, q.shape[0]:].reshape(n, 3)
    assign(hits[made], q)
    if not strike((M, inverse), (R, cols, count), wanted, friction, restitution, v, pushes):
        return -1
    rises = False
    for i in range(n):
        after = rate(R, 3 * i, cols, count, v) if wanted[i] else REST
        wanted[i] = after < REST
        rises |= 0.0 < after < REST
    if lowest > -REST and rises:    # avoids endless slow impacts
        stop_slip(B, contacts, q, v, work, wanted, np.zeros(n))
    return made + 1


@sweep
def choose_contact_mode(contacts, friction, v, joints, work, mode, pull, joint_mode):
    """The mode at a state, without slow sliding, by its R, as far as STALE, and margin."""
    R, margin = work[5], work[6]
    nv, n, width = v.shape[0], friction.shape[0], R.shape[1] - 2
    cols, count = contacts[3:]
    for i in range(n):
        gap, rates = R[3 * i, width + 1], rate(R, 3 * i, cols, count, v)
        closed = -STALE < gap < CLOSED and margin[i] > 0.0 and rates <= LEAVING
        x, y = rate(R, 3 * i + 1, cols, count, v), rate(R, 3 * i + 2, cols, count, v)
        speed = np.hypot(x, y)
        slides = closed and speed > SLIDING and friction[i] > 0.0
        for k in range(MODE):
            mode[i, k] = 0.0
        mode[i, SHUT], mode[i, ARMED] = 1.0 if closed else 0.0, 1.0 if gap > -STALE and not closed else 0.0
        if slides:
            mode[i, SLIDES], mode[i, WAY_X], mode[i, WAY_Y] = 1.0, x / speed, y / speed
        for b in range(width):
            pull[i, b] = mode[i, WAY_X] * R[3 * i + 1, b] + mode[i, WAY_Y] * R[3 * i + 2, b]
    for j in range(nv):
        rubs, moves = dry_friction(joints, j, 0.0) > 0.0, abs(v[j]) > STILL
        joint_mode[SIGN, j] = np.sign(v[j]) if rubs and moves else 0.0
        joint_mode[HELD, j] = 1.0 if rubs and not moves else 0.0


@allocating
def mark_slow(B, contacts, friction, turns, q, v, effort, joints, loads, s, mode, pull, joint_mode, work, a, taken,
              rests):
    """Mark slow sliding for a motion of s (s), with its load; False if friction would stop it within too small a part.
    """
    inverse, R = work[4], work[5]
    cols, count = contacts[3:]
    nv, n = v.shape[0], friction.shape[0]
    if not evaluate(B, contacts, friction, turns, q, v, effort, joints, loads, s, mode, pull, joint_mode, work, a,
                    taken, rests):
        return False
    brake = np.zeros(nv)
    for i in range(n):
        mode[i, LOAD] = taken[i, FORCE]
        if mode[i, SLIDES] != 0.0:
            rub = friction[i] * mode[i, LOAD]
            turn = 0.0
            for k in range(1, 3):
                for b in range(count[i]):
                    x = 0.0
                    for d in range(count[i]):
                        x += inverse[nv * cols[i, b] + cols[i, d]] * R[3 * i + k, d]
                    turn += R[3 * i + k, b] * x
            mode[i, SLOW] = 1.0 if s * turn * rub > STIFF * np.hypot(
                rate(R, 3 * i + 1, cols, count, v), rate(R, 3 * i + 2, cols, count, v)) else 0.0
            for b in range(count[i]):
                brake[cols[i, b]] += rub * pull[i, b]
    for j in range(nv):
        x = 0.0
        for k in range(nv):
            x += inverse[nv * j + k] * brake[k]
        if s * s * abs(x) > FARTHEST:
            return False
    return True


@sweep
def jumps(a):
    """Whether the accelerations a (4, nv) of the stages of a step jump: do not change linearly in time, nearly."""
    off, size = 0.0, 0.0
    for j in range(a.shape[1]):
        off, size = max(off, abs(a[3, j] - a[2, j] - a[1, j] + a[0, j])), max(size, abs(a[0, j]), abs(a[3, j]))
    return off > JUMP * size


@sweep
def attempt(B, contacts, friction, turns, q, v, x, part, h, efforts, joints, loads, mode, pull, joint_mode, work, q1,
            v1, excess, taken, rests, place):
    """q1, v1: the state after the part `part` of a step of h (s), from x on, in a mode; returns its largest excess, in
    units of the tolerances, positive where an event has passed, JUMPED where a contact has let go with a jump, or NaN
    without a solution. excess (4 n or nv): of closing, coming to rest and leaving a face of each contact, and of the
    joints; place (nq,): of the last evaluation.
    """
    kinematics, R, margin, zero, wanted = work[1], work[5], work[6], work[7], work[9]
    nv, n = v.shape[0], friction.shape[0]
    cols, count = contacts[3:]
    u, a = work[11][0], work[11][1]
    effort, dv, q2 = work[12][2], work[12][3], work[13][0]
    assign(u[0], v)
    assign(place, q)
    for k in range(4):
        if k > 0:
            rk4_place(B, q, k, part * h, u, a, dv, q2, place)
        effort_at(efforts, x + part * 0.5 * ((k + 1) // 2), effort)
        if not evaluate(B, contacts, friction, turns, place, u[k], effort, joints, loads, part * h, mode, pull,
                        joint_mode, work, a[k], taken, rests):
            return np.nan
        if k == 0:
            for i in range(n):    # in `excess` until the end: whether a contact sticks, and presses at first
                excess[i] = taken[i, HOLDS] if mode[i, SHUT] != 0.0 and mode[i, SLIDES] == 0.0 else 0.0
    largest = -1.0 / GAP
    for i in range(n):
        if excess[i] > taken[i, HOLDS] and jumps(a):
            largest = JUMPED
    rk4_end(B, q, part * h, u, a, dv, q2, q1, v1)
    for i in range(n):
        wanted[i] = mode[i, SHUT] != 0.0
    if not finite(q1, v1) or touching_rows(B, contacts, q1, v1, zero, 0, kinematics, R, margin, wanted, STALE) >= 0:
        return np.nan
    for i in range(n):
        excess[i], excess[n + i], excess[2 * n + i] = -1.0 / GAP, -1.0 / SLIP, -1.0 / FACE
        if mode[i, ARMED] != 0.0 and margin[i] > 0.0:
            excess[i] = (-R[3 * i, R.shape[1] - 1] - TOUCH) / GAP
        if mode[i, SLIDES] != 0.0:
            wx, wy = way_of(R, i, mode, pull, turns)
            along, across = rate(R, 3 * i + 1, cols, count, v1), rate(R, 3 * i + 2, cols, count, v1)
            excess[n + i] = -(wx * along + wy * across) / SLIP
        if mode[i, SHUT] != 0.0 and margin[i] < np.inf:
            excess[2 * n + i] = -margin[i] / FACE
    for j in range(nv):
        excess[3 * n + j] = -joint_mode[SIGN, j] * v1[j] / JOINT if joint_mode[SIGN, j] != 0.0 else -1.0 / JOINT
    for k in range(3 * n + nv):
        largest = max(largest, excess[k])
    return largest


@sweep
def settle(B, contacts, q, v, work, taken, rests):
    """Remove drift in place: at contacts that press and stick, and at joints that rest; False without convergence."""
    holds = False
    for j in range(v.shape[0]):
        v[j] = 0.0 if rests[j] else v[j]
    for i in range(taken.shape[0]):
        holds |= taken[i, HOLDS] != 0.0
    return not holds or settle_contacts(B, contacts, q, v, work, taken)


@allocating
def settle_contacts(B, contacts, q, v, work, taken):
    """`settle` at contacts."""
    kinematics, R, margin, zero = work[1], work[5], work[6], work[7]
    nv, closed, moves = v.shape[0], taken[:, HOLDS] != 0.0, np.empty((3, v.shape[0]))
    if touching_rows(B, contacts, q, v, zero, 0, kinematics, R, margin, closed, -np.inf) >= 0 or not onto(
            B, contacts, q, v, zero, closed, zero[:0], kinematics, R, margin, moves[0], q.copy(), moves[1:],
            press_space(margin.shape[0], nv, R.shape[1] - 2)):
        return False
    stop_slip(B, contacts, q, v, work, closed, taken[:, STICKS].copy())
    return True


@allocating
def stop_slip(B, contacts, q, v, work, closed, sticks):
    """v (nv,) without rates of closed contacts, nor slip of those that stick (n,), in place. work: with R at q."""
    mass_work, M, K, R = work[2:6]
    cols, count = contacts[3:]
    nv, n, size = v.shape[0], closed.shape[0], 3 * closed.shape[0]
    A, at, w, e, lam = np.zeros((size, R.shape[1] - 2)), np.empty(size, np.int64), np.empty(size), np.empty(size), \
        np.zeros(size)
    holds, change = np.ones(size, np.bool_), np.empty(nv)
    r = 0
    for i in range(n):
        for k in range((3 if sticks[i] != 0.0 else 1) if closed[i] else 0):
            at[r] = i
            for b in range(count[i]):
                A[r, b] = R[3 * i + k, b]
            r += 1
    rows = A[:r], at[:r], cols, count
    for turn in range(SETTLING):
        drift = 0.0
        for k in range(r):
            w[k] = rate_of(rows, k, v)
            drift = max(drift, abs(w[k]))
        if drift <= DRIFT:
            break
        if turn == 0:
            mass_matrix_recursion(B, q, 0, mass_work, M, 0)
            soft_of(rows, M, e)
            soften(rows, M, e, holds, K)
        hold(rows, K, e, holds, w, lam, change)
        for j in range(nv):
            v[j] += change[j]


@sweep
def step_in_modes(B, contacts, friction, turns, q, v, h, efforts, joints, loads, work, mode, pull, joint_mode, taken,
                  rests, place, restitution, hits):
    """Advance q, v in place by a step of h (s); returns the number of impacts in it, the rows of `hits` (EVENTS + 1,
    nq + 3 n), or −1 without a solution.
    """
    nv, n = v.shape[0], friction.shape[0]
    effort, a, end_v, end_q = work[12][4], work[12][5], work[12][6], work[13][1]
    excess, search = work[14], work[15]
    x, made = 0.0, 0
    for turn in range(EVENTS):
        before, made = made, hit(B, contacts, friction, restitution, q, v, work, hits, made)
        if made < 0:
            return -1
        if turn > 0 or made > before:
            for i in range(n):
                for k in range(TAKEN):    # forces of another mode, which need not be of least norm in this one
                    taken[i, k] = 0.0
        choose_contact_mode(contacts, friction, v, joints, work, mode, pull, joint_mode)
        slides = False
        for i in range(n):
            slides |= mode[i, SLIDES] != 0.0
        effort_at(efforts, x, effort)
        if slides and not mark_slow(B, contacts, friction, turns, q, v, effort, joints, loads, (1.0 - x) * h, mode,
                                    pull, joint_mode, work, a, taken, rests):
            return -1
        part = 1.0 - x
        largest = attempt(B, contacts, friction, turns, q, v, x, part, h, efforts, joints, loads, mode, pull,
                          joint_mode, work, end_q, end_v, excess, taken, rests, place)
        if not largest < np.inf:
            return -1
        if largest > 0.0:
            open_search(search, part, largest)
            if largest == JUMPED:    # no slope to follow
                search[TRIALS] = BISECT
            while True:
                length = next_trial(search, TURNS, BISECT, 1.0)
                if length == 0.0:
                    break
                largest = attempt(B, contacts, friction, turns, q, v, x, length, h, efforts, joints, loads, mode, pull,
                                  joint_mode, work, end_q, end_v, excess, taken, rests, place)
                if not largest < np.inf:
                    return -1
                judge(search, largest)
            part = search[END]
            attempt(B, contacts, friction, turns, q, v, x, part, h, efforts, joints, loads, mode, pull, joint_mode,
                    work, end_q, end_v, excess, taken, rests, place)
            for j in range(nv):
                if excess[3 * n + j] > 0.0:
                    end_v[j] = 0.0
        assign(q, end_q)
        assign(v, end_v)
        if not settle(B, contacts, q, v, work, taken, rests):
            return -1
        x += part
        if 1.0 - x <= FINEST:
            return hit(B, contacts, friction, restitution, q, v, work, hits, made) if largest > 0.0 else made
    return -1


@entry("int64(float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[::1], boolean[::1], float64[::1], "
       "float64[::1], float64[:, :, ::1], float64[::1], float64[:, ::1], float64, int64, float64[:, ::1], "
       "boolean[::1], float64[::1], float64[::1], float64[:, ::1], int64[::1])", nogil=True)
def event_steps(B, C, stops, faces, friction, turns, q, v, efforts, wrench, joints, h, steps, taken, rests, place,
                restitution, hits, hit_count):
    """Advance q, v in place by at most `steps` steps of h (s); returns the number made, fewer where one has no solution
    or more than `EVENTS` events. B: of the model; efforts, wrench, joints: as of `rk4_steps`; C, stops, faces: see
    `touching_rows`; friction, restitution (n,), turns (n,): whether axes jump between charts. Out, of the last step:
    taken (n, TAKEN), rests (nv,), place (nq,); hits (EVENTS + 1, nq + 3 n): q and impulses (n, 3) of each of its
    hit_count (1,) impacts.
    """
    nv, n = v.shape[0], friction.shape[0]
    cols, count = np.zeros((n + nv, nv), np.int64), np.zeros(n + nv, np.int64)
    width = supports(B, C, stops[:, STOP_V].copy(), cols, count)
    contacts, loads = (C, stops, faces, cols, count), (wrench, joints[:0], joints[:0], wrench[:0].view(np.int64))
    # of `mode_accelerations`, `touching_rows`, the mass matrix; M, inverse; R, margin; zeros and a mask of coordinates;
    # wanted contacts; space for M. Then stages u and a of `attempt`; coordinates: two of `evaluate`, effort and dv of
    # `attempt`, effort, a and end_v of the step; q2 of `attempt` and end_q of the step; excess; search
    work = (np.empty(tree_size(B)), np.zeros(rows_size(B)),
            np.empty(MASS_SIZE * node_count(B)), np.empty(nv * nv), np.empty(nv * nv), np.zeros((3 * n, width + 2)),
            np.empty(n), np.zeros(nv), np.zeros(nv, np.bool_), np.zeros(n, np.bool_), np.empty(nv * nv),
            np.empty((2, 4, nv)), np.empty((7, nv)), np.empty((2, q.shape[0])), np.empty(3 * n + nv), np.empty(SEARCH))
    mode, pull, joint_mode = np.empty((n, MODE)), np.empty((n, width)), np.empty((2, nv))
    q1, v1, taken1, rests1, place1 = q.copy(), v.copy(), taken.copy(), rests.copy(), place.copy()
    new_hits = np.empty(hits.shape)
    for s in range(steps):
        assign(q1, q)
        assign(v1, v)
        effort = efforts[min(s, efforts.shape[0] - 1)]
        made = step_in_modes(B, contacts, friction, turns, q1, v1, h, effort, joints, loads, work, mode, pull,
                             joint_mode, taken1, rests1, place1, restitution, new_hits)
        if made < 0 or not finite(q1, v1):
            return s
        assign(q, q1)
        assign(v, v1)
        assign(place, place1)
        assign_rows(hits, new_hits[:made])
        hit_count[0] = made
        for j in range(nv):
            rests[j] = rests1[j]
        for i in range(n):
            for k in range(TAKEN):
                taken[i, k] = taken1[i, k]
    return steps
