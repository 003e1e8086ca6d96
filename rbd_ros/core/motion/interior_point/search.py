"""Primal-dual interior point method for a least-squares cost under limits that may be infeasible.

`min f(x) + ρ Σ e_i` under `g(x) ≤ e, e ≥ 0, c(x) = 0`. The penalty ρ of violated limits is exact for ρ above all
multipliers; every x is a valid iterate, and an infeasible problem ends at the least violating motion. The best e for x
and the barrier parameter µ has a closed form, so the merit function is smooth and depends on x alone:
`Φ(x) = f + Σ min_e (ρ e − µ log(e − g) − µ log e) + ν ‖c‖₁` (after Gould, Orban & Toint, 2015, and Curtis, 2012).
Each step solves `(H + Gᵀ D G) dx = −∇Φ` on the tangent space of c = 0: H is the Gauss–Newton matrix far from the
optimum and the Hessian near it; D = 1 / (s/y + e/w) is primal-dual, with slack s = e − g and multipliers y of g ≤ e and
w = ρ − y of e ≥ 0.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...compiled.computing_time import computing_time
from . import barrier
from .newton_step import newton_step, tangent_step
from .linearization import Linearization, Values
from ..optimal.problem import Problem

Array = NDArray[np.float64]
Stop = Callable[[int, float, float], bool]    # iteration number, cost, largest row -> whether to stop
FIRST_BARRIER = 0.1
LEAST_BARRIER = 0.1       # smallest µ relative to the tolerance, unless the duality gap requires less
GAP = 500.0               # largest duality gap relative to tolerance times cost
CLOSE_ROW = 0.3           # rows above −CLOSE_ROW (in half ranges) are close in `_sharper_gap`
LEAST_COST = 1e-2         # smallest cost in the tolerance of the duality gap, relative to the first guess's
# µ decreases at residuals below this multiple of µ, by kind of problem
CENTRALITY = {"open": 30.0, "apart": 100.0, "closed": 30.0, "path": 30.0}
FALL, FALL_POWER = 0.2, 1.2
PENALTY, LARGEST_PENALTY = 100.0, 1e6
EQUATION_PENALTY = 1e3    # initial penalty of equations (waypoints, poses, passive efforts)
CURVATURE_VIOLATION = 0.1    # curvature is used at equation residuals below
LEAST_RANK = 1e-12        # relative regularisation of the equations' normal matrix
EQUATION_PENALTY_FACTOR = 3.0    # ratio of the equations' penalty ν to their largest multiplier
# kind of problem: the Hessian is used at µ below this, or after so many iterations without a decrease of µ
NEWTON_WHEN = {"open": (1e-4, 8), "apart": (np.inf, 0), "closed": (0.0, 8), "path": (np.inf, 0)}
ARMIJO, HALVINGS = 1e-4, 25
MAX_ITERATIONS = 400
MAX_DAMPING = 1e-2        # of the Hessian; beyond, the Gauss–Newton matrix is used
MAX_STALLED = 6           # consecutive failures of the line search
STOPPED = "stopped"       # reason of termination by the caller
# gradients of distances of collision shapes jump at kinks, where the residual does not fall
KINK = "converged at a kink of a distance"
KINK_ITERATIONS = 6       # in which neither cost nor violation changes
UNCHANGED = 2e-4, 5e-5    # of the cost, relative, and of the violation
KINK_BARRIER = 1e-5       # largest barrier of such an end


class Solution(NamedTuple):
    """Result: unknowns, multipliers of the rows, KKT residual, largest row, iterations, reason of termination, final
    barrier parameter and penalty.
    """

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


def solve(problem: Problem, x: Array, tolerance: float, deadline: float, previous: Solution | None = None,
          stop_barrier: float = 0.0, stop: Stop = lambda *_: False) -> Solution:
    """Iterate from x to a stationary point, or until µ reaches `stop_barrier` in the interior of the limits, where rows
    may be added. previous: solution of a similar problem, for a warm start. stop: called at each iteration.
    """
    search = _Search(problem, x, tolerance, previous)
    iteration_time = 0.0
    while True:
        begin = computing_time()
        if begin + iteration_time > deadline:    # another iteration would end too late
            return search.solution("time limit")
        search.update_derivatives()
        reason = search.termination(stop) or search.lower_barrier(stop_barrier) or search.step()
        if reason:
            return search.solution(reason)
        iteration_time = computing_time() - begin


class _Search:
    """The iterate: x, values at x, slacks and multipliers y of the rows, multipliers nu of the equations, µ and ρ."""

    def __init__(self, problem: Problem, x: Array, tolerance: float, previous: Solution | None) -> None:
        self.problem, self.x, self.tolerance = problem, x, tolerance
        self.mu, self.rho = (FIRST_BARRIER, PENALTY) if previous is None else (previous.barrier, previous.penalty)
        self.values = problem.values(x)
        self.slack = best_slack(self.values.rows, self.mu, self.rho)
        self.y = self.mu / self.slack.s
        if previous is not None:    # bounded multipliers for new violated rows, which would otherwise have ρ
            self.y = np.minimum(self.y, max(2.0 * float(previous.y.max(initial=0.0)), 10.0 * self.mu))
        self.nu = np.zeros(len(self.values.equations))
        self.equation_penalty = EQUATION_PENALTY
        self.damping, self.count, self.stalled, self.since_decrease = 0.0, 0, 0, 0
        self.history: deque[tuple[float, float]] = deque(maxlen=KINK_ITERATIONS + 1)    # cost and violation
        self.residual, self.violation, self.gap = np.inf, float(self.values.rows.max(initial=-1.0)), np.inf
        self.linear: Linearization
        self.A: Array
        self.stationarity = self.equations = np.inf

    def solution(self, reason: str) -> Solution:
        return Solution(self.x, self.y, self.residual, self.violation, reason in ("converged", KINK), self.count,
                        reason, self.mu, self.rho)

    def update_derivatives(self) -> None:
        """Update derivatives and KKT residuals."""
        self.linear = self.problem.linear(self.x)
        self.A = self.problem.equations.columns(self.linear)
        slope = self.problem.gradient(self.linear, self.y) + self.A @ self.nu
        self.stationarity = float(np.abs(slope).max(initial=0.0))
        self.equations = float(np.abs(self.values.equations).max(initial=0.0))
        summary = np.empty(3)
        barrier.complementarity(self.values.rows, self.y, self.rho, summary)
        complement, self.gap, self.violation = map(float, summary)
        self.residual = max(self.stationarity, self.equations, complement)

    def termination(self, stop: Stop) -> str:
        """Reason of termination, or "". Increases the penalty if violated limits are cheaper than feasible ones."""
        if self.residual <= self.tolerance:
            if self.violation > 10.0 * self.tolerance and self.rho < LARGEST_PENALTY:
                self.rho *= 10.0
            elif self.gap <= self._allowed_gap or self._sharper_gap() <= self._allowed_gap:
                return "converged"
            else:
                self.mu *= FALL
            self.slack = best_slack(self.values.rows, self.mu, self.rho)
        if self.count >= MAX_ITERATIONS:
            return "too many iterations"
        if stop(self.count, self.values.cost, self.violation):
            return STOPPED
        if self.problem.task.distances is not None and self._at_kink():
            return KINK
        return "no progress" if self.stalled > MAX_STALLED else ""

    def _at_kink(self) -> bool:
        """Whether the latest iterations changed nothing, at a barrier that is low enough; lowers a higher barrier."""
        self.history.append((self.values.cost, self.violation))
        if len(self.history) <= KINK_ITERATIONS:
            return False
        change = np.abs(np.subtract(self.history[-1], self.history[0]))
        if change[0] > UNCHANGED[0] * abs(self.values.cost) or change[1] > UNCHANGED[1]:
            return False
        if self.mu <= KINK_BARRIER:
            return True
        self.mu *= FALL
        self.slack = best_slack(self.values.rows, self.mu, self.rho)
        self.history.clear()
        return False

    @property
    def _allowed_gap(self) -> float:
        return GAP * self.tolerance * max(self.values.cost, LEAST_COST)

    def _sharper_gap(self) -> float:
        """Duality gap by the bound from the augmented Lagrangian of close rows (D = −y / g): 3/2 of the gap of close
        rows, plus the decrease ½ rᵀ H⁻¹ r of the quadratic model without the inactive rows, with their gradient r. H is
        the Hessian, or the Gauss–Newton matrix if the Hessian is indefinite.
        """
        problem, linear, g = self.problem, self.linear, self.values.rows
        inactive = g < -CLOSE_ROW
        r = problem.gradient(linear, np.where(inactive, self.y, 0.0)) - problem.gradient(linear, np.zeros_like(g))
        D = np.where(inactive, 0.0, self.y / np.maximum(-g, 1e-12))
        decrement = self._solved(r, D, self.y, np.zeros_like(self.values.equations), 0.0)
        if decrement is None:
            return self.gap
        close_gap = float(np.where(inactive, 0.0, np.maximum(-g * self.y, g * (self.rho - self.y))).sum())
        self.gap = min(self.gap, 1.5 * close_gap - 0.5 * float(r @ decrement[0]))
        return self.gap

    def lower_barrier(self, stop_barrier: float) -> str:
        """Lower µ while the iterate is close to the central path; return "inside" once µ is at `stop_barrier`."""
        least = LEAST_BARRIER * self.tolerance
        while self.mu > least and max(self.stationarity, self.equations, barrier.centring(
                self.slack.e, self.slack.s, self.y, self.mu, self.rho)) <= CENTRALITY[self.problem.kind] * self.mu:
            if self.mu <= stop_barrier:
                return "inside"
            self.mu, self.since_decrease = max(least, min(FALL * self.mu, self.mu**FALL_POWER)), 0
            self.slack = best_slack(self.values.rows, self.mu, self.rho)
        return ""

    def step(self) -> str:
        """One Newton step with line search on the merit function; "no progress" if the linear system has no solution.
        """
        e, s = self.slack.e, self.slack.s
        y = self.y.copy()
        w, D, target = np.empty_like(y), np.empty_like(y), np.empty_like(y)
        barrier.multipliers(e, s, y, self.mu, self.rho, w, D, target)
        gradient = self.problem.gradient(self.linear, target)
        result = self._solved(gradient, D, y, self.values.equations, self.damping)
        if result is None:
            return "no progress"
        dx, self.nu, self.damping = result
        y_next = np.empty_like(y)
        alpha = barrier.step_lengths(e, s, y, w, D, self.problem.along(self.linear, dx), self.mu, self.rho, y_next)
        if len(self.problem.task.passive):
            self.equation_penalty = EQUATION_PENALTY_FACTOR * max(float(np.abs(self.nu).max()), 1.0)
        slope = float(gradient @ dx) - self.equation_penalty * float(np.abs(self.values.equations).sum())
        self.y = y_next
        self.count += 1
        self.since_decrease += 1
        if self._line_search(dx, alpha, slope):
            self.stalled = 0
        else:
            self.stalled += 1
            self.damping = max(100.0 * self.damping, 1e-6)
        return ""

    def _solved(self, gradient: Array, D: Array, y: Array, equations: Array,
                damping: float) -> tuple[Array, Array, float] | None:
        """dx, multipliers of the equations, next damping; with the Hessian near the optimum if it is definite enough.
        """
        problem, lin = self.problem, self.linear
        if len(problem.task.passive):
            curvature = problem.curvature(lin, y, self.nu) if self.equations < CURVATURE_VIOLATION else None
            matrix = problem.step_matrix(lin, D, self.nu, curvature, y)
            return tangent_step(matrix, gradient, self.A, equations, damping)
        below, patience = NEWTON_WHEN[problem.kind]
        newton = self.mu < below or self.since_decrease > patience
        curvature = problem.curvature(lin, y, self.nu) if newton else None
        if curvature is not None:
            step = newton_step(problem.step_matrix(lin, D, self.nu, curvature, y), gradient, self.A, equations, damping,
                               MAX_DAMPING)
            if step is None and problem.convexified(curvature):
                step = newton_step(problem.step_matrix(lin, D, self.nu, curvature, y), gradient, self.A, equations,
                                   damping, MAX_DAMPING)
            if step is not None:
                return step
        return newton_step(problem.step_matrix(lin, D, self.nu), gradient, self.A, equations,
                           min(damping, 1e-4))    # the Gauss–Newton matrix is convex

    def _line_search(self, dx: Array, alpha: float, slope: float) -> bool:
        """Backtracking line search: halve α until x + α dx satisfies Armijo's condition; False on failure."""
        merit = self._merit(self.values, self.slack)
        rounding = 1e-13 * max(1.0, abs(merit))
        for _ in range(HALVINGS):
            trial, values = self._corrected(self.x + alpha * dx)
            if np.isfinite(values.cost):
                slack = best_slack(values.rows, self.mu, self.rho)
                if self._merit(values, slack) <= merit + ARMIJO * alpha * min(slope, 0.0) + rounding:
                    self.x, self.values, self.slack = trial, values, slack
                    return True
            alpha *= 0.5
        return False

    def _corrected(self, x: Array) -> tuple[Array, Values]:
        """x after a correction step towards c(x) = 0, and the values there."""
        x = self.problem.equations.corrected(x)
        values = self.problem.values(x)
        if not len(self.problem.task.passive) or not np.isfinite(values.equations).all() or not len(values.equations):
            return x, values
        G = self.A.T @ self.A
        G[np.diag_indices(len(G))] += LEAST_RANK * float(np.trace(G))
        y_next = x - self.A @ np.linalg.solve(G, values.equations)    # otherwise steps become short
        candidate = self.problem.values(y_next)
        better = np.isfinite(candidate.cost) and np.abs(candidate.equations).sum() < np.abs(values.equations).sum()
        return (y_next, candidate) if better else (x, values)

    def _merit(self, values: Values, slack: Slack) -> float:
        return values.cost + slack.merit + self.equation_penalty * float(np.abs(values.equations).sum())
