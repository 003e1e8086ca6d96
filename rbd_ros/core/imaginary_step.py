"""States and models with an imaginary step along directions: kernels of complex numbers give derivatives from them.

The imaginary part of what such a kernel computes, divided by `STEP`, is its derivative along the direction. Nothing is
subtracted, so that it is exact to rounding (complex step).
"""
from __future__ import annotations

from .compiled.kernel import sweep
from .model.block import OWNER, first_position, first_velocity, kind, node, node_count, size_q, size_v
from .model.configuration import tangent_node
from .model.joint_kinds import dof

STEP = 1e-30


@sweep
def step_positions(B, q, k, c, x):
    """x := q[k:] with an imaginary step along velocity coordinate c."""
    for i in range(size_q(B)):
        x[i] = q[k + i]
    for i in range(node_count(B)):
        o = node(i)
        iv = first_velocity(B, o)
        if B[o + OWNER] != 0.0 and iv <= c < iv + dof(kind(B, o)):
            iq = first_position(B, o)
            tangent_node(B, o, q, k + iq, c - iv, 1j * STEP, x, iq)


@sweep
def step_numbers(x, k, change, out):
    """out := x[k:] with an imaginary step along change, as long as out."""
    for i in range(out.shape[0]):
        out[i] = x[k + i] + 1j * STEP * change[i]


@sweep
def step_state(B, state, s, along, stepped):
    """State s of (q, v, a), flat, to stepped = (positions, rates, accelerations), with an imaginary step.

    along (4, states, nv): how q, by the tangent of `integrate`, v and a change.
    """
    q, v, a = state
    positions, rates, accelerations = stepped
    k = s * size_q(B)
    j = s * size_v(B)
    for i in range(size_q(B)):
        positions[i] = q[k + i]
    for i in range(node_count(B)):
        o = node(i)
        if B[o + OWNER] != 0.0:
            iq = first_position(B, o)
            iv = first_velocity(B, o)
            for c in range(dof(kind(B, o))):
                tangent_node(B, o, q, k + iq, c, 1j * STEP * along[0, s, iv + c], positions, iq)
    step_numbers(v, j, along[1, s], rates)
    step_numbers(a, j, along[2, s], accelerations)
