"""Kernels of the variational integrator: the equations of one step.

The discrete Lagrangian is `h L(q_m, ξ)` at the middle q_m of the step from q_0 to q_1, ξ the constant velocity that
leads there: `R_m = R_0 exp(h ω/2)`, `R_1 = R_m exp(h ω/2)` for rotations, sums for other coordinates. A floating base's
position x moves in a straight line, `x_1 = x_0 + h R_m u`, which is equivariant like exp of SE(3).
With p = M(q) v at the ends, rotated into the axes of the middle, the discrete Euler–Lagrange equations are

    p_1 = p_0 + h g(q_m, ξ),      M(q_m) ξ = ½ (J(−θ) p_0 + J(θ) p_1),      θ = h ω/2,

g (`momentum_recursion`): ∂L/∂q along the group plus efforts, J: right Jacobian of rotations, 1 for all other
coordinates (Marsden, West 2001; Bou-Rabee, Marsden 2009). Symmetric, so of order 2; Noether: momenta of symmetries at
(q, v) are constant, for any ξ.

A floating robot is described by its centre of mass, which moves along a parabola, and motion relative to it: angular
momentum about the centre of mass is then conserved, also in free fall.
"""
from __future__ import annotations

import numpy as np

from ..compiled.assign import assign, assign_rows
from ..compiled.entry import entry
from ..compiled.kernel import allocating, kernel, routine, sweep
from ..dynamics.mass_matrix import SIZE as MASS_SIZE
from ..dynamics.mass_matrix import mass_matrix_recursion
from ..dynamics.momentum import SIZE, add_wrench_efforts, momentum_recursion
from ..dynamics.spring_kernels import add_spring_efforts, spring_stiffness
from ..lie.so3 import quaternion_to_matrix
from ..lie.spatial import add, cross, rotate, rotate_back, scale, sub
from ..model.block import ZERO, node_count, put, size_q, size_v, vector
from .impulses import boxed
from .joint_data import BOX_ROWS, finite, friction_boxes, limit_boxes
from .linear_equations import (
    add_product, add_times, eliminate, factor, inverse_of_factor, substitute, symmetric_inverse, times,
)
from .lagrangian import half_step, mean_momentum, turn_axes
from .pd_law import command

ITERATIONS = 60      # largest number of iterations per step; typically three to six
CLOSE = 1e-9         # relative change below which a stalled iteration has converged to rounding
CLOSE_IF_CLOSED = 1e-6    # likewise with constraints, whose impulses may be nearly dependent
DEPENDENT = 1e-6     # squared sine of the angle below which two directions of the iteration are one
SPRING_TURNS = 20    # linearisations of springs in one step
FITTING = 1e-12      # relative tolerance of their efforts
ORDERS = 4     # largest number of orders by which its earlier errors improve the guess
GUESSED = 2 + ORDERS         # rows (nv,) of which `foresee` guesses
CARRIED = 1 + GUESSED        # rows that steps hand on: momentum, and these
STEP_ROWS = 12 + BOX_ROWS    # workspace of `variational_step`
WORK_ROWS = 11    # and of the other kernels


@routine
def working_space(B):
    """Workspace of the kernels below: of bodies; positions; rows (WORK_ROWS, nv)."""
    n = size_v(B)
    return np.empty(max(SIZE, MASS_SIZE) * node_count(B) + n * n), np.empty(size_q(B)), np.empty((WORK_ROWS, n))


@sweep
def mass_of(B, q, W, H):
    """H: mass matrix at q."""
    mass_matrix_recursion(B, q, 0, W, H.reshape(-1), 0)


@sweep
def leave_center(q, H, p, v, frame):
    """Convert momentum p and velocity v (nv,) of a floating robot to values relative to its centre of mass, whose
    position and velocity in world axes are stored in frame (9,). H: mass matrix at q.
    """
    R = quaternion_to_matrix(q[3], q[4], q[5], q[6])
    f = (p[3] / H[3, 3], p[4] / H[3, 3], p[5] / H[3, 3])
    put(frame, 0, add(vector(q, 0), rotate(R, center(H))))
    put(frame, 3, rotate(R, f))
    for i in range(p.shape[0]):
        p[i] -= H[i, 3] * f[0] + H[i, 4] * f[1] + H[i, 5] * f[2]
    put(p, 3, ZERO)
    put(v, 3, sub(vector(v, 3), f))


