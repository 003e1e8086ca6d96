"""Steady cycle of a robot with elastic joints: from the bytes of a joint state to efforts of links and motors.

The law of `flat` within the functions of `cycle_kernel`. Additional arrays, in rows of one number per joint: F, c: the
law and its springs; m: results of the law (`flat.RESULTS`), received position and velocity of the motors, limits of
their efforts, the last efforts, and those of this call.
"""
from __future__ import annotations

from ..compiled.entry import quick_entry
from ..compiled.exact import exact
from ..model.block import size_v
from . import flat
from .cycle_kernel import (
    AT_LOOP, LIMIT, MOST, NEW_Q, NEW_V, REFERENCE, SCALARS, STATES, TAU, TURN, TURNS, begun, ended, limited, nearest,
    within_limits,
)
from .stream_times import NOW

# rows of m
POSITION, VELOCITY, LIMIT_OF_MOTORS, RATE_OF_MOTORS, SENT, _NEW, _POSITION, _VELOCITY, ROWS = range(
    flat.RESULTS, flat.RESULTS + 9)


@exact
def measured_motors(F, n, i, q, v, m):
    """Measured motion of motor i into m; for a rigid joint, the joint's."""
    elastic = F[flat.SCALARS + flat.ELASTIC * n + i] > 0.0
    m[_POSITION, i] = m[POSITION, i] if elastic else q[i]
    m[_VELOCITY, i] = m[VELOCITY, i] if elastic else v[i]


@quick_entry("boolean(float64[::1], float64[::1], int64[::1], float64[::1], int64[::1], float64[::1], float64[::1], "
             "float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64)")
def flat_cycle_entry(B, W, words, numbers, I, K, A, S, F, c, m, now):
    """Steady cycle with elastic joints; times as in `begun`. If True, m has the motor states used by the law."""
    n = size_v(B)
    time_ns = begun(words, numbers, I, K, A, S, n, now, 5)
    if time_ns == 0:
        return False
    q = A[NEW_Q * n:NEW_V * n]
    v = A[NEW_V * n:(NEW_V + 1) * n]
    for i in range(n):
        measured_motors(F, n, i, q, v, m)
    if I[TURNS] != 0:
        nearest(m[_POSITION], K[SCALARS + TURN * n:SCALARS + LIMIT * n], q)
    if not flat.flat(B, F, c, A[REFERENCE * n:STATES * n].reshape((5, n)), m[_POSITION:ROWS], 1.0, W,
                     m[:flat.RESULTS]):
        return False
    for i in range(n):
        A[TAU * n + i] = m[flat.TAU, i]
        for row in range(flat.MOTOR, flat.STIFFNESS):
            if not abs(m[row, i]) < MOST:
                return False
    elapsed = max(now - S[AT_LOOP + NOW], 0.0)
    if not (within_limits(K, A, n, elapsed) and limited(m[flat.COMMAND], m[LIMIT_OF_MOTORS], m[RATE_OF_MOTORS],
                                                        m[SENT], elapsed, m[_NEW])):
        return False
    for i in range(n):
        m[SENT, i] = m[_NEW, i]
        m[POSITION, i] = m[_POSITION, i]
        m[VELOCITY, i] = m[_VELOCITY, i]
    ended(words, I, A, S, n, time_ns)
    return True
