"""The nonlinear programme of a motion at its knots: unknowns, cost, rows of the limits, and their derivatives.

Unknowns x: the free control points, then the duration T if free. Every weighted or limited quantity is a column h at
each knot: dynamics rows (efforts, …), then the state z = (q, v, a, …), all divided by `scale`.
Cost: T Σ_knots w Σ_columns ω h² + ω_T T.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .dynamic_rows import ClosedRows, rows_of
from .equations import Equations
from ..interior_point.linearization import Linearization, StepMatrix, Values
from .nodes import Nodes, folded
from .node_sums import (
    column_slopes, column_weights, limit_rows, row_changes, scaled_columns, state_slopes, states_of,
)
from ..interior_point.normal_equations import by_control_points, normal_matrix
from .task import Task

Array = NDArray[np.float64]
_NONE = np.zeros((0, 0, 0))


class Problem:
    """A task discretised at knots. unit: divisor of the cost."""

    def __init__(self, task: Task, nodes: Nodes, unit: float = 1.0) -> None:
        self.task, self.nodes, self.unit = task, nodes, unit
        self.nv, self.orders = task.size, task.orders
        self.nz = self.nv * self.orders
        self.dynamics = rows_of(task)
        self.kind = ("closed" if task.chain is not None else "path" if task.rows() is not None else
                     "open" if task.distances is None else "apart")
        self.dense_count = self.dynamics.count
        self.end_points = task.basis.end_derivatives
        # at a pose, the equal control points of the resting end are one unknown
        self.first = 1 if task.position_only[0] else self.end_points - (task.poses[0] is not None)
        self.end = task.basis.count - (1 if task.position_only[1] else self.end_points - (task.poses[1] is not None))
        self.free = (self.end - self.first) * self.nv
        self.free_duration = task.free_duration
        self.size = self.free + self.free_duration
        self.omega = task.omega
        lower, upper = task.bounds(nodes.s)    # (N, columns), already divided by scale
        self._upper = np.flatnonzero(np.isfinite(upper))
        self._lower = np.flatnonzero(np.isfinite(lower))
        self._upper_bound, self._lower_bound = upper.reshape(-1)[self._upper], lower.reshape(-1)[self._lower]
        self._latest = np.empty(0), np.empty((0, 0)), np.empty((0, 0)), _NONE    # x, h, z, beta of the latest values
        self._fixed_ends = None if self.free_duration else task.ends(task.duration)
        self._values = nodes.values
        for end, pose in enumerate(task.poses):
            if pose is not None:
                self._values = folded(task.basis, nodes.interval, self._values, bool(end))
        self.equations = Equations(task, nodes, self.first, self.free)
        self._beta = self._in_time(task.duration)    # for the present duration

    # ---- motions

    def control(self, x: Array) -> Array:
        """All control points (K, nv)."""
        first, last = self._fixed_ends or self.task.ends(self.duration(x))
        free = x[:self.free].reshape(-1, self.nv)
        ones = np.ones((self.end_points - 1, 1))
        return np.concatenate([ones * free[0] if self.task.poses[0] else first[:self.first], free,
                               ones * free[-1] if self.task.poses[1] else last[self.end - self.task.basis.count:]])

    def duration(self, x: Array) -> float:
        return float(x[-1]) if self.free_duration else self.task.duration

    def unknowns(self, control: Array, duration: float) -> Array:
        inner = control[self.first:self.end].reshape(-1)
        return np.concatenate([inner, [duration]]) if self.free_duration else inner.copy()

    def _in_time(self, T: float) -> tuple[float, Array]:
        """T, and the B-splines at the knots with their time derivatives for duration T."""
        return T, np.ascontiguousarray(self._values / (T ** np.arange(self.orders))[:, None])

    def _states(self, control: Array, T: float) -> tuple[Array, Array]:
        """States (N, nz) at the knots, and B-splines in time."""
        if self._beta[0] != T:
            self._beta = self._in_time(T)
        beta = self._beta[1]
        return self._summed(control, beta), beta

    def _summed(self, control: Array, beta: Array) -> Array:
        z = np.empty((len(beta), self.nz))
        states_of(beta, self.nodes.interval, control, z)
        return z

    # ---- values

    def values(self, x: Array) -> Values:
        """Cost, rows and equations at x; infinite cost for values that are not finite."""
        T = self.duration(x)
        if T <= 0.0 or not np.isfinite(x).all():
            return Values(np.inf, np.empty(0), np.empty(0))
        control = self.control(x)
        z, beta = self._states(control, T)
        h = np.empty((len(z), len(self.omega)))
        total = scaled_columns(self.dynamics.values(z.reshape(len(z), self.orders, self.nv)), z, self.task.scale,
                               self.nodes.weight, self.omega, h)
        self._latest = x, h, z, beta
        if not np.isfinite(total):
            return Values(np.inf, np.empty(0), np.empty(0))
        return Values(T * (total + self.task.omega_duration) / self.unit, self._rows(h, T),
                      self.equations.values(control, h))

    def _cost(self, h: Array, T: float) -> float:
        used = self.omega > 0.0
        total = T * float(self.nodes.weight @ (h[:, used] ** 2 @ self.omega[used])) + self.task.omega_duration * T
        return total / self.unit

    def _rows(self, h: Array, T: float) -> Array:
        count = len(self._upper_bound) + len(self._lower_bound)
        out = np.empty(count + 2 * self.free_duration)
        limit_rows(h.reshape(-1), self._upper, self._upper_bound, self._lower, self._lower_bound, out[:count])
        if self.free_duration:
            low, high = self.task.durations
            out[count:] = low / T - 1.0, T / high - 1.0 if np.isfinite(high) else -1.0
        return out

    # ---- derivatives

    def linear(self, x: Array) -> Linearization:
        """Derivatives of all columns by the states at x."""
        if self._latest[0] is not x:
            self.values(x)
        _, h, z, beta = self._latest
        T, control = self.duration(x), self.control(x)
        J = self.dynamics.derivatives(z.reshape(len(z), self.orders, self.nv),
                                      h[:, :self.nv] * self.task.scale[:self.nv])
        J /= self.task.scale[:self.dense_count, None]
        u = np.empty(0)
        if self.free_duration:
            displacement = np.zeros((self.task.basis.count, self.nv))
            first, last = self.task.ends_by_duration(T)
            displacement[:self.first], displacement[self.end:] = first[:self.first], last[self.end - len(displacement):]
            u = self._summed(displacement, beta) - np.repeat(np.arange(self.orders), self.nv) * z / T
        return Linearization(J, h, z, u, beta, T, control[[0, -1]])

    def gradient(self, linear: Linearization, y: Array) -> Array:
        """Gradient of cost + yᵀ rows by x; y: multipliers of the rows."""
        slope, by_T = self._coefficients(linear, y)
        nz_slope = self._to_states(linear, slope)
        out = np.empty(self.size)
        by_control_points(nz_slope, linear.beta, self.nodes.interval, self.first, out[:self.free])
        if self.free_duration:
            out[-1] = by_T + float(np.sum(nz_slope * linear.u))
        return out

    def _coefficients(self, linear: Linearization, y: Array, nu: Array | None = None) -> tuple[Array, float]:
        """∂(cost + yᵀ rows + nuᵀ effort equations) by the scaled columns (N, columns), and explicitly by T."""
        c = np.empty_like(linear.h)
        column_slopes(linear.h, self._factors(linear), self.omega, y, self._upper, self._lower, c)
        if nu is not None:
            self.equations.add_derivatives(nu, c)
        by_T = 0.0
        if self.free_duration:
            low, high = self.task.durations
            by_T = (self._cost(linear.h, linear.T) / linear.T - y[-2] * low / linear.T**2
                    + (y[-1] / high if np.isfinite(high) else 0.0))
        return c, by_T

    def _to_states(self, linear: Linearization, c: Array) -> Array:
        """Derivatives by the states (N, nz) from derivatives c by the scaled columns."""
        out = np.empty_like(linear.z)
        state_slopes(c, linear.J, self.task.scale, out)
        return out

    def _factors(self, linear: Linearization) -> Array:
        """Twice the weight of ω h² at the knots (N,)."""
        return (2.0 * linear.T / self.unit) * self.nodes.weight

    def curvature(self, linear: Linearization, y: Array, nu: Array | None = None) -> Array:
        """Second derivatives (N, nz, nz) of the columns by the states, weighted as in cost + yᵀ rows + nuᵀ equations.
        """
        out = np.zeros((len(linear.z), self.nz, self.nz))
        if self.dense_count:
            c = self._coefficients(linear, y, nu)[0][:, :self.dense_count] / self.task.scale[:self.dense_count]
            if isinstance(self.dynamics, ClosedRows):
                self.dynamics.add_curvature(linear.z, c, out)
            else:
                self.dynamics.add_curvature(linear.z, linear.J * self.task.scale[:self.dense_count, None], c, out)
        return out

    def convexified(self, curvature: Array) -> bool:
        """Remove the concave part of friction from the latest curvature; False without such a part."""
        concave = getattr(self.dynamics, "concave", None)
        if concave is None or not concave.any():
            return False
        index = np.arange(self.nv, 2 * self.nv)
        curvature[:, index, index] -= concave
        return True

    def step_matrix(self, linear: Linearization, D: Array, nu: Array | None = None, curvature: Array | None = None,
                    y: Array | None = None) -> StepMatrix:
        """Matrix of a step for cost + ½ D rows²: band, border (of T) and corner.

        The Gauss–Newton matrix, or the Hessian with the `curvature` for multipliers y. nu: multipliers of the
        equations.
        """
        dense, diagonal = np.empty((len(linear.z), self.dense_count)), np.empty_like(linear.z)
        column_weights(self._factors(linear), self.omega, D, self._upper, self._lower, self.task.scale, dense, diagonal)
        points = self.task.basis.degree + 1
        width = points * self.nv
        band = np.empty((width, self.free))
        normal_matrix(linear.J, dense, diagonal, _NONE if curvature is None else curvature, linear.beta,
                      self.nodes.interval, self.first, band)
        self.equations.add_waypoint_weight(band)
        if nu is not None:
            self.equations.add_pose_curvature(band, linear, nu, curvature is None)
        band = band[:min(width, self.free)]
        m = int(self.free_duration)
        border, corner = np.zeros((self.free, m)), np.zeros((m, m))
        if m:
            column, corner[0, 0] = self._by_duration(linear, D, dense, diagonal, curvature, y, nu)
            border[:, 0] = column
        return StepMatrix(band, border, corner)

    def _by_duration(self, linear: Linearization, D: Array, dense: Array, diagonal: Array, curvature: Array | None,
                     y: Array | None, nu: Array | None) -> tuple[Array, float]:
        """Column of the duration in the step matrix, by control points, and its corner."""
        Wu = diagonal * linear.u
        if self.dense_count:
            Ju = np.matmul(linear.J, linear.u[:, :, None])[:, :, 0]
            Wu += np.matmul((dense * Ju)[:, None, :], linear.J)[:, 0]
        objective = self._to_states(linear, self._coefficients(linear, np.zeros(len(D)))[0]) / linear.T
        low, high = self.task.durations
        corner = D[-2] * (low / linear.T**2) ** 2 + (D[-1] / high**2 if np.isfinite(high) else 0.0)
        if curvature is None or y is None:
            cost = self._cost(linear.h, linear.T) - self.task.omega_duration * linear.T / self.unit
            node = Wu + 0.5 * objective
            corner += np.sum(linear.u * (Wu + objective)) + cost / (2.0 * linear.T**2)
        else:
            Wu += np.matmul(curvature, linear.u[:, :, None])[:, :, 0]
            d = np.repeat(np.arange(self.orders), self.nv)
            slope = self._to_states(linear, self._coefficients(linear, y, nu)[0])
            node = Wu + objective - slope * d / linear.T
            corner += np.sum(linear.u * (Wu + 2.0 * objective)) + np.sum(slope * (d * (d + 1) / linear.T**2 * linear.z))
        column = np.empty(self.free)
        by_control_points(np.ascontiguousarray(node), linear.beta, self.nodes.interval, self.first, column)
        return column, float(corner)

    def along(self, linear: Linearization, dx: Array) -> Array:
        """Derivative of the rows along dx."""
        displacement = np.zeros((self.task.basis.count, self.nv))
        displacement[self.first:self.end] = dx[:self.free].reshape(-1, self.nv)
        dz = self._summed(displacement, linear.beta)
        count = len(self._upper_bound) + len(self._lower_bound)
        out = np.empty(count + 2 * self.free_duration)
        if self.free_duration:
            dz += linear.u * dx[-1]
            low, high = self.task.durations
            out[count:] = np.array([-low / linear.T**2, 1.0 / high if np.isfinite(high) else 0.0]) * dx[-1]
        row_changes(linear.J, dz, self.task.scale, self._upper, self._lower, out[:count])
        return out
