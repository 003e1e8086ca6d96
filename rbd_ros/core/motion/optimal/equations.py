"""Equality constraints of a motion: waypoints (linear in the control points), body poses at the ends, and zero efforts
of unactuated joints at collocation points.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..interior_point.linearization import Linearization
from .nodes import Nodes, folded
from .task import Task

Array = NDArray[np.float64]
WAYPOINT_WEIGHT = 100.0    # weight of A Aᵀ relative to the median of the diagonal


class Equations:
    """Equations c = 0 (size,): waypoints, body poses, efforts."""

    def __init__(self, task: Task, nodes: Nodes, first: int, free: int) -> None:
        """first: index of the first free control point; free: number of their unknowns."""
        self.task, self.first, self.free = task, first, free
        n = self.nv = task.size
        self._via_interval, self._via_values = task.basis.values(task.via_times, 0)
        self._via_size = len(self._via_interval) * n
        self.size = self._via_size
        self._poses = []    # goal, equations, unknowns, and end (0 or 1)
        for end, pose in enumerate(task.poses):
            if pose is not None:
                unknowns = slice(free - n, free) if end else slice(0, n)
                self._poses.append((pose, slice(self.size, self.size + pose.size), unknowns, end))
                self.size += pose.size
                self._via_values = folded(task.basis, self._via_interval, self._via_values, bool(end))
        self._interval = nodes.interval
        self._efforts = slice(self.size, self.size)
        if len(task.passive):
            collocated = np.searchsorted(nodes.s, task.basis.collocation)
            self._cells = collocated[:, None], task.passive[None]    # indices of the columns at knots
            self.size += len(collocated) * len(task.passive)
            self._efforts = slice(self._efforts.start, self.size)

    def values(self, control: Array, h: Array) -> Array:
        """c (size,) for control points and scaled columns h at the knots."""
        windows = control[self._via_interval[:, None] + np.arange(self.task.basis.degree + 1)]
        out = np.empty(self.size)
        out[:self._via_size] = (np.matmul(self._via_values, windows)[:, 0] - self.task.via).reshape(-1)
        for pose, rows, _, end in self._poses:
            out[rows] = pose.equations(control[-end])
        if len(self.task.passive):
            out[self._efforts] = self.task.tolerated * h[self._cells].reshape(-1)
        return out

    def columns(self, linear: Linearization) -> Array:
        """Transposed derivatives by the unknowns (unknowns, size)."""
        m, B = self._via_size, self.task.basis
        out = np.zeros((self.free + self.task.free_duration, self.size))
        for pose, rows, unknowns, end in self._poses:
            out[unknowns, rows] = pose.jacobian(linear.ends[end]).T
        if len(self.task.passive):
            self._effort_columns(linear, out[:, self._efforts])
        if not m:
            return out
        full = np.zeros((B.count, len(self._via_interval)))
        for w, i in enumerate(self._via_interval):
            full[i:i + B.degree + 1, w] = self._via_values[w, 0]
        inner = full[self.first:self.first + self.free // self.nv]
        eye = np.eye(self.nv)
        out[:self.free, :m] = (inner[:, None, :, None] * eye[None, :, None, :]).reshape(self.free, m)
        if self.task.free_duration:
            first, last = self.task.ends_by_duration(linear.T)
            out[-1, :m] = (full[:len(first)].T @ first + full[len(full) - len(last):].T @ last).reshape(-1)
        return out

    def _effort_columns(self, linear: Linearization, out: Array) -> None:
        nodes = self._cells[0][:, 0]
        J = self.task.tolerated * linear.J[self._cells]    # (C, P, nz)
        C, P, _ = J.shape
        beta = linear.beta[nodes]
        by_points = np.einsum("cpdj,cda->cajp", J.reshape(C, P, -1, self.nv), beta)
        count = self.free // self.nv
        for c, i in enumerate(self._interval[nodes] - self.first):
            a = slice(max(0, -i), min(by_points.shape[1], count - i))
            out[(i + a.start) * self.nv:(i + a.stop) * self.nv, c * P:(c + 1) * P] = by_points[c, a].reshape(-1, P)
        if self.task.free_duration:
            out[-1] = np.matmul(J, linear.u[nodes, :, None]).reshape(-1)

    def add_derivatives(self, nu: Array, out: Array) -> None:
        """Add the derivatives of nuᵀ c by the scaled columns to out (N, columns)."""
        if len(self.task.passive):
            out[self._cells] += self.task.tolerated * nu[self._efforts].reshape(-1, len(self.task.passive))

    def corrected(self, x: Array) -> Array:
        """x with end postures corrected to satisfy the pose equations, the nonlinear ones."""
        if not self._poses or not np.isfinite(x).all():
            return x
        out = x.copy()
        for pose, _, unknowns, _ in self._poses:
            out[unknowns] = pose.reached(x[unknowns])
        return out

    def add_waypoint_weight(self, band: Array) -> None:
        """Add A Aᵀ of the waypoint equations, weighted, to the band: it is then definite outside their null space."""
        if not self._via_size or len(self.task.passive):    # `tangent_step` needs no definite band
            return
        nv, count = self.nv, self.free // self.nv
        weight = WAYPOINT_WEIGHT * float(np.median(band[0]))
        for offset, row in zip(self._via_interval - self.first, self._via_values[:, 0], strict=True):
            for c in range(len(row)):
                for d in range(len(row) - c):
                    if offset + c >= 0 and offset + c + d < count:
                        band[d * nv, (offset + c) * nv:(offset + c + 1) * nv] += weight * row[c] * row[c + d]

    def add_pose_curvature(self, band: Array, linear: Linearization, nu: Array, convex: bool) -> None:
        """Add the pose equations' second derivatives with multipliers nu, or their convex part, and JᵀJ, weighted as in
        `add_waypoint_weight`.
        """
        least = WAYPOINT_WEIGHT * float(np.median(band[0]))
        for pose, rows, unknowns, end in self._poses:
            J = pose.jacobian(linear.ends[end])
            C = pose.curvature(linear.ends[end], nu[rows]) if nu[rows].any() else np.zeros((self.nv,) * 2)
            if convex:
                eigenvalues, vectors = np.linalg.eigh(C)
                C = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
            normal = J.T @ J
            weight = max(least, WAYPOINT_WEIGHT * float(np.abs(C).max())) / max(float(normal.max()), 1e-300)
            C = C + weight * normal
            for d in range(self.nv):
                band[d, unknowns.start:unknowns.stop - d] += np.diagonal(C, -d)
