"""Impulses of dry friction and of joint stops over one step.

Every coordinate has a box for its impulse p and the target velocity zero: friction `|p| ≤ h F`, a stop `p ≥ 0` at the
lower and `p ≤ 0` at the upper limit. Either v = 0 with p inside its box, or p is at the bound that opposes v. Such
impulses never add kinetic energy: the change is `pᵀv − ½ pᵀW p` with `pᵀv ≤ 0`.
"""
from __future__ import annotations

import numpy as np

from ..compiled.entry import entry
from ..compiled.kernel import allocating, sweep
from ..model.block import finite_range
from .joint_data import AIM, HIGH, LOW
from .linear_equations import solve_symmetric


@allocating
def impulses(W, low, high, v, p):
    """v (n,) in: velocity without the impulses; out: with them, p (n,), in: a guess, or 0. W (n·n): inverse inertia;
    low, high (n,): the boxes.

    Projected Gauss–Seidel, at first the guess, tells which coordinates rest; their impulses are then solved exactly,
    unless W is singular in them, as with stops in closed loops.
    Returns the number of rounds, or −1 without convergence (the result is dissipative even so).
    """
    n = v.shape[0]
    work, inside = np.empty(n * (n + 2)), np.empty(n, np.int64)
    free, x, A = work[:n], work[n:2 * n], work[2 * n:]
    fastest = 0.0
    for i in range(n):
        free[i] = v[i]
        p[i] = min(max(p[i], low[i]), high[i]) if low[i] < high[i] else 0.0
        fastest = max(fastest, abs(v[i]))
    sweeps = 2
    for i in range(n):
        if p[i] != 0.0:
            sweeps = 0
            for k in range(n):
                v[k] += W[n * i + k] * p[i]
    rest = 1e-13 * (1.0 + fastest)
    for turn in range(1, 51):
        for _ in range(sweeps):
            moving = False
            for i in range(n):
                if low[i] < high[i]:
                    wanted = min(max(p[i] - v[i] / W[n * i + i], low[i]), high[i])
                    change = wanted - p[i]
                    if change != 0.0:
                        moving = True
                        p[i] = wanted
                        for k in range(n):
                            v[k] += W[n * i + k] * change
            if not moving:
                break
        sweeps += 2
        count = 0
        for i in range(n):
            if low[i] < p[i] < high[i]:
                inside[count] = i
                count += 1
        for r in range(count):
            i = inside[r]
            x[r] = -free[i]
            for k in range(n):
                if not low[k] < p[k] < high[k]:
                    x[r] -= W[n * i + k] * p[k]
            for c in range(count):
                A[count * r + c] = W[n * i + inside[c]]
        if count > 0:
            solve_symmetric(A, count, x)
            if not finite_range(x, 0, count):    # dependent coordinates: the iteration alone
                continue
        for r in range(count):
            i = inside[r]
            p[i] = min(max(x[r], low[i]), high[i])
        for i in range(n):
            v[i] = free[i]
            for k in range(n):
                v[i] += W[n * i + k] * p[k]
        solved = True
        for r in range(count):
            i = inside[r]
            if low[i] < p[i] < high[i]:
                v[i] = 0.0
            else:
                solved = False
        for i in range(n):
            if low[i] < high[i]:
                solved &= not ((p[i] <= low[i] and v[i] < -rest) or (p[i] >= high[i] and v[i] > rest))
        if solved:
            return turn
    return -1


@sweep
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
    return impulses(W, low, high, v, np.zeros(v.shape[0]))


@entry("void(float64[::1], float64[:, ::1], float64[::1])")
def boxed_entry(W, boxes, v):
    """`boxed` without returning p."""
    boxed(W, boxes, v, np.zeros(v.shape[0]))
