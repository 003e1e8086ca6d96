"""The optimisation problem at knots: unknowns, cost, rows of the limits, and their derivatives.

Unknowns x: the free control points (joint after joint), then the duration T if free. Every weighted or limited quantity
is a column at each knot: rows of the dynamics (`efforts`), then the state z = (q, v, a, …). Columns are divided by
`scale`, their limit if there is one. Cost: T Σ_knots w Σ_columns ω h² + ω_T T.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .dynamic_rows import ClosedRows, rows_of
from .equations import Equations
from ..interior_point.linearised import Linear, Step, Values
from .nodes import Nodes, folded
from .node_sums import (
    column_slopes, column_weights, limit_rows, row_changes, scaled_columns, state_slopes, states_of,
)
from ..interior_point.normal_equations import by_control_points, normal_matrix
from .task import Task

Array = NDArray[np.float64]
_NONE = np.zeros((0, 0, 0))


class Problem:
    """A task discretised at knots."""

    def __init__(self, task: Task, nodes: Nodes, unit: float = 1.0) -> None:
        self.task, self.nodes, self.unit = task, nodes, unit
        self.nv, self.orders = task.size, task.orders
        self.nz = self.nv * self.orders
        self.dynamics = rows_of(task)
        self.kind = "closed" if task.chain is not None else "open" if task.rows() is None else "path"
        self.dense = self.dynamics.count
        self.held = task.basis.end_derivatives
        # at a pose, one of the equal control points of the resting end is free, and represents all of them
        self.first = 1 if task.loose[0] else self.held - (task.poses[0] is not None)
        self.end = task.basis.count - (1 if task.loose[1] else self.held - (task.poses[1] is not None))
        self.free = (self.end - self.first) * self.nv
        self.free_duration = task.free_duration
        self.size = self.free + self.free_duration
        self.omega = task.omega
        lower, upper = task.bounds(nodes.s)    # (N, columns), already divided by scale
        self._upper = np.flatnonzero(np.isfinite(upper))
        self._lower = np.flatnonzero(np.isfinite(lower))
        self._up, self._low = upper.reshape(-1)[self._upper], lower.reshape(-1)[self._lower]
        self._last = np.empty(0), np.empty((0, 0)), np.empty((0, 0)), _NONE    # x, h, z, beta of the latest values
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
        ones = np.ones((self.held - 1, 1))
        return np.concatenate([ones * free[0] if self.task.poses[0] else first[:self.first], free,
                               ones * free[-1] if self.task.poses[1] else last[self.end - self.task.basis.count:]])

    def duration(self, x: Array) -> float:
        return float(x[-1]) if self.free_duration else self.task.duration

    def unknowns(self, control: Array, duration: float) -> Array:
        inner = control[self.first:self.end].reshape(-1)
        return np.concatenate([inner, [duration]]) if self.free_duration else inner.copy()

    def _in_time(self, T: float) -> tuple[float, Array]:
        """T, and the knots' B-splines and their time derivatives for T."""
        return T, np.ascontiguousarray(self._values / (T ** np.arange(self.orders))[:, None])

    def _states(self, control: Array, T: float) -> tuple[Array, Array]:
        """States (N, nz) at the knots, and their B-splines."""
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
        """Cost, rows and equations; infinite cost for x out of range."""
        T = self.duration(x)
        if T <= 0.0 or not np.isfinite(x).all():
            return Values(np.inf, np.empty(0), np.empty(0))
        control = self.control(x)
        z, beta = self._states(control, T)
        h = np.empty((len(z), len(self.omega)))
        total = scaled_columns(self.dynamics.values(z.reshape(len(z), self.orders, self.nv)), z, self.task.scale,
                               self.nodes.weight, self.omega, h)
        self._last = x, h, z, beta
        if not np.isfinite(total):
            return Values(np.inf, np.empty(0), np.empty(0))
        return Values(T * (total + self.task.omega_duration) / self.unit, self._rows(h, T),
                      self.equations.values(control, h))

    def _cost(self, h: Array, T: float) -> float:
        used = self.omega > 0.0
        total = T * float(self.nodes.weight @ (h[:, used] ** 2 @ self.omega[used])) + self.task.omega_duration * T
        return total / self.unit

    def _rows(self, h: Array, T: float) -> Array:
        count = len(self._up) + len(self._low)
        out = np.empty(count + 2 * self.free_duration)
        limit_rows(h.reshape(-1), self._upper, self._up, self._lower, self._low, out[:count])
        if self.free_duration:
            low, high = self.task.durations
            out[count:] = low / T - 1.0, T / high - 1.0 if np.isfinite(high) else -1.0
        return out

    # ---- derivatives

    def linear(self, x: Array) -> Linear:
        """Derivatives of all columns by the states at x."""
        if self._last[0] is not x:
            self.values(x)
        _, h, z, beta = self._last
        T, control = self.duration(x), self.control(x)
        J = self.dynamics.derivatives(z.reshape(len(z), self.orders, self.nv),
                                      h[:, :self.nv] * self.task.scale[:self.nv])
        J /= self.task.scale[:self.dense, None]
        u = np.empty(0)
        if self.free_duration:
            moved = np.zeros((self.task.basis.count, self.nv))
            first, last = self.task.ends_by_duration(T)
            moved[:self.first], moved[self.end:] = first[:self.first], last[self.end - len(moved):]
            u = self._summed(moved, beta) - np.repeat(np.arange(self.orders), self.nv) * z / T
        return Linear(J, h, z, u, beta, T, control[[0, -1]])

    def gradient(self, at: Linear, y: Array) -> Array:
        """Gradient of cost + yᵀ rows by x; y: one multiplier per row."""
        slope, by_T = self._coefficients(at, y)
        nz_slope = self._to_states(at, slope)
        out = np.empty(self.size)
        by_control_points(nz_slope, at.beta, self.nodes.interval, self.first, out[:self.free])
        if self.free_duration:
            out[-1] = by_T + float(np.sum(nz_slope * at.u))
        return out

    def _coefficients(self, at: Linear, y: Array, nu: Array | None = None) -> tuple[Array, float]:
        """∂(cost + yᵀ rows + nuᵀ effort equations) by the scaled columns (N, columns), and explicitly by T."""
        c = np.empty_like(at.h)
        column_slopes(at.h, self._factors(at), self.omega, y, self._upper, self._lower, c)
        if nu is not None:
            self.equations.slopes(nu, c)
        by_T = 0.0
        if self.free_duration:
            low, high = self.task.durations
            by_T = self._cost(at.h, at.T) / at.T - y[-2] * low / at.T**2 + (y[-1] / high if np.isfinite(high) else 0.0)
        return c, by_T

    def _to_states(self, at: Linear, c: Array) -> Array:
        """Convert slopes by scaled columns to slopes by states (N, nz)."""
        out = np.empty_like(at.z)
        state_slopes(c, at.J, self.task.scale, out)
        return out

    def _factors(self, at: Linear) -> Array:
        """Twice the weight of ω h² at the knots (N,)."""
        return (2.0 * at.T / self.unit) * self.nodes.weight

    def curvature(self, at: Linear, y: Array, nu: Array | None = None) -> Array:
        """Second derivatives (N, nz, nz) of the columns by the states, weighted as in cost + yᵀ rows + nuᵀ equations.
        """
        out = np.zeros((len(at.z), self.nz, self.nz))
        if self.dense:
            c = self._coefficients(at, y, nu)[0][:, :self.dense] / self.task.scale[:self.dense]
            if isinstance(self.dynamics, ClosedRows):
                self.dynamics.add_curvature(at.z, c, out)
            else:
                self.dynamics.add_curvature(at.z, at.J * self.task.scale[:self.dense, None], c, out)
        return out

    def convexified(self, curvature: Array) -> bool:
        """Remove friction's concave part from the latest curvature; False if there is none."""
        concave = getattr(self.dynamics, "concave", None)
        if concave is None or not concave.any():
            return False
        index = np.arange(self.nv, 2 * self.nv)
        curvature[:, index, index] -= concave
        return True

    def step_matrix(self, at: Linear, D: Array, nu: Array | None = None, curvature: Array | None = None,
                    y: Array | None = None) -> Step:
        """Matrix of the step for cost + ½ D rows²: band, border (of T) and corner.

        Gauss–Newton matrix; Newton's with the `curvature` for multipliers y. nu: multipliers of the equations.
        """
        dense, diagonal = np.empty((len(at.z), self.dense)), np.empty_like(at.z)
        column_weights(self._factors(at), self.omega, D, self._upper, self._lower, self.task.scale, dense, diagonal)
        points = self.task.basis.degree + 1
        width = points * self.nv
        band = np.empty((width, self.free))
        normal_matrix(at.J, dense, diagonal, _NONE if curvature is None else curvature, at.beta, self.nodes.interval,
                      self.first, band)
        self.equations.stiffen(band)
        if nu is not None:
            self.equations.bend(band, at, nu, curvature is None)
        band = band[:min(width, self.free)]
        m = int(self.free_duration)
        border, corner = np.zeros((self.free, m)), np.zeros((m, m))
        if m:
            column, corner[0, 0] = self._by_duration(at, D, dense, diagonal, curvature, y, nu)
            border[:, 0] = column
        return Step(band, border, corner)

    def _by_duration(self, at: Linear, D: Array, dense: Array, diagonal: Array, curvature: Array | None,
                     y: Array | None, nu: Array | None) -> tuple[Array, float]:
        """The matrix's column of the duration, by control points, and its corner."""
        Wu = diagonal * at.u
        if self.dense:
            Ju = np.matmul(at.J, at.u[:, :, None])[:, :, 0]
            Wu += np.matmul((dense * Ju)[:, None, :], at.J)[:, 0]
        objective = self._to_states(at, self._coefficients(at, np.zeros(len(D)))[0]) / at.T
        low, high = self.task.durations
        corner = D[-2] * (low / at.T**2) ** 2 + (D[-1] / high**2 if np.isfinite(high) else 0.0)
        if curvature is None or y is None:
            cost = self._cost(at.h, at.T) - self.task.omega_duration * at.T / self.unit
            node = Wu + 0.5 * objective
            corner += np.sum(at.u * (Wu + objective)) + cost / (2.0 * at.T**2)
        else:
            Wu += np.matmul(curvature, at.u[:, :, None])[:, :, 0]
            d = np.repeat(np.arange(self.orders), self.nv)
            slope = self._to_states(at, self._coefficients(at, y, nu)[0])
            node = Wu + objective - slope * d / at.T
            corner += np.sum(at.u * (Wu + 2.0 * objective)) + np.sum(slope * (d * (d + 1) / at.T**2 * at.z))
        column = np.empty(self.free)
        by_control_points(np.ascontiguousarray(node), at.beta, self.nodes.interval, self.first, column)
        return column, float(corner)

    def along(self, at: Linear, dx: Array) -> Array:
        """Derivative of the rows along dx."""
        moved = np.zeros((self.task.basis.count, self.nv))
        moved[self.first:self.end] = dx[:self.free].reshape(-1, self.nv)
        dz = self._summed(moved, at.beta)
        count = len(self._up) + len(self._low)
        out = np.empty(count + 2 * self.free_duration)
        if self.free_duration:
            dz += at.u * dx[-1]
            low, high = self.task.durations
            out[count:] = np.array([-low / at.T**2, 1.0 / high if np.isfinite(high) else 0.0]) * dx[-1]
        row_changes(at.J, dz, self.task.scale, self._upper, self._lower, out[:count])
        return out
