"""Kernel of steps of robots with constraints: closed loops, couplings and fixed links.

`Simulator._advance` and `Variational` have the methods, in Python, `constrained_motion` and `projection` what they take
from constraints. C: their packed array, without rows of contacts and users; m rows A (m·nv).
"""
from __future__ import annotations

import numpy as np

from ..compiled.assign import assign
from ..compiled.entry import entry
from ..compiled.kernel import routine
from ..dynamics.constrained.minimum_norm import row_space, within
from ..dynamics.constrained.projection import ACCEPTED, HALVINGS, ITERATIONS, LONGEST, TOLERANCE
from ..dynamics.constrained.recursion import EXCESS, INFO, OPTIONS, constrained_states
from ..dynamics.constrained.recursion import _size as work_size
from ..dynamics.constrained.rows import Motion, constraint_rows
from ..dynamics.kinematics import _ACCEL, _ALPHA, _OMEGA, SIZE, node_motion
from ..dynamics.mass_matrix import SIZE as MASS_SIZE
from ..dynamics.mass_matrix import mass_matrix_recursion
from ..model.block import integer, node_count, size_v
from ..model.constraint_block import ROWS
from .constrained_motion import SHARE
from .discrete_mechanics import finish, inertia_of, prepare, solve, working_space
from .impulses import boxed
from .joint_data import BOX_ROWS, DAMPING, HELD, LIMIT, POSITION, effort_at, finite, friction_boxes, limit_boxes
from .linear_equations import factor, inverse_of_symmetric, substitute
from .rk4_steps import rk4_end, rk4_place
from .semi_implicit_steps import moved

SEMI_IMPLICIT, RK4, VARIATIONAL = range(3)


@routine
def rows_at(B, C, q, W, A, f):
    """A and f of all rows at q."""
    still = np.zeros(size_v(B))
    b = np.empty(f.shape[0])
    node_motion(B, q, 0, still, still, 0, 1, True, W)
    constraint_rows(B, C, (q, 0, still, 0, still, 0), Motion(W, SIZE, W, SIZE, _OMEGA, _ALPHA, _ACCEL, 0.0),
                    (still[:0], 0), 1, (A, f, b, 0))


@routine
def least_norm(Z, n, c, lam):
    """lam (m,) = (Z Zᵀ)⁺ c, Z (m·n)."""
    m = c.shape[0]
    factors, y = np.empty((2, m * m)), np.empty(2 * m)
    rank, _, _ = row_space(Z.copy(), n, m, factors[0], factors[1], y)
    within(factors[0], factors[1], m, rank, 0.0, c, 0, y, y, lam, 0)
    for r in range(m):
        lam[r] = -lam[r]


@routine
def along(A, v, out):
    """out (m,) = A v."""
    n = v.shape[0]
    for r in range(out.shape[0]):
        out[r] = 0.0
        for j in range(n):
            out[r] += A[n * r + j] * v[j]


