"""A path as a task of one coordinate: the spline is s(t) from 0 to 1, which determines the joint motion.

`v = q' ṡ`, `a = q'' ṡ² + q' s̈`, `jerk = q''' ṡ³ + 3 q'' ṡ s̈ + q' s⃛`, primes by s.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..optimal.dynamic_rows import DynamicRows
from ..optimal.task import STATE, Column, Task

Array = NDArray[np.float64]
Path = Callable[[Array, int], Array]    # s (N,) and an order → derivatives by s (order + 1, N, nv)
MOVED = 2e-3       # change of s, and
FASTER = 0.02      # relative change of ṡ, after which the curvature is recomputed
STEP = 1e-6        # of s, and relative of the largest ṡ, for finite differences
STILL = 1e-9       # share of the path's largest slope that counts as zero


@dataclass(frozen=True, eq=False)
class PathTask(Task):
    """Task of s(t): limits are those of the joints, ends are rows s, ṡ, s̈ (3, 1)."""

    path: Path | None = None

    @property
    def size(self) -> int:
        return 1

    def rows(self) -> PathRows:
        return PathRows(self)

    @cached_property
    def limited(self) -> tuple[str, ...]:
        """Limited quantities among velocity, acceleration, jerk."""
        return tuple(name for name in STATE[1:] if np.isfinite(self.limits.of(name)[1]).any())

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Rows of the dynamics, joints' velocities, accelerations, jerks; then s and its derivatives; ṡ ≥ 0."""
        every = np.arange(self.model.nv)
        parts = [self._column(name, every) for name in (*(name for name, _ in self.dense), *self.limited)]
        zero, none = np.zeros(1), np.full(1, np.inf)
        return (*parts, *(Column(f"s{'_dot' * d}", ("path",), zero if d == 1 else -none, none, zero, zero)
                          for d in range(self.orders)))

    def _column(self, name: str, which: NDArray[np.int64]) -> Column:
        return super()._column(name, which)._replace(weight=np.zeros(len(which)))

    @cached_property
    def index(self) -> NDArray[np.int64]:
        return np.arange(self.model.nv)

    @cached_property
    def end_columns(self) -> dict[str, Array]:
        """Values (2, nv) at the fully prescribed ends."""
        assert self.path is not None
        z = np.stack([np.pad(end, ((0, self.orders - len(end)), (0, 0))) for end in (self.start, self.goal)])
        values = self.rows().values(z)
        prescribed = np.array([not position_only for position_only in self.position_only])
        nv = self.model.nv
        names = [column.name for column in self.columns[:len(self.columns) - self.orders]]
        # effort rates are free at the ends, because s⃛ is free
        return {name: values[prescribed, k * nv:(k + 1) * nv] for k, name in enumerate(names)
                if name in ("effort", "velocity", "acceleration")}

    def bounds(self, s: Array) -> tuple[Array, Array]:
        """Bounds of the scaled columns, as in `Task.bounds`."""
        low, high = [], []
        for column in self.columns:
            ends = self.end_columns.get(column.name, np.zeros((0, len(column.labels))))
            low.append(np.maximum(column.lower, np.minimum(column.lower + column.margin,
                                                           ends.min(axis=0, initial=np.inf))))
            high.append(np.minimum(column.upper, np.maximum(column.upper - column.margin,
                                                            ends.max(axis=0, initial=-np.inf))))
        shape = (len(s), len(self.scale))
        return (np.broadcast_to(np.concatenate(low) / self.scale, shape),
                np.broadcast_to(np.concatenate(high) / self.scale, shape))


