"""Primal-dual interior point method for a least-squares cost under limits that may contradict each other.

`min f(x) + ρ Σ e_i` under `g(x) ≤ e, e ≥ 0, c(x) = 0`: limits cost ρ per unit of violation, which is exact for ρ above
all multipliers, so every x is a valid iterate and an impossible problem ends at a least violating motion. For given x
and barrier parameter µ the best e is known in closed form, so the merit function is smooth and of x alone:
`Φ(x) = f + Σ min_e (ρ e − µ log(e − g) − µ log e) + ν ‖c‖₁` (after Gould, Orban & Toint, 2015, and Curtis, 2012).
Each step solves `(H + Gᵀ D G) dx = −∇Φ` on c's tangent: H of Gauss and Newton far from the optimum, of Newton near it;
D primal-dual, 1 / (s/y + e/w) with slack s = e − g and multipliers y of g ≤ e and w = ρ − y of e ≥ 0.
"""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .newton_step import newton_step
from .linearised import Values
from .problem import Problem

Array = NDArray[np.float64]
Stop = Callable[[int, float, float], bool]    # of the iteration's number, cost and largest row: whether to end there
FIRST_BARRIER, WARM_BARRIER = 0.1, 1e-2
LEAST_BARRIER = 0.5       # of the tolerance
NEAR = 30.0               # times µ: a residual below it lets µ fall
FALL, FALL_POWER = 0.2, 1.2
PENALTY, LARGEST_PENALTY = 100.0, 1e6
EQUATION_PENALTY = 1e3
NEWTON_BARRIER = 1e-5     # curvature is looked at below this µ
BOUNDARY = 0.995          # of the way to the boundary at most
CLIP = 1e8                # multipliers stay within this factor of µ / slack
ARMIJO, HALVINGS = 1e-4, 25
MOST = 400                # iterations
MOST_DAMPING = 1e-2
STALLED = 6               # line searches without a step
STOPPED = "stopped"       # by the caller


class Solution(NamedTuple):
    """Where the method ended: unknowns, multipliers of the rows, KKT residual, largest row, iterations, and why."""

    x: Array
    y: Array
    residual: float
    violation: float
    converged: bool
    iterations: int
    reason: str
    barrier: float
    penalty: float


class Slack(NamedTuple):
    """e and s = e − g at the least of the merit function, and its value; µ / s is a multiplier."""

    e: Array
    s: Array
    merit: float


def best_slack(g: Array, mu: float, rho: float) -> Slack:
    """The least of Σ ρ e − µ log(e − g) − µ log e."""
    root = np.sqrt((rho * g) ** 2 + 4.0 * mu * mu)
    near = root + rho * np.abs(g)
    far = 4.0 * mu * mu / near    # root − ρ |g|, without cancellation
    over = g > 0.0
    e = (2.0 * mu + np.where(over, near, far)) / (2.0 * rho)
    s = (2.0 * mu + np.where(over, far, near)) / (2.0 * rho)
    return Slack(e, s, float(rho * e.sum() - mu * np.log(e * s).sum()))


