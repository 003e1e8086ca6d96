"""Postures that bring a body to a pose, within limits: damped Newton steps on the configuration group, several starts.

The residual c (6,) is where the body is, as its goal sees it: rotation vector, or deviation of an axis, then position,
over a length of the robot's size; J its exact derivative. A step minimises

    |c + J δ|² + µ |δ − w|²,  lower ≤ q ⊕ δ ≤ upper,

with w = 0; coordinates that would leave their limits end at them, and the others are solved for once more. µ = κ |c|²,
and κ falls or grows as |c| falls as predicted (Levenberg 1944, Marquardt 1963; Sugihara 2011). Where |c| no longer
falls, the search goes on from the next posture of a Kronecker sequence (Richtmyer 1951: multiples of square roots of
primes, modulo 1). With a preferred posture, w is the way there: at the goal this is a step in the null space of J.
"""
from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..compiled.assign import assign
from ..compiled.entry import quick_entry
from ..compiled.kernel import kernel, sweep
from ..dynamics.kinematics import jacobian_recursion
from ..lie.so3 import matrix_to_quaternion, quaternion_log, right_jacobian_inverse
from ..lie.spatial import add, compose, cross, dot, rotate, rotate_back, sub
from ..model.block import OWNER, all_finite, first_position, first_velocity, matrix, node, node_count, vector
from ..model.configuration import between_node, integrate_state

# rows of the table of velocity coordinates: limits; where starts are, and the step of their sequence; place in q or −1;
# whether a whole turn leaves the pose
LOWER, UPPER, FIRST, RANGE, ALPHA, PLACE, TURN, TABLE = range(8)
# the task: weights of angular and linear rows, point of the body, whether an axis counts, and which; rad and m within
# which the goal is reached; number of starts, and of postures of which that nearest to the preferred one is taken
ANGULAR, LINEAR, POINT, AXIAL, AXIS, TOLERANCE, STARTS, POSTURES, TASK = 0, 1, 2, 5, 6, 9, 10, 11, 12
# rows of scratch memory (ROWS, max(nv, 36)), and of that of positions
STEP, WAY, WHOLE, FIXED, FACTOR, RIGHT, SOLVED, C, C_TRIAL, ROWS = range(10)
AT, TRIAL, NEXT, REFERENCE, POSITIONS = range(5)

ITERATIONS = 60      # of a start
LAST = 200           # from the best posture, where none is at the goal
KAPPA, GROWN, FALLEN = 1.0, 4.0, 0.25    # of κ
LEAST = 1e-9         # of µ, whose matrix is 1 in size
LONGEST = 2.0        # rad, m: of a step
GOLDEN = 0.6180339887498949    # multiples of it, modulo 1: shares of the way from the preferred posture to a start
SLOW, PATIENCE = 0.8, 3    # after more iterations that decrease |c|² less than this, a start is given up
NEAR = 1e-4          # |c|² below which it is not
FINE = 1e-6          # of the tolerance: |c| below it is final
CORRECTIONS = 6      # iterations that bring a step in the null space back to the goal
APPROACHES = 60      # steps towards the preferred posture
SMALLEST, SHORTER = 1e-3, 0.25    # share of such a step, and its factor where that is too long
ENOUGH = 1e-10       # relative decrease of the squared distance to it, below which it ends


class Problem(NamedTuple):
    """The model, and the link that is to reach a goal (12,): rotation, position; the task, the table, and the velocity
    coordinates that move the link.
    """

    B: Any
    link: Any
    goal: Any
    task: Any
    table: Any
    columns: Any


