"""Primal-dual interior point method for a least-squares cost under limits that may be infeasible.

`min f(x) + ρ Σ e_i` under `g(x) ≤ e, e ≥ 0, c(x) = 0`: violations of limits have the penalty ρ, which is exact for ρ
above all multipliers, so every x is a valid iterate, and an infeasible problem ends at the least violating motion. For
given x and barrier parameter µ the best e is known in closed form, so the merit function is smooth and of x alone:
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

from . import barrier
from .newton_step import newton_step, tangent_step
from .linearised import Linear, Values
from ..optimal.problem import Problem

Array = NDArray[np.float64]
Stop = Callable[[int, float, float], bool]    # iteration number, cost, largest row -> whether to stop
FIRST_BARRIER = 0.1
LEAST_BARRIER = 0.1       # smallest µ relative to the tolerance, unless the gap requires less
GAP = 500.0               # largest duality gap relative to tolerance times cost
CLOSE = 0.3               # share of half a range: rows within it keep their multipliers in the sharper gap
SMALL = 1e-2              # share of the first guess's cost below which the cost does not tighten the gap
NEAR = 30.0               # multiple of µ: residuals below it let µ decrease
FALL, FALL_POWER = 0.2, 1.2
PENALTY, LARGEST_PENALTY = 100.0, 1e6
EQUATION_PENALTY = 1e3    # initial penalty of equations (waypoints, poses, passive efforts)
BENT = 0.1                # violation of equations below which curvature is used
LEAST_RANK = 1e-12        # relative rank tolerance of the equations' normal matrix
DEARER = 3.0              # smallest ratio of the penalty to the equations' largest multiplier
# curvature is used below this µ, or after so many iterations without a decrease of µ; with loops it is expensive
CURVED = {"open": (1e-4, 8), "closed": (0.0, 8), "path": (np.inf, 0)}
ARMIJO, HALVINGS = 1e-4, 25
MOST = 400                # largest number of iterations
MOST_DAMPING = 1e-2
STALLED = 6               # line searches without a step
STOPPED = "stopped"       # reason: by the caller


class Solution(NamedTuple):
    """Result of the method: unknowns, multipliers of the rows, KKT residual, largest row, iterations, reason."""

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
    """e and s = e − g at the minimum of the merit function, and its value; µ / s is a multiplier."""

    e: Array
    s: Array
    merit: float


def best_slack(g: Array, mu: float, rho: float) -> Slack:
    """Minimum of Σ ρ e − µ log(e − g) − µ log e over e."""
    e, s = np.empty_like(g), np.empty_like(g)
    return Slack(e, s, barrier.best_slack(g, mu, rho, e, s))


def solve(problem: Problem, x: Array, tolerance: float, deadline: float, before: Solution | None = None,
          until: float = 0.0, stop: Stop = lambda *_: False) -> Solution:
    """Iterate from x to a stationary point, or until the barrier parameter reaches `until`, well inside the limits,
    where rows may be added. before: solution of a previous problem, for a warm start. stop: called at each iteration.
    """
    search = _Search(problem, x, tolerance, before)
    took = 0.0
    while True:
        begin = time.perf_counter()
        if begin + took > deadline:    # another iteration would end too late
            return search.solution("time limit")
        search.look()
        reason = search.ended(stop) or search.lower_barrier(until) or search.step()
        if reason:
            return search.solution(reason)
        took = time.perf_counter() - begin


class _Search:
    """The iterate: x with its values, slacks of the rows, multipliers y of rows and nu of equations, µ and ρ."""

    def __init__(self, problem: Problem, x: Array, tolerance: float, before: Solution | None) -> None:
        self.problem, self.x, self.tolerance = problem, x, tolerance
        self.mu, self.rho = (FIRST_BARRIER, PENALTY) if before is None else (before.barrier, before.penalty)
        self.at = problem.values(x)
        self.slack = best_slack(self.at.rows, self.mu, self.rho)
        self.y = self.mu / self.slack.s
        if before is not None:    # bounded multipliers for new violated rows, which would otherwise have ρ
            self.y = np.minimum(self.y, max(2.0 * float(before.y.max(initial=0.0)), 10.0 * self.mu))
        self.nu = np.zeros(len(self.at.equations))
        self.price = EQUATION_PENALTY
        self.damping, self.count, self.stalled, self.since = 0.0, 0, 0, 0
        self.residual, self.violation, self.gap = np.inf, float(self.at.rows.max(initial=-1.0)), np.inf
        self.linear: Linear
        self.A: Array
        self.stationarity = self.equations = np.inf

    def solution(self, reason: str) -> Solution:
        return Solution(self.x, self.y, self.residual, self.violation, reason == "converged", self.count, reason,
                        self.mu, self.rho)

    def look(self) -> None:
        """Update derivatives and KKT residuals."""
        self.linear = self.problem.linear(self.x)
        self.A = self.problem.equations.columns(self.linear)
        slope = self.problem.gradient(self.linear, self.y) + self.A @ self.nu
        self.stationarity = float(np.abs(slope).max(initial=0.0))
        self.equations = float(np.abs(self.at.equations).max(initial=0.0))
        summary = np.empty(3)
        barrier.complements(self.at.rows, self.y, self.rho, summary)
        complement, self.gap, self.violation = map(float, summary)
        self.residual = max(self.stationarity, self.equations, complement)

    def ended(self, stop: Stop) -> str:
        """Reason of termination, or "". Increases the penalty if violated limits are cheaper than feasible ones."""
        if self.residual <= self.tolerance:
            if self.violation > 10.0 * self.tolerance and self.rho < LARGEST_PENALTY:
                self.rho *= 10.0
            elif self.gap <= self._allowed_gap or self._sharper_gap() <= self._allowed_gap:
                return "converged"
            else:
                self.mu *= FALL
            self.slack = best_slack(self.at.rows, self.mu, self.rho)
        if self.count >= MOST:
            return "too many iterations"
        if stop(self.count, self.at.cost, self.violation):
            return STOPPED
        return "no progress" if self.stalled > STALLED else ""

    @property
    def _allowed_gap(self) -> float:
        return GAP * self.tolerance * max(self.at.cost, SMALL)

    def _sharper_gap(self) -> float:
        """Duality gap by the bound from the augmented Lagrangian, of close rows only (D = −y / g): 3/2 of their gap,
        plus the decrease ½ rᵀ H⁻¹ r of the quadratic model without the other rows, r being their gradient; H by Newton,
        or by Gauss–Newton where that is not convex.
        """
        problem, linear, g = self.problem, self.linear, self.at.rows
        far = g < -CLOSE
        r = problem.gradient(linear, np.where(far, self.y, 0.0)) - problem.gradient(linear, np.zeros_like(g))
        D = np.where(far, 0.0, self.y / np.maximum(-g, 1e-12))
        decrement = self._solved(r, D, self.y, np.zeros_like(self.at.equations), 0.0)
        if decrement is None:
            return self.gap
        close = float(np.where(far, 0.0, np.maximum(-g * self.y, g * (self.rho - self.y))).sum())
        self.gap = min(self.gap, 1.5 * close - 0.5 * float(r @ decrement[0]))
        return self.gap

    def lower_barrier(self, until: float) -> str:
        """Lower µ while the iterate is close to the central path; "inside" once µ is at `until`."""
        least = LEAST_BARRIER * self.tolerance
        while self.mu > least and max(self.stationarity, self.equations, barrier.centring(
                self.slack.e, self.slack.s, self.y, self.mu, self.rho)) <= NEAR * self.mu:
            if self.mu <= until:
                return "inside"
            self.mu, self.since = max(least, min(FALL * self.mu, self.mu**FALL_POWER)), 0
            self.slack = best_slack(self.at.rows, self.mu, self.rho)
        return ""

    def step(self) -> str:
        """One Newton step with line search on the merit function; "no progress" if none is accepted."""
        e, s = self.slack.e, self.slack.s
        y = self.y.copy()
        w, D, target = np.empty_like(y), np.empty_like(y), np.empty_like(y)
        barrier.prices(e, s, y, self.mu, self.rho, w, D, target)
        gradient = self.problem.gradient(self.linear, target)
        result = self._solved(gradient, D, y, self.at.equations, self.damping)
        if result is None:
            return "no progress"
        dx, self.nu, self.damping = result
        moved = np.empty_like(y)
        alpha = barrier.step_lengths(e, s, y, w, D, self.problem.along(self.linear, dx), self.mu, self.rho, moved)
        if len(self.problem.task.passive):
            self.price = DEARER * max(float(np.abs(self.nu).max()), 1.0)
        slope = float(gradient @ dx) - self.price * float(np.abs(self.at.equations).sum())
        self.y = moved
        self.count += 1
        self.since += 1
        if self._search(dx, alpha, slope):
            self.stalled = 0
        else:
            self.stalled += 1
            self.damping = max(100.0 * self.damping, 1e-6)
        return ""

    def _solved(self, gradient: Array, D: Array, y: Array, equations: Array,
                damping: float) -> tuple[Array, Array, float] | None:
        """dx, multipliers of the equations, damping; with Newton's matrix near the optimum if it is convex enough."""
        problem, lin = self.problem, self.linear
        if len(problem.task.passive):
            bent = problem.curvature(lin, y, self.nu) if self.equations < BENT else None
            return tangent_step(problem.step_matrix(lin, D, self.nu, bent, y), gradient, self.A, equations, damping)
        below, patience = CURVED[problem.kind]
        newton = self.mu < below or self.since > patience
        curvature = problem.curvature(lin, y, self.nu) if newton else None
        if curvature is not None:
            step = newton_step(problem.step_matrix(lin, D, self.nu, curvature, y), gradient, self.A, equations, damping,
                               MOST_DAMPING)
            if step is None and problem.convexified(curvature):
                step = newton_step(problem.step_matrix(lin, D, self.nu, curvature, y), gradient, self.A, equations,
                                   damping, MOST_DAMPING)
            if step is not None:
                return step
        return newton_step(problem.step_matrix(lin, D, self.nu), gradient, self.A, equations,
                           min(damping, 1e-4))    # the Gauss–Newton matrix is convex

    def _search(self, dx: Array, alpha: float, slope: float) -> bool:
        """Backtracking line search: halve α until x + α dx lowers the merit function enough; False on failure."""
        merit = self._merit(self.at, self.slack)
        rounding = 1e-13 * max(1.0, abs(merit))
        for _ in range(HALVINGS):
            trial, values = self._restored(self.x + alpha * dx)
            if np.isfinite(values.cost):
                slack = best_slack(values.rows, self.mu, self.rho)
                if self._merit(values, slack) <= merit + ARMIJO * alpha * min(slope, 0.0) + rounding:
                    self.x, self.at, self.slack = trial, values, slack
                    return True
            alpha *= 0.5
        return False

    def _restored(self, x: Array) -> tuple[Array, Values]:
        """x corrected to satisfy the equations, at least nearly, and its values."""
        x = self.problem.equations.restored(x)
        values = self.problem.values(x)
        if not len(self.problem.task.passive) or not np.isfinite(values.equations).all() or not len(values.equations):
            return x, values
        G = self.A.T @ self.A
        G[np.diag_indices(len(G))] += LEAST_RANK * float(np.trace(G))
        moved = x - self.A @ np.linalg.solve(G, values.equations)    # otherwise steps become short
        candidate = self.problem.values(moved)
        better = np.isfinite(candidate.cost) and np.abs(candidate.equations).sum() < np.abs(values.equations).sum()
        return (moved, candidate) if better else (x, values)

    def _merit(self, at: Values, slack: Slack) -> float:
        return at.cost + slack.merit + self.price * float(np.abs(at.equations).sum())
