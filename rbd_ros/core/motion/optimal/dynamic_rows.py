"""Rows of inverse dynamics at the knots: efforts, power, effort rates, and derivatives by (q, v, a, …).

Friction is added to the efforts (`dynamics.friction`); load-dependent friction is not supported with effort rates.
"""
from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...derivatives.inverse import inverse_dynamics_derivatives
from ...derivatives.second_derivatives import inverse_dynamics_second_derivatives
from ...derivatives.time_derivatives import inverse_dynamics_time_derivatives
from ...dynamics.inverse import inverse_dynamics
from ..closed.closed_rows import ClosedRows
from .curvature import EffortCurvature
from .task import Task

Array = NDArray[np.float64]
DIFFERENCE_STEP = 2e-3    # rad or m, of fourth-order differences, with errors of about 1e-11
MAX_DISPLACEMENT = 0.4    # rad or m (and a tenth of rad/s or m/s): change of knots after which curvature is recomputed
MAX_DISPLACEMENT_PASSIVE = 0.01    # likewise with unactuated joints, whose multipliers are large


def rows_of(task: Task, without: Collection[str] = (), threshold: float | None = None) -> DynamicRows | ClosedRows:
    """The dynamics rows of a task. without: quantities of closed-loop mechanisms whose values may be left 0. threshold:
    of a certificate, whose distances are exact only above it.
    """
    task_rows: DynamicRows | None = task.rows()    # with the same interface
    if task_rows is not None:
        return task_rows
    return DynamicRows(task, threshold) if task.chain is None else ClosedRows(
        task.chain, task.dense, task.planes, task.springs, without)


