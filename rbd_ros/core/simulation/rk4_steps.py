"""Kernels of `runge_kutta_4` for trees of joints with dry friction and stops: `modes` has the method, in Python.

A mode (MODE_ROWS, nv) has per coordinate the direction of sliding (0: no friction, or held), whether it is held, and
the range of efforts by which friction and stops can hold it.
"""
from __future__ import annotations

import numpy as np

from ..compiled.assign import assign
from ..compiled.entry import entry
from ..compiled.kernel import allocating, kernel, routine, sweep
from ..dynamics.articulated import SIZE as ARTICULATED_SIZE
from ..dynamics.articulated import shared_size
from ..dynamics.mass_matrix import SIZE as MASS_SIZE
from ..dynamics.mass_matrix import mass_matrix_recursion
from ..dynamics.spring_kernels import add_spring_efforts
from ..model.block import node_count, size_q, size_v
from .first_event import FINEST, SEARCH, judge, next_trial, open_search
from .impulses import impulses
from .joint_data import (
    DAMPING, LOWER, POSITION, UPPER, any_fast, effort_at, finite, friction_range, has_stops, is_rough,
)
from .linear_equations import inverse_of_symmetric
from .pd_law import command
from .semi_implicit_steps import accelerations, moved

CLOSE = 1e-4      # relative distance of events below which they may repeat without end
ROUNDING = 1e-11  # relative tolerance of the effort of a held coordinate
TRIALS = 70       # of an event search
BISECT = 12       # trials before bisection
SIGN, LEAST, MOST, MODE_ROWS = range(4)
VELOCITY, EFFORT, PLACE, EXCESS_ROWS = range(4)    # of the excess (EXCESS_ROWS, nv) beyond the mode's validity
DONE, ENDLESS, LEFT = range(3)    # of a step: made; its events have no end; a limit exceeded, singular or not finite


@kernel
def tree_size(B):
    """Size of the workspace of `mode_accelerations`."""
    return ARTICULATED_SIZE * node_count(B) + shared_size(B)


@sweep
def mode_accelerations(B, q, v, effort, joints, mode, held, loads, tau, W, a, taken):
    """Accelerations a (nv,) in a mode under smooth efforts; returns as `tree_recursion`. W: of `tree_size`.

    loads: as of `semi_implicit`. tau (nv,): efforts with those of springs, damping and friction of what slides; taken
    (nv,): those that also hold what is held.
    """
    wrench, springs, resistance, code = loads
    any_held = False
    for i in range(v.shape[0]):
        tau[i] = effort[i] - joints[DAMPING, i] * v[i]
        for k in range(resistance.shape[0]):
            tau[i] -= resistance[i, k] * v[k]
    if springs.shape[0] > 0:
        add_spring_efforts(springs, q, tau)
    for i in range(v.shape[0]):
        if mode[SIGN, i] != 0.0:
            low, high = friction_range(joints, i, v[i], tau[i])
            tau[i] += low if mode[SIGN, i] > 0.0 else high
        a[i] = 0.0
        any_held |= held[i]
    mask = held if any_held else held[:0]
    return accelerations(B, q, v, tau, (mask, a), wrench, code, W, W[ARTICULATED_SIZE * node_count(B):], a, taken)


@kernel
def rk4_place(B, q, k, s, u, a, dv, q2, place):
    """Velocities u[k] and positions `place` of stage k = 1, 2, 3 of `runge_kutta_4` in s (s), from u[0] at q and the
    accelerations a before it. q2 (nq,): positions of stage 1, which stage 3 needs.
    """
    part = s if k == 3 else 0.5 * s
    for i in range(u.shape[1]):
        u[k, i] = u[0, i] + part * a[k - 1, i]
    if k == 1:
        moved(B, q, u[0], 0.5 * s, dv, q2)
        assign(place, q2)
    elif k == 2:
        moved(B, q, u[1], 0.5 * s, dv, place)
    else:
        w = u[3]    # for the moment
        for i in range(u.shape[1]):
            w[i] = s * u[2, i] - 0.5 * s * u[0, i]
        moved(B, q2, w, 1.0, dv, place)
        for i in range(u.shape[1]):
            w[i] = u[0, i] + s * a[2, i]


