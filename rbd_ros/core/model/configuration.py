"""Positions on the configuration group: `integrate` moves along a velocity, `difference` is its inverse."""
from __future__ import annotations

import numpy as np

from ..compile import kernel, quick_entry
from .block import (
    OWNER, all_finite, first_position, first_velocity, kind, node, node_count, rates_valid, size_q, size_v,
)
from .joint_kinds import between_node, has_quaternion, move_node, quaternion_at


@kernel
def positions_valid(M, q, states):
    """Whether q holds this many states of the model: size, finite numbers, quaternions of norm one within 1 %."""
    nq = size_q(M)
    if q.shape[0] != states * nq or not all_finite(q):
        return False
    if nq == size_v(M):
        return True
    for s in range(states):
        for i in range(node_count(M)):
            o = node(i)
            t = kind(M, o)
            if has_quaternion(t):
                j = s * nq + first_position(M, o) + quaternion_at(t)
                norm = np.sqrt(q[j] * q[j] + q[j + 1] * q[j + 1] + q[j + 2] * q[j + 2] + q[j + 3] * q[j + 3])
                if not abs(norm - 1.0) <= 1e-2:
                    return False
    return True


@kernel
def integrate_state(M, q, k, dv, j, out):
    """`out = q ⊕ dv` for one state: `T exp(dv)` for poses and quaternions, a sum for all else."""
    for i in range(node_count(M)):
        o = node(i)
        if M[o + OWNER].real == 0.0:
            continue
        move_node(M, o, q, k + first_position(M, o), dv, j + first_velocity(M, o), out)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], int64)")
def integrate_entry(M, q, dv, out, states):
    """This many states, checked; False where the input is not what the model takes, or out is not finite."""
    if not (positions_valid(M, q, states) and rates_valid(M, dv, states)):
        return False
    nq = size_q(M)
    for s in range(states):
        integrate_state(M, q, s * nq, dv, s * size_v(M), out)
    return all_finite(out)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], int64)")
def difference_entry(M, q0, q1, out, states):
    """This many states, checked; False where the input is not what the model takes, or out is not finite."""
    if not (positions_valid(M, q0, states) and positions_valid(M, q1, states)):
        return False
    nq = size_q(M)
    nv = size_v(M)
    for s in range(states):
        for i in range(node_count(M)):
            o = node(i)
            if M[o + OWNER] == 0.0:
                continue
            between_node(M, o, q0, q1, s * nq + first_position(M, o), out, s * nv + first_velocity(M, o))
    return all_finite(out)
