"""Impedance of one link, with feed-forward of its motion (Khatib 1987; Albu-Schäffer, Ott and Hirzinger 2003).

    τ = Jᵀ (k + D (ν_d − ν)) + C(q, v) v_r + JᵀΛ (ν̇_d − J̇ v_r) + N M (a_p − d (v − v_r)) + τ_l

Twists ν = (ω, ṗ) and wrenches are in axes of the root link, about the link's origin; `v_r = M⁻¹JᵀΛ ν_d`. The springs k
have a potential: of translation p_d − p and of rotation log(R_d Rᵀ), each with its stiffness; beyond a given force or
moment it grows linearly, so that the wrench is bounded. D has the damping ratio asked for with the operational-space
inertia Λ = (J M⁻¹ Jᵀ)⁻¹, by diagonalising K and Λ together. With a target at rest no Coriolis effort is compensated:
kinetic energy and potentials together then never grow but by the work of others, and of the posture's pull a_p. With a
target that moves, faster than `SLOW`, v_r also has what the link does not feel of v: an arm without errors of its model
follows exactly.
N = 1 − JᵀΛ J M⁻¹ is the dynamically consistent projection; τ_l are springs at position limits. Gravity is left out.

Near singular poses eigenvalues of Λ are bounded, and feed-forward, of which joints would have to move fast, fades along
these directions: with eigenvalues 1/λ below a given one 1/λ₀, Λ has λ₀, and in v_r and beside ν̇_d it has λ₀²/λ.
"""
from __future__ import annotations

import numpy as np

from ..compiled.entry import quick_entry
from ..compiled.kernel import routine
from ..lie import so3
from ..lie.spatial import add, compose, cross, rotate, scale, sub
from ..model.block import (
    LINK, LINK_NODE, LINK_POSITION, LINK_ROTATION, LINK_START, all_finite, integer, matrix, rates_valid, size_v, vector,
)
from ..model.configuration import positions_valid
from . import inverse, kinematics, mass_matrix

LENGTH = 0.2     # m: angles count as translations at this arm
SWEEPS = 12      # of Jacobi's rotations
SLOW = 0.01      # m/s
TRANSLATION, ROTATION, IN_TARGET, RATIO, FORCE, MOMENT, DAMPING, LEAST, RATE = 0, 3, 6, 7, 8, 9, 10, 11, 12
# rows of joints: acceleration towards the posture, lower and upper ends of what is free of springs, their stiffness
POSTURE, LOWER, UPPER, STIFFNESS, JOINTS = range(5)
HIDDEN, OFF, TURNED, ENERGY, BOUNDED, KNOWN = range(6)
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
def solve_rows(H, Y, n, rows):
    """Rows y := H⁻¹ y for symmetric positive definite H (n, n), which becomes its factor; False where it is not."""
    for i in range(n):
        for j in range(i + 1):
            x = H[i, j]
            for k in range(j):
                x -= H[i, k] * H[j, k]
            if i != j:
                H[i, j] = x / H[j, j]
            elif x > 0.0:
                H[i, i] = np.sqrt(x)
            else:
                return False
    for r in range(rows):
        for i in range(n):
            for k in range(i):
                Y[r, i] -= H[i, k] * Y[r, k]
            Y[r, i] /= H[i, i]
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                Y[r, i] -= H[k, i] * Y[r, k]
            Y[r, i] /= H[i, i]
    return True


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
    y = (R[0] * x[0] + R[3] * x[1] + R[6] * x[2], R[1] * x[0] + R[4] * x[1] + R[7] * x[2],
         R[2] * x[0] + R[5] * x[1] + R[8] * x[2])
    return rotate(R, (stiffness[k] * y[0], stiffness[k + 1] * y[1], stiffness[k + 2] * y[2])), max(
        stiffness[k], stiffness[k + 1], stiffness[k + 2])