@kernel
def center(H):
    """Centre of mass in the axes of the floating base, from the mass matrix."""
    return (-H[1, 5] / H[3, 3], H[0, 5] / H[3, 3], -H[0, 4] / H[3, 3])


@sweep
def inertia_of(B, q, p, v, inertia, work):
    """inertia (2, nv, nv): mass matrix at q and its inverse; v (nv,): velocity with momentum p (nv,)."""
    n = p.shape[0]
    H, F = inertia[0], work[0][MASS_SIZE * node_count(B):]
    mass_of(B, q, work[0], H)
    assign(F, H.reshape(-1))
    factor(F, n)
    assign(v, p)
    substitute(F, n, v)
    inverse_of_factor(F, n, inertia[1].reshape(-1))


@sweep
def prepare(B, q, v, h, damping, stiffness, inertia, p, xi, out, frame, known, work):
    """At the start of a step: momentum p (nv,) in the parents' axes, a first guess xi (nv,), and `out` (4, nv, nv):
    the inverse of the equations' slope; the velocities that half an impulse gives, both with damping and springs;
    their factor `h D M̃⁻¹`; with a frame M at the middle.

    damping, stiffness: (nv, nv), or (0, 0) for none. inertia: of `inertia_of` at q. frame: see `leave_center`; (0,):
    not relative to it. known: p and frame are valid from the previous step.
    """
    assign(xi, v)
    if known:
        if frame.shape[0] > 0:
            R = quaternion_to_matrix(q[3], q[4], q[5], q[6])
            put(xi, 3, sub(vector(v, 3), rotate_back(R, vector(frame, 3))))
    else:
        times(inertia[0], v, p)
        if frame.shape[0] > 0:
            leave_center(q, inertia[0], p, xi, frame)
        turn_axes(B, p, q, False, p)
    if frame.shape[0] > 0:
        half_step(B, q, xi, 0.5 * h, True, work[1])
        mass_of(B, work[1], work[0], out[3])
    for k in range(2):
        assign(out[k].reshape(-1), inertia[1].reshape(-1))
    if damping.shape[0] > 0 or stiffness.shape[0] > 0:
        dissipate(h, damping, stiffness, inertia, out)


@allocating
def dissipate(h, damping, stiffness, inertia, out):
    """The `out` of `prepare` with damping and springs."""
    n = inertia.shape[1]
    slope, response, share = out[0], out[1], out[2]
    if stiffness.shape[0] > 0:
        assign_rows(response, symmetric_inverse(inertia[0] + 0.25 * h * h * stiffness))
        assign_rows(slope, response)
    share[:] = 0.0
    if damping.shape[0] == 0:
        return
    add_product(h, damping, response, share)
    X = np.empty((n, n))
    for i in range(n):
        for k in range(n):
            X[i, k] = inertia[0, i, k] + h * damping[i, k]
            if stiffness.shape[0] > 0:
                X[i, k] += 0.25 * h * h * stiffness[i, k]
    add_product(0.5 * h, damping, share.T, X)
    assign_rows(slope, symmetric_inverse(X))
    assign_rows(X, slope)
    add_product(1.0, slope, share, X)
    for i in range(n):
        for k in range(n):
            response[i, k] = 0.5 * (X[i, k] + X[k, i])


@entry("void(float64[::1], float64[::1], float64[::1], float64, float64[:, ::1], float64[:, ::1], float64[::1], "
       "float64[::1], float64[:, :, ::1], float64[::1], boolean)")
def prepare_entry(B, q, v, h, damping, stiffness, p, xi, out, frame, known):
    """`prepare`."""
    inertia, work = np.empty((2, v.shape[0], v.shape[0])), working_space(B)
    inertia_of(B, q, v, xi, inertia, work)
    prepare(B, q, v, h, damping, stiffness, inertia, p, xi, out, frame, known, work)