@routine
def whitened(A, F, n, Z):
    """Z (m·n) with Z Zᵀ = A X⁻¹ Aᵀ, by the `factor` F of X (n·n)."""
    for r in range(Z.shape[0] // n):
        for i in range(n):
            Z[n * r + i] = A[n * r + i]
        for k in range(n - 1, -1, -1):
            for i in range(k):
                Z[n * r + i] -= F[n * k + i] * Z[n * r + k]
            Z[n * r + k] *= np.sqrt(F[n * k + k])


@routine
def push_back(A, F, n, lam, v):
    """v (n,) less X⁻¹ Aᵀ λ, by the `factor` F of X (n·n)."""
    x = np.zeros(n)
    for r in range(lam.shape[0]):
        for j in range(n):
            x[j] += A[n * r + j] * lam[r]
    substitute(F, n, x)
    for j in range(n):
        v[j] -= x[j]


@routine
def back(B, C, holonomic, q, v, heavy, W, A, f):
    """`project` in place; heavy: mass-weighted. False without convergence."""
    n, m = v.shape[0], f.shape[0]
    rows_at(B, C, q, W, A, f)
    size, worst, count = np.sqrt(f @ f), np.max(np.abs(f)), 0
    matrices, rows, moves, new_q = np.empty((2, m * n)), np.empty((3, m)), np.empty((2, n)), q.copy()
    H, new_A, e, lam, new_f, step, dv = matrices[0], matrices[1], rows[0], rows[1], rows[2], moves[0], moves[1]
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
        least_norm(H[:n * count], n, e[:count], lam)
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
            new_size = np.sqrt(new_f @ new_f)
            better = new_size < size
            if better:
                break
            share *= 0.5
        if not better:
            break
        assign(q, new_q)
        assign(A, new_A)
        assign(f, new_f)
        size, worst = new_size, np.max(np.abs(f))
    if not worst <= ACCEPTED:
        return False
    along(A, v, e)
    if not heavy:
        least_norm(A, n, e, lam)
        for j in range(n):
            for r in range(m):
                v[j] -= A[n * r + j] * lam[r]
        return True
    M = np.empty(n * n)
    mass_matrix_recursion(B, q, 0, np.empty(MASS_SIZE * node_count(B)), M, 0)
    factor(M, n)
    whitened(A, M, n, H)
    least_norm(H, n, e, lam)
    push_back(A, M, n, lam, v)
    return True


@routine
def share_out(A, W, Z, n, P):
    """W (n·n), velocities of unit impulses, becomes that with constraints; P (n·n) the projector of velocities, or (0,)
    for none. Z: of `whitened`.
    """
    m = Z.shape[0] // n
    AW, c, columns = np.zeros(m * n), np.empty(m), np.zeros(2 * n * m)
    T, S, y = np.empty(m * m), np.empty(m * m), np.empty(2 * m)
    rank, _, _ = row_space(Z.copy(), n, m, T, S, y)
    for r in range(m):
        for k in range(n):
            for j in range(n):
                AW[n * r + j] += A[n * r + k] * W[n * k + j]
    for part in range(2 if P.shape[0] > 0 else 1):
        X = AW if part == 0 else A
        for j in range(n):
            for r in range(m):
                c[r] = -X[n * r + j]
            within(T, S, m, rank, 0.0, c, 0, y, c, columns, (part * n + j) * m)
    for i in range(n):
        for j in range(P.shape[0] // n):
            P[n * i + j] = 1.0 if i == j else 0.0
            for r in range(m):
                P[n * i + j] -= AW[n * r + i] * columns[(n + j) * m + r]
        own = W[n * i + i]
        for j in range(n):
            for r in range(m):
                W[n * i + j] -= AW[n * r + i] * columns[j * m + r]
        W[n * i + i] += SHARE * own
    for i in range(n):
        for j in range(i):
            W[n * i + j] = W[n * j + i] = 0.5 * (W[n * i + j] + W[n * j + i])


@routine
def constrained_acceleration(B, C, q, v, effort, damping, wrench, S, a, lam):
    """a (nv,) and multipliers lam (m,) under an effort less damping; False where they contradict the constraints."""
    n, m = v.shape[0], lam.shape[0]
    tau, out = np.empty(n), np.zeros(INFO)
    for i in range(n):
        tau[i] = effort[i] - damping[i] * v[i]
    if constrained_states(B, C, (q, v, tau, v), 1, S[:0].view(np.bool_), (wrench, tau[:0]), np.zeros(OPTIONS), S,
                          (a, a, lam[:m], out)) != 0:
        return False
    return out[EXCESS] <= 1.0


@routine
def explicit_step(method, B, C, q, v, h, efforts, wrench, joints, end, lam, work):
    """The `end` q1, v1 of a step of h (s) by `semi_implicit` or `rk4`, not yet on the constraints; False without a
    solution. lam (m,): multipliers; work: of bodies, of `constrained_states`, and A and f.
    """
    q1, v1 = end
    W, S, A, f = work[:4]
    n, m = v.shape[0], f.shape[0]
    none, dv, effort = np.zeros(n), np.empty(n), np.empty(n)
    damping, implicit = joints[DAMPING], False
    effort_at(efforts, 0.0, effort)
    boxes = np.zeros((BOX_ROWS, n))
    if method == RK4:
        u, a, q2, place = np.empty((4, n)), np.empty((4, n)), q.copy(), q.copy()
        assign(u[0], v)
        for k in range(4):
            if k > 0:
                rk4_place(B, q, k, h, u, a, dv, q2, place)
                effort_at(efforts, 0.5 * ((k + 1) // 2), effort)
            if not constrained_acceleration(B, C, place, u[k], effort, damping, wrench, S, a[k], lam):
                return False
        rk4_end(B, q, h, u, a, dv, q2, q1, v1)
        effort_at(efforts, 0.0, effort)
    else:
        if not constrained_acceleration(B, C, q, v, effort, none, wrench, S, v1, lam):
            return False
        for i in range(n):
            v1[i] = v[i] + h * v1[i]
            implicit |= damping[i] != 0.0
        moved(B, q, v1, h, dv, q1)
    bounded = friction_boxes(joints, v, effort, h, boxes)
    if not (bounded or implicit):
        bounded = limit_boxes(joints, q1, v1, boxes) != 0
        if not bounded:
            return True
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
    F, Z, e, lam1 = M.copy(), np.empty(m * n), np.empty(m), np.empty(m)
    factor(F, n)
    if implicit:
        substitute(F, n, free)
    rows_at(B, C, q, W, A, f)
    whitened(A, F, n, Z)
    for i in range(n):
        dv[i] = free[i] - v_free[i]
    along(A, dv, e)
    least_norm(Z, n, e, lam1)
    push_back(A, F, n, lam1, free)
    inverse_of_symmetric(M, n, inverse)
    share_out(A, inverse, Z, n, M[:0])
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
            return True
        bounded = True


@routine
def implicit_step(B, C, q, v, h, effort, wrench, damping, joints, end, lam, work):
    """The same by `variational`."""
    q1, v1 = end
    W, A, f, space = work[0], work[2], work[3], work[4]
    n, m = v.shape[0], f.shape[0]
    none, frame, p, guess, given = np.empty((0, 0)), np.empty(0), np.empty(n), np.empty(n), np.empty((4, n, n))
    inertia = np.empty((2, n, n))
    inertia_of(B, q, v, guess, inertia, space)
    prepare(B, q, v, h, damping, none, inertia, p, guess, given, frame, False, space)
    middle, dv = q.copy(), np.empty(n)
    moved(B, q, v, 0.5 * h, dv, middle)
    rows_at(B, C, middle, W, A, f)
    P, Z, F, e = np.empty((n, n)), np.zeros(m * n), given[1].copy().reshape(-1), np.empty(m)
    factor(F, n)    # Lᵀ D L of the velocities of unit impulses: Z = A Lᵀ √D
    for j in range(n):
        root = np.sqrt(1.0 / F[n * j + j])
        for r in range(m):
            Z[n * r + j] = A[n * r + j]
            for i in range(j):
                Z[n * r + j] += A[n * r + i] * F[n * j + i]
            Z[n * r + j] *= root
    share_out(A, given[1].reshape(-1), Z, n, P.reshape(-1))
    boxes, ends, loads = np.empty((BOX_ROWS, n)), np.empty((2, q.shape[0])), np.zeros((3, n))
    out = np.empty((4, n))
    bounded = friction_boxes(joints, v, effort, 0.5 * h, boxes)
    assign(ends[0], q)
    assign(loads[0], p)
    assign(loads[1], effort)
    while True:    # repeat with added boxes until no further limit is exceeded
        assign(ends[1], q)
        assign(out[0], guess)
        if not solve(B, ends, h, loads, wrench, damping, none, given, P, boxes if bounded else boxes[:0], out, frame,
                     space):
            return False
        if limit_boxes(joints, ends[1], out[0], boxes) != 0:
            bounded = True
            continue
        finish(B, ends[1], out[1], h, boxes if bounded else boxes[:0], inertia, v1, frame, space)
        if limit_boxes(joints, ends[1], v1, boxes) == 0:
            break
        bounded = True
    assign(q1, ends[1])
    for j in range(n):
        dv[j] = out[3, j] / (0.5 * h)
    along(A, dv, e)
    least_norm(A, n, e, lam)
    return True


@entry("int64(int64, float64[::1], float64[::1], boolean[::1], float64[::1], float64[::1], float64[:, :, ::1], "
       "float64[::1], float64[:, ::1], float64[:, ::1], float64, int64, float64[::1])", nogil=True)
def loop_steps(method, B, C, holonomic, q, v, efforts, wrench, damping, joints, h, steps, multipliers):
    """Advance q, v in place by at most `steps` steps of h (s); returns the number made, fewer where one has no solution
    or is not finite. holonomic (m,): rows that restrict positions; damping (nv, nv) or (0, 0), of `variational`; other
    arguments as of `rk4_steps`. Out: multipliers (m,) of the last step.
    """
    n, m, nodes = size_v(B), integer(C, ROWS), node_count(B)
    work = np.zeros(SIZE * nodes), np.empty(work_size(nodes, n, m)), np.empty(m * n), np.empty(m), working_space(B)
    q1, v1, effort, lam = q.copy(), v.copy(), np.empty(n), np.zeros(m)
    for s in range(steps):
        given = efforts[min(s, efforts.shape[0] - 1)]
        if method == VARIATIONAL:
            effort_at(given, 0.5, effort)
            made = implicit_step(B, C, q, v, h, effort, wrench, damping, joints, (q1, v1), lam, work)
        else:
            made = explicit_step(method, B, C, q, v, h, given, wrench, joints, (q1, v1), lam, work)
        if not (made and finite(q1, v1) and back(B, C, holonomic, q1, v1, method == VARIATIONAL, work[0], work[2],
                                                 work[3]) and finite(q1, v1)):
            return s
        assign(q, q1)
        assign(v, v1)
        assign(multipliers, lam)
    return steps