class PathRows:
    """Rows per knot: dynamics, then velocities, accelerations and jerks of limited joints."""

    def __init__(self, task: PathTask) -> None:
        self.task, self.nv = task, task.model.nv
        self.dynamics = DynamicRows(task)
        self._curvature: tuple[Array, Array] | None = None    # states s of the last curvature, and the curvature
        self._derivatives = [STATE.index(name) for name in task.limited]
        self.count = self.dynamics.count + self.nv * len(self._derivatives)

    def joints(self, z: Array) -> Array:
        """States (N, orders, nv) of the joints at states z (N, orders, 1) of s; orders 3 or 4."""
        assert self.task.path is not None
        s, ds, dds = z[:, 0, 0], z[:, 1], z[:, 2]
        p = self.task.path(np.clip(s, 0.0, 1.0), 3)
        states = [p[0], p[1] * ds, p[2] * ds**2 + p[1] * dds]
        if z.shape[1] > 3:
            states.append(p[3] * ds**3 + 3.0 * p[2] * ds * dds + p[1] * z[:, 3])
        return np.stack(states, axis=1)

    def _state_slopes(self, z: Array) -> Array:
        """Derivatives (N, orders nv, orders) of the joints' states by those of s."""
        assert self.task.path is not None
        N, orders, _ = z.shape
        s, ds, dds = z[:, 0, 0], z[:, 1], z[:, 2]
        p = self.task.path(np.clip(s, 0.0, 1.0), 4)
        L = np.zeros((N, orders, self.nv, orders))
        L[:, 0, :, 0] = L[:, 1, :, 1] = L[:, 2, :, 2] = p[1]
        L[:, 1, :, 0] = p[2] * ds
        L[:, 2, :, 0] = p[3] * ds**2 + p[2] * dds
        L[:, 2, :, 1] = 2.0 * p[2] * ds
        if orders > 3:
            L[:, 3, :, 0] = p[4] * ds**3 + 3.0 * p[3] * ds * dds + p[2] * z[:, 3]
            L[:, 3, :, 1] = 3.0 * (p[3] * ds**2 + p[2] * dds)
            L[:, 3, :, 2] = 3.0 * p[2] * ds
            L[:, 3, :, 3] = p[1]
        return L.reshape(N, orders * self.nv, orders)

    def values(self, z: Array) -> Array:
        """(N, count) at states z (N, orders, 1)."""
        x = self.joints(z)
        return np.concatenate([self.dynamics.values(x), *(x[:, d] for d in self._derivatives)], axis=1)

    def derivatives(self, z: Array, _: Array) -> Array:
        """Derivatives (N, count, orders) at states z."""
        x, L = self.joints(z), self._state_slopes(z)
        tau = self.dynamics.values(x)[:, :self.nv]
        parts = [self.dynamics.derivatives(x, tau) @ L] if self.dynamics.count else []
        return np.concatenate([*parts, *(L[:, d * self.nv:(d + 1) * self.nv] for d in self._derivatives)], axis=1)

    def add_curvature(self, z: Array, J: Array, c: Array, out: Array) -> None:
        """Add cᵀ ∂² rows (N, orders, orders) to out; J: derivatives; c (N, rows). By forward differences along s and ṡ,
        because rows are linear in the higher derivatives; cached until s(t) has changed.
        """
        z = z.reshape(len(z), -1, 1)
        speed = max(float(np.abs(z[:, 1]).max()), 1e-300)
        if self._curvature is None or len(self._curvature[0]) != len(z) or (
                np.abs(z[:, :2] - self._curvature[0]).max(axis=(0, 2)) > [MOVED, FASTER * speed]).any():
            tensor = np.empty((2, *J.shape))
            for d, step in enumerate((STEP, STEP * speed)):
                moved = z.copy()
                # inwards at the end of the path
                moved[:, d, 0] += step if d else np.where(z[:, 0, 0] > 0.5, -step, step)
                tensor[d] = (self.derivatives(moved, c) - J) / (moved[:, d] - z[:, d])[:, :, None]
            self._curvature = z[:, :2].copy(), tensor
        weighed = np.einsum("nr,dnrx->ndx", c, self._curvature[1])
        out[:, :2, :2] += 0.5 * (weighed[:, :, :2] + weighed[:, :, :2].swapaxes(1, 2))
        out[:, :2, 2:] += weighed[:, :, 2:]
        out[:, 2:, :2] += weighed[:, :, 2:].swapaxes(1, 2)


def at_rest(path: Path) -> tuple[bool, bool]:
    """Whether q' and q'' vanish at the start and at the end, so that joints rest there for any ṡ."""
    p = path(np.array([0.0, 1.0, *np.linspace(0.1, 0.9, 17)]), 2)
    size = np.abs(p[1:]).max(axis=(1, 2))
    start, end = (bool((np.abs(p[1:, k]).max(axis=1) <= STILL * size).all()) for k in (0, 1))
    return start, end
