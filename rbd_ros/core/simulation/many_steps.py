"""Kernels that make many steps of a tree of joints with damping, dry friction and external wrenches.

A kernel returns before the first step that exceeds a limit of position or velocity, has no solution or is not finite:
`Simulator` computes that step, with impulses of stops, events and errors.
"""
from __future__ import annotations

import numpy as np

from ..compiled.assign import assign
from ..compiled.entry import entry
from ..compiled.kernel import sweep
from ..dynamics.articulated import SIZE as ARTICULATED_SIZE
from ..dynamics.articulated import articulated_recursion
from ..dynamics.mass_matrix import SIZE as MASS_SIZE
from ..dynamics.mass_matrix import mass_matrix_recursion
from ..model.block import node_count, size_v
from ..model.configuration import integrate_state
from .impulses import impulses
from .joint_data import DAMPING, friction_level, within
from .linear_equations import inverse_of_symmetric


@sweep
def accelerations(B, q, v, effort, joints, wrench, tau, W, out):
    """Forward dynamics under efforts and viscous damping; returns as `articulated_recursion`."""
    for i in range(v.shape[0]):
        tau[i] = effort[i] - joints[DAMPING, i] * v[i]
    return articulated_recursion(B, q, 0, v, tau, 0, (W[:0].view(np.bool_), v), (wrench, 0), W, out, out)


@sweep
def moved(B, q, v, h, dv, out):
    """`out = q ⊕ h v`."""
    for i in range(v.shape[0]):
        dv[i] = h * v[i]
    integrate_state(B, q, 0, dv, 0, out)


@entry("int64(float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[::1], float64[:, ::1], "
       "float64[:, ::1], float64, int64)", nogil=True)
def semi_implicit_steps(B, q, v, efforts, wrench, limits, joints, h, steps):
    """Advance q, v in place by at most `steps` steps of `semi_implicit_euler`, h (s) each; returns the number made.

    B: of the model with additional armature h·damping, which makes damping implicit. efforts (1 or steps, nv). wrench:
    in node frames, or empty. limits (2, nq), joints (ROWS, nv): see `joint_data`.
    """
    n = size_v(B)
    W = np.empty(ARTICULATED_SIZE * node_count(B))
    mass_work = np.empty(MASS_SIZE * node_count(B))
    q1, v1, a, tau, dv, low, high, p = q.copy(), v.copy(), v.copy(), v.copy(), v.copy(), v.copy(), v.copy(), v.copy()
    M, inverse = np.zeros(n * n), np.zeros(n * n)
    for s in range(steps):
        if accelerations(B, q, v, efforts[min(s, efforts.shape[0] - 1)], joints, wrench, tau, W, a) != 0:
            return s
        for i in range(n):
            v1[i] = v[i] + h * a[i]
        if friction_level(joints, v, h, low, high):
            mass_matrix_recursion(B, q, 0, mass_work, M, 0)
            inverse_of_symmetric(M, n, inverse)
            impulses(inverse, low, high, v1, p)
        moved(B, q, v1, h, dv, q1)
        if not within(limits, joints, q1, v1):
            return s
        assign(q, q1)
        assign(v, v1)
    return steps


@entry("int64(float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[::1], float64[:, ::1], "
       "float64[:, ::1], float64, int64)", nogil=True)
def runge_kutta_steps(B, q, v, efforts, wrench, limits, joints, h, steps):
    """Advance q, v in place by at most `steps` steps of `runge_kutta_4`; returns the number made. B: of the model.

    Arguments as of `semi_implicit_steps`. Without dry friction; it also returns before a step that begins at a stop.
    """
    n = size_v(B)
    W = np.empty(ARTICULATED_SIZE * node_count(B))
    a1, a2, a3, a4, v2, v3, v4 = v.copy(), v.copy(), v.copy(), v.copy(), v.copy(), v.copy(), v.copy()
    tau, dv, u = v.copy(), v.copy(), v.copy()
    q1, q2 = q.copy(), q.copy()
    half = 0.5 * h
    for s in range(steps):
        for i in range(q.shape[0]):
            if not limits[0, i] < q[i] < limits[1, i]:
                return s
        effort = efforts[min(s, efforts.shape[0] - 1)]
        singular = accelerations(B, q, v, effort, joints, wrench, tau, W, a1)
        moved(B, q, v, half, dv, q2)
        for i in range(n):
            v2[i] = v[i] + half * a1[i]
        singular += accelerations(B, q2, v2, effort, joints, wrench, tau, W, a2)
        for i in range(n):
            v3[i] = v[i] + half * a2[i]
        moved(B, q, v2, half, dv, q1)
        singular += accelerations(B, q1, v3, effort, joints, wrench, tau, W, a3)
        for i in range(n):
            v4[i] = v[i] + h * a3[i]
            u[i] = h * v3[i] - half * v[i]
        moved(B, q2, u, 1.0, dv, q1)
        singular += accelerations(B, q1, v4, effort, joints, wrench, tau, W, a4)
        if singular != 0:
            return s
        for i in range(n):
            middle = 2.0 * (v2[i] + v3[i])
            u[i] = 3.0 * v[i] + middle - v4[i]
            v3[i] = -v[i] + middle + 3.0 * v4[i]
            v4[i] = v[i] + h / 6.0 * (a1[i] + 2.0 * (a2[i] + a3[i]) + a4[i])
        moved(B, q, u, h / 12.0, dv, q2)
        moved(B, q2, v3, h / 12.0, dv, q1)
        if not within(limits, joints, q1, v4):
            return s
        assign(q, q1)
        assign(v, v4)
    return steps
