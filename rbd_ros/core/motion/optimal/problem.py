"""The optimisation problem on nodes: unknowns, cost, rows of the limits, and their derivatives.

Unknowns x: the free control points (joint after joint), then the duration T where it is free. Everything that is
weighed or limited is a column at each node: rows of the dynamics (`efforts`), then the state z = (q, v, a, …) itself.
Columns are divided by `scale`, the limit where there is one. Cost: T Σ_nodes w Σ_columns ω h² + ω_T T.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .dynamic_rows import ClosedRows, rows_of
from .linearised import Linear, Step, Values
from .nodes import Nodes, folded
from .normal_equations import by_control_points, normal_matrix
from .task import Task

Array = NDArray[np.float64]
_NONE = np.zeros((0, 0, 0))
STIFF = 100.0    # of equations, times the median of the diagonal


class Problem:
    """A task on nodes."""

    def __init__(self, task: Task, nodes: Nodes, unit: float = 1.0) -> None:
        self.task, self.nodes, self.unit = task, nodes, unit
        self.nv, self.orders = task.size, task.orders
        self.nz = self.nv * self.orders
        self.dynamics = rows_of(task)
        self.dense = self.dynamics.count
        self.first = task.basis.end_derivatives
        # a goal that is a pose: the last point is free, and stands for all of those that rest there
        self.end = task.basis.count - self.first + (task.pose is not None)
        self.free = (self.end - self.first) * self.nv
        self.free_duration = task.free_duration
        self.size = self.free + self.free_duration
        self._windows = nodes.interval[:, None] + np.arange(task.basis.degree + 1)
        self.omega = task.omega
        lower, upper = task.bounds(nodes.s)    # (N, columns), already divided by scale
        self._upper = np.flatnonzero(np.isfinite(upper))
        self._lower = np.flatnonzero(np.isfinite(lower))
        self._up, self._low = upper.reshape(-1)[self._upper], lower.reshape(-1)[self._lower]
        self._last = np.empty(0), np.empty((0, 0))    # x and columns of the latest values
        self._fixed_ends = None if self.free_duration else task.ends(task.duration)
        self._at, self._way = task.basis.values(task.via_times, 0)
        self._values = nodes.values
        if task.pose is not None:
            self._values, self._way = (folded(task.basis, interval, values) for interval, values in (
                (nodes.interval, nodes.values), (self._at, self._way)))

    # ---- motions

    def control(self, x: Array) -> Array:
        """All control points (K, nv)."""
        first, last = self._fixed_ends or self.task.ends(self.duration(x))
        free = x[:self.free].reshape(-1, self.nv)
        return np.concatenate([first, free, np.tile(free[-1], (self.first - 1, 1)) if self.task.pose else last])

    def duration(self, x: Array) -> float:
        return float(x[-1]) if self.free_duration else self.task.duration

    def unknowns(self, control: Array, duration: float) -> Array:
        inner = control[self.first:self.end].reshape(-1)
        return np.concatenate([inner, [duration]]) if self.free_duration else inner.copy()

    def _states(self, control: Array, T: float) -> tuple[Array, Array]:
        beta = self._values / (T ** np.arange(self.orders))[:, None]
        return np.matmul(beta, control[self._windows]), beta

    # ---- values

    def _columns(self, z: Array) -> Array:
        flat = z.reshape(len(z), -1)
        return np.concatenate([self.dynamics.values(z), flat], axis=1) / self.task.scale

    def values(self, x: Array) -> Values:
        """Cost, rows and equations; a cost of infinity where x is out of all reason."""
        T = self.duration(x)
        if T <= 0.0 or not np.isfinite(x).all():
            return Values(np.inf, np.empty(0), np.empty(0))
        control = self.control(x)
        z, _ = self._states(control, T)
        h = self._columns(z)
        if not np.isfinite(h).all():
            return Values(np.inf, np.empty(0), np.empty(0))
        self._last = x, h
        return Values(self._cost(h, T), self._rows(h, T), self._equations(control))

    def _cost(self, h: Array, T: float) -> float:
        used = self.omega > 0.0
        total = T * float(self.nodes.weight @ (h[:, used] ** 2 @ self.omega[used])) + self.task.omega_duration * T
        return total / self.unit

    def _rows(self, h: Array, T: float) -> Array:
        flat = h.reshape(-1)
        parts = [flat[self._upper] - self._up, self._low - flat[self._lower]]
        if self.free_duration:
            low, high = self.task.durations
            parts.append(np.array([low / T - 1.0, T / high - 1.0 if np.isfinite(high) else -1.0]))
        return np.concatenate(parts)

    def _equations(self, control: Array) -> Array:
        windows = control[self._at[:, None] + np.arange(self.task.basis.degree + 1)]
        passed = (np.matmul(self._way, windows)[:, 0] - self.task.via).reshape(-1)
        pose = self.task.pose
        return passed if pose is None else np.concatenate([passed, pose.equations(self.task.model, control[-1])])

    # ---- derivatives

    def linear(self, x: Array) -> Linear:
        """Derivatives of all columns by the states at x."""
        T = self.duration(x)
        control = self.control(x)
        z, beta = self._states(control, T)
        flat = z.reshape(len(z), -1)
        h = self._last[1] if self._last[0] is x else self._columns(z)
        J = self.dynamics.derivatives(z, h[:, :self.nv] * self.task.scale[:self.nv])
        J /= self.task.scale[:self.dense, None]
        u = np.empty(0)
        if self.free_duration:
            moved = np.zeros((self.task.basis.count, self.nv))
            first, last = self.task.ends_by_duration(T)
            moved[:self.first], moved[len(moved) - self.first:] = first, last
            u = (np.matmul(beta, moved[self._windows]) - np.arange(self.orders)[:, None] * z / T).reshape(len(z), -1)
        return Linear(J, h, flat, u, beta, T, control[-1])

    def gradient(self, at: Linear, y: Array) -> Array:
        """Gradient of cost + yᵀ rows by x; y as the rows."""
        slope, by_T = self._coefficients(at, y)
        nz_slope = self._to_states(at, slope)
        out = np.empty(self.size)
        by_control_points(nz_slope, at.beta, self.nodes.interval, self.first, out[:self.free])
        if self.free_duration:
            out[-1] = by_T + float(np.sum(nz_slope * at.u))
        return out

    def _coefficients(self, at: Linear, y: Array) -> tuple[Array, float]:
        """∂(cost + yᵀ rows) by the scaled columns (N, columns), and by T itself."""
        c = (2.0 * at.T / self.unit) * self.nodes.weight[:, None] * (self.omega * at.h)
        flat = c.reshape(-1)
        up = len(self._upper)
        flat[self._upper] += y[:up]
        flat[self._lower] -= y[up:up + len(self._lower)]
        by_T = 0.0
        if self.free_duration:
            low, high = self.task.durations
            by_T = self._cost(at.h, at.T) / at.T - y[-2] * low / at.T**2 + (y[-1] / high if np.isfinite(high) else 0.0)
        return c, by_T

    def _to_states(self, at: Linear, c: Array) -> Array:
        """Slopes by the scaled columns → by the states (N, nz)."""
        box: Array = c[:, self.dense:] / self.task.scale[self.dense:]
        if self.dense:
            box += np.matmul(c[:, None, :self.dense], at.J)[:, 0]
        return box

    def curvature(self, at: Linear, y: Array) -> Array | None:
        """Second derivatives of the columns by the states, weighed as in cost + yᵀ rows: (N, nz, nz); None where they
        are not known.
        """
        if isinstance(self.dynamics, ClosedRows):
            return None
        out = np.zeros((len(at.z), self.nz, self.nz))
        if self.dense:
            c = self._coefficients(at, y)[0][:, :self.dense] / self.task.scale[:self.dense]
            self.dynamics.add_curvature(at.z, at.J * self.task.scale[:self.dense, None], c, out)
        return out

    def step_matrix(self, at: Linear, D: Array, nu: Array | None = None, curvature: Array | None = None,
                    y: Array | None = None) -> Step:
        """Matrix of the step for cost + ½ D rows²: band, border (of T) and corner.

        Gauss and Newton's; with the `curvature` of multipliers y, Newton's. nu: multipliers of the equations.
        """
        weight = self._weights(at, D)
        dense = np.ascontiguousarray(weight[:, :self.dense])
        diagonal = weight[:, self.dense:] / self.task.scale[self.dense:] ** 2
        points = self.task.basis.degree + 1
        width = points * self.nv
        band = np.empty((width, self.free))
        normal_matrix(at.J, dense, diagonal, _NONE if curvature is None else curvature, at.beta, self.nodes.interval,
                      self.first, band)
        if len(self._at):
            self._stiffen(band)
        if self.task.pose is not None and nu is not None and nu.any():
            self._bend(band, self.task.pose.curvature(self.task.model, at.goal, nu[len(nu) - self.task.pose.size:]),
                       curvature is None)
        band = band[:min(width, self.free)]
        m = int(self.free_duration)
        border, corner = np.zeros((self.free, m)), np.zeros((m, m))
        if m:
            column, corner[0, 0] = self._by_duration(at, D, dense, diagonal, curvature, y)
            border[:, 0] = column
        return Step(band, border, corner)

    def _bend(self, band: Array, C: Array, convex: bool) -> None:
        """Add the curvature C (nv, nv) of the goal's equations, or its convex part."""
        if convex:
            size, way = np.linalg.eigh(C)
            C = (way * np.maximum(size, 0.0)) @ way.T
        for d in range(self.nv):
            band[d, self.free - self.nv:self.free - d] += np.diagonal(C, -d)

    def restored(self, x: Array) -> Array:
        """x with the goal's posture moved to where its pose is reached; other equations are linear."""
        pose = self.task.pose
        if pose is None or not np.isfinite(x).all():
            return x
        out = x.copy()
        goal = slice(self.free - self.nv, self.free)
        out[goal] = pose.reached(self.task.model, x[goal])
        return out

    def _stiffen(self, band: Array) -> None:
        """Add A Aᵀ of the equations to the band: nothing on their tangent, but elsewhere it makes it definite."""
        nv, count = self.nv, self.free // self.nv
        unit = STIFF * float(np.median(band[0]))
        for at, way in zip(self._at - self.first, self._way[:, 0], strict=True):
            for c in range(len(way)):
                for d in range(len(way) - c):
                    if at + c >= 0 and at + c + d < count:
                        band[d * nv, (at + c) * nv:(at + c + 1) * nv] += unit * way[c] * way[c + d]

    def _by_duration(self, at: Linear, D: Array, dense: Array, diagonal: Array, curvature: Array | None,
                     y: Array | None) -> tuple[Array, float]:
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
            slope = self._to_states(at, self._coefficients(at, y)[0])
            node = Wu + objective - slope * d / at.T
            corner += np.sum(at.u * (Wu + 2.0 * objective)) + np.sum(slope * (d * (d + 1) / at.T**2 * at.z))
        column = np.empty(self.free)
        by_control_points(np.ascontiguousarray(node), at.beta, self.nodes.interval, self.first, column)
        return column, float(corner)

    def _weights(self, at: Linear, D: Array) -> Array:
        weight: Array = (2.0 * at.T / self.unit) * self.nodes.weight[:, None] * self.omega
        flat = weight.reshape(-1)
        up = len(self._upper)
        flat[self._upper] += D[:up]
        flat[self._lower] += D[up:up + len(self._lower)]
        return weight

    def along(self, at: Linear, dx: Array) -> Array:
        """Rows' derivative along dx."""
        K = self.task.basis.count
        moved = np.zeros((K, self.nv))
        moved[self.first:self.end] = dx[:self.free].reshape(-1, self.nv)
        dz = np.matmul(at.beta, moved[self._windows]).reshape(len(at.z), -1)
        parts: list[Array] = []
        if self.free_duration:
            dz += at.u * dx[-1]
        dense = np.matmul(at.J, dz[:, :, None])[:, :, 0] if self.dense else np.empty((len(dz), 0))
        flat = np.concatenate([dense, dz / self.task.scale[self.dense:]], axis=1).reshape(-1)
        parts = [flat[self._upper], -flat[self._lower]]
        if self.free_duration:
            low, high = self.task.durations
            parts.append(np.array([-low / at.T**2, 1.0 / high if np.isfinite(high) else 0.0]) * dx[-1])
        return np.concatenate(parts)

    def equation_columns(self, at: Linear) -> Array:
        """Transposed derivatives of the equations (size, m)."""
        m, pose = len(self._at) * self.nv, self.task.pose
        out = np.zeros((self.size, m + (0 if pose is None else pose.size)))
        if pose is not None:
            out[self.free - self.nv:self.free, m:] = pose.jacobian(self.task.model, at.goal).T
        if not m:
            return out
        full = np.zeros((self.task.basis.count, len(self._at)))
        for w, i in enumerate(self._at):
            full[i:i + self.task.basis.degree + 1, w] = self._way[w, 0]
        inner = full[self.first:self.end]
        eye = np.eye(self.nv)
        out[:self.free, :m] = (inner[:, None, :, None] * eye[None, :, None, :]).reshape(self.free, m)
        if self.free_duration:
            first, last = self.task.ends_by_duration(at.T)
            out[-1, :m] = (full[:self.first].T @ first + full[len(full) - self.first:].T @ last).reshape(-1)
        return out
