"""Impedance of one link, with feed-forward of its motion (Khatib 1987; Albu-Schäffer, Ott and Hirzinger 2003).

    τ = Jᵀ (k + D (ν_d − ν)) + C(q, v) v_r + JᵀΛ (ν̇_d − J̇ v_r) + N M (a_p − d (v − v_r)) + τ_l

Twists ν = (ω, ṗ) and wrenches are in axes of the root link, about the link's origin; `v_r = M⁻¹JᵀΛ ν_d`. The springs k
have a potential: of translation p_d − p and of rotation log(R_d Rᵀ), each with its stiffness; beyond a given force or
moment it grows linearly, so that the wrench is bounded. D has the damping ratio asked for with the operational-space
inertia Λ = (J M⁻¹ Jᵀ)⁻¹, by diagonalising K and Λ together, and at least a given rate. With a target at rest no
Coriolis effort is compensated: kinetic energy and potentials together then never grow but by the work of others, and of
the posture's pull a_p. With a target that moves, faster than `SLOW`, v_r also has what the link does not feel of v: an
arm without errors of its model follows exactly.
N = 1 − JᵀΛ J M⁻¹ is the dynamically consistent projection; τ_l are springs at position limits. Gravity is left out.
Walls (`walls`) add their potentials to the springs, and their stiffness to that of which D is the damping. A wrench
that is applied comes on top; along its setpoint the damping is that of a contact with a given stiffness.

Near singular poses eigenvalues of Λ are bounded, and feed-forward, of which joints would have to move fast, fades along
these directions: with eigenvalues 1/λ below a given one 1/λ₀, Λ has λ₀, and in v_r and beside ν̇_d it has λ₀²/λ.
"""
from __future__ import annotations

import numpy as np

from ..compiled.entry import quick_entry
from ..compiled.kernel import routine
from ..lie import so3
from ..lie.spatial import add, compose, cross, dot, rotate, rotate_back, scale, sub, symmetric_times
from ..model.block import (
    LINK, LINK_NODE, LINK_POSITION, LINK_START, all_finite, integer, matrix, put, rates_valid, size_v, vector,
)
from ..model.configuration import positions_valid
from . import inverse, kinematics, mass_matrix
from .shared_coordinates import cholesky_factor, cholesky_substitute
from .walls import walls_on

LENGTH = 0.2     # m: angles count as translations at this arm
SWEEPS = 12      # of Jacobi's rotations
SLOW = 0.01      # m/s
REACH = 0.3      # rad or m, of springs at position limits: from there on their effort is constant
TRANSLATION, ROTATION = 0, 3    # places of the law's numbers
(IN_TARGET, RATIO, FORCE, MOMENT, DAMPING, LEAST, WALL_FORCE, CONTACT, RATE, WALL_STIFFNESS, SHARE, DRAG,
 NUMBERS) = range(6, 19)    # CONTACT: stiffness of what a wrench presses on; SHARE: of the springs to the target
# rows of joints: acceleration towards the posture, lower and upper ends of what is free of springs, their stiffness
POSTURE, LOWER, UPPER, STIFFNESS, JOINTS = range(5)
HIDDEN, OFF, TURNED, ENERGY, BOUNDED, SPRINGS, DEPTH, DAMPED, APPLIED, KNOWN = range(10)
ROWS, SMALL = 16, 42    # of the workspaces
FIRM = (0.1, 1.0)       # N m, N: setpoints of several times this have the damping of a contact
SIZE = max(inverse.SIZE, kinematics.SIZE, mass_matrix.SIZE)    # of the workspace per node


@routine
def eigen(A, V, n):
    """Eigenvalues of a symmetric matrix into its diagonal, and vectors into the columns of V: Jacobi's rotations."""
    total = 0.0
    for i in range(n):
        for j in range(n):
            V[i, j] = 1.0 if i == j else 0.0
            total += A[i, j] * A[i, j]
    for _ in range(SWEEPS):
        off = 0.0
        for i in range(n):
            for j in range(i):
                off += A[i, j] * A[i, j]
        if not off > 1e-32 * total:
            return
        for i in range(n - 1):
            for j in range(i + 1, n):
                if A[i, j] == 0.0:
                    continue
                x = 0.5 * (A[j, j] - A[i, i]) / A[i, j]
                t = 1.0 / (abs(x) + np.sqrt(x * x + 1.0))
                if x < 0.0:
                    t = -t
                c = 1.0 / np.sqrt(t * t + 1.0)
                s = t * c
                for k in range(n):
                    a, b = A[i, k], A[j, k]
                    A[i, k], A[j, k] = c * a - s * b, s * a + c * b
                for k in range(n):
                    a, b = A[k, i], A[k, j]
                    A[k, i], A[k, j] = c * a - s * b, s * a + c * b
                    a, b = V[k, i], V[k, j]
                    V[k, i], V[k, j] = c * a - s * b, s * a + c * b