@sweep
def residual(problem, q, J, c):
    """Into c (6,) the residual, into J (6·nv,) its derivatives; returns the errors: angle (rad), distance (m)."""
    B, link, goal, task, table, columns = problem
    nv = table.shape[1]
    R, p = jacobian_recursion(B, q, 0, link, 0, J, 0)
    R_goal = matrix(goal, 0)
    point = vector(task, POINT)
    E = compose((R_goal[0], R_goal[3], R_goal[6], R_goal[1], R_goal[4], R_goal[7], R_goal[2], R_goal[5], R_goal[8]), R)
    e = rotate_back(R_goal, sub(add(p, rotate(R, point)), vector(goal, 9)))
    axial = task[AXIAL] > 0.0
    axis = vector(task, AXIS)
    if axial:
        now = rotate(E, axis)
        r = sub(now, axis)
        apart = cross(axis, now)
        angle = math.atan2(math.sqrt(dot(apart, apart)), dot(axis, now))
        slope = E
    else:
        x, y, z, w = matrix_to_quaternion(E)
        r = quaternion_log(x, y, z, w)
        angle = math.sqrt(dot(r, r))
        slope = right_jacobian_inverse(r)
    angular = task[ANGULAR]
    linear = task[LINEAR]
    for k in range(3):
        c[k] = angular * r[k]
        c[3 + k] = linear * e[k]
    for i in range(columns.shape[0]):
        j = columns[i]
        omega = (J[j], J[j + nv], J[j + 2 * nv])
        velo = rotate(E, add((J[j + 3 * nv], J[j + 4 * nv], J[j + 5 * nv]), cross(omega, point)))
        omega = rotate(slope, cross(omega, axis) if axial else omega)
        for k in range(3):
            J[j + k * nv] = angular * omega[k]
            J[j + (3 + k) * nv] = linear * velo[k]
    return angle if angular > 0.0 else 0.0, math.sqrt(dot(e, e))


@sweep
def solve_damped(J, columns, mu, scratch):
    """Into SOLVED y of `(J Jᵀ + µ 1) y = right`, of the columns that are not fixed, by Cholesky's factorisation."""
    nv = J.shape[0] // 6
    A = scratch[FACTOR]
    y = scratch[SOLVED]
    for r in range(6):
        for s in range(r + 1):
            total = mu if r == s else 0.0
            for i in range(columns.shape[0]):
                j = columns[i]
                if scratch[FIXED, j] == 0.0:
                    total += J[j + r * nv] * J[j + s * nv]
            for k in range(s):
                total -= A[6 * r + k] * A[6 * s + k]
            A[6 * r + s] = math.sqrt(max(total, 1e-300)) if r == s else total / A[7 * s]
    for r in range(6):
        total = scratch[RIGHT, r]
        for k in range(r):
            total -= A[6 * r + k] * y[k]
        y[r] = total / A[7 * r]
    for r in range(5, -1, -1):
        total = y[r]
        for k in range(r + 1, 6):
            total -= A[6 * k + r] * y[k]
        y[r] = total / A[7 * r]


@sweep
def bounded_step(problem, J, c, q, mu, scratch):
    """Into STEP the δ of the table above, for w in WAY; returns |c + J δ|²."""
    table = problem.table
    columns = problem.columns
    nv = table.shape[1]
    step = scratch[STEP]
    fixed = scratch[FIXED]
    for i in range(columns.shape[0]):
        step[columns[i]] = scratch[WAY, columns[i]]
        fixed[columns[i]] = 0.0
    for _ in range(columns.shape[0] + 1):
        for k in range(6):
            scratch[RIGHT, k] = c[k]
            for i in range(columns.shape[0]):
                j = columns[i]
                scratch[RIGHT, k] += J[j + k * nv] * (step[j] if fixed[j] != 0.0 else scratch[WAY, j])
        solve_damped(J, columns, mu, scratch)
        within = True
        for i in range(columns.shape[0]):
            j = columns[i]
            if fixed[j] != 0.0:
                continue
            step[j] = scratch[WAY, j]
            for k in range(6):
                step[j] -= J[j + k * nv] * scratch[SOLVED, k]
            place = int(table[PLACE, j])
            if place >= 0:
                inside = min(max(step[j], table[LOWER, j] - q[place]), table[UPPER, j] - q[place])
                if inside != step[j]:
                    step[j] = inside
                    fixed[j] = 1.0
                    within = False
        if within:
            break
    return predicted(J, c, columns, step)


@kernel
def predicted(J, c, columns, step):
    """|c + J δ|²."""
    nv = J.shape[0] // 6
    total = 0.0
    for k in range(6):
        x = c[k]
        for i in range(columns.shape[0]):
            x += J[columns[i] + k * nv] * step[columns[i]]
        total += x * x
    return total


@sweep
def moved(problem, q, scratch, out):
    """`out = q ⊕ δ`, within limits to the last bit."""
    B = problem.B
    table = problem.table
    columns = problem.columns
    integrate_state(B, q, 0, scratch[STEP], 0, out)
    for i in range(columns.shape[0]):
        j = columns[i]
        place = int(table[PLACE, j])
        if place >= 0:
            out[place] = min(max(out[place], table[LOWER, j]), table[UPPER, j])