@kernel
def foresee(seen, xi, base, ahead):
    """xi (n,), in: velocity v_n at the start of a step, becomes a guess of its mean velocity.

    The guess is `ξ_{n−3⁄2} + 2 (v_n − v_{n−1})`, of third order in h, plus its error in the step before, plus the
    change of this error, and so on, as long as these become smaller, from the guess less v_n on: up to seventh order.
    seen (GUESSED·n,): of `remember`; NaN: unknown; with only the first two unknown, the third is ξ − v_n of the step
    before. base, ahead (n,): for `remember`.
    """
    n = xi.shape[0]
    known = seen[n] == seen[n]
    before = 0.0
    for i in range(n):
        twice = 2.0 * xi[i]
        ahead[i] = seen[i] - twice if known else -xi[i]
        base[i] = seen[n + i] + twice if known else xi[i]
        before += (base[i] - xi[i]) * (base[i] - xi[i]) if known else np.inf
        xi[i] = base[i]
    for k in range(2, GUESSED):
        size = 0.0
        for i in range(n):
            size += seen[n * k + i] * seen[n * k + i]
        if not size < before:
            break
        before = size
        for i in range(n):
            xi[i] += seen[n * k + i]


@kernel
def remember(seen, xi, base, ahead):
    """After a step with mean velocity xi: rows of seen are ξ_{n+½}, `ξ_{n−½} − 2 v_n`, and backward differences of the
    error of `base`.
    """
    n = xi.shape[0]
    for i in range(n):
        seen[i] = xi[i]
        seen[n + i] = ahead[i]
        x = xi[i] - base[i]
        for k in range(2, GUESSED):
            y = seen[n * k + i]
            seen[n * k + i] = x
            x -= y


@kernel
def accelerate(x, new, old, known):
    """Anderson's acceleration, of depth two, of the iteration x → new (n,), in place. known: iterations before. old (4,
    n), of these: x, new − x, and the changes of new − x and of new.
    """
    rd = dd = re = de = ee = 0.0
    for i in range(x.shape[0]):
        r = new[i] - x[i]
        d = r - old[1, i] if known > 0 else 0.0
        e = old[2, i] if known > 1 else 0.0
        rd += r * d
        dd += d * d
        re += r * e
        de += d * e
        ee += e * e
    a = b = 0.0
    det = dd * ee - de * de
    if det > DEPENDENT * dd * ee:
        a, b = (rd * ee - re * de) / det, (re * dd - rd * de) / det
    elif dd > 0.0:
        a = rd / dd
    mixes = dd > 0.0 and abs(a) < 0.5 and abs(b) < 0.5
    for i in range(x.shape[0]):
        r = new[i] - x[i]
        d = r - old[1, i]
        y = new[i] - (old[0, i] + old[1, i])
        if mixes:
            new[i] -= a * y
            if b != 0.0:
                new[i] -= b * old[3, i]
        old[0, i], old[1, i], old[2, i], old[3, i] = x[i], r, d, y


