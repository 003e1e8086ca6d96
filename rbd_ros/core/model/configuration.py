"""Integration on the configuration group: `integrate` (⊕) and its inverse, `difference` (⊖)."""
from __future__ import annotations

import numpy as np

from ..compiled.entry import quick_entry
from ..compiled.kernel import kernel
from ..lie import steps
from ..lie.spatial import unit
from .block import (
    OWNER, all_finite, first_position, first_velocity, kind, node, node_count, put, rates_valid, size_q, size_v, vector,
)
from .joint_kinds import adds_up, dof, has_quaternion, is_free, quaternion_at


@kernel
def positions_valid(B, q, states):
    """Whether q has the size of `states` states of the model, is finite, and has quaternion norms of one within 1 %."""
    nq = size_q(B)
    if q.shape[0] != states * nq or not all_finite(q):
        return False
    left, i = nq - size_v(B), 0    # quaternions, and the next node
    while left > 0 and i < node_count(B):
        o = node(i)
        t = kind(B, o)
        i += 1
        if has_quaternion(t):
            left -= 1
            first = first_position(B, o) + quaternion_at(t)
            for s in range(states):
                j = s * nq + first
                norm = np.sqrt(q[j] * q[j] + q[j + 1] * q[j + 1] + q[j + 2] * q[j + 2] + q[j + 3] * q[j + 3])
                if not abs(norm - 1.0) <= 1e-2:
                    return False
    return True


@kernel
def move_node(B, o, q, k, x, j, out):
    """`out[k:] = q[k:] ⊕ x[j:]`: `T exp(x)` for poses and quaternions, a sum for other coordinates."""
    t = kind(B, o)
    if is_free(t):
        steps.move(q, k, vector(x, j), vector(x, j + 3), out)
    elif has_quaternion(t):
        steps.turn(q, k, vector(x, j), out)
    elif adds_up(t):
        for c in range(dof(t)):
            out[k + c] = q[k + c] + x[j + c]
    else:
        out[k] = np.nan


@kernel
def between_node(B, o, q0, q1, k, out, j):
    """Into out[j:] the x with `q0[k:] ⊕ x = q1[k:]`, the shortest rotation vector for rotations."""
    t = kind(B, o)
    if is_free(t):
        r, u = steps.move_between(q0, q1, k)
        put(out, j, r)
        put(out, j + 3, u)
    elif has_quaternion(t):
        put(out, j, steps.turn_between(q0, q1, k))
    elif adds_up(t):
        for c in range(dof(t)):
            out[j + c] = q1[k + c] - q0[k + c]
    else:
        out[j] = np.nan


@kernel
def tangent_node(B, o, q, k, c, s, out, j):
    """Add s times the derivative of the positions q[k:] along velocity coordinate c to out[j:]."""
    t = kind(B, o)
    if is_free(t):
        steps.move_tangent(q, k, c, s, out, j)
    elif has_quaternion(t):
        steps.turn_tangent(q, k, unit(c, q[k]), s, out, j)
    elif adds_up(t):
        out[j + c] += s
    else:
        out[j] += np.nan


@kernel
def integrate_state(B, q, k, dv, j, out):
    """`out = q ⊕ dv` for one state: `T exp(dv)` for poses and quaternions, a sum for other coordinates."""
    for i in range(node_count(B)):
        o = node(i)
        if B[o + OWNER].real == 0.0:
            continue
        move_node(B, o, q, k + first_position(B, o), dv, j + first_velocity(B, o), out)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], int64)")
def integrate_entry(B, q, dv, out, states):
    """`integrate` of `states` states; False if an input is invalid or out not finite."""
    if not (positions_valid(B, q, states) and rates_valid(B, dv, states)):
        return False
    nq = size_q(B)
    for s in range(states):
        integrate_state(B, q, s * nq, dv, s * size_v(B), out)
    return all_finite(out)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], int64)")
def difference_entry(B, q0, q1, out, states):
    """`difference` of `states` states; False if an input is invalid or out not finite."""
    if not (positions_valid(B, q0, states) and positions_valid(B, q1, states)):
        return False
    nq = size_q(B)
    nv = size_v(B)
    for s in range(states):
        for i in range(node_count(B)):
            o = node(i)
            if B[o + OWNER] == 0.0:
                continue
            between_node(B, o, q0, q1, s * nq + first_position(B, o), out, s * nv + first_velocity(B, o))
    return all_finite(out)