@routine
def apply(A, x, k, out):
    """`out = A x[k:]`."""
    for r in range(A.shape[0]):
        total = 0.0
        for c in range(A.shape[1]):
            total += A[r, c] * x[k + c]
        out[r] = total


@routine
def apply_transposed(A, x, out):
    """`out = Aᵀ x`."""
    for c in range(A.shape[1]):
        total = 0.0
        for r in range(A.shape[0]):
            total += A[r, c] * x[r]
        out[c] = total


@routine
def bounded_spring(force, deflection, stiffest, most):
    """A spring's force, and its energy: quadratic up to where the force may be `most`, and linear from there."""
    double = force[0] * deflection[0] + force[1] * deflection[1] + force[2] * deflection[2]
    root = np.sqrt(max(double, 0.0))
    knee = most / np.sqrt(max(stiffest, 1e-12))
    if root <= knee:
        return force, 0.5 * double
    return scale(knee / root, force), knee * (root - 0.5 * knee)


@routine
def stretched(stiffness, k, R, x):
    """`R diag(stiffness[k:k + 3]) Rᵀ x`, and the largest of these."""
    y = rotate_back(R, x)
    return rotate(R, (stiffness[k] * y[0], stiffness[k + 1] * y[1], stiffness[k + 2] * y[2])), max(
        stiffness[k], stiffness[k + 1], stiffness[k + 2])


@routine
def rotation_between(R, R_d):
    """log(R_d Rᵀ)."""
    x, y, z, w = so3.matrix_to_quaternion(compose(R_d, (R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8])))
    return so3.quaternion_log(x, y, z, w)


