"""Springs of series elastic joints in scalars: `τ = Σ c_j φ^(2j+1)`, one row of coefficients per joint."""
from __future__ import annotations

import numpy as np

from ..compiled.entry import quick_entry
from ..compiled.kernel import kernel

_ITERATIONS = 60


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
