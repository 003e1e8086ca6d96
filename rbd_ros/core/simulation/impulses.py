"""Impulses of dry friction and of joint stops over one step.

Every coordinate has a box for its impulse p and the target velocity zero: friction `|p| ≤ h F`, a stop `p ≥ 0` at the
lower and `p ≤ 0` at the upper limit. Either v = 0 with p inside its box, or p is at the bound that opposes v. Such
impulses never add kinetic energy: the change is `pᵀv − ½ pᵀW p` with `pᵀv ≤ 0`.
"""
from __future__ import annotations

import numpy as np

from ..compiled.entry import entry
from ..compiled.kernel import routine
from .joint_data import AIM, HIGH, LOW
from .linear_equations import solved_symmetric


@routine
def impulses(W, low, high, v, p):
    """v (n,) in: velocity without the impulses; out: with them, p. W (n·n): inverse inertia; low, high (n,): the boxes.

    Projected Gauss–Seidel finds which coordinates rest; their impulses are then solved exactly, unless W is singular in
    them, as with stops in closed loops.
    Returns the number of rounds, or −1 without convergence (the result is dissipative even so).
    """
    n = v.shape[0]
    p[:] = 0.0
    free = v.copy()
    rest = 1e-13 * (1.0 + np.max(np.abs(v)))
    for turn in range(1, 51):
        for _ in range(10):
            moving = False
            for i in range(n):
                if low[i] < high[i]:
                    wanted = min(max(p[i] - v[i] / W[n * i + i], low[i]), high[i])
                    change = wanted - p[i]
                    if change != 0.0:
                        moving = True
                        p[i] = wanted
                        for k in range(n):
                            v[k] += W[n * k + i] * change
            if not moving:
                break
        inside = np.zeros(n, np.bool_)
        count = 0
        for i in range(n):
            if low[i] < p[i] < high[i]:
                inside[i] = True
                count += 1
        A = np.zeros((count, count))
        b = np.zeros(count)
        r = 0
        for i in range(n):
            if inside[i]:
                b[r] = -free[i]
                c = 0
                for k in range(n):
                    if inside[k]:
                        A[r, c] = W[n * i + k]
                        c += 1
                    else:
                        b[r] -= W[n * i + k] * p[k]
                r += 1
        x = solved_symmetric(A, b) if count > 0 else b
        if not np.isfinite(x).all():    # dependent coordinates: the iteration alone
            continue
        r = 0
        for i in range(n):
            if inside[i]:
                p[i] = min(max(x[r], low[i]), high[i])
                r += 1
        for i in range(n):
            v[i] = free[i]
            for k in range(n):
                v[i] += W[n * i + k] * p[k]
        solved = True
        for i in range(n):
            if low[i] < high[i]:
                if inside[i] and low[i] < p[i] < high[i]:
                    v[i] = 0.0
                elif inside[i] or (p[i] <= low[i] and v[i] < -rest) or (p[i] >= high[i] and v[i] > rest):
                    solved = False
        if solved:
            return turn
    return -1


@routine
def boxed(W, boxes, v, p):
    """`impulses` with the rows of `boxes` (`joint_data`)."""
    for i in range(v.shape[0]):
        v[i] -= boxes[AIM, i]
    impulses(W, boxes[LOW], boxes[HIGH], v, p)
    for i in range(v.shape[0]):
        v[i] += boxes[AIM, i]


@entry("int64(float64[::1], float64[::1], float64[::1], float64[::1])")
def impulses_entry(W, low, high, v):
    """`impulses` without returning p."""
    return impulses(W, low, high, v, np.empty(v.shape[0]))


@entry("void(float64[::1], float64[:, ::1], float64[::1])")
def boxed_entry(W, boxes, v):
    """`boxed` without returning p."""
    boxed(W, boxes, v, np.empty(v.shape[0]))
