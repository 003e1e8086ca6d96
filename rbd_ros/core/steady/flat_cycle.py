"""The steady cycle of a robot with elastic joints: from the bytes of a joint state to the efforts of links and motors.

Around the law of `flat` what `cycle_kernel` does for every law. Beside its arrays, with one number per joint in a row:
F, c: the law and its springs; measured: position and velocity of the motors as they were heard; N: of their efforts,
limits, and what this call makes; out: what the law says.
"""
from __future__ import annotations

from ..compile import quick_entry
from ..exact import exact
from ..model.block import size_v
from . import flat
from .cycle_kernel import (
    AT_LOOP, LIMIT, MOST, NEW_Q, NEW_V, REFERENCE, SCALARS, STATES, TAU, TURN, TURNS, begun, ended, limited, nearest,
    within_limits,
)
from .stream_times import NOW

LIMIT_OF_MOTORS, RATE_OF_MOTORS, SENT, _NEW, _POSITION, _VELOCITY, ROWS = range(7)    # of N


@exact
def measured_motors(F, n, i, q, v, measured, N):
    """To N the motor of joint i: that of a rigid joint is the joint."""
    elastic = F[flat.SCALARS + flat.ELASTIC * n + i] > 0.0
    N[_POSITION, i] = measured[0, i] if elastic else q[i]
    N[_VELOCITY, i] = measured[1, i] if elastic else v[i]


@quick_entry("boolean(float64[::1], float64[::1], int64[::1], float64[::1], int64[::1], float64[::1], float64[::1], "
             "float64[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64, "
             "int64, int64, int64)")
def flat_cycle_entry(B, W, words, numbers, I, K, A, S, F, c, measured, N, out, now, now_ns, sent_ns, received_ns):
    """Times as in `begun`. Where it returns True, `measured` are the motors that the law took."""
    n = size_v(B)
    time_ns = begun(words, numbers, I, K, A, S, n, now, now_ns, sent_ns, received_ns, 5)
    if time_ns == 0:
        return False
    q = A[NEW_Q * n:NEW_V * n]
    v = A[NEW_V * n:(NEW_V + 1) * n]
    for i in range(n):
        measured_motors(F, n, i, q, v, measured, N)
    if I[TURNS] != 0:
        nearest(N[_POSITION], K[SCALARS + TURN * n:SCALARS + LIMIT * n], q)
    if not flat.flat(B, F, c, A[REFERENCE * n:STATES * n].reshape((5, n)), N[_POSITION:], 1.0, W, out):
        return False
    for i in range(n):
        A[TAU * n + i] = out[flat.TAU, i]
        for row in range(flat.MOTOR, flat.STIFFNESS):
            if not abs(out[row, i]) < MOST:
                return False
    elapsed = max(now - S[AT_LOOP + NOW], 0.0)
    if not (within_limits(K, A, n, elapsed) and limited(out[flat.COMMAND], N[LIMIT_OF_MOTORS], N[RATE_OF_MOTORS],
                                                        N[SENT], elapsed, N[_NEW])):
        return False
    for i in range(n):
        N[SENT, i] = N[_NEW, i]
        measured[0, i] = N[_POSITION, i]
        measured[1, i] = N[_VELOCITY, i]
    ended(words, I, A, S, n, time_ns)
    return True