@kernel
def solve(B, ends, h, loads, wrench, damping, stiffness, given, free, boxes, out, frame, work):
    """Solve a step from the positions ends[0]; its end is stored in ends[1].

    loads: rows momentum p (parents' axes); efforts, which include springs at a displacement from q; this displacement.
    given, frame: from `prepare`; free: projector onto the constraints' null space, or no rows. boxes: rows low,
    high, of the impulses of the first half, and their target velocities; or no rows. out (4, nv): rows xi, in: a guess;
    momentum at the end (parents' axes) without impulses of friction and stops in the second half; impulses of the first
    half; those of constraints in half a step. Returns False without convergence.
    """
    q, q1 = ends[0], ends[1]
    p, effort, offset = loads[0], loads[1], loads[2]
    xi = out[0]
    n = size_v(B)
    W, middle, rows = work
    g, momentum, start, end, mean, rest, new, old = (
        rows[0], rows[1], rows[2], rows[3], rows[4], rows[5], rows[6], rows[7:])
    response = given[1].reshape(-1)
    half = 0.5 * h
    last = np.inf
    close = CLOSE if free.shape[0] == 0 else CLOSE_IF_CLOSED
    solved = False
    out[2] = 0.0
    for turn in range(ITERATIONS):
        half_step(B, q, xi, half, True, middle)
        momentum_recursion(B, middle, xi, W, False, momentum, g)
        if wrench.shape[0] > 0:
            add_wrench_efforts(B, middle, wrench, W, g)
        turn_axes(B, p, middle, True, start)
        for i in range(n):
            g[i] += effort[i]
        if damping.shape[0] > 0:
            add_times(-1.0, damping, xi, g)
        if stiffness.shape[0] > 0:
            add_times(-half, stiffness, xi, g)
            add_times(1.0, stiffness, offset, g)
        if frame.shape[0] > 0:    # the centre of mass falls, and takes its share of other forces
            m = given[3, 3, 3]
            a = (g[3] / m, g[4] / m, g[5] / m)
            for i in range(n):
                g[i] -= given[3, i, 3] * a[0] + given[3, i, 4] * a[1] + given[3, i, 5] * a[2]
            put(g, 3, ZERO)
            # of no momentum, but for rounding
            put(g, 0, sub(vector(g, 0), cross(vector(momentum, 3), vector(xi, 3))))
            put(frame, 6, rotate(quaternion_to_matrix(middle[3], middle[4], middle[5], middle[6]), a))
        for i in range(n):
            end[i] = start[i] + h * g[i]
        mean_momentum(B, q, start, end, xi, half, mean)
        for i in range(n):
            rest[i] = mean[i] - momentum[i]
        if damping.shape[0] > 0:
            for i in range(n):
                momentum[i] = end[i] - momentum[i]
            if stiffness.shape[0] > 0:
                add_times(half * half, stiffness, xi, momentum)
            add_times(0.5, given[2], momentum, rest)
        times(given[0], rest, new)
        size = 0.0    # before impulses: of what they bring to rest, rounding remains
        for i in range(n):
            new[i] += xi[i]
            size = max(size, abs(new[i]))
        if free.shape[0] > 0:
            times(free, new, mean)
            assign(new, mean)
        if boxes.shape[0] == 0:
            accelerate(xi, new, old, turn)
        if boxes.shape[0] > 0:
            boxed(response, boxes, new, out[2])
        change = total = 0.0
        for i in range(n):
            moved = abs(new[i] - xi[i])
            change = max(change, moved)
            total += moved
            xi[i] = new[i]
        if not total < np.inf:
            return False
        if change <= 1e-15 * size or (change <= close * size and change >= 0.5 * last) or (
                last < np.inf and change * change <= 1e-16 * size * last):    # so small would be the next one
            solved = True
            break
        last = change
    if not solved:
        return False
    half_step(B, q, xi, half, True, middle)
    half_step(B, middle, xi, half, False, q1)
    for i in range(n):
        start[i] = h * g[i] + out[2, i]
    if free.shape[0] > 0:    # impulses of constraints, in both halves of the step
        if damping.shape[0] > 0:
            undo_share(given[2], rest)
        for i in range(n):
            out[3, i] = -rest[i] - out[2, i]
            start[i] += 2.0 * out[3, i]
    turn_axes(B, start, middle, False, end)
    for i in range(n):
        out[1, i] = p[i] + end[i]
    return True


@allocating
def undo_share(share, x):
    """x (n,) becomes (1 + share)⁻¹ x."""
    A, X = share.copy(), x.copy().reshape(-1, 1)
    for i in range(x.shape[0]):
        A[i, i] += 1.0
    eliminate(A, X)
    assign(x, X.reshape(-1))


@entry("boolean(float64[::1], float64[:, ::1], float64, float64[:, ::1], float64[::1], float64[:, ::1], "
       "float64[:, ::1], float64[:, :, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1])")
def solve_entry(B, ends, h, loads, wrench, damping, stiffness, given, free, boxes, out, frame):
    """`solve`."""
    return solve(B, ends, h, loads, wrench, damping, stiffness, given, free, boxes, out, frame, working_space(B))


