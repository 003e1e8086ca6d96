"""Kernels of `simulate`: N states of a robot, each many steps on. Threads share the states in ranges."""
from __future__ import annotations

import numpy as np

from ..compiled.assign import assign
from ..compiled.entry import entry
from ..compiled.kernel import sweep
from ..model.block import size_v
from ..specialize.many_states import compute_range
from .discrete_mechanics import CARRIED, variational
from .joint_data import BOX_ROWS, DAMPING, finite, is_limited, limit_boxes
from .pd_law import command
from .rk4_steps import rk4
from .semi_implicit_steps import moved, semi_implicit

SEMI_IMPLICIT, RK4, VARIATIONAL = range(3)
LANES = 64    # states that specialised code takes a step at once: they and their efforts stay in the first cache


@entry("void(int64, float64[::1], float64[:, :, ::1], float64[:, :, ::1], float64[:, :, :, ::1], float64[:, ::1], "
       "float64[:, :, ::1], int64, float64[:, :, ::1], float64[::1], int64[::1], float64[:, ::1], float64[::1], "
       "float64[::1], float64[:, ::1], float64, int64, boolean[::1], int64, int64)", nogil=True)
def motions(method, B, q, v, efforts, gains, reference, period, last, wrench, code, damping, frame, gravity, joints, h,
            every, made, begin, end):
    """States begin … end − 1: q (N, k, nq), v (N, k, nv), `every` steps of h (s) apart, from the first on. made (N,):
    states that are wanted; False afterwards where a step is left to Python.

    efforts … period: as in `Commands`; last (N, delay + 1, nv): efforts of the law before the first step. frame: as of
    `variational`, for its size; other arguments as of `semi_implicit` and `variational`.
    """
    n, loads = size_v(B), (wrench, joints[:0], joints[:0], code.copy())    # without springs; words of this thread
    for i in range(begin, end):
        law = gains, reference[min(i, reference.shape[0] - 1)], period, last[i]
        effort = efforts[min(i, efforts.shape[0] - 1)]
        p, center = np.zeros(CARRIED * n), np.zeros(frame.shape[0])
        for k in range(1, q.shape[1]):
            if not made[i]:
                break
            x, u = q[i, k], v[i, k]
            assign(x, q[i, k - 1])
            assign(u, v[i, k - 1])
            first = every * (k - 1)
            if method == SEMI_IMPLICIT:
                done = semi_implicit(B, x, u, effort, law, loads, joints, h, first, first + every)
            elif method == RK4:
                done = rk4(B, x, u, effort, law, loads, joints, h, first, first + every)
            else:
                done = variational(B, x, u, p, center, k > 1, effort, law, (wrench, joints[:0], damping), gravity,
                                   joints, h, first, first + every)
            made[i] = done == first + every


@sweep
def step_in_lanes(code, B, states, given, bounds, h, s, start, count, scratch, space):
    """Step s of `count` states, the first of them number `start`, in place: states (LANES, nq), (LANES, nv). bounds:
    `joints`, and whether any is limited. Returns how many it left as they were: those that are not for this code, or
    would be beyond a limit; their `good` is 0.
    """
    (positions, rates), (joints, limited) = states, bounds
    efforts, gains, reference, period, last = given
    tau, a, good, nothing, q1, v1, dv, boxes = space
    for r in range(count):
        i = start + r
        law = gains, reference[min(i, reference.shape[0] - 1)], period, last[i]
        command(B, positions[r], rates[r], efforts[min(i, efforts.shape[0] - 1)], law, s, tau[r])
        for j in range(tau.shape[1]):
            tau[r, j] -= joints[DAMPING, j] * rates[r, j]
    compute_range(code, positions, rates, tau, nothing, nothing, a, good, scratch, 0, count)
    left = 0
    for r in range(count):
        for j in range(v1.shape[0]):
            v1[j] = rates[r, j] + h * a[r, j]
        moved(B, positions[r], v1, h, dv, q1)
        if good[r] == 1.0 and finite(q1, v1) and (not limited or limit_boxes(joints, q1, v1, boxes) == 0):
            assign(positions[r], q1)
            assign(rates[r], v1)
        else:
            boxes[:] = 0.0
            good[r] = 0.0
            left += 1
    return left


@entry("void(int64[::1], float64[::1], float64[:, :, ::1], float64[:, :, ::1], float64[:, :, :, ::1], float64[:, ::1], "
       "float64[:, :, ::1], int64, float64[:, :, ::1], float64[:, ::1], float64, int64, boolean[::1], float64[::1], "
       "int64, int64)", nogil=True)
def motions_in_lanes(code, B, q, v, efforts, gains, reference, period, last, joints, h, every, made, scratch, begin,
                     end):
    """`motions` by `semi_implicit` without friction and wrenches, with forward dynamics by specialised code (`code`,
    `scratch`: of `compute_range`); `semi_implicit` makes the steps that `step_in_lanes` leaves.
    """
    n, nq = v.shape[2], q.shape[2]
    given, loads = (efforts, gains, reference, period, last), (q[0, 0, :0], joints[:0], joints[:0], code[:0])
    positions, rates, good = np.empty((LANES, nq)), np.empty((LANES, n)), np.empty(LANES)
    space = (np.empty((LANES, n)), np.empty((LANES, n)), good, np.empty((LANES, 0)), np.empty(nq), np.empty(n),
             np.empty(n), np.zeros((BOX_ROWS, n)))
    bounds = joints, is_limited(joints)
    for start in range(begin, end, LANES):
        count = min(LANES, end - start)
        for r in range(count):
            assign(positions[r], q[start + r, 0])
            assign(rates[r], v[start + r, 0])
        for s in range(every * (q.shape[1] - 1)):
            if step_in_lanes(code, B, (positions, rates), given, bounds, h, s, start, count, scratch, space) > 0:
                for r in range(count):
                    i = start + r
                    if good[r] == 0.0 and made[i]:
                        law = gains, reference[min(i, reference.shape[0] - 1)], period, last[i]
                        made[i] = semi_implicit(B, positions[r], rates[r], efforts[min(i, efforts.shape[0] - 1)], law,
                                                loads, joints, h, s, s + 1) == s + 1
            if (s + 1) % every == 0:
                for r in range(count):
                    assign(q[start + r, (s + 1) // every], positions[r])
                    assign(v[start + r, (s + 1) // every], rates[r])