@routine
def stiffness_axes(R_d, numbers):
    """Axes along which the stiffnesses are given."""
    return R_d if numbers[IN_TARGET] > 0.0 else (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


@routine
def springs(s, e, axes, numbers):
    """Moment and force of the springs on the link, s and e rotation vector and way to the target; their energy."""
    m, stiffest = stretched(numbers, ROTATION, axes, s)
    m, turned = bounded_spring(m, s, stiffest, numbers[MOMENT])
    f, stiffest = stretched(numbers, TRANSLATION, axes, e)
    f, moved = bounded_spring(f, e, stiffest, numbers[FORCE])
    return rotate_back(so3.right_jacobian_inverse(s), m), f, turned + moved


@routine
def link_bias(B, q, v, zero, link, W):
    """J̇ v of a link, angular and linear, in axes of the root."""
    kinematics.node_motion(B, q, 0, v, zero, 0, 2, True, W)
    o = integer(B, LINK_START) + LINK * link
    p, h = vector(B, o + LINK_POSITION), integer(B, o + LINK_NODE)
    if h < 0:
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    w = kinematics.SIZE * h
    R, omega, alpha = matrix(W, w + kinematics._R), vector(W, w + kinematics._OMEGA), vector(W, w + kinematics._ALPHA)
    accel = add(vector(W, w + kinematics._ACCEL), add(cross(alpha, p), cross(omega, cross(omega, p))))
    return rotate(R, alpha), rotate(R, accel)


@routine
def coriolis(B, q, v, led, zero, scratch, W, tau):
    """`tau += C(q, v) led`, by polarising the bias, which is quadratic in the velocity but for gravity."""
    n = size_v(B)
    for sign in (1.0, -1.0):
        for i in range(n):
            scratch[0, i] = v[i] + sign * led[i]
        inverse.inverse_dynamics_recursion(B, q, 0, scratch[0], zero, 0, W[:0], 0, W, scratch[1])
        for i in range(n):
            tau[i] += 0.25 * sign * scratch[1, i]


@routine
def outer_times(x, k, y):
    """`x[k:k + 3] (x[k:k + 3] · y)`."""
    a = (x[k], x[k + 1], x[k + 2])
    return scale(dot(a, y), a)


@routine
def square(x, k):
    """`|x[k:k + 3]|²`."""
    return x[k] * x[k] + x[k + 1] * x[k + 1] + x[k + 2] * x[k + 2]


@routine
def impedance(B, q, v, link, target, applied, numbers, walls, joints, W, H, rows, small, known, tau):
    """The effort of one state. target: R_d (9), p_d (3), ν_d (6), ν̇_d (6). applied (12,): a wrench on the link, and its
    setpoint. walls: WALL numbers each. H (2 nv, nv), rows (ROWS, nv), small (SMALL, 6); known (KNOWN): hidden
    directions, |p_d − p|, |log(R_d Rᵀ)|, energy of all springs, directions whose damping is bounded by the rate, energy
    of the whole springs to the target, largest depth behind a wall, power that the damper takes from the link, power of
    the applied wrench. False for invalid input, a mass matrix that is not positive definite, or a result that is not
    finite.
    """
    n = size_v(B)
    if not (positions_valid(B, q, 1) and rates_valid(B, v, 1) and all_finite(target) and all_finite(joints[POSTURE])
            and all_finite(applied)):
        return False
    J, Y, zero, led, free, follows = rows[:6], rows[6:12], rows[12], rows[13], rows[14], rows[15]
    A, V, L, F, U, half = small[:6], small[6:12], small[12:18], small[18:24], small[24:30], small[30:36]
    wrench, x, y, z, twist, rate = small[36], small[37], small[38], small[39], small[40], small[41]
    for r in range(6):
        twist[r], rate[r] = target[12 + r], target[18 + r]
    R, p = kinematics.jacobian_recursion(B, q, 0, link, 2, rows.reshape(-1), 0)
    mass_matrix.mass_matrix_recursion(B, q, 0, W, H.reshape(-1), 0)
    for i in range(n):
        zero[i] = led[i] = 0.0
        for j in range(n):
            H[n + i, j] = H[i, j]
        for r in range(6):
            Y[r, i] = J[r, i]
    factor = H[n:].reshape(-1)
    if not cholesky_factor(factor, n):
        return False
    for r in range(6):    # rows of Y = J M⁻¹
        cholesky_substitute(factor, n, Y[r])
    for r in range(6):
        apply(J, Y[r], 0, x)
        for c in range(6):
            A[r, c] = x[c] * (1.0 / LENGTH if r < 3 else 1.0) * (1.0 / LENGTH if c < 3 else 1.0)
    eigen(A, V, 6)
    known[HIDDEN] = known[BOUNDED] = 0.0
    for c in range(6):    # Λ = L Lᵀ, of the feed-forward F Fᵀ; U := L⁻ᵀ
        share = 1.0
        if A[c, c] < numbers[LEAST]:
            known[HIDDEN] += 1.0
            share = max(A[c, c], 0.0) / numbers[LEAST]
        root = np.sqrt(max(A[c, c], numbers[LEAST]))
        for r in range(6):
            unit = 1.0 / LENGTH if r < 3 else 1.0
            L[r, c] = unit * V[r, c] / root
            F[r, c] = np.sqrt(share) * L[r, c]
            U[r, c] = V[r, c] / unit * root
    R_d, p_d = matrix(target, 0), vector(target, 9)
    axes, s, e = stiffness_axes(R_d, numbers), rotation_between(R, R_d), sub(p_d, p)
    kept, held, wall, known[DEPTH] = walls_on(walls, p, numbers[WALL_STIFFNESS], numbers[WALL_FORCE], twist, rate)
    soft, firm = square(applied, 6) + FIRM[0] ** 2, square(applied, 9) + FIRM[1] ** 2
    for c in range(6):    # half = L⁻¹ K L⁻ᵀ
        u, w = (U[0, c], U[1, c], U[2, c]), (U[3, c], U[4, c], U[5, c])
        m, _ = stretched(numbers, ROTATION, axes, u)
        f, _ = stretched(numbers, TRANSLATION, axes, w)
        put(x, 0, add(m, scale(numbers[CONTACT] * LENGTH**2 / soft, outer_times(applied, 6, u))))
        put(x, 3, add(add(f, symmetric_times(wall, w)), scale(numbers[CONTACT] / firm, outer_times(applied, 9, w))))
        apply_transposed(U, x, y)
        for r in range(6):
            half[r, c] = y[r]
    eigen(half, V, 6)
    moment, force, energy = springs(s, e, axes, numbers)
    known[SPRINGS] = energy
    energy = numbers[SHARE] * energy + held
    put(wrench, 0, scale(numbers[SHARE], moment))
    put(wrench, 3, add(scale(numbers[SHARE], force), kept))

    apply(J, v, 0, x)    # wrench += D (ν_d − ν), D = L V diag(2 ζ √κ) Vᵀ Lᵀ
    known[DAMPED] = known[APPLIED] = 0.0
    for r in range(6):
        z[r] = x[r]
        x[r] = twist[r] - x[r]
    apply_transposed(L, x, y)
    apply_transposed(V, y, x)
    for c in range(6):
        decay = max(2.0 * numbers[RATIO] * np.sqrt(max(half[c, c], 0.0)), numbers[DRAG])
        known[BOUNDED] += decay > numbers[RATE]
        x[c] *= min(decay, numbers[RATE])
    apply(V, x, 0, y)
    apply(L, y, 0, x)
    for r in range(6):
        wrench[r] += x[r] + applied[r]
        known[DAMPED] -= x[r] * z[r]
        known[APPLIED] += applied[r] * z[r]
    for i in range(n):
        into = max(joints[LOWER, i] - q[i], 0.0) - max(q[i] - joints[UPPER, i], 0.0)
        k = min(joints[STIFFNESS, i], (0.5 * numbers[RATE]) ** 2 * H[i, i])    # what is stable at the rate
        near = min(max(into, -REACH), REACH)
        tau[i] = k * near
        energy += k * near * (into - 0.5 * near)
    speed, moving = 0.0, False
    for r in range(6):
        size = twist[r] * (LENGTH if r < 3 else 1.0)
        speed += size * size
        moving |= twist[r] != 0.0 or rate[r] != 0.0
    if moving:
        times_inertia(F, twist, y, x)
        apply_transposed(Y, x, led)
        for i in range(n):
            follows[i] = v[i] - led[i]
        apply(J, follows, 0, x)
        times_inertia(F, x, y, z)
        apply_transposed(Y, z, free)
        share = min(1.0, np.sqrt(speed) / SLOW)
        for i in range(n):
            follows[i] = led[i] + share * (follows[i] - free[i])
        coriolis(B, q, v, follows, zero, H[n:], W, tau)
        alpha, accel = link_bias(B, q, follows, zero, link, W)
        put(x, 0, sub(vector(rate, 0), alpha))
        put(x, 3, sub(vector(rate, 3), accel))
        times_inertia(F, x, y, z)
        for r in range(6):
            wrench[r] += z[r]
    for i in range(n):
        follows[i] = joints[POSTURE, i] - numbers[DAMPING] * (v[i] - led[i])
    apply(H[:n], follows, 0, free)
    apply(Y, free, 0, x)
    times_inertia(L, x, y, z)
    for r in range(6):
        wrench[r] -= z[r]
    apply_transposed(J, wrench, follows)
    for i in range(n):
        tau[i] += free[i] + follows[i]
    known[OFF], known[TURNED], known[ENERGY] = np.sqrt(dot(e, e)), np.sqrt(dot(s, s)), energy
    return all_finite(tau)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], int64, float64[::1], float64[::1], float64[::1], "
             "float64[::1], float64[:, ::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], "
             "float64[::1], float64[::1])")
