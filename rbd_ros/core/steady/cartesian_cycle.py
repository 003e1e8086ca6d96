"""Steady cycle of Cartesian control: from the bytes of a joint state to the effort of a link's impedance.

The target on its way to a goal or along a piece of a trajectory, the energy tank, the law of `impedance`, friction
compensation and gravity, within the functions of `cycle_kernel`; what that file calls the reference is the posture,
one row. Additional arrays: C: numbers of the controller, `SCALARS` ones, then `VECTORS`, then two rows of one number
per joint: largest speed at which the target keeps its pace, and the workspace; L: the law (`impedance.NUMBERS`);
walls: those of the law, then as many for this call; F (8, nv): parameters of friction.
"""
from __future__ import annotations

import numpy as np

from ..compiled.entry import quick_entry
from ..compiled.exact import exact
from ..dynamics.impedance import (
    DAMPED, KNOWN, NUMBERS as LAW, OFF, POSTURE, RATE, TURNED, WALL_STIFFNESS, impedance,
)
from ..model.block import size_v
from ..motion.pose_filter import SIZE, SUBSTEP, filtered
from ..motion.pose_trajectory import piece_at
from .compensation import friction_compensation
from .cycle_kernel import (
    AT_LOOP, NEW_EFFORT, NEW_Q, NEW_V, REFERENCE, STATES, TAU, TIME, begun, ended, within_limits,
)
from .stream_times import MEAN_STEP, NOW, PERIOD
from .tracking import efforts

# scalars: of the tank, J and W; of the filter; of the piece, s; of the laws
(LEVEL, FULL, GAINED, LEASH, TURN, LONGEST, BANDWIDTH, SPEED, ANGULAR_SPEED, ON_COURSE, PASSED, BEGIN, END, LINK,
 TWISTED, STABLE, LIGHTEST, WALLS, POSTURE_GAIN, COMPENSATION, OWN_GRAVITY, OWN_CORIOLIS, SCALARS) = range(23)
# then vectors: state, goal and target of the filter, what the law saw; those of this call; the piece, and workspace; a
# twist; no wrench
STATE = SCALARS
GOAL, TARGET = STATE + SIZE, STATE + SIZE + 12
SEEN = TARGET + SIZE
KEPT = SEEN + KNOWN - STATE
NEW = STATE + KEPT
COEFFICIENTS = NEW + KEPT
PIECE_AXES, PIECE_ROWS, TWIST, NOTHING = (COEFFICIENTS + 36, COEFFICIENTS + 45, COEFFICIENTS + 63,
                                          COEFFICIENTS + 69)
FASTEST = NOTHING + 12
ZERO, GRAVITY, OTHER, JOINT_ROWS = range(1, 5)    # rows after the one of the fastest


def size_of_numbers(nv: int) -> int:
    """Size of C."""
    return FASTEST + JOINT_ROWS * nv


@exact
def follows_closely(C, v):
    """Whether no joint is so fast, and the link so near the target, that the target keeps its pace."""
    for i in range(len(v)):
        if not abs(v[i]) < C[FASTEST + i]:
            return False
    return C[SEEN + OFF] < C[LEASH] and C[SEEN + TURNED] < C[TURN]


@exact
def led(C, passed):
    """Into C the target after this time (s); whether it is finite, and on the same piece."""
    o = NEW - STATE
    for i in range(STATE, NEW):
        C[o + i] = C[i]
    state, goal, target = C[o + STATE:o + GOAL], C[o + GOAL:o + TARGET], C[o + TARGET:o + SEEN]
    if C[ON_COURSE] > 0.0:
        t = C[PASSED] + passed
        return C[BEGIN] <= t < C[END] and piece_at(
            C[COEFFICIENTS:PIECE_AXES].reshape((6, 6)), C[PIECE_AXES:PIECE_ROWS], t - C[BEGIN], 1.0, 0.0,
            C[PIECE_ROWS:TWIST].reshape((3, 6)), state, goal, target)
    steps = max(1, int(np.rint(passed / SUBSTEP)))
    twist = C[TWIST:TWIST + 6 * int(C[TWISTED])]
    return filtered(state, goal, twist, passed / steps, steps, C[BANDWIDTH], C[SPEED], C[ANGULAR_SPEED], 1.0, 0.0,
                    target)


