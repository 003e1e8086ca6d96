"""Springs in scalars. Of series elastic joints `τ = Σ c_j φ^(2j+1)`, one row of coefficients per joint; of an arm a
table S (k, CONSTANTS + m), a row for each spring: its kind, the coordinates of its link, motor and stiffness motor (−1:
none), and its constants, in the order of its class.
"""
from __future__ import annotations

import numpy as np

from ..compiled.entry import entry, quick_entry
from ..compiled.kernel import kernel, sweep

_ITERATIONS = 60
KIND, LINK, MOTOR, SECOND, CONSTANTS = range(5)
SERIES, STIFFNESS_INPUT, QUADRATIC, EXPONENTIAL = range(4)    # values of KIND


@kernel
def spring(c, i, phi):
    """Torque, stiffness and its slope of joint i at deflection φ."""
    x = phi * phi
    torque = 0.0
    stiffness = 0.0
    slope = 0.0
    for j in range(c.shape[1] - 1, -1, -1):
        power = 2 * j + 1
        torque = torque * x + c[i, j]
        stiffness = stiffness * x + c[i, j] * power
        if j > 0:
            slope = slope * x + c[i, j] * (power * (power - 1))
    return torque * phi, stiffness, slope * phi


@kernel
def deflection(c, i, limit, tau):
    """φ of a torque within the range of the spring, up to the deflection `limit` (inf: none), to rounding."""
    if c.shape[1] == 1:
        return tau / c[i, 0]
    size = abs(tau)
    low = 0.0    # odd and increasing: Newton's method, safeguarded by bisection between `low` and `high`
    high = limit
    if high == np.inf:    # all coefficients are non-negative then
        for j in range(c.shape[1]):
            if c[i, j] > 0.0:
                high = min(high, (size / c[i, j]) ** (1.0 / (2 * j + 1)))
    phi = min(size / c[i, 0], high)
    for _ in range(_ITERATIONS):
        torque, stiffness, _slope = spring(c, i, phi)
        error = torque - size
        if error <= 0.0:
            low = phi
        if error >= 0.0:
            high = phi
        new = phi - error / stiffness if stiffness != 0.0 else np.inf
        if not low <= new <= high:
            new = 0.5 * (low + high)
        done = abs(new - phi) <= 4e-16 * abs(new)
        phi = new
        if done:
            break
    torque, stiffness, _slope = spring(c, i, phi)
    return np.copysign(phi - (torque - size) / stiffness, tau)


@quick_entry("void(float64[:, ::1], float64[::1], float64[:, ::1], float64[:, ::1])")
def deflections_entry(c, limit, tau, out):
    """out = φ of the torques (N, n) of n joints."""
    for s in range(tau.shape[0]):
        for i in range(tau.shape[1]):
            out[s, i] = deflection(c, i, limit[i], tau[s, i])


@quick_entry("boolean(float64[:, ::1], float64[::1], float64[::1], int64[::1], float64[::1], float64[::1], "
             "float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])")
def series_motion_entry(c, limit, reach, joints, tau, tau_rate, tau_acceleration, x, rate, acceleration, stiffness):
    """x, rate, acceleration of the `joints` += φ, φ̇, φ̈ under τ, τ̇, τ̈ (nv,); their stiffness. Returns whether each τ
    is within the range of its spring; joints out of range are skipped.
    """
    within = True
    for i in range(len(joints)):
        joint = joints[i]
        if not abs(tau[joint]) <= reach[i]:
            within = False
            continue
        phi = deflection(c, i, limit[i], tau[joint])
        _torque, k, slope = spring(c, i, phi)
        phi_rate = tau_rate[joint] / k
        x[joint] += phi
        rate[joint] += phi_rate
        acceleration[joint] += (tau_acceleration[joint] - slope * phi_rate * phi_rate) / k
        stiffness[joint] = k
    return within


@kernel
def tendon(kind, a, b, x):
    """T and T′ of an antagonistic spring's tendon with constants a, b; slack where x < 0."""
    if x < 0.0:
        return 0.0, 0.0
    if kind == QUADRATIC:
        return (a + b * x) * x, a + 2.0 * b * x
    return a * np.expm1(b * x), a * b * np.exp(b * x)