def impedance_entry(B, q, v, link, target, applied, numbers, walls, joints, W, H, rows, small, known, tau):
    """`impedance` of one state."""
    return impedance(B, q, v, link, target, applied, numbers, walls, joints, W, H, rows, small, known, tau)


@routine
def times_inertia(L, x, y, out):
    """`out = L Lᵀ x`, with y = Lᵀ x."""
    for c in range(6):
        y[c] = 0.0
        for r in range(6):
            y[c] += L[r, c] * x[r]
    apply(L, y, 0, out)


@routine
def slack(way, ahead, axes, numbers, k, most):
    """Share of its pace at which a target goes on that is `way` ahead of its link, with `ahead` to its goal: from 1 at
    half of `most` to 0; directions count by the roots of their stiffnesses numbers[k:k + 3], and not on the way back.
    """
    way, ahead = rotate_back(axes, way), rotate_back(axes, ahead)
    stiffest = max(numbers[k], numbers[k + 1], numbers[k + 2], 1e-12)
    x = (np.sqrt(numbers[k] / stiffest) * way[0], np.sqrt(numbers[k + 1] / stiffest) * way[1],
         np.sqrt(numbers[k + 2] / stiffest) * way[2])
    return min(2.0 - 2.0 * np.sqrt(dot(x, x)) / most, 1.0) if dot(x, ahead) > 0.0 else 1.0


@quick_entry("float64(float64[::1], float64[::1], int64, float64[::1], float64[::1], float64[::1], float64, float64, "
             "float64[:, ::1])")
def slack_entry(B, q, link, target, goal, numbers, leash, turn, rows):
    """The smaller `slack` of translation, of a leash (m), and rotation, of a turn (rad). target, goal: axes and origin
    first; rows (ROWS, nv).
    """
    R, p = kinematics.jacobian_recursion(B, q, 0, link, 2, rows.reshape(-1), 0)
    R_d, p_d, R_g, p_g = matrix(target, 0), vector(target, 9), matrix(goal, 0), vector(goal, 9)
    axes = stiffness_axes(R_d, numbers)
    return min(slack(sub(p_d, p), sub(p_g, p_d), axes, numbers, TRANSLATION, leash),
               slack(rotation_between(R, R_d), rotation_between(R_d, R_g), axes, numbers, ROTATION, turn))