@sweep
def finish(B, q, p, h, boxes, inertia, v, frame, work):
    """v (nv,): velocity at the end of a step with momentum p (parents' axes), and with impulses in the boxes (as in
    `solve`), which are added to p; inertia: that of `inertia_of` there. A floating robot (frame) goes on along the path
    of its centre of mass.
    """
    turn_axes(B, p, q, True, v)
    inertia_of(B, q, v, v, inertia, work)
    if boxes.shape[0] > 0:
        impulse = work[2][0]
        impulse[:] = 0.0
        boxed(inertia[1].reshape(-1), boxes, v, impulse)
        turn_axes(B, impulse, q, False, impulse)
        for i in range(p.shape[0]):
            p[i] += impulse[i]
    if frame.shape[0] > 0:
        R = quaternion_to_matrix(q[3], q[4], q[5], q[6])
        a = vector(frame, 6)
        moved = add(vector(frame, 0), scale(h, add(vector(frame, 3), scale(0.5 * h, a))))
        put(frame, 0, moved)
        put(frame, 3, add(vector(frame, 3), scale(h, a)))
        put(q, 0, sub(moved, rotate(R, center(inertia[0]))))
        put(v, 3, add(vector(v, 3), rotate_back(R, vector(frame, 3))))


@entry("void(float64[::1], float64[::1], float64[::1], float64, float64[:, ::1], float64[::1], float64[::1])")
def finish_entry(B, q, p, h, boxes, v, frame):
    """`finish`."""
    finish(B, q, p, h, boxes, np.empty((2, p.shape[0], p.shape[0])), v, frame, working_space(B))


@allocating
def linearise(springs, q, v, h, H, offset, K, D):
    """Of springs at this `offset` of half a step of h (s) from q, to which velocities v lead: stiffness K (n, n), and
    added to D (n, n) the damping of stiff ones, `½ h K h²(4 M + h² K)⁻¹ K` (`variational`). H (n, n): M at q.
    """
    n = v.shape[0]
    A, x, middle = np.empty(n * n), np.empty(n), q.copy()
    for i in range(n):
        offset[i] = 0.5 * h * v[i]
        middle[i] += offset[i]
    spring_stiffness(springs, middle, K)
    for i in range(n):
        for k in range(n):
            A[n * i + k] = 4.0 * H[i, k] + h * h * K[i, k]
    factor(A, n)
    for k in range(n):
        for i in range(n):
            x[i] = h * h * K[i, k]
        substitute(A, n, x)
        for i in range(n):
            y = 0.0
            for j in range(n):
                y += 0.25 * h * K[i, j] * x[j]
            D[i, k] += y
            D[k, i] += y


@allocating
def loaded(springs, q, offset, effort, load):
    """load (n,): this effort and those of springs at q + offset."""
    x = np.empty(effort.shape[0])
    for i in range(x.shape[0]):
        x[i] = q[i] + offset[i]
        load[i] = effort[i]
    add_spring_efforts(springs, x, load)


@allocating
def relax(springs, q, xi, h, effort, K, load, offset):
    """Move the offset of springs to where a step of h (s) with velocity xi has them; whether the efforts there, `load`
    in return, are those of the linear springs of that step.
    """
    n = xi.shape[0]
    old, moved, gap, largest = load.copy(), np.empty(n), 0.0, 0.0
    for i in range(n):
        moved[i] = 0.5 * h * xi[i] - offset[i]
        offset[i] += moved[i]
    loaded(springs, q, offset, effort, load)
    for i in range(n):
        x = load[i] - old[i]
        for k in range(n):
            x += K[i, k] * moved[k]
        gap, largest = max(gap, abs(x)), max(largest, abs(old[i]))
    return gap <= FITTING * (1.0 + largest)


@routine
def step_space(B, damping, springs):
    """Workspace of `variational_step` with this damping and number of springs."""
    n = size_v(B)
    size = n if springs > 0 else 0
    return (np.empty((4, n, n)), np.empty((2, n, n)), np.zeros((STEP_ROWS, n)), np.empty((2, size_q(B))),
            np.empty((2, 9)), np.empty((size, size)), np.empty((n, n) if size > 0 else damping.shape), working_space(B))


