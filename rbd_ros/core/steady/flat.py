"""The flatness map of one state in one call, where all springs are series elastic, without damping: from a reference to
the efforts of the links, the motion of the motors and their command (`actuation/motor_reference.py` has the formulas).

A law is a record F of numbers: scalars, then rows of one number per joint.
"""
from __future__ import annotations

import numpy as np

from ..compiled.entry import quick_entry
from ..compiled.kernel import sweep
from ..derivatives.second_time_derivatives import second_order_recursion
from ..derivatives.time_derivatives import has_varying
from ..compiled.exact import exact
from ..dynamics.friction import friction_law, friction_load_share, friction_loaded, friction_slopes
from ..dynamics.spring_kernels import deflection, spring
from ..model.block import all_finite, size_v
from ..model.configuration import positions_valid

FEEDBACK, RUBS, SMOOTHING, SCALARS = range(4)    # PD of the motors; friction of the links, and its smoothing
(DAMPING, COULOMB, ELASTIC, LIMIT, REACH, INERTIA, MOTOR_DAMPING, MOTOR_COULOMB, BREAKAWAY, STRIBECK, WIDTH, ASYMMETRY,
 VISCOUS_ASYMMETRY, LOAD, KP, KD, ROWS) = range(17)
# rows of the result: link-side efforts and their derivatives; the motors; stiffness of the springs; the command
TAU, RATE, ACCELERATION, MOTOR, MOTOR_RATE, MOTOR_ACCELERATION, EFFORT, STIFFNESS, COMMAND, RESULTS = range(10)


@exact
def friction_rows(F, n, i, v, a, jerk, out):
    """Add friction without Stribeck's effect, and its time derivatives to the efforts of link i."""
    d = F[SCALARS + DAMPING * n + i]
    c = F[SCALARS + COULOMB * n + i]
    s = F[SMOOTHING]
    slope, curvature = friction_slopes((d, c, c, 1.0, s, 0.0, 0.0, 0.0), v)
    out[TAU, i] += friction_law((d, c, c, 1.0, s, 0.0, 0.0, 0.0), v)
    out[RATE, i] += slope * a
    out[ACCELERATION, i] += slope * jerk + curvature * a * a


@exact
def motor_friction(F, n, i, v, tau):
    """Friction of motor i that passes tau on."""
    at = SCALARS + i
    p = (F[at + MOTOR_DAMPING * n], F[at + MOTOR_COULOMB * n], F[at + BREAKAWAY * n], F[at + STRIBECK * n],
         F[at + WIDTH * n], F[at + ASYMMETRY * n], F[at + VISCOUS_ASYMMETRY * n], F[at + LOAD * n])
    bare = friction_law(p, v)
    return bare if p[7] == 0.0 else bare + friction_loaded(friction_load_share(p, v), tau) - tau


@exact
def motor_motion(F, n, i, c, r, out):
    """The motor of joint i; whether its spring bears the torque."""
    tau = out[TAU, i]
    out[STIFFNESS, i] = np.inf
    for row in range(3):
        out[MOTOR + row, i] = r[row, i]
    if F[SCALARS + ELASTIC * n + i] > 0.0:
        if not abs(tau) <= F[SCALARS + REACH * n + i]:
            return False
        phi = deflection(c, i, F[SCALARS + LIMIT * n + i], tau)
        _torque, k, slope = spring(c, i, phi)
        rate = out[RATE, i] / k
        out[MOTOR, i] += phi
        out[MOTOR_RATE, i] += rate
        out[MOTOR_ACCELERATION, i] += (out[ACCELERATION, i] - slope * rate * rate) / k
        out[STIFFNESS, i] = k
    out[EFFORT, i] = (tau + F[SCALARS + INERTIA * n + i] * out[MOTOR_ACCELERATION, i]
                      + motor_friction(F, n, i, out[MOTOR_RATE, i], tau))
    return True


@sweep
def flat(B, F, c, r, measured, share, W, out):
    """`flat_entry`."""
    n = size_v(B)
    if has_varying(B) or not (all_finite(r.reshape(-1)) and positions_valid(B, r[0], 1)):
        return False
    second_order_recursion(B, r[0], 0, (r[1], r[2], r[3], r[4]), (0, 0, 0, 0), W, out[:3])
    for i in range(n):
        if F[RUBS] > 0.0:
            friction_rows(F, n, i, r[1, i], r[2, i], r[3, i], out)
        if not motor_motion(F, n, i, c, r, out):
            return False
        out[COMMAND, i] = out[EFFORT, i]
        if F[FEEDBACK] > 0.0:
            out[COMMAND, i] += share * (F[SCALARS + KP * n + i] * (out[MOTOR, i] - measured[0, i])
                                        + F[SCALARS + KD * n + i] * (out[MOTOR_RATE, i] - measured[1, i]))
    return all_finite(out[:STIFFNESS].reshape(-1))


@quick_entry("boolean(float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64, "
             "float64[::1], float64[:, ::1])")
def flat_entry(B, F, c, r, measured, share, W, out):
    """out (`RESULTS`, nv) for the reference r (5, nv), q, v, a, jerk, snap, and position and velocity of the motors as
    measured (2, nv). c: coefficients of the springs by joint; share: of the PD. False where the input is not what the
    model takes, a spring does not bear its torque, or the efforts are not finite.
    """
    return flat(B, F, c, r, measured, share, W, out)
