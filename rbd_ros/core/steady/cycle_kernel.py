"""The steady cycle of a torque controller as one call: from the bytes of a joint state to the effort.

The cycle equals `StateInput.accept`, `LoopRate.judge`, `CycleStatistics.received`, the law and `SafetyFilter.update` in
turn, in mode `running` without fading, with the same kernels. If anything would be rejected, counted, limited, logged,
begun or ended, it returns False without any change, and those objects compute the cycle
(`runtime/steady/steady_cycle.py`). This file has all but the laws, and the entry with laws of `tracking`; `flat_cycle`
has the entry for elastic joints.

| array   | holds                                                                                                   |
|---------|---------------------------------------------------------------------------------------------------------|
| B, W    | the model and its workspace                                                                             |
| words   | the message from four bytes before its encapsulation on, so that all numbers in it are aligned;         |
|         | numbers: the same memory                                                                                |
| I       | integers: `HEAD` ones; of each joint its place in the message; the words of a message of this driver;   |
|         | which bits of these are always the same                                                                 |
| K       | `SCALARS` numbers; rows of nv numbers; those of the reference: as it is, or the coefficients of a       |
|         | polynomial in time                                                                                      |
| P       | the law                                                                                                 |
| A       | rows of nv numbers: the last state, effort and what this call makes of them; then room for S            |
| S       | clock, transit, loop and cycles of the controller (`stream_times`)                                      |
"""
from __future__ import annotations

import numpy as np

from ..compiled.entry import quick_entry
from ..compiled.exact import exact
from ..model.block import size_v
from ..motion.continuity import follows
from ..motion.cycle import clipped, followed, picked
from ..motion.polynomial import polynomial_rows
from . import tracking
from .stream_times import (
    CLOCK, CYCLES, LOOP, NOW, SHARE, SLOW, STAMP_PERIOD, TRANSIT, clock_advance, clock_leaps, clock_pace,
    cycle_received, judge, transit_age,
)

AT_CLOCK, AT_TRANSIT = 0, len(CLOCK)    # in S
AT_LOOP = AT_TRANSIT + len(TRANSIT)
AT_CYCLES = AT_LOOP + len(LOOP)
NUMBERS = AT_CYCLES + len(CYCLES)

(TIME, START, SEC, NANOSEC, WORDS, POSITION, VELOCITY, EFFORT, MOVES, DEGREE, TURNS, COUNT, NOW_NS, SENT_NS,
 RECEIVED_NS, FOLLOWS, HEAD) = range(17)    # in I
TIMEOUT, RAMP, BEGIN, END, SCALE, EXPIRY, RECEIVED, SCALARS = range(8)    # in K
BOUND, USUAL, TURN, LIMIT, RATE, TOLERANCE, LIMITS = range(7)    # rows of K
Q, V, SENT, NEW_Q, NEW_V, NEW_EFFORT, MEASURED, TAU, REFERENCE = range(9)    # of A
STATES = REFERENCE + 5

MOST_COEFFICIENTS = 10    # of a joint
MOST = 1e100    # largest number that counts as finite


def size_of_constants(nv: int) -> int:
    """Size of K."""
    return SCALARS + (LIMITS + MOST_COEFFICIENTS) * nv


@exact
def nearest(q, turn, to):
    """q shifted by multiples of `turn` to within half a turn of `to`."""
    for i in range(len(q)):
        q[i] += turn[i] * np.rint((to[i] - q[i]) / (2.0 * np.pi))


@exact
def same_layout(words, I, n):
    """Whether the constant part of the driver's messages is unchanged."""
    count = I[WORDS]
    offset = HEAD + n
    other = 0
    for i in range(count):
        other |= (words[i] ^ I[offset + i]) & I[offset + count + i]
    return other == 0