def solve(problem: Problem, x: Array, tolerance: float, deadline: float, before: Solution | None = None,
          until: float = 0.0, stop: Stop = lambda *_: False) -> Solution:
    """From x to a stationary point, or until the barrier parameter would fall below `until`: well inside the limits,
    where rows may be added. `before`: where another problem was left like that. `stop`: asked at each iteration.
    """
    mu, rho = (FIRST_BARRIER, PENALTY) if before is None else (before.barrier, before.penalty)
    least = LEAST_BARRIER * tolerance
    at = problem.values(x)
    slack = best_slack(at.rows, mu, rho)
    y = mu / slack.s    # but no more than before for new rows that are not kept: else they would push with all of ρ
    if before is not None:
        y = np.minimum(y, max(2.0 * float(before.y.max(initial=0.0)), 10.0 * mu))
    nu = np.zeros(len(at.equations))
    damping, count, stalled, reason = 0.0, 0, 0, ""
    residual, violation, took = np.inf, float(at.rows.max(initial=-1.0)), 0.0
    while True:
        begin = time.perf_counter()
        if begin + took > deadline:    # another iteration would end too late
            return Solution(x, y, residual, violation, False, count, "time limit", mu, rho)
        linear = problem.linear(x)
        A = problem.equation_columns(linear)
        stationarity = float(np.abs(problem.gradient(linear, y) + A @ nu).max(initial=0.0))
        equations = float(np.abs(at.equations).max(initial=0.0))
        residual = max(stationarity, equations, _complement(at.rows, y, rho))
        violation = float(at.rows.max(initial=-1.0))
        if residual <= tolerance:
            if violation <= 10.0 * tolerance or rho >= LARGEST_PENALTY:
                reason = "converged"
            else:    # a limit is cheaper to break than to keep
                rho *= 10.0
                slack = best_slack(at.rows, mu, rho)
        if not reason and count >= MOST:
            reason = "too many iterations"
        if not reason and stop(count, at.cost, violation):
            reason = STOPPED
        if stalled > STALLED and not reason:
            reason = "no progress"
        while not reason and mu > least and max(stationarity, equations, _centring(slack, y, mu, rho)) <= NEAR * mu:
            if mu <= until:
                reason = "inside"
                break
            mu = max(least, min(FALL * mu, mu**FALL_POWER))
            slack = best_slack(at.rows, mu, rho)
        if reason:
            return Solution(x, y, residual, violation, reason == "converged", count, reason, mu, rho)
        e, s = slack.e, slack.s
        y = np.clip(y, mu / (CLIP * s), np.minimum(CLIP * mu / s, rho))
        w = np.clip(rho - y, mu / (CLIP * e), CLIP * mu / e)
        D = 1.0 / (s / y + e / w)
        curvature = problem.curvature(linear, y) if mu < NEWTON_BARRIER else None
        gradient = problem.gradient(linear, mu / s)
        step = newton_step(problem.step_matrix(linear, D, nu, curvature, y), gradient, A, at.equations, damping,
                           MOST_DAMPING) if curvature is not None else None
        if step is None:    # far from convex: Gauss and Newton's matrix is
            step = newton_step(problem.step_matrix(linear, D, nu), gradient, A, at.equations, min(damping, 1e-4))
        if step is None:
            reason = "no progress"
            continue
        dx, nu, damping = step
        change = problem.along(linear, dx)    # of g; then of y, e and s by Newton
        dy = mu / s - y + D * change
        de = (e / w) * (D * change)
        alpha = min(_length(s, de - change), _length(e, de))
        slope = float(gradient @ dx) - EQUATION_PENALTY * float(np.abs(at.equations).sum())
        found = _search(problem, x, dx, alpha, _merit(at, slack), slope, mu, rho)
        y = np.clip(y + min(_length(y, dy), _length(rho - y, -dy)) * dy, 0.0, rho)
        count += 1
        took = time.perf_counter() - begin
        if found is None:
            stalled += 1
            damping = max(100.0 * damping, 1e-6)
            continue
        stalled = 0
        x, at, slack = found


def _complement(g: Array, y: Array, rho: float) -> float:
    """How far multipliers of rows are from 0 that are kept, and from ρ that are not."""
    return float(np.where(g < 0.0, -g * y, g * (rho - y)).max(initial=0.0))


def _centring(slack: Slack, y: Array, mu: float, rho: float) -> float:
    """How far products of slacks and multipliers are from µ."""
    return max(float(np.abs(slack.s * y - mu).max(initial=0.0)),
               float(np.abs(slack.e * (rho - y) - mu).max(initial=0.0)))


def _search(problem: Problem, x: Array, dx: Array, alpha: float, merit: float, slope: float, mu: float,
            rho: float) -> tuple[Array, Values, Slack] | None:
    """The first of x + α dx, α halved, that lowers the merit function enough; None if none does."""
    rounding = 1e-13 * max(1.0, abs(merit))
    for _ in range(HALVINGS):
        trial = problem.restored(x + alpha * dx)
        values = problem.values(trial)
        if np.isfinite(values.cost):
            slack = best_slack(values.rows, mu, rho)
            if _merit(values, slack) <= merit + ARMIJO * alpha * min(slope, 0.0) + rounding:
                return trial, values, slack
        alpha *= 0.5
    return None


def _merit(at: Values, slack: Slack) -> float:
    return at.cost + slack.merit + EQUATION_PENALTY * float(np.abs(at.equations).sum())


def _length(x: Array, dx: Array) -> float:
    """The largest step ≤ 1 that leaves some of each x ≥ 0."""
    return min(1.0, BOUNDARY / max(float((-dx / np.maximum(x, 1e-300)).max(initial=0.0)), 1e-300))