@kernel
def one_step(B, q, v, p, frame, known, goes_on, effort, wrench, springs, damping, gravity, joints, h, space):
    """Advance q, v, p and frame in place by one step of h (s); False, without change, where it has no solution or is
    not finite. Arguments as of `variational_steps`; goes_on: from the end of the last step in this space
    (`step_space`), where `inertia_of` q is then.

    p (CARRIED·nv,): momentum, unless not known, and what `foresee` guesses from.
    """
    given, inertia, rows, ends, frames, K, D, work = space
    none = D[:0]    # in C order, as where `solve` has a projector
    out, loads, v1, guess, start, base, ahead = rows[:4], rows[4:7], rows[7], rows[8], rows[9], rows[10], rows[11]
    boxes = rows[12:]
    n = v.shape[0]
    momentum, seen = p[:n], p[n:]
    centre, end = frames[0][:frame.shape[0]], frames[1][:frame.shape[0]]
    D[:] = 0.0
    assign_rows(D, damping)
    assign(loads[1], effort)
    if not goes_on:
        inertia_of(B, q, v, v1, inertia, work)
    if springs.shape[0] > 0:
        linearise(springs, q, v, h, inertia[0], loads[2], K, D)
        loaded(springs, q, loads[2], effort, loads[1])
    assign(start, momentum)
    assign(centre, frame)
    prepare(B, q, v, h, D, K, inertia, start, guess, given, centre, known, work)
    foresee(seen, guess, base, ahead)
    bounded = friction_boxes(joints, v, effort, 0.5 * h, boxes)
    assign(ends[0], q)
    assign(loads[0], start)
    while True:    # repeat with added boxes until no further limit is exceeded
        assign(ends[1], q)
        assign(out[0], guess)
        for _ in range(SPRING_TURNS):
            if not solve(B, ends, h, loads, wrench, D, K, given, none, boxes if bounded else boxes[:0], out, centre,
                         work):
                return False
            if springs.shape[0] == 0 or relax(springs, q, out[0], h, effort, K, loads[1], loads[2]):
                break
        if limit_boxes(joints, ends[1], out[0], boxes) != 0:
            bounded = True
            continue
        assign(end, centre)
        if end.shape[0] > 0:
            for i in range(3):
                end[6 + i] += gravity[i]
        finish(B, ends[1], out[1], h, boxes if bounded else boxes[:0], inertia, v1, end, work)
        if limit_boxes(joints, ends[1], v1, boxes) == 0:
            break
        bounded = True
    if not finite(ends[1], v1):
        return False
    assign(q, ends[1])
    assign(v, v1)
    assign(momentum, out[1])
    remember(seen, out[0], base, ahead)
    assign(frame, end)
    return True


@sweep
def variational_step(B, q, v, p, frame, known, goes_on, effort, wrench, springs, damping, gravity, joints, h, space):
    """`one_step`, for several callers."""
    return one_step(B, q, v, p, frame, known, goes_on, effort, wrench, springs, damping, gravity, joints, h, space)


@sweep
def motion(B, q, v, p, frame, known, efforts, law, loads, gravity, joints, h, first, last, effort, space):
    """`variational`; effort (nv,), space (`step_space`): workspace."""
    wrench, springs, damping = loads
    if not known:
        p[v.shape[0]:] = np.nan
    for s in range(first, last):
        command(B, q, v, efforts, law, s, effort)
        if not one_step(B, q, v, p, frame, known or s > first, s > first, effort, wrench, springs, damping, gravity,
                        joints, h, space):
            return s
    return last


@routine
def variational(B, q, v, p, frame, known, efforts, law, loads, gravity, joints, h, first, last):
    """Advance q, v in place by variational steps `first` … `last` − 1 of h (s); returns the step before which it stops,
    as it has no solution or is not finite, or `last`.

    p (CARRIED·nv,): momentum as in `prepare`, and what `foresee` guesses from; frame, known: as in `prepare`.
    efforts, law: as of `command`. loads: wrenches in node frames, or empty; table of springs; damping (nv, nv), that of
    springs included, or (0, 0). gravity: that of a frame at the centre of mass. joints (ROWS, nv): see `joint_data`.
    """
    space = step_space(B, loads[2], loads[1].shape[0])
    return motion(B, q, v, p, frame, known, efforts, law, loads, gravity, joints, h, first, last, np.empty(size_v(B)),
                  space)


@entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], boolean, float64[:, :, ::1], "
       "float64[::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[:, ::1], float64, int64)", nogil=True)
def variational_steps(B, q, v, p, frame, known, efforts, wrench, springs, damping, gravity, joints, h, steps):
    """At most `steps` steps of `variational` without a law; returns the number made."""
    law = (joints[:0], joints[:0], 1, joints[:0])
    return variational(B, q, v, p, frame, known, efforts, law, (wrench, springs, damping), gravity, joints, h, 0, steps)