@exact
def admitted(q0, v0, q, v, K, n, S, passed, waited):
    """Whether the state is fresh and continuous with the last one; if so, advance the clock."""
    if not (waited < K[TIMEOUT] and passed >= 0.0) or clock_leaps(S, AT_CLOCK, passed, waited):
        return False
    period = S[AT_CLOCK + STAMP_PERIOD]
    r = SCALARS
    return follows(q0, v0, q, v, K[r + BOUND * n:r + USUAL * n], K[r + USUAL * n:r + TURN * n],
                   K[r + TURN * n:r + LIMIT * n], max(passed, waited, 2.0 * period), max(passed, period))


@exact
def read_state(words, numbers, I, A, n):
    """Stamp (ns) of a message, with its positions and velocities into A; 0 without stamp, for another layout, or for
    numbers that are not finite.
    """
    if not same_layout(words, I, n):
        return 0
    sec = (words[1] << 32) >> 32
    nanosec = (words[1] >> 32) & 0xFFFFFFFF
    indices = I[HEAD:HEAD + n]
    none = A[:0]
    if not (picked(numbers[I[POSITION]:], indices, none, none, A[NEW_Q * n:NEW_V * n])
            and picked(numbers[I[VELOCITY]:], indices, none, none, A[NEW_V * n:NEW_EFFORT * n])):
        return 0
    return sec * 1_000_000_000 + nanosec


@exact
def prompt(S, now, passed, age, ramp):
    """Whether the loop rate is unchanged and feedback has full weight."""
    if S[AT_LOOP + SHARE] < 1.0 or S[AT_LOOP + SLOW] > 0.0:
        return False
    events = judge(S, AT_LOOP, now, passed, age, ramp)
    return events == 0 and S[AT_LOOP + SLOW] == 0.0 and not cycle_received(S, AT_CYCLES, now)


@exact
def sampled(I, K, A, n, now, time_ns, rows):
    """Into A `rows` rows of the reference at this time; whether the piece in K is valid."""
    offset = SCALARS + LIMITS * n
    if I[MOVES] != 0:
        t = (time_ns - I[START]) * 1e-9
        if not (K[BEGIN] <= t < K[END]):
            return False
        count = I[DEGREE] + 1
        polynomial_rows(K[offset:offset + count * n].reshape((count, n)), (t - K[BEGIN]) / K[SCALE], K[SCALE],
                        A[REFERENCE * n:(REFERENCE + rows) * n].reshape((rows, n)))
    elif 0.0 < K[EXPIRY] < now - K[RECEIVED]:
        return False
    else:
        for i in range(rows * n):
            A[REFERENCE * n + i] = K[offset + i]
    if I[TURNS] != 0:
        nearest(A[REFERENCE * n:(REFERENCE + 1) * n], K[SCALARS + TURN * n:SCALARS + LIMIT * n], A[NEW_Q * n:NEW_V * n])
    if I[FOLLOWS] != 0:
        for i in range(n):
            if not abs(A[REFERENCE * n + i] - A[NEW_Q * n + i]) <= K[SCALARS + TOLERANCE * n + i]:
                return False
    return True


@exact
def limited(tau, limit, rate, sent, elapsed, out):
    """out = tau; whether it is finite and within the limits of effort and rate."""
    for i in range(len(tau)):
        if not abs(tau[i]) < MOST:
            return False
    return clipped(tau, limit, out) and followed(tau, sent, rate, elapsed, out)