@routine
def springs(R, p, R_d, p_d, numbers):
    """Moment and force of the springs on the link, their energy, and the rotation vector from R to R_d."""
    axes = R_d if numbers[IN_TARGET] > 0.0 else (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    x, y, z, w = so3.matrix_to_quaternion(compose(R_d, (R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8])))
    s = so3.quaternion_log(x, y, z, w)
    m, stiffest = stretched(numbers, ROTATION, axes, s)
    m, turned = bounded_spring(m, s, stiffest, numbers[MOMENT])
    e = sub(p_d, p)
    f, stiffest = stretched(numbers, TRANSLATION, axes, e)
    f, moved = bounded_spring(f, e, stiffest, numbers[FORCE])
    G = so3.right_jacobian_inverse(s)
    moment = (G[0] * m[0] + G[3] * m[1] + G[6] * m[2], G[1] * m[0] + G[4] * m[1] + G[7] * m[2],
              G[2] * m[0] + G[5] * m[1] + G[8] * m[2])
    return moment, f, turned + moved, s


@routine
def link_pose(B, q, link, W):
    """Axes and origin of a link, in those of the root; into W the node motion of order 0."""
    kinematics.node_motion(B, q, 0, q, q, 0, 0, W)
    o = integer(B, LINK_START) + LINK * link
    R, p, h = matrix(B, o + LINK_ROTATION), vector(B, o + LINK_POSITION), integer(B, o + LINK_NODE)
    if h >= 0:
        w = kinematics.SIZE * h
        R_h = matrix(W, w + kinematics._R)
        return compose(R_h, R), add(rotate(R_h, p), vector(W, w + kinematics._P))
    return R, p


@routine
def link_bias(B, q, v, zero, link, W):
    """J̇ v of a link, angular and linear, in axes of the root."""
    kinematics.node_motion(B, q, 0, v, zero, 0, 2, W)
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
    """`tau += C(q, v) led`, by polarising the bias, which is quadratic in the velocity."""
    n = size_v(B)
    for k in range(4):    # of v + led, v, led, 0
        for i in range(n):
            scratch[0, i] = (v[i] if k < 2 else 0.0) + (led[i] if k in (0, 2) else 0.0)
        inverse.inverse_dynamics_recursion(B, q, 0, scratch[0], zero, 0, W[:0], 0, W, scratch[1])
        for i in range(n):
            tau[i] += (0.5 if k in (0, 3) else -0.5) * scratch[1, i]


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], int64, float64[::1], float64[::1], float64[:, ::1], "
             "float64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[::1])")