@kernel
def rk4_end(B, q, s, u, a, dv, q2, q1, v1):
    """q1, v1: the end of a step of s (s) of `runge_kutta_4` with these velocities and accelerations; q2, u[1], u[2] are
    overwritten.
    """
    for i in range(u.shape[1]):
        middle = 2.0 * (u[1, i] + u[2, i])
        u[1, i] = 3.0 * u[0, i] + middle - u[3, i]
        u[2, i] = -u[0, i] + middle + 3.0 * u[3, i]
        v1[i] = u[0, i] + s / 6.0 * (a[0, i] + 2.0 * (a[1, i] + a[2, i]) + a[3, i])
    moved(B, q, u[1], s / 12.0, dv, q2)
    moved(B, q2, u[2], s / 12.0, dv, q1)


@routine
def step_space(B):
    """Workspace of `step_over_events`: of `mode_accelerations`, stages, rows, positions, of the search."""
    n = size_v(B)
    return (np.empty(tree_size(B)), np.empty((2, 4, n)), np.empty((7 + 2 * EXCESS_ROWS, n)), np.empty((3, size_q(B))),
            np.empty(SEARCH))


@sweep
def in_mode(B, q, v, x, part, h, efforts, joints, mode, held, loads, space, q1, v1):
    """q1, v1: the state after the part `part` of a step of h (s), from x on, in a mode; returns whether the mass matrix
    is regular.
    """
    W, stages, rows, places, _ = space
    u, a, q2, place = stages[0], stages[1], places[0], places[1]
    tau, taken, dv, effort = rows[0], rows[1], rows[2], rows[3]
    assign(u[0], v)
    assign(place, q)
    for k in range(4):
        if k > 0:
            rk4_place(B, q, k, part * h, u, a, dv, q2, place)
        if k != 2:    # the same as of stage 1
            effort_at(efforts, x + 0.5 * part * ((k + 1) // 2), effort)
        if mode_accelerations(B, place, u[k], effort, joints, mode, held, loads, tau, W, a[k], taken) != 0:
            return False
    rk4_end(B, q, part * h, u, a, dv, q2, q1, v1)
    return True


@sweep
def attempt(B, q, v, x, part, h, efforts, joints, mode, held, loads, space, q1, v1, excess):
    """`in_mode`, with the excess of the state; returns the largest, NaN where the mass matrix is singular."""
    W, stages, rows = space[0], space[1], space[2]
    if not in_mode(B, q, v, x, part, h, efforts, joints, mode, held, loads, space, q1, v1):
        return np.nan
    return largest_excess(B, q1, v1, rows[3], joints, mode, held, loads, rows[0], W, stages[1, 0], rows[1], excess)


@kernel
def held_range(joints, i, effort, mode):
    """The range of efforts by which friction and stops can hold coordinate i, where the mode has one."""
    low, high = friction_range(joints, i, 0.0, effort[i])
    return (low if mode[LEAST, i] > -np.inf else -np.inf), (high if mode[MOST, i] < np.inf else np.inf)


@sweep
def largest_excess(B, q, v, effort, joints, mode, held, loads, tau, W, a, taken, excess):
    """The excess of a state, positive where the mode is no longer valid: a velocity changed its sign, the effort that
    holds a coordinate left its range, a position is beyond a stop; returns the largest.
    """
    n = v.shape[0]
    any_held, slack = False, 0.0
    for i in range(n):
        any_held |= held[i]
    if any_held:
        mode_accelerations(B, q, v, effort, joints, mode, held, loads, tau, W, a, taken)
        most, least = 0.0, 0.0
        for i in range(n):
            taken[i] -= tau[i]
            most, least = max(most, abs(tau[i])), max(least, abs(taken[i]))
        slack = ROUNDING * (1.0 + most + least)
    largest = -1.0
    for i in range(n):
        excess[VELOCITY, i] = -mode[SIGN, i] * v[i] if mode[SIGN, i] != 0.0 else -1.0
        low, high = held_range(joints, i, effort, mode)
        excess[EFFORT, i] = max(taken[i] - high, low - taken[i]) - slack if held[i] else -1.0
        k = int(joints[POSITION, i])
        beyond = k >= 0 and not held[i]
        excess[PLACE, i] = max(q[k] - joints[UPPER, i], joints[LOWER, i] - q[k]) if beyond else -1.0
        largest = max(largest, max(excess[VELOCITY, i], max(excess[EFFORT, i], excess[PLACE, i])))
    return largest


@kernel
def at_stop(joints, i, q):
    """Whether coordinate i is at its lower, and at its upper stop."""
    k = int(joints[POSITION, i])
    return k >= 0 and q[k] <= joints[LOWER, i], k >= 0 and q[k] >= joints[UPPER, i]


@allocating
def pushed(B, q, v, low, high):
    """v (nv,) with impulses in these boxes."""
    n = v.shape[0]
    M, W = np.empty(n * n), np.empty(n * n)
    mass_matrix_recursion(B, q, 0, np.empty(MASS_SIZE * node_count(B)), M, 0)
    inverse_of_symmetric(M, n, W)
    impulses(W, low, high, v, np.zeros(n))


@sweep
def stop(B, q, v, joints, boxes):
    """v (nv,) after inelastic impulses of stops; friction has no impulse in zero time. boxes (2, nv): space.
    """
    hits = False
    for i in range(v.shape[0]):
        low, high = at_stop(joints, i, q)
        hits |= (low and v[i] < 0.0) or (high and v[i] > 0.0)
    if hits:
        for i in range(v.shape[0]):
            low, high = at_stop(joints, i, q)
            boxes[0, i] = -np.inf if high else 0.0
            boxes[1, i] = np.inf if low else 0.0
        pushed(B, q, v, boxes[0], boxes[1])


@sweep
def choose_mode(B, q, v, effort, joints, released, loads, space, mode, held):
    """mode, held: at a state under smooth efforts. released (nv,): directions in which coordinates break away, 0: none.
    """
    n = v.shape[0]
    resting = False
    for i in range(n):
        least, most = friction_range(joints, i, 0.0, effort[i])    # at rest
        low, high = at_stop(joints, i, q)
        held[i] = False
        mode[SIGN, i] = (np.sign(v[i]) if v[i] != 0.0 else released[i]) if least < most else 0.0
        mode[LEAST, i] = mode[MOST, i] = 0.0
        if v[i] == 0.0 and released[i] == 0.0 and (least < most or low or high):
            resting = True
            mode[LEAST, i] = -np.inf if high else least
            mode[MOST, i] = np.inf if low else most
    if not resting:
        return
    tau, taken, a = space[2][0], space[2][1], space[2][2]
    mode_accelerations(B, q, v, effort, joints, mode, held, loads, tau, space[0], a, taken)
    pushed(B, q, a, mode[LEAST], mode[MOST])
    for i in range(n):
        if mode[LEAST, i] < mode[MOST, i]:
            held[i] = a[i] == 0.0
            least, most = friction_range(joints, i, 0.0, effort[i])
            if least < most:
                mode[SIGN, i] = np.sign(a[i])


@sweep
def step_over_events(B, q, v, h, efforts, joints, loads, space, end_q, end_v, mode, held):
    """Advance q, v in place by a step of h (s); returns DONE, ENDLESS or LEFT. efforts (k, nv): see `effort_at`; end_q,
    end_v, mode, held: space, as `step_space`.
    """
    n = v.shape[0]
    rows, new_q, search = space[2], space[3][2], space[4]
    new_v, released, effort = rows[4], rows[5], rows[6]
    excess, last = rows[7:7 + EXCESS_ROWS], rows[7 + EXCESS_ROWS:]
    released[:] = 0.0
    x, close = 0.0, 0
    for _ in range(2 * n + 6):
        stop(B, q, v, joints, rows[:2])
        effort_at(efforts, x, effort)
        choose_mode(B, q, v, effort, joints, released, loads, space, mode, held)
        largest = attempt(B, q, v, x, 1.0 - x, h, efforts, joints, mode, held, loads, space, end_q, end_v, last)
        if not largest > 0.0:
            if not largest <= 0.0:
                return LEFT
            assign(q, end_q)
            assign(v, end_v)
            return DONE
        open_search(search, 1.0 - x, largest)
        part = 1.0 - x
        while True:
            length = next_trial(search, TRIALS, BISECT, 0.0)
            if length == 0.0:
                break
            largest = attempt(B, q, v, x, length, h, efforts, joints, mode, held, loads, space, new_q, new_v, excess)
            if not largest < np.inf:
                return LEFT
            if judge(search, largest):
                part = length
                assign(end_q, new_q)
                assign(end_v, new_v)
                for k in range(EXCESS_ROWS):
                    assign(last[k], excess[k])
        assign(q, end_q)
        assign(v, end_v)
        x += part
        effort_at(efforts, x, effort)
        pass_event(B, q, v, effort, joints, mode, held, loads, space, last, released)
        close += part < CLOSE
        if close > 1:
            return ENDLESS
        if 1.0 - x <= FINEST:
            stop(B, q, v, joints, rows[:2])
            return DONE
    return ENDLESS


@sweep
def pass_event(B, q, v, effort, joints, mode, held, loads, space, excess, released):
    """q, v exactly at the events with positive excess; released (nv,): directions in which held coordinates break away.
    """
    n = v.shape[0]
    for i in range(n):
        if excess[VELOCITY, i] > 0.0:
            v[i] = 0.0
        if excess[PLACE, i] > 0.0:
            k = int(joints[POSITION, i])
            q[k] = min(max(q[k], joints[LOWER, i]), joints[UPPER, i])
    tau, taken, a = space[2][0], space[2][1], space[2][2]
    mode_accelerations(B, q, v, effort, joints, mode, held, loads, tau, space[0], a, taken)
    for i in range(n):
        released[i] = 0.0
        if excess[EFFORT, i] > 0.0:
            released[i] = -1.0 if taken[i] - tau[i] > held_range(joints, i, effort, mode)[1] else 1.0


@routine
def rk4(B, q, v, efforts, law, loads, joints, h, first, last):
    """Advance q, v in place by steps `first` … `last` − 1; returns the step before which it stops, or −1 − this where
    events have no end, or `last`. B: of the model; other arguments as of `semi_implicit`; without a law as many efforts
    of each step as `effort_at` takes.
    """
    space = step_space(B)
    q1, v1, end_q, end_v = q.copy(), v.copy(), q.copy(), v.copy()
    mode, held = np.zeros((MODE_ROWS, v.shape[0])), np.zeros(v.shape[0], np.bool_)
    eventful = is_rough(joints) or has_stops(joints)    # else nothing is ever held: mode and held stay 0
    constant = np.empty((1, v.shape[0]))
    for s in range(first, last):
        effort = efforts[min(s, efforts.shape[0] - 1)]
        if law[0].shape[0] > 0:
            command(B, q, v, efforts, law, s, constant[0])
            effort = constant
        if eventful:
            assign(q1, q)
            assign(v1, v)
            outcome = step_over_events(B, q1, v1, h, effort, joints, loads, space, end_q, end_v, mode, held)
        else:
            outcome = DONE if in_mode(B, q, v, 0.0, 1.0, h, effort, joints, mode, held, loads, space, q1, v1) else LEFT
        if outcome == ENDLESS:
            return -1 - s
        if outcome == LEFT or any_fast(joints, v1) or not finite(q1, v1):
            return s
        assign(q, q1)
        assign(v, v1)
    return last


@entry("int64(float64[::1], float64[::1], float64[::1], float64[:, :, ::1], float64[::1], float64[:, ::1], "
       "float64[:, ::1], int64[::1], float64[:, ::1], float64, int64)", nogil=True)
def rk4_steps(B, q, v, efforts, wrench, springs, resistance, code, joints, h, steps):
    """At most `steps` steps of `rk4` without a law; returns the number made, or −1 − that number before a step whose
    events have no end.
    """
    law, loads = (joints[:0], joints[:0], 1, joints[:0]), (wrench, springs, resistance, code)
    return rk4(B, q, v, efforts, law, loads, joints, h, 0, steps)
