"""Kernel of steps of robots with constraints: closed loops, couplings and fixed links.

`Simulator._advance` and `Variational` have the methods, in Python, `constrained_motion` and `projection` what they take
from constraints. C: their packed array, without rows of contacts and users; m rows A (m·nv).
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..compiled.assign import assign
from ..compiled.entry import entry
from ..compiled.kernel import allocating, kernel, routine, sweep
from ..dynamics.constrained.minimum_norm import basis, row_space, within
from ..dynamics.constrained.projection import ACCEPTED, HALVINGS, ITERATIONS, LONGEST, TOLERANCE
from ..dynamics.constrained.recursion import EXCESS, INFO, OPTIONS, constrained_states
from ..dynamics.constrained.recursion import _size as work_size
from ..dynamics.constrained.rows import Motion, constraint_rows
from ..dynamics.kinematics import _ACCEL, _ALPHA, _OMEGA, SIZE, node_motion
from ..dynamics.mass_matrix import SIZE as MASS_SIZE
from ..dynamics.mass_matrix import mass_matrix_recursion
from ..model.block import integer, node_count, size_q, size_v
from ..model.constraint_block import ROWS
from .constrained_motion import SHARE
from .discrete_mechanics import finish, foresee, mass_of, prepare, remember, solve, working_space
from .impulses import boxed
from .joint_data import BOX_ROWS, DAMPING, HELD, LIMIT, POSITION, effort_at, finite, friction_boxes, limit_boxes
from .linear_equations import factor, inverse_of_factor, inverse_of_symmetric, substitute
from .rk4_steps import rk4_end, rk4_place
from .semi_implicit_steps import moved

SEMI_IMPLICIT, RK4, VARIATIONAL = range(3)


class Space(NamedTuple):
    """Workspace of the steps."""

    bodies: Any       # motion of the bodies
    solver: Any       # of `constrained_states`
    rows: Any         # (6, m·n): A, and others
    values: Any       # (6, m): f, and others
    factors: Any      # (2, m·m): of `row_space`
    pivots: Any       # (2·m,): likewise
    squares: Any      # (3, n, n): factors of the mass matrix and of another, and a projector
    moves: Any        # (11, n); the last row: zeros
    stages: Any       # (2, 4, n): velocities and accelerations of `rk4`
    places: Any       # (4, nq)
    boxes: Any        # (BOX_ROWS, n)
    inertia: Any      # (2, n, n): of `inertia_of`
    given: Any        # (4, n, n): of `prepare`
    out: Any          # (4, n): of `solve`
    loads: Any        # (3, n): likewise
    tree: Any         # of `working_space`
    options: Any      # of `constrained_states`
    info: Any         # likewise


@routine
def loop_space(B, C):
    """`Space` of these constraints."""
    n, m, nodes = size_v(B), integer(C, ROWS), node_count(B)
    return Space(np.zeros(SIZE * nodes), np.empty(work_size(nodes, n, m)), np.zeros((6, m * n)), np.zeros((6, m)),
                 np.empty((2, m * m)), np.empty(2 * m), np.empty((3, n, n)), np.zeros((11, n)), np.empty((2, 4, n)),
                 np.empty((4, size_q(B))), np.zeros((BOX_ROWS, n)), np.empty((2, n, n)), np.empty((4, n, n)),
                 np.empty((4, n)), np.zeros((3, n)), working_space(B), np.zeros(OPTIONS), np.zeros(INFO))


@sweep
def rows_at(B, C, q, W, A, f):
    """A and f of all rows at q."""
    node_motion(B, q, 0, q, q, 0, 0, True, W)
    motion = Motion(W, SIZE, W, SIZE, _OMEGA, _ALPHA, _ACCEL, 0.0)
    constraint_rows(B, C, (q, 0, q, 0, q, 0), motion, (q[:0], 0), 1, (A, f, f, 0))    # of no velocity


@sweep
def least_norm(A, n, c, lam, Z, factors, y):
    """lam (m,) = (A Aᵀ)⁺ c, A (m·n); Z (m·n), factors (2, m·m), y (2 m,): space."""
    m = c.shape[0]
    assign(Z, A)
    rank, _, _ = row_space(Z, n, m, factors[0], factors[1], y)
    within(factors[0], factors[1], m, rank, 0.0, c, 0, y, y, lam, 0)
    for r in range(m):
        lam[r] = -lam[r]


@kernel
def along(A, v, out):
    """out (m,) = A v."""
    n = v.shape[0]
    for r in range(out.shape[0]):
        out[r] = 0.0
        for j in range(n):
            out[r] += A[n * r + j] * v[j]


@kernel
def whitened(A, F, n, Z):
    """Z (m·n) = A S with S Sᵀ = X⁻¹, by the `factor` F of X (n·n)."""
    for r in range(Z.shape[0] // n):
        for i in range(n):
            Z[n * r + i] = A[n * r + i]
        for k in range(n - 1, -1, -1):
            for i in range(k):
                Z[n * r + i] -= F[n * k + i] * Z[n * r + k]
            Z[n * r + k] *= np.sqrt(F[n * k + k])


@kernel
def take_off(Z, y, w, part):
    """w (n,) less its part in the space of the `basis` Z, y, which becomes `part`."""
    n = w.shape[0]
    for i in range(n):
        part[i] = 0.0
    for _ in range(2):    # once more for what rounding left
        for r in range(y.shape[0] // 2):
            if y[r] < 0.0:
                x = 0.0
                for i in range(n):
                    x += Z[n * r + i] * w[i]
                for i in range(n):
                    w[i] -= x * Z[n * r + i]
                    part[i] += x * Z[n * r + i]


@sweep
def allowed(A, F, n, v, Z, T, y, w, part):
    """v (n,) less S (A S)⁺ A v, S Sᵀ = X⁻¹ by the `factor` F of X (n·n), or S = 1 for no numbers; others: space."""
    m = Z.shape[0] // n
    assign(w, v)
    assign(Z, A)
    if F.shape[0] > 0:
        whitened(A, F, n, Z)
        for k in range(n):
            for i in range(k):
                w[k] += F[n * k + i] * v[i]
            w[k] /= np.sqrt(F[n * k + k])
    basis(Z, n, m, T, y)
    take_off(Z, y, w, part)
    for k in range(n):
        if F.shape[0] > 0:
            part[k] *= np.sqrt(F[n * k + k])
            for i in range(k):
                part[k] -= F[n * k + i] * part[i]
        v[k] -= part[k]


@sweep
def back(B, C, holonomic, q, v, heavy, space):
    """`project` in place; False without convergence. heavy: mass-weighted; the mass matrix at the end is then
    space.inertia[0], its `factor` squares[0].
    """
    n, m = v.shape[0], holonomic.shape[0]
    W, T, y, new_q = space.bodies, space.factors, space.pivots, space.places[3]
    A, H, new_A, Z = space.rows[0], space.rows[1], space.rows[2], space.rows[3]
    f, e, lam, new_f = space.values[0], space.values[1], space.values[2], space.values[3]
    step, dv = space.moves[0], space.moves[1]
    rows_at(B, C, q, W, A, f)
    size, worst = norms(f)
    count = 0
    for r in range(m):
        count += int(holonomic[r])
    for _ in range(ITERATIONS):
        if worst <= TOLERANCE:
            break
        k = 0
        for r in range(m):
            if holonomic[r]:
                e[k] = f[r]
                for j in range(n):
                    H[n * k + j] = A[n * r + j]
                k += 1
        least_norm(H[:n * count], n, e[:count], lam, Z, T, y)
        longest = 1e-300
        for j in range(n):
            step[j] = 0.0
            for r in range(count):
                step[j] -= H[n * r + j] * lam[r]
            longest = max(longest, abs(step[j]))
        share = min(1.0, LONGEST / longest)
        better = False
        for _ in range(HALVINGS):
            moved(B, q, step, share, dv, new_q)
            rows_at(B, C, new_q, W, new_A, new_f)
            new_size, new_worst = norms(new_f)
            better = new_size < size
            if better:
                break
            share *= 0.5
        if not better:
            break
        assign(q, new_q)
        assign(A, new_A)
        assign(f, new_f)
        size, worst = new_size, new_worst
    if not worst <= ACCEPTED:
        return False
    F = space.squares[0].reshape(-1)
    if heavy:
        mass_of(B, q, space.tree[0], space.inertia[0])
        assign(F, space.inertia[0].reshape(-1))
        factor(F, n)
    allowed(A, F if heavy else F[:0], n, v, Z, T[0], y, step, dv)
    return True


@kernel
def norms(f):
    """Length and largest part of f."""
    square = worst = 0.0
    for r in range(f.shape[0]):
        square += f[r] * f[r]
        worst = max(worst, abs(f[r]))
    return np.sqrt(square), worst


@sweep
def share_out(A, W, n, P, F, Z, T, y, a, b):
    """W (n·n), velocities of unit impulses, becomes that with constraints A (m·n); P (n·n) the projector of velocities,
    or (0,) for none. F (n·n), Z (m·n), T (m·m), y (2 m,), a, b (n,): space.
    """
    m = Z.shape[0] // n
    assign(F, W)
    factor(F, n)    # W = S Sᵀ with S = Lᵀ √D
    for j in range(n):
        root = np.sqrt(1.0 / F[n * j + j])
        for r in range(m):
            Z[n * r + j] = A[n * r + j]
            for i in range(j):
                Z[n * r + j] += A[n * r + i] * F[n * j + i]
            Z[n * r + j] *= root
    basis(Z, n, m, T, y)
    for i in range(n):
        W[n * i + i] += SHARE * W[n * i + i]
        for j in range(P.shape[0] // n):
            P[n * i + j] = 1.0 if i == j else 0.0
    for r in range(m):
        if y[r] < 0.0:
            for i in range(n):    # S and S⁻ᵀ times a row of the basis
                root = np.sqrt(F[n * i + i])
                a[i] = Z[n * r + i] / root
                b[i] = Z[n * r + i] * root
                for k in range(i):
                    a[k] += F[n * i + k] * a[i]
                    b[i] -= F[n * i + k] * b[k]
            for i in range(n):
                for j in range(n):
                    W[n * i + j] -= a[i] * a[j]
                for j in range(P.shape[0] // n):
                    P[n * i + j] -= a[i] * b[j]


@kernel
def constrained_acceleration(B, C, q, v, effort, damping, wrench, mask, space, tau, a, lam):
    """a (nv,) and multipliers lam (m,) under an effort less damping; False where they contradict the constraints."""
    m, S, out = lam.shape[0], space.solver, space.info
    for i in range(v.shape[0]):
        tau[i] = effort[i] - damping[i] * v[i]
    out[:] = 0.0
    if constrained_states(B, C, (q, v, tau, v), 1, mask, (wrench, tau[:0]), space.options, S,
                          (a, a, lam[:m], out)) != 0:
        return False
    return out[EXCESS] <= 1.0


@sweep
def explicit_step(method, B, C, q, v, h, efforts, wrench, joints, mask, q1, v1, lam, space):
    """The end q1, v1 of a step of h (s) by `semi_implicit` or `rk4`, not yet on the constraints; False without a
    solution. lam (m,): multipliers.
    """
    none, dv, effort, tau, boxes = space.moves[10], space.moves[0], space.moves[1], space.moves[2], space.boxes
    damping, implicit = joints[DAMPING], False
    effort_at(efforts, 0.0, effort)
    if method == RK4:
        u, a, q2, place = space.stages[0], space.stages[1], space.places[0], space.places[1]
        assign(place, q)
        assign(u[0], v)
        for k in range(4):
            if k > 0:
                rk4_place(B, q, k, h, u, a, dv, q2, place)
                effort_at(efforts, 0.5 * ((k + 1) // 2), effort)
            if not constrained_acceleration(B, C, place, u[k], effort, damping, wrench, mask, space, tau, a[k], lam):
                return False
        rk4_end(B, q, h, u, a, dv, q2, q1, v1)
        effort_at(efforts, 0.0, effort)
    else:
        if not constrained_acceleration(B, C, q, v, effort, none, wrench, mask, space, tau, v1, lam):
            return False
        for i in range(v.shape[0]):
            v1[i] = v[i] + h * v1[i]
            implicit |= damping[i] != 0.0
        moved(B, q, v1, h, dv, q1)
    bounded = friction_boxes(joints, v, effort, h, boxes)
    if not (bounded or implicit):
        bounded = limit_boxes(joints, q1, v1, boxes) != 0
        if not bounded:
            return True
    with_impulses(method, B, C, q, v, h, implicit, bounded, joints, boxes, space.bodies, space.rows[0],
                  space.values[0], q1, v1)
    return True


@allocating
def with_impulses(method, B, C, q, v, h, implicit, bounded, joints, boxes, W, A, f, q1, v1):
    """The end q1, v1 of an explicit step with damping, if implicit, and with friction, stops and velocity limits."""
    n, m = v.shape[0], f.shape[0]
    damping, dv = joints[DAMPING], np.empty(n)
    M, inverse, free, q_free, v_free = np.empty(n * n), np.empty(n * n), v1.copy(), q1.copy(), v1.copy()
    free_change, p = np.empty(n), np.zeros(n)
    mass_matrix_recursion(B, q, 0, np.empty(MASS_SIZE * node_count(B)), M, 0)
    if implicit:
        for i in range(n):
            free[i] = 0.0
            for k in range(n):
                free[i] += M[n * i + k] * v_free[k]
        for i in range(n):
            M[n * i + i] += h * damping[i]
    F, Z, T, y = M.copy(), np.empty(m * n), np.empty(m * m), np.empty(2 * m)
    factor(F, n)
    if implicit:
        substitute(F, n, free)
    rows_at(B, C, q, W, A, f)
    for i in range(n):    # what damping changes obeys the constraints
        free[i] -= v_free[i]
    allowed(A, F, n, free, Z, T, y, dv, p)
    for i in range(n):
        free[i] += v_free[i]
        p[i] = 0.0
    inverse_of_symmetric(M, n, inverse)
    share_out(A, inverse, n, M[:0], F, Z, T, y, dv, free_change)
    while True:    # repeat with added boxes until no further limit is exceeded
        assign(v1, free)
        if bounded:
            boxed(inverse, boxes, v1, p)
        stopped = False
        for i in range(n):
            stopped |= boxes[LIMIT, i] == HELD
        if method == SEMI_IMPLICIT or stopped:
            moved(B, q, v1, h, dv, q1)
        else:    # half of the change of velocity, for impulses acting evenly over the step; what rests does not move
            for i in range(n):
                free_change[i] = v1[i] - v_free[i]
            moved(B, q_free, free_change, 0.5 * h, dv, q1)
            for i in range(n):
                k = int(joints[POSITION, i])
                if k >= 0 and v1[i] == 0.0 and v[i] == 0.0:
                    q1[k] = q[k]
        if limit_boxes(joints, q1, v1, boxes) == 0:
            return
        bounded = True


@kernel
def implicit_step(B, C, q, v, h, effort, wrench, damping, joints, q1, v1, seen, goes_on, space):
    """The end q1, v1 of a step by `variational`; False without a solution.

    goes_on: space.inertia[0] is the mass matrix at q, squares[0] its `factor`. seen: as of `foresee`, of which moves[6]
    and moves[7] are base and ahead. Impulses of constraints: out[3].
    """
    A, f, inertia, given, out, loads, boxes, work = (
        space.rows[0], space.values[0], space.inertia, space.given, space.out, space.loads, space.boxes, space.tree)
    p, guess, dv, a, b, base, ahead = (space.moves[0], space.moves[1], space.moves[2], space.moves[3], space.moves[4],
                                       space.moves[6], space.moves[7])
    n, ends, frame, none = v.shape[0], space.places[:2], v[:0], damping[:0]
    F, P = space.squares[0].reshape(-1), space.squares[2]
    if not goes_on:
        mass_of(B, q, work[0], inertia[0])
        assign(F, inertia[0].reshape(-1))
        factor(F, n)
    inverse_of_factor(F, n, inertia[1].reshape(-1))
    prepare(B, q, v, h, damping, none, inertia, p, guess, given, frame, False, work)
    foresee(seen, guess, base, ahead)
    moved(B, q, v, 0.5 * h, dv, ends[1])
    rows_at(B, C, ends[1], space.bodies, A, f)
    share_out(A, given[1].reshape(-1), n, P.reshape(-1), space.squares[1].reshape(-1), space.rows[3], space.factors[0],
              space.pivots, a, b)
    bounded = friction_boxes(joints, v, effort, 0.5 * h, boxes)
    assign(ends[0], q)
    assign(loads[0], p)
    assign(loads[1], effort)
    while True:    # repeat with added boxes until no further limit is exceeded
        assign(ends[1], q)
        assign(out[0], guess)
        if not solve(B, ends, h, loads, wrench, damping, none, given, P, boxes if bounded else boxes[:0], out, frame,
                     work):
            return False
        if limit_boxes(joints, ends[1], out[0], boxes) != 0:
            bounded = True
            continue
        finish(B, ends[1], out[1], h, boxes if bounded else boxes[:0], inertia, v1, frame, work)
        if limit_boxes(joints, ends[1], v1, boxes) == 0:
            break
        bounded = True
    assign(q1, ends[1])
    assign(space.rows[4], A)
    return True


@sweep
def steps_with_constraints(method, B, C, holonomic, q, v, efforts, wrench, damping, joints, h, steps, multipliers, seen,
                           space):
    """`loop_steps`."""
    q1, v1, effort, lam, dv = space.places[2], space.moves[5], space.moves[8], space.values[4], space.moves[0]
    n, done, implicit = v.shape[0], 0, method == VARIATIONAL
    for s in range(steps):
        given = efforts[min(s, efforts.shape[0] - 1)]
        if implicit:
            effort_at(given, 0.5, effort)
            made = implicit_step(B, C, q, v, h, effort, wrench, damping, joints, q1, v1, seen, s > 0, space)
        else:
            made = explicit_step(method, B, C, q, v, h, given, wrench, joints, holonomic[:0], q1, v1, lam, space)
        if not (made and finite(q1, v1) and back(B, C, holonomic, q1, v1, implicit, space) and finite(q1, v1)):
            break
        assign(q, q1)
        assign(v, v1)
        if implicit:
            remember(seen, space.out[0], space.moves[6], space.moves[7])
            assign(space.rows[5], space.rows[4])
            assign(space.moves[9], space.out[3])
        assign(multipliers, lam)
        done += 1
    if implicit and done > 0:    # of the last step made
        for j in range(n):
            dv[j] = space.moves[9, j] / (0.5 * h)
        along(space.rows[5], dv, lam)
        least_norm(space.rows[5], n, lam, multipliers, space.rows[3], space.factors, space.pivots)
    return done


@entry("int64(int64, float64[::1], float64[::1], boolean[::1], float64[::1], float64[::1], float64[:, :, ::1], "
       "float64[::1], float64[:, ::1], float64[:, ::1], float64, int64, float64[::1], float64[::1])", nogil=True)
def loop_steps(method, B, C, holonomic, q, v, efforts, wrench, damping, joints, h, steps, multipliers, seen):
    """Advance q, v in place by at most `steps` steps of h (s); returns the number made, fewer where one has no solution
    or is not finite. holonomic (m,): rows that restrict positions; damping (nv, nv) or (0, 0), of `variational`; other
    arguments as of `rk4_steps`. seen (GUESSED·nv,): as of `foresee`, of `variational`, in place. Out: multipliers (m,)
    of the last step.
    """
    return steps_with_constraints(method, B, C, holonomic, q, v, efforts, wrench, damping, joints, h, steps,
                                  multipliers, seen, loop_space(B, C))