@kernel
def squared(c):
    return c[0] * c[0] + c[1] * c[1] + c[2] * c[2] + c[3] * c[3] + c[4] * c[4] + c[5] * c[5]


@sweep
def search(problem, q, iterations, patience, slopes, scratch, trial):
    """Steps from q, which becomes the posture reached; returns |c|², angle (rad) and distance (m)."""
    task = problem.task
    columns = problem.columns
    J = slopes[0]
    J_trial = slopes[1]
    c = scratch[C]
    c_trial = scratch[C_TRIAL]
    tolerance = task[TOLERANCE]
    for i in range(columns.shape[0]):
        scratch[WAY, columns[i]] = 0.0
    angle, distance = residual(problem, q, J, c)
    f = squared(c)
    kappa = KAPPA
    waited = 0
    fast = True
    for _ in range(iterations):
        reached = angle <= tolerance and distance <= tolerance
        if (reached and (not fast or max(angle, distance) <= FINE * tolerance)) or (waited > patience and f > NEAR):
            break
        least = bounded_step(problem, J, c, q, kappa * f + LEAST, scratch)
        longest = 0.0
        for i in range(columns.shape[0]):
            longest = max(longest, abs(scratch[STEP, columns[i]]))
        if longest > LONGEST:
            for i in range(columns.shape[0]):
                scratch[STEP, columns[i]] *= LONGEST / longest
            least = predicted(J, c, columns, scratch[STEP])
        moved(problem, q, scratch, trial)
        angle_trial, distance_trial = residual(problem, trial, J_trial, c_trial)
        f_trial = squared(c_trial)
        fast = f_trial < 0.01 * f
        waited = 0 if f_trial < SLOW * f else waited + 1
        if not f_trial < f:
            kappa *= GROWN * GROWN
            continue
        if f - f_trial > 0.75 * (f - least):
            kappa *= FALLEN
        elif f - f_trial < 0.25 * (f - least):
            kappa *= GROWN
        assign(q, trial)
        f = f_trial
        angle = angle_trial
        distance = distance_trial
        J, J_trial = J_trial, J
        c, c_trial = c_trial, c
    return f, angle, distance


@sweep
def way_to(problem, q, preferred, way):
    """Into way (nv,) that from q to the preferred posture; returns the square of its length, of the chain alone."""
    B = problem.B
    columns = problem.columns
    for i in range(node_count(B)):
        o = node(i)
        if B[o + OWNER] != 0.0:
            between_node(B, o, q, preferred, first_position(B, o), way, first_velocity(B, o))
    total = 0.0
    for i in range(columns.shape[0]):
        total += way[columns[i]] * way[columns[i]]
    return total


@sweep
def approach(problem, q, preferred, slopes, scratch, positions):
    """Steps of q in the null space towards the preferred posture; returns the squared distance that is left."""
    columns = problem.columns
    tolerance = problem.task[TOLERANCE]
    trial = positions[TRIAL]
    after = positions[NEXT]
    left = way_to(problem, q, preferred, scratch[WHOLE])
    share = 1.0
    for _ in range(APPROACHES):
        now = left
        share = min(1.0, share / SHORTER)
        residual(problem, q, slopes[0], scratch[C])
        while share > SMALLEST:
            for i in range(columns.shape[0]):
                scratch[WAY, columns[i]] = share * scratch[WHOLE, columns[i]]
            bounded_step(problem, slopes[0], scratch[C], q, LEAST, scratch)
            moved(problem, q, scratch, after)
            _, angle, distance = search(problem, after, CORRECTIONS, CORRECTIONS, slopes, scratch, trial)
            now = way_to(problem, after, preferred, scratch[WHOLE])
            if now < left and angle <= tolerance and distance <= tolerance:
                break
            share *= SHORTER
            residual(problem, q, slopes[0], scratch[C])
            way_to(problem, q, preferred, scratch[WHOLE])
        if share <= SMALLEST:
            break
        assign(q, after)
        if left - now <= ENOUGH * left:
            return now
        left = now
    return left