@kernel
def arm_spring(S, i, x):
    """Of spring i with energy U(φ, σ) at positions x: U_φ (its torque), U_σ, U_φφ, U_φσ, U_σσ."""
    kind, link, motor = S[i, KIND], x[int(S[i, LINK])], x[int(S[i, MOTOR])]
    if kind == SERIES:
        torque, stiffness, _slope = spring(S[:, CONSTANTS:], i, motor - link)
        return torque, 0.0, stiffness, 0.0, 0.0
    other, a, b, c = x[int(S[i, SECOND])], S[i, CONSTANTS], S[i, CONSTANTS + 1], S[i, CONSTANTS + 2]
    if kind == STIFFNESS_INPUT:
        phi = motor - link
        s, bend = a + b * other, c * phi * phi
        return (s + bend) * phi, 0.5 * b * phi * phi, s + 3.0 * bend, b * phi, 0.0
    phi, sigma = 0.5 * (motor + other) - link, 0.5 * (motor - other)
    first, slope = tendon(kind, a, b, sigma + phi)
    second, other_slope = tendon(kind, a, b, sigma - phi)
    reaction = first + second
    if abs(phi) > sigma:
        return first - second, reaction, slope + other_slope, slope - other_slope, slope + other_slope
    if kind == QUADRATIC:    # without the cancellation of T(σ+φ) − T(σ−φ)
        k = 2.0 * a + 4.0 * b * sigma
        return k * phi, reaction, k, 4.0 * b * phi, k
    e = 2.0 * a * np.exp(b * sigma)
    sinh, cosh = e * np.sinh(b * phi), e * np.cosh(b * phi)
    return sinh, reaction, b * cosh, b * sinh, b * cosh


@sweep
def add_spring_efforts(S, x, out):
    """Efforts of all springs on all coordinates, added to out (nx,)."""
    for i in range(S.shape[0]):
        torque, reaction, _p, _s, _t = arm_spring(S, i, x)
        out[int(S[i, LINK])] += torque
        if S[i, KIND] >= QUADRATIC:
            out[int(S[i, MOTOR])] -= 0.5 * (torque + reaction)
            out[int(S[i, SECOND])] -= 0.5 * (torque - reaction)
        else:
            out[int(S[i, MOTOR])] -= torque
            if S[i, KIND] == STIFFNESS_INPUT:
                out[int(S[i, SECOND])] -= reaction


@kernel
def without_negative(p, s, t):
    """The symmetric matrix [[p, s], [s, t]] without its negative eigenvalue, or zero without a positive one."""
    middle, half = 0.5 * (p + t), 0.5 * (p - t)
    radius = np.hypot(half, s)
    most = middle + radius
    if middle >= radius:
        return p, s, t
    if most <= 0.0:
        return 0.0, 0.0, 0.0
    return 0.5 * most * (1.0 + half / radius), 0.5 * most * s / radius, 0.5 * most * (1.0 - half / radius)


@sweep
def spring_stiffness(S, x, K):
    """K (nx, nx): ∂²U/∂x² of all springs, with the positive directions alone of those of variable stiffness."""
    K[:] = 0.0
    for i in range(S.shape[0]):
        link, motor, second = int(S[i, LINK]), int(S[i, MOTOR]), int(S[i, SECOND])
        _torque, _reaction, p, s, t = arm_spring(S, i, x)
        if S[i, KIND] == SERIES:
            K[link, link] += p
            K[motor, motor] += p
            K[link, motor] -= p
            K[motor, link] -= p
            continue
        p, s, t = without_negative(p, s, t)
        # rows of ∂(φ, σ)/∂(q, z₁, z₂)
        J = ((-1.0, 0.5, 0.5), (0.0, 0.5, -0.5)) if S[i, KIND] >= QUADRATIC else ((-1.0, 1.0, 0.0), (0.0, 0.0, 1.0))
        at = (link, motor, second)
        for a in range(3):
            for b in range(3):
                K[at[a], at[b]] += p * J[0][a] * J[0][b] + t * J[1][a] * J[1][b] + s * (
                    J[0][a] * J[1][b] + J[1][a] * J[0][b])


@entry("void(float64[:, ::1], float64[::1], float64[::1])")
def spring_efforts_entry(S, x, out):
    """`add_spring_efforts`."""
    add_spring_efforts(S, x, out)


@entry("void(float64[:, ::1], float64[::1], float64[:, ::1])")
def spring_stiffness_entry(S, x, K):
    """`spring_stiffness`."""
    spring_stiffness(S, x, K)
