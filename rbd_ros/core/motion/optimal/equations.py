"""Equality constraints of a motion: waypoints (linear in the control points), poses of bodies at the ends, and zero
effort of unactuated joints at collocation points.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..interior_point.linearised import Linear
from .nodes import Nodes, folded
from .task import Task

Array = NDArray[np.float64]
STIFF = 100.0    # weight of waypoints, relative to the median of the diagonal


class Equations:
    """Equations c = 0 (size,): waypoints, poses, efforts."""

    def __init__(self, task: Task, nodes: Nodes, first: int, free: int) -> None:
        """first: index of the first free control point; free: number of their unknowns."""
        self.task, self.first, self.free = task, first, free
        n = self.nv = task.size
        self._at, self._way = task.basis.values(task.via_times, 0)
        self._passed = len(self._at) * n
        self.size = self._passed
        self._poses = []    # goal, equations, unknowns, and end (0 or 1)
        for end, pose in enumerate(task.poses):
            if pose is not None:
                unknowns = slice(free - n, free) if end else slice(0, n)
                self._poses.append((pose, slice(self.size, self.size + pose.size), unknowns, end))
                self.size += pose.size
                self._way = folded(task.basis, self._at, self._way, bool(end))
        self._interval = nodes.interval
        self._efforts = slice(self.size, self.size)
        if len(task.passive):
            collocated = np.searchsorted(nodes.s, task.basis.collocation)
            self._cells = collocated[:, None], task.passive[None]    # indices of the columns at knots
            self.size += len(collocated) * len(task.passive)
            self._efforts = slice(self._efforts.start, self.size)

    def values(self, control: Array, h: Array) -> Array:
        """c (size,) for control points and scaled columns h at the knots."""
        windows = control[self._at[:, None] + np.arange(self.task.basis.degree + 1)]
        out = np.empty(self.size)
        out[:self._passed] = (np.matmul(self._way, windows)[:, 0] - self.task.via).reshape(-1)
        for pose, rows, _, end in self._poses:
            out[rows] = pose.equations(control[-end])
        if len(self.task.passive):
            out[self._efforts] = self.task.tolerated * h[self._cells].reshape(-1)
        return out

    def columns(self, at: Linear) -> Array:
        """Transposed derivatives by the unknowns (unknowns, size)."""
        m, B = self._passed, self.task.basis
        out = np.zeros((self.free + self.task.free_duration, self.size))
        for pose, rows, unknowns, end in self._poses:
            out[unknowns, rows] = pose.jacobian(at.ends[end]).T
        if len(self.task.passive):
            self._effort_columns(at, out[:, self._efforts])
        if not m:
            return out
        full = np.zeros((B.count, len(self._at)))
        for w, i in enumerate(self._at):
            full[i:i + B.degree + 1, w] = self._way[w, 0]
        inner = full[self.first:self.first + self.free // self.nv]
        eye = np.eye(self.nv)
        out[:self.free, :m] = (inner[:, None, :, None] * eye[None, :, None, :]).reshape(self.free, m)
        if self.task.free_duration:
            first, last = self.task.ends_by_duration(at.T)
            out[-1, :m] = (full[:len(first)].T @ first + full[len(full) - len(last):].T @ last).reshape(-1)
        return out

    def _effort_columns(self, at: Linear, out: Array) -> None:
        nodes = self._cells[0][:, 0]
        J = self.task.tolerated * at.J[self._cells]    # (C, P, nz)
        C, P, _ = J.shape
        beta = at.beta[nodes]
        by_points = np.einsum("cpdj,cda->cajp", J.reshape(C, P, -1, self.nv), beta)
        count = self.free // self.nv
        for c, i in enumerate(self._interval[nodes] - self.first):
            a = slice(max(0, -i), min(by_points.shape[1], count - i))
            out[(i + a.start) * self.nv:(i + a.stop) * self.nv, c * P:(c + 1) * P] = by_points[c, a].reshape(-1, P)
        if self.task.free_duration:
            out[-1] = np.matmul(J, at.u[nodes, :, None]).reshape(-1)

    def slopes(self, nu: Array, out: Array) -> None:
        """Add the slopes of nuᵀ c by the scaled columns to out (N, columns)."""
        if len(self.task.passive):
            out[self._cells] += self.task.tolerated * nu[self._efforts].reshape(-1, len(self.task.passive))

    def restored(self, x: Array) -> Array:
        """x with the end postures corrected to reach their poses; other equations are linear."""
        if not self._poses or not np.isfinite(x).all():
            return x
        out = x.copy()
        for pose, _, unknowns, _ in self._poses:
            out[unknowns] = pose.reached(x[unknowns])
        return out

    def stiffen(self, band: Array) -> None:
        """Add A Aᵀ of the waypoints to the band, which makes it definite outside their null space."""
        if not self._passed or len(self.task.passive):    # `tangent_step` needs no definite band
            return
        nv, count = self.nv, self.free // self.nv
        unit = STIFF * float(np.median(band[0]))
        for at, way in zip(self._at - self.first, self._way[:, 0], strict=True):
            for c in range(len(way)):
                for d in range(len(way) - c):
                    if at + c >= 0 and at + c + d < count:
                        band[d * nv, (at + c) * nv:(at + c + 1) * nv] += unit * way[c] * way[c + d]

    def bend(self, band: Array, at: Linear, nu: Array, convex: bool) -> None:
        """Add the poses' curvature with multipliers nu, or its convex part, and JᵀJ of their slopes with the weight of
        `stiffen`.
        """
        unit = STIFF * float(np.median(band[0]))
        for pose, rows, unknowns, end in self._poses:
            J = pose.jacobian(at.ends[end])
            C = pose.curvature(at.ends[end], nu[rows]) if nu[rows].any() else np.zeros((self.nv,) * 2)
            if convex:
                size, way = np.linalg.eigh(C)
                C = (way * np.maximum(size, 0.0)) @ way.T
            stiff = J.T @ J
            C = C + max(unit, STIFF * float(np.abs(C).max())) / max(float(stiff.max()), 1e-300) * stiff
            for d in range(self.nv):
                band[d, unknowns.start:unknowns.stop - d] += np.diagonal(C, -d)