@exact
def begun(words, numbers, I, K, A, S, n, now, rows):
    """Part before the law: into A the state, the reference, and S after this cycle. Returns the stamp (ns), 0 if
    anything is unusual. now: steady clock, s; I[NOW_NS], I[SENT_NS], I[RECEIVED_NS]: as in `transit_age`.
    """
    time_ns = read_state(words, numbers, I, A, n)
    if time_ns == 0:
        return 0
    T = A[STATES * n:STATES * n + NUMBERS]
    for i in range(NUMBERS):
        T[i] = S[i]
    age = transit_age(T, AT_TRANSIT, I[NOW_NS], I[SENT_NS], I[RECEIVED_NS])
    if I[EFFORT] > 0:
        picked(numbers[I[EFFORT]:], I[HEAD:HEAD + n], K[:0], K[:0], A[MEASURED * n:TAU * n])
    passed = (time_ns - I[TIME]) * 1e-9
    waited = now - S[AT_LOOP + NOW]
    if not admitted(A[Q * n:V * n], A[V * n:SENT * n], A[NEW_Q * n:NEW_V * n], A[NEW_V * n:NEW_EFFORT * n], K, n, T,
                    passed, waited):
        return 0
    clock_advance(T, AT_CLOCK, now, passed, waited)
    if not (prompt(T, now, passed, clock_pace(T, AT_CLOCK) * age, K[RAMP])
            and sampled(I, K, A, n, now, time_ns, rows)):
        return 0
    return time_ns


@exact
def within_limits(K, A, n, elapsed):
    """`limited` for the joint efforts, `elapsed` s after the last ones."""
    r = SCALARS
    return limited(A[TAU * n:REFERENCE * n], K[r + LIMIT * n:r + RATE * n], K[r + RATE * n:r + TOLERANCE * n],
                   A[SENT * n:NEW_Q * n], elapsed, A[NEW_EFFORT * n:MEASURED * n])


@exact
def ended(words, I, A, S, n, time_ns):
    """Commit the results in A."""
    for i in range(n):
        A[Q * n + i] = A[NEW_Q * n + i]
        A[V * n + i] = A[NEW_V * n + i]
        A[SENT * n + i] = A[NEW_EFFORT * n + i]
    for i in range(NUMBERS):
        S[i] = A[STATES * n + i]
    I[TIME] = time_ns
    I[SEC] = (words[1] << 32) >> 32
    I[NANOSEC] = (words[1] >> 32) & 0xFFFFFFFF


@quick_entry("boolean(float64[::1], float64[::1], int64[::1], float64[::1], int64[::1], float64[::1], float64[::1], "
             "float64[::1], float64[::1], float64)")
def steady_cycle_entry(B, W, words, numbers, I, K, A, S, P, now):
    """Steady cycle with a law of `tracking`; times as in `begun`."""
    n = size_v(B)
    time_ns = begun(words, numbers, I, K, A, S, n, now, 3)
    if time_ns == 0:
        return False
    reference = A[REFERENCE * n:STATES * n]
    if not (tracking.tracking(B, P, A[NEW_Q * n:NEW_V * n], A[NEW_V * n:NEW_EFFORT * n], reference[:n],
                              reference[n:2 * n], reference[2 * n:3 * n], W[:0], 1.0, W, A[TAU * n:REFERENCE * n])
            and within_limits(K, A, n, max(now - S[AT_LOOP + NOW], 0.0))):
        return False
    ended(words, I, A, S, n, time_ns)
    return True


@quick_entry("boolean(int64[::1], float64[::1], int64[::1], float64[::1], float64[::1], float64[::1], float64, "
             "float64)")
def followed_state_entry(words, numbers, I, K, A, S, now, before):
    """First part of the cycle: whether the message at `now` (s, steady clock) continues the state received at `before`;
    if so, advance the clock S. I[COUNT]: numbers of a state.
    """
    n = I[COUNT]
    time_ns = read_state(words, numbers, I, A, n)
    passed = (time_ns - I[TIME]) * 1e-9
    waited = now - before
    if time_ns == 0 or not admitted(A[Q * n:V * n], A[V * n:SENT * n], A[NEW_Q * n:NEW_V * n],
                                    A[NEW_V * n:NEW_EFFORT * n], K, n, S, passed, waited):
        return False
    clock_advance(S, AT_CLOCK, now, passed, waited)
    for i in range(n):
        A[Q * n + i] = A[NEW_Q * n + i]
        A[V * n + i] = A[NEW_V * n + i]
    I[TIME] = time_ns
    return True