class DynamicRows:
    """Rows per knot: effort, power, effort rate, motor velocity (nv each) as the task uses them, then clearances of
    points and distances of collision shapes.
    """

    def __init__(self, task: Task, threshold: float | None = None) -> None:
        self.task, self.model, self._specialized = task, task.model, task.specialized or task.model
        self.nv = task.model.nv
        self.effort, self.power, self.rate = task.uses_effort, task.uses_power, task.uses_rate
        self.motor = task.uses_motor
        if self.rate:
            task.friction.without_load("the rate of a motion's efforts")
        self._efforts_count = self.nv * (self.effort + self.power + self.rate + self.motor)
        distances = task.distances if task.distances is None or threshold is None else task.distances.samples(threshold)
        self.places = [rows for rows in (task.planes, distances) if rows is not None and len(rows)]
        self.count = self._efforts_count + sum(len(rows) for rows in self.places)
        self._curvature: EffortCurvature | None = None
        self._curvature_state: tuple[Array, Array] | None = None
        self.concave: Array | None = None    # friction's concave part (N, nv) of the latest curvature, by speeds

    def values(self, z: Array) -> Array:
        """Rows (N, count) at states z (N, orders, nv)."""
        rows = self._stacked(z, *self._efforts(z)) if self._efforts_count else np.empty((len(z), 0))
        return rows if not self.places else np.concatenate(
            [rows, *(part.values(np.ascontiguousarray(z[:, 0])) for part in self.places)], axis=1)

    def _place_rows(self) -> Iterator[tuple[Any, slice]]:
        """Clearances and distances, and their rows."""
        first = self._efforts_count
        for part in self.places:
            yield part, slice(first, first := first + len(part))

    def _efforts(self, z: Array) -> tuple[Array, Array | None]:
        """Efforts with friction, and their rates if used."""
        q, v, a = (np.ascontiguousarray(z[:, d]) for d in range(3))
        rate = None
        if self.rate:
            series = inverse_dynamics_time_derivatives(self.model, q, v, a, z[:, 3],
                                                       external_wrenches=self.task.wrenches)
            tau, rate = series[:, 0], series[:, 1] + self.task.friction.slope(v) * a
        else:
            tau = inverse_dynamics(self._specialized, q, v, a, self.task.wrenches)
        return (self.task.friction.add(v, tau) if self.task.has_friction else tau), rate

    def _stacked(self, z: Array, tau: Array, rate: Array | None) -> Array:
        parts = [tau] if self.effort else []
        if self.power:
            parts.append(tau * z[:, 1])
        if rate is not None:
            parts.append(rate)
            if self.task.springs is not None and self.motor:
                parts.append(z[:, 1] + rate * self.task.springs.compliance(tau)[0])
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def derivatives(self, z: Array, tau: Array) -> Array:
        """Derivatives (N, count, nz) at states z with efforts tau (N, nv)."""
        count, orders, nv = z.shape
        J = np.zeros((count, self.count, orders * nv))
        for part, rows in self._place_rows():
            J[:, rows, :nv] = part.jacobian(np.ascontiguousarray(z[:, 0]))
        if not self._efforts_count:
            return J
        q, v, a = (np.ascontiguousarray(z[:, d]) for d in range(3))
        by = inverse_dynamics_derivatives(self._specialized, q, v, a, self.task.wrenches)
        eye = np.eye(nv)
        slope, gain = np.zeros_like(v), None
        if self.task.friction.by_load:
            carried = self.task.friction.remove(v, tau)
            slope, gain = self.task.friction.slope(v, carried), self.task.friction.gain(v, carried)
        elif self.task.has_friction:
            slope = self.task.friction.slope(v)
        tau_J = J[:, :nv]    # efforts are always the first rows
        tau_J[:, :, :nv] = by.q
        tau_J[:, :, nv:2 * nv] = by.v
        tau_J[:, :, 2 * nv:3 * nv] = by.a
        if gain is not None:
            tau_J *= gain[:, :, None]
        if self.task.has_friction:
            tau_J[:, :, nv:2 * nv] += slope[:, :, None] * eye
        first = nv * self.effort
        if self.power:
            J[:, first:first + nv] = v[:, :, None] * tau_J
            J[:, first:first + nv, nv:2 * nv] += tau[:, :, None] * eye
            first += nv
        if self.rate:
            self._rate(z, by, slope, J[:, first:first + nv])
        if self.motor:
            assert self.task.springs is not None
            c, c_slope = self.task.springs.compliance(tau)
            rate = np.matmul(tau_J[:, :, :3 * nv], z[:, 1:4].reshape(count, 3 * nv, 1))[:, :, 0]
            J[:, first + nv:first + 2 * nv] = (c[:, :, None] * J[:, first:first + nv]
                                               + (c_slope * rate)[:, :, None] * tau_J)
            J[:, first + nv:first + 2 * nv, nv:2 * nv] += eye
        return J

    def add_curvature(self, z: Array, J: Array, c: Array, out: Array) -> None:
        """Add cᵀ ∂² rows of efforts, power and clearances, without rates, to out (N, nz, nz). J: Jacobian; c (N, rows).
        """
        n = self.nv
        z = z.reshape(len(z), -1, n)
        q, v, a = (np.ascontiguousarray(z[:, d]) for d in range(3))
        for part, rows in self._place_rows():
            out[:, :n, :n] += part.curvature(q, c[:, rows])
        if not self._efforts_count:
            return
        lam = c[:, :n].copy()
        if self.power:
            p = c[:, n:2 * n]
            lam += p * v
            out[:, n:2 * n] += p[:, :, None] * J[:, :n]
            out[:, :, n:2 * n] += (p[:, :, None] * J[:, :n]).transpose(0, 2, 1)
        if self._curvature is None or self._curvature_state is None or max(
                np.abs(q - self._curvature_state[0]).max(), 0.1 * np.abs(v - self._curvature_state[1]).max()) > (
                    MAX_DISPLACEMENT_PASSIVE if len(self.task.passive) else MAX_DISPLACEMENT):
            self._curvature = EffortCurvature(self._specialized, q, v, a, self.task.wrenches)
            self._curvature_state = q, v
        law = self.task.friction
        if law.by_load:
            tau = inverse_dynamics(self._specialized, q, v, a, self.task.wrenches)
            by_speed, mixed, by_load = law.curvatures(v, tau)
            gain, slope = law.gain(v, tau), law.slope(v, tau)
            index = np.arange(n)
            unloaded = J[:, :n].copy()    # of the efforts without friction
            unloaded[:, index, n + index] -= slope
            unloaded /= gain[:, :, None]
            cross = (lam * mixed)[:, :, None] * unloaded
            out[:, n:2 * n] += cross
            out[:, :, n:2 * n] += cross.swapaxes(1, 2)
            out += unloaded.swapaxes(1, 2) @ ((lam * by_load)[:, :, None] * unloaded)
            self._curvature.add(lam * gain, out)
            by_speed = lam * by_speed
        else:
            self._curvature.add(lam, out)
            by_speed = lam * law.curvature(v)
        if self.task.has_friction:
            index = np.arange(n, 2 * n)
            out[:, index, index] += by_speed
            self.concave = np.minimum(by_speed, 0.0)

    def _rate(self, z: Array, by: tuple[Array, Array, Array], slope: Array, out: Array) -> None:
        """out := ∂τ̇ by q, v, a, jerk: the time derivatives of ∂τ plus ∂τ shifted by one order."""
        nv = self.nv
        q, v, a, jerk = (np.ascontiguousarray(z[:, d]) for d in range(4))
        second = inverse_dynamics_second_derivatives(self.model, q, v, a)
        V, A, Jk = v[:, None, :, None], a[:, None, :, None], jerk[:, None, :, None]
        eye = np.eye(nv)

        def last(tensor: Array, x: Array) -> Array:
            return np.matmul(tensor, x)[..., 0]

        def middle(tensor: Array, x: Array) -> Array:
            return np.matmul(tensor.swapaxes(2, 3), x)[..., 0]

        out[:, :, :nv] = last(second.qq, V) + last(second.qv, A) + middle(second.aq, Jk)
        if self.task.wrenches is not None:
            out[:, :, :nv] += self._wrench_rate(q, v)
        curvature = self.task.friction.curvature(v) if self.task.has_friction else np.zeros_like(v)
        out[:, :, nv:2 * nv] = by[0] + middle(second.qv, V) + last(second.vv, A) + (curvature * a)[:, :, None] * eye
        out[:, :, 2 * nv:3 * nv] = by[1] + last(second.aq, V) + slope[:, :, None] * eye
        out[:, :, 3 * nv:4 * nv] = by[2]

    def _wrench_rate(self, q: Array, v: Array) -> Array:
        """Time derivative (N, nv, nv) of the external wrenches' part of ∂τ/∂q, by fourth-order differences along v."""
        zero = np.zeros_like(q)
        speed = np.maximum(np.abs(v).max(axis=1, keepdims=True), 1e-300)

        def slope(x: Array) -> Array:
            loaded, unloaded = (inverse_dynamics_derivatives(self.model, x, zero, zero, wrenches).q
                           for wrenches in (self.task.wrenches, None))
            return np.asarray(loaded - unloaded)

        step = DIFFERENCE_STEP * v / speed
        first, second = (slope(q + k * step) - slope(q - k * step) for k in (1, 2))
        return np.asarray((8.0 * first - second) * (speed / (12.0 * DIFFERENCE_STEP))[:, :, None])