@sweep
def begin(problem, number, centre, share, scratch, q):
    """Into q the posture `number` of the sequence, or a share of the way there from the centre."""
    table = problem.table
    columns = problem.columns
    for j in range(table.shape[1]):
        scratch[STEP, j] = 0.0
    for i in range(columns.shape[0]):
        j = columns[i]
        x = number * table[ALPHA, j]
        place = int(table[PLACE, j])
        scratch[STEP, j] = share * (table[FIRST, j] + (x - math.floor(x)) * table[RANGE, j] - (
            centre[place] if place >= 0 else 0.0))
    moved(problem, centre, scratch, q)


@sweep
def turned(problem, q, reference):
    """q by whole turns to where it is nearest to the reference, within limits."""
    table = problem.table
    columns = problem.columns
    for i in range(columns.shape[0]):
        j = columns[i]
        if table[TURN, j] > 0.0:
            k = int(table[PLACE, j])
            turns = np.floor((reference[k] - q[k]) / (2.0 * np.pi) + 0.5)
            turns = min(max(turns, np.ceil((table[LOWER, j] - q[k]) / (2.0 * np.pi))),
                        np.floor((table[UPPER, j] - q[k]) / (2.0 * np.pi)))
            if turns != 0.0:
                q[k] = min(max(q[k] + 2.0 * np.pi * turns, table[LOWER, j]), table[UPPER, j])


@quick_entry("boolean(float64[:, ::1], float64[:, ::1])")
def goals_entry(poses, goals):
    """Into goals (N, 12) rotation and position of poses (N, 16); whether these are poses, to 1e-6."""
    valid = True
    for n in range(poses.shape[0]):
        T = poses[n]
        for k in range(3):
            goals[n, 9 + k] = T[4 * k + 3]
            valid &= T[12 + k] == 0.0
            for i in range(3):
                goals[n, 3 * k + i] = T[4 * k + i]
                product = T[4 * k] * T[4 * i] + T[4 * k + 1] * T[4 * i + 1] + T[4 * k + 2] * T[4 * i + 2]
                valid &= abs(product - (1.0 if i == k else 0.0)) <= 1e-6
        valid &= T[15] == 1.0 and dot(cross(vector(T, 0), vector(T, 4)), vector(T, 8)) > 0.0
    return valid and all_finite(goals.reshape(-1))


@quick_entry("void(float64[::1], int64, float64[:, ::1], float64[::1], float64[:, ::1], int64[::1], float64[:, ::1], "
             "float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1])", nogil=True)
def postures_entry(B, link, goals, task, table, columns, q, preferred, errors, slopes, scratch, positions):
    """From N postures q (N, nq) to those that bring the link to its goals (N, 12), rotation and position, or the
    nearest to that; errors (N, 2): m, rad. preferred (N, nq): of the postures found, the nearest is taken and goes as
    near as it can; (0, nq): the first.
    """
    at = positions[AT]
    reference = positions[REFERENCE]
    near = preferred.shape[0] > 0
    for n in range(goals.shape[0]):
        problem = Problem(B, link, goals[n], task, table, columns)
        assign(reference, q[n])
        lowest = np.inf
        nearest = np.inf
        left = int(task[POSTURES]) if near else 1
        for number in range(int(task[STARTS])):
            if number == 0 or not near:
                begin(problem, number, reference, 0.0 if number == 0 else 1.0, scratch, at)
            else:
                begin(problem, number, preferred[n], (number - 1) * GOLDEN % 1.0, scratch, at)
            f, angle, distance = search(problem, at, ITERATIONS, PATIENCE, slopes, scratch, positions[TRIAL])
            away = np.inf
            if angle <= task[TOLERANCE] and distance <= task[TOLERANCE]:
                left -= 1
                away = 0.0
                f = 0.0
                if near:
                    turned(problem, at, preferred[n])
                    away = approach(problem, at, preferred[n], slopes, scratch, positions)
                else:
                    turned(problem, at, reference)
                angle, distance = residual(problem, at, slopes[0], scratch[C])
            if away < nearest or f < lowest:
                nearest = away
                lowest = f
                assign(q[n], at)
                errors[n, 0] = distance
                errors[n, 1] = angle
            if left == 0:
                break
        if nearest == np.inf:
            _, errors[n, 1], errors[n, 0] = search(problem, q[n], LAST, LAST, slopes, scratch, positions[TRIAL])