@exact
def bounded_by_the_rate(C, L, period):
    """Into L the largest rates of damping and stiffness of walls, of a loop with this period (s)."""
    rate = 1.0 / period if period > 0.0 else np.inf
    L[RATE] = C[STABLE] * rate if rate > 0.0 else np.inf
    stiffness = C[WALLS]
    if stiffness > 0.0:
        half = 0.5 * L[RATE]
        stable = half * half * C[LIGHTEST]
        stiffness = stable if stable < stiffness else stiffness
    L[WALL_STIFFNESS] = stiffness


@exact
def filled(C, passed):
    """Into the tank what the damper took, and the time (s) on the course."""
    C[LEVEL] = min(C[LEVEL] + C[GAINED] * passed, C[FULL])
    C[PASSED] += passed if C[ON_COURSE] > 0.0 else 0.0


@exact
def add(tau, x):
    for i in range(len(tau)):
        tau[i] += x[i]


@exact
def completed(B, C, F, q, v, W, tau):
    """Add friction compensation and gravity to the efforts of the link."""
    n = len(tau)
    o = FASTEST + n * ZERO
    zero, gravity, other = C[o:o + n], C[o + n:o + 2 * n], C[o + 2 * n:o + 3 * n]
    efforts(B, q, zero, zero, W[:0], W, gravity)
    if C[COMPENSATION] > 0.0:
        for i in range(n):
            other[i] = gravity[i] + tau[i]
        friction_compensation(F, C[COMPENSATION], v, tau, other, zero[:0], other)
        add(tau, other)
    if C[OWN_CORIOLIS] > 0.0:
        efforts(B, q, v, zero, W[:0], W, other)
        for i in range(n):
            tau[i] += gravity[i] - other[i]
    add(tau, zero if C[OWN_GRAVITY] > 0.0 else gravity)


@quick_entry("boolean(float64[::1], float64[::1], int64[::1], float64[::1], int64[::1], float64[::1], float64[::1], "
             "float64[::1], float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], "
             "float64[:, ::1], float64[:, ::1], float64[:, ::1], float64)")
def cartesian_cycle_entry(B, W, words, numbers, I, K, A, S, C, L, walls, joints, H, rows, small, F, now):
    """Steady cycle of a target without hand guiding, twist or applied wrench; times as in `begun`."""
    n = size_v(B)
    time_ns = begun(words, numbers, I, K, A, S, n, now, 1)
    if time_ns == 0:
        return False
    q, v, tau = A[NEW_Q * n:NEW_V * n], A[NEW_V * n:NEW_EFFORT * n], A[TAU * n:REFERENCE * n]
    passed = (time_ns - I[TIME]) * 1e-9
    if not (0.0 < passed <= C[LONGEST] and follows_closely(C, v) and led(C, passed)):
        return False
    o, half = NEW - STATE, len(walls) // 2
    for i in range(half):
        walls[half + i] = walls[i]
    for i in range(n):
        joints[POSTURE, i] = (A[REFERENCE * n + i] - q[i]) * C[POSTURE_GAIN]
    loop = STATES * n + AT_LOOP
    bounded_by_the_rate(C, L, max(A[loop + PERIOD], A[loop + MEAN_STEP]))
    if not impedance(B, q, v, int(C[LINK]), C[o + TARGET:o + SEEN], C[NOTHING:FASTEST], L[:LAW], walls[half:], joints,
                     W, H, rows, small, C[o + SEEN:COEFFICIENTS], tau):
        return False
    completed(B, C, F, q, v, W, tau)
    if not within_limits(K, A, n, max(now - S[AT_LOOP + NOW], 0.0)):
        return False
    for i in range(half):
        walls[i] = walls[half + i]
    filled(C, passed)
    C[GAINED] = max(C[o + SEEN + DAMPED], 0.0)
    for i in range(STATE, NEW):
        C[i] = C[o + i]
    ended(words, I, A, S, n, time_ns)
    return True