def impedance_entry(B, q, v, link, target, numbers, joints, W, H, rows, small, known, tau):
    """The effort of one state. target: R_d (9), p_d (3), ν_d (6), ν̇_d (6). H (2 nv, nv), rows (16, nv), small (42, 6);
    known (KNOWN): hidden directions, |p_d − p|, |log(R_d Rᵀ)|, energy of all springs, directions whose damping is
    bounded by the rate. False for invalid input, a mass matrix that is not positive definite, or a result that is not
    finite.
    """
    n = size_v(B)
    if not (positions_valid(B, q, 1) and rates_valid(B, v, 1) and all_finite(target) and all_finite(joints[POSTURE])):
        return False
    R, p = link_pose(B, q, link, W)
    R_d, p_d = matrix(target, 0), vector(target, 9)
    J, Y, zero, led, free, follows = rows[:6], rows[6:12], rows[12], rows[13], rows[14], rows[15]
    A, V, U, half, L, F = small[:6], small[6:12], small[12:18], small[18:24], small[24:30], small[30:36]
    vectors = small[36:]
    kinematics.jacobian_recursion(B, q, 0, link, 2, rows.reshape(-1), 0)
    mass_matrix.mass_matrix_recursion(B, q, 0, W, H.reshape(-1), 0)
    for i in range(n):
        zero[i] = led[i] = 0.0
        for j in range(n):
            H[n + i, j] = H[i, j]
        for r in range(6):
            Y[r, i] = J[r, i]
    if not solve_rows(H[n:], Y, n, 6):
        return False
    for r in range(6):
        for c in range(6):
            x = 0.0
            for i in range(n):
                x += J[r, i] * Y[c, i]
            A[r, c] = x * (1.0 / LENGTH if r < 3 else 1.0) * (1.0 / LENGTH if c < 3 else 1.0)
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
    axes = R_d if numbers[IN_TARGET] > 0.0 else (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    for c in range(6):    # half = L⁻¹ K L⁻ᵀ
        m, _ = stretched(numbers, ROTATION, axes, (U[0, c], U[1, c], U[2, c]))
        f, _ = stretched(numbers, TRANSLATION, axes, (U[3, c], U[4, c], U[5, c]))
        for r in range(6):
            half[r, c] = (U[0, r] * m[0] + U[1, r] * m[1] + U[2, r] * m[2]
                          + U[3, r] * f[0] + U[4, r] * f[1] + U[5, r] * f[2])
    eigen(half, V, 6)
    moment, force, energy, s = springs(R, p, R_d, p_d, numbers)
    wrench, twist, turned, image = vectors[0], vectors[1], vectors[2], vectors[3]
    speed = 0.0
    moving = False
    for r in range(6):
        x = target[12 + r] * (LENGTH if r < 3 else 1.0)
        speed += x * x
        wrench[r] = moment[r] if r < 3 else force[r - 3]
        twist[r] = target[12 + r]
        moving |= target[12 + r] != 0.0 or target[18 + r] != 0.0
        for i in range(n):
            twist[r] -= J[r, i] * v[i]
    for c in range(6):    # D = L V diag(2 ζ √κ) Vᵀ Lᵀ
        turned[c] = 0.0
        for r in range(6):
            turned[c] += L[r, c] * twist[r]
    for c in range(6):
        x = 0.0
        for r in range(6):
            x += V[r, c] * turned[r]
        rate = 2.0 * numbers[RATIO] * np.sqrt(max(half[c, c], 0.0))
        if rate > numbers[RATE]:
            rate = numbers[RATE]
            known[BOUNDED] += 1.0
        image[c] = rate * x
    for r in range(6):
        turned[r] = 0.0
        for c in range(6):
            turned[r] += V[r, c] * image[c]
    for r in range(6):
        for c in range(6):
            wrench[r] += L[r, c] * turned[c]
    for i in range(n):
        into = max(joints[LOWER, i] - q[i], 0.0) - max(q[i] - joints[UPPER, i], 0.0)
        k = min(joints[STIFFNESS, i], (0.5 * numbers[RATE]) ** 2 * H[i, i])    # what is stable at the rate
        tau[i] = k * into
        energy += 0.5 * k * into * into
    if moving:
        times_inertia(F, target, 12, turned, image)
        for i in range(n):
            for r in range(6):
                led[i] += Y[r, i] * image[r]
        for r in range(6):
            twist[r] = 0.0
            for i in range(n):
                twist[r] += J[r, i] * (v[i] - led[i])
        times_inertia(F, twist, 0, turned, image)
        share = min(1.0, np.sqrt(speed) / SLOW)
        for i in range(n):
            x = v[i] - led[i]
            for r in range(6):
                x -= Y[r, i] * image[r]
            follows[i] = led[i] + share * x
        coriolis(B, q, v, follows, zero, H[n:], W, tau)
        alpha, accel = link_bias(B, q, follows, zero, link, W)
        for r in range(3):
            twist[r] = target[18 + r] - alpha[r]
            twist[r + 3] = target[21 + r] - accel[r]
        times_inertia(F, twist, 0, turned, image)
        for r in range(6):
            wrench[r] += image[r]
    for i in range(n):
        free[i] = 0.0
        for j in range(n):
            free[i] += H[i, j] * (joints[POSTURE, j] - numbers[DAMPING] * (v[j] - led[j]))
    for r in range(6):
        twist[r] = 0.0
        for i in range(n):
            twist[r] += Y[r, i] * free[i]
    times_inertia(L, twist, 0, turned, image)
    for i in range(n):
        tau[i] += free[i]
        for r in range(6):
            tau[i] += J[r, i] * (wrench[r] - image[r])
    e = sub(p_d, p)
    known[OFF] = np.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2])
    known[TURNED] = np.sqrt(s[0] * s[0] + s[1] * s[1] + s[2] * s[2])
    known[ENERGY] = energy
    return all_finite(tau)


@routine
def times_inertia(L, x, k, turned, out):
    """`out = L Lᵀ x[k:]`."""
    for c in range(6):
        turned[c] = 0.0
        for r in range(6):
            turned[c] += L[r, c] * x[k + r]
    for r in range(6):
        out[r] = 0.0
        for c in range(6):
            out[r] += L[r, c] * turned[c]
