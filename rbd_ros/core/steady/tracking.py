"""Tracking of a reference: torque of the laws in `runtime/control/tracking_law.py` for one state, in one call.

The law is a record P of numbers: kind and scalars, rows of gains and friction per joint, then workspace.
"""
from __future__ import annotations


from ..compiled.entry import quick_entry
from ..compiled.kernel import sweep
from ..dynamics.friction import friction_law, friction_load_share, friction_loaded
from ..dynamics.inverse import inverse_dynamics_recursion
from ..compiled.exact import exact
from ..model.block import OWNER, all_finite, first_position, first_velocity, node, node_count, size_v
from ..model.configuration import between_node, positions_valid

NONE, GRAVITY, FULL, COMPUTED_TORQUE = range(4)
KIND, FEEDBACK, ALONE, FRICTION, SMOOTHING, OWN_GRAVITY, OWN_CORIOLIS, SCALARS = range(8)
# rows of nv numbers, after the scalars
KP, KD, DAMPING, COULOMB, ASYMMETRY, VISCOUS_ASYMMETRY, LOAD, _ZERO, _X, _Y, ROWS = range(11)


def packed_size(nv: int) -> int:
    """Size of P."""
    return SCALARS + ROWS * nv


@exact
def friction_of_joints(P, n, v, tau):
    """Add friction without Stribeck's effect to efforts tau without friction."""
    for i in range(n):
        at = SCALARS + i
        c = P[at + COULOMB * n]
        p = (P[at + DAMPING * n], c, c, 1.0, P[SMOOTHING], P[at + ASYMMETRY * n], P[at + VISCOUS_ASYMMETRY * n],
             P[at + LOAD * n])
        rubbed = friction_law(p, v[i])
        tau[i] = rubbed + (tau[i] if p[7] == 0.0 else friction_loaded(friction_load_share(p, v[i]), tau[i]))


@exact
def add_to(tau, x, sign):
    for i in range(len(tau)):
        tau[i] += sign * x[i]


@exact
def feedback(kp, kd, v, rv, share, x):
    """In place: x, position errors, becomes (Kp x + Kd (v_ref − v)) share."""
    for i in range(len(x)):
        x[i] = (kp[i] * x[i] + kd[i] * (rv[i] - v[i])) * share


@sweep
def efforts(B, q, v, a, wrench, W, tau):
    """Inverse dynamics of one state."""
    inverse_dynamics_recursion(B, q, 0, v, a, 0, wrench, 0, W, tau)


@sweep
def differences(B, q0, q1, out):
    """q1 ⊖ q0."""
    for i in range(node_count(B)):
        o = node(i)
        if B[o + OWNER] != 0.0:
            between_node(B, o, q0, q1, first_position(B, o), out, first_velocity(B, o))


@sweep
def tracking(B, P, q, v, rq, rv, ra, wrench, share, W, tau):
    """Torque tau of the law P in the state q, v for the reference rq, rv, ra; False if not finite.

    wrench: per node, or empty. share: weight of the feedback, ignored if the law has no other part.
    """
    n = size_v(B)
    kind = P[KIND]
    zero = P[SCALARS + _ZERO * n:SCALARS + _X * n]
    x = P[SCALARS + _X * n:SCALARS + _Y * n]
    y = P[SCALARS + _Y * n:SCALARS + ROWS * n]
    for i in range(n):
        tau[i] = x[i] = 0.0
    if P[FEEDBACK] > 0.0 and share > 0.0:
        differences(B, q, rq, x)
        feedback(P[SCALARS + KP * n:SCALARS + KD * n], P[SCALARS + KD * n:SCALARS + DAMPING * n], v, rv,
                 1.0 if P[ALONE] > 0.0 else share, x)
    if kind == COMPUTED_TORQUE:
        add_to(x, ra, 1.0)
        efforts(B, q, v, x, wrench, W, tau)
    else:
        if kind == FULL:
            efforts(B, rq, rv, ra, wrench, W, tau)
        elif kind == GRAVITY and (P[OWN_GRAVITY] == 0.0 or wrench.shape[0] > 0):
            efforts(B, q, zero, zero, wrench, W, tau)
            if P[OWN_GRAVITY] > 0.0:
                efforts(B, q, zero, zero, wrench[:0], W, y)
                add_to(tau, y, -1.0)
    if kind >= FULL and P[FRICTION] > 0.0:
        friction_of_joints(P, n, rv, tau)
    if kind != COMPUTED_TORQUE:
        add_to(tau, x, 1.0)
    if kind >= FULL:
        # what the robot adds, where the torque above has it: else gravity of the reference, unlike that of the pose,
        # would push an arm that is upright off it
        pose, rate = q, v
        if kind == FULL:
            pose, rate = rq, rv
        if P[OWN_GRAVITY] > 0.0:
            efforts(B, pose, zero, zero, wrench[:0], W, y)
            add_to(tau, y, -1.0)
        if P[OWN_CORIOLIS] > 0.0:
            efforts(B, pose, rate, zero, wrench[:0], W, y)
            add_to(tau, y, -1.0)
            efforts(B, pose, zero, zero, wrench[:0], W, y)
            add_to(tau, y, 1.0)
    return all_finite(tau) and positions_valid(B, q, 1) and positions_valid(B, rq, 1)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], "
             "float64[::1], float64[::1], float64, float64[::1], float64[::1])")
def tracking_entry(B, P, q, v, rq, rv, ra, wrench, share, W, tau):
    """One state."""
    return tracking(B, P, q, v, rq, rv, ra, wrench, share, W, tau)
