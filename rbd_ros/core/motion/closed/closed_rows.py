"""Weighted and limited quantities at the knots of a closed-loop mechanism, and derivatives by (u, u̇, ü, u⃛)."""
from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from ...dynamics.constrained.mechanism import FAR, Index, Lifted
from ...errors import RbdError
from ..places.plane_limit import Planes
from ..optimal.springs import Springs
from .closed_chain import ClosedChain, Shared
from .slopes import Slopes, rate_slopes, slopes

Array = NDArray[np.float64]
STEP = 1e-6       # rad, m, and per second, for finite differences
MOVED = 0.05      # rad, m: displacement of knots after which curvature is recomputed (a tenth for speeds)
ARRIVED = 1e-5    # rad, m: tolerance of the goal's posture


class ClosedRows:
    """Rows per knot, block by block: "effort", "power", "effort_rate", "motor_velocity" of motors, "position",
    "velocity", "acceleration" of other coordinates; then clearances.

    blocks: pairs of a name and velocity coordinates. without: unused blocks, whose values may be 0.
    """

    def __init__(self, chain: ClosedChain, blocks: tuple[tuple[str, Index], ...], planes: Planes | None = None,
                 springs: Springs | None = None, without: Collection[str] = ()) -> None:
        self.chain, self.blocks, self.planes, self._without = chain, blocks, planes, without
        self.springs = None if springs is None else springs.of(chain.actuated)
        self.count = sum(len(index) for _, index in blocks) + (0 if planes is None else len(planes))
        names = [name for name, _ in blocks if name not in without]
        self._needs_rate = "effort_rate" in names or "motor_velocity" in names
        self._needs_effort = self._needs_rate or "effort" in names or "power" in names
        self._z = np.zeros((0, 0, 0))
        self._lifted: Lifted | None = None
        self._shared: Shared | None = None
        self._slopes: Slopes | None = None
        self._seen: tuple[Array, Array] | None = None    # u and q of the last closed knots
        self._curvature: tuple[Array, Array] | None = None    # states of the last curvature, and the curvature
        self._begin = chain.start

    def go_on(self) -> None:
        """Declare that the next values continue the last motion."""
        if self._seen is not None:
            self._begin, self._seen = self._seen[1][-1], None

    def ended_at(self, posture: Array | None) -> bool:
        """Whether the last motion ended at this posture; True if unknown."""
        return posture is None or bool(
            np.isfinite(posture).all()
            and np.abs(self.chain.model.difference(posture, self._begin)).max() <= ARRIVED)

    def values(self, z: Array) -> Array:
        """Rows (N, count) at states z (N, orders, n), along a motion; NaN if the loops cannot be closed."""
        lifted = self.lifted(z)
        if lifted is None:
            return np.full((len(z), self.count), np.nan)
        self._shared = self.chain.efforts(lifted) if self._needs_effort else None
        available = {"position": self.chain.coordinates(lifted.q), "velocity": lifted.v, "acceleration": lifted.a}
        parts = [np.zeros((len(z), 0))]
        for name, index in self.blocks:
            if name in available or (name in self._without and not self._needs_rate):
                parts.append(available[name][:, index] if name in available else np.zeros((len(z), len(index))))
                continue
            assert self._shared is not None
            if name == "effort":
                parts.append(self._shared.effort)
            elif name == "power":
                parts.append(self._shared.effort * lifted.v[:, index])
            elif name == "effort_rate":
                parts.append(self._rates(z, self._slopes_at(lifted).effort))
            elif self.springs is not None:    # motor velocity, after effort rate
                parts.append(lifted.v[:, index] + self.springs.compliance(self._shared.effort)[0] * parts[-1])
        if self.planes is not None:
            parts.append(self.planes.values(lifted.q))
        return np.concatenate(parts, axis=1)

    def _slopes_at(self, lifted: Lifted) -> Slopes:
        """Slopes at the latest states."""
        if self._slopes is None:
            if self._needs_effort and self._shared is None:
                self._shared = self.chain.efforts(lifted)
            self._slopes = slopes(self.chain, lifted, self._shared)
        return self._slopes

    def _rates(self, z: Array, J: Array) -> Array:
        """τ̇ of the motors (N, actuated)."""
        return np.asarray(np.matmul(J, z[:, 1:4].reshape(len(z), -1, 1))[:, :, 0])

    def lifted(self, z: Array) -> Lifted | None:
        """All coordinates at states z; None if the loops cannot be closed."""
        if self._lifted is not None and np.array_equal(z, self._z):
            return self._lifted
        chain, u = self.chain, z[:, 0]
        self._lifted = self._shared = self._slopes = None
        try:
            q = self._near(u)
            if q is None:
                q = chain.along(u, self._begin)
            if not np.isfinite(q).all():
                return None
            lifted = chain.lifted(q, z[:, 1], z[:, 2])
        except RbdError:    # overflow
            return None
        if not np.isfinite(lifted.a).all():
            return None
        self._z, self._lifted, self._seen = z.copy(), lifted, (u.copy(), q)
        return lifted

    def _near(self, u: Array) -> Array | None:
        """q from the previous knots' postures, if these are near."""
        if self._seen is None or self._seen[0].shape != u.shape or np.abs(u - self._seen[0]).max() > FAR:
            return None
        q = self.chain.closed(u, self.chain.moved(self._seen[1], u - self._seen[0]))
        return q if np.isfinite(q).all() else None

    def derivatives(self, z: Array, _: Array) -> Array:
        """Derivatives (N, count, nz) at states z; `values` must precede."""
        J = np.zeros((len(z), self.count, z.shape[1] * self.chain.size))
        if not self.count:
            return J
        lifted = self.lifted(z)
        if lifted is None:
            return np.full_like(J, np.nan)
        by = self._slopes_at(lifted)
        self._filled(lifted, by, self._shared, J)
        if self._needs_rate:
            assert self._shared is not None
            self._filled_rates(z, lifted, by, self._shared, J)
        return J

    def _filled(self, lifted: Lifted, by: Slopes, shared: Shared | None, J: Array) -> None:
        """Write all derivatives except those of effort rates to J (N, count, nz), initially zero."""
        n, row = self.chain.size, 0
        by_name = {"position": by.q, "velocity": by.v, "acceleration": by.a}
        for name, index in self.blocks:
            end = row + len(index)
            if name in by_name:
                J[:, row:end, :3 * n] = by_name[name][:, index]
            elif name == "effort":
                J[:, row:end, :3 * n] = by.effort
            elif name == "power":
                assert shared is not None
                J[:, row:end, :3 * n] = (lifted.v[:, index, None] * by.effort
                                         + shared.effort[:, :, None] * by.v[:, index])
            row = end
        if self.planes is not None:
            J[:, row:, :n] = self.planes.jacobian(lifted.q) @ lifted.T

    def _filled_rates(self, z: Array, lifted: Lifted, by: Slopes, shared: Shared, J: Array) -> None:
        n, row = self.chain.size, 0
        changed = rate_slopes(self.chain, z, lifted, by.effort)
        for name, index in self.blocks:
            end = row + len(index)
            if name == "effort_rate":
                J[:, row:end] = changed
            elif name == "motor_velocity" and self.springs is not None:
                c, c_slope = self.springs.compliance(shared.effort)
                J[:, row:end] = c[:, :, None] * changed
                c_rate = c_slope * self._rates(z, by.effort)
                J[:, row:end, :3 * n] += by.v[:, index] + c_rate[:, :, None] * by.effort
            row = end

    def add_curvature(self, z: Array, c: Array, out: Array) -> None:
        """Add second derivatives of cᵀ values by the states z, without effort rates, to out (N, nz, nz); c (N, count);
        `values` must precede. By forward differences of first derivatives, as in `EffortCurvature`, cached until knots
        have moved.
        """
        n = self.chain.size
        z = z.reshape(len(z), -1, n)
        if self._curvature is None or self._curvature[0].shape != z[:, :2].shape or np.abs(
                (z[:, :2] - self._curvature[0]) * [[1.0], [0.1]]).max() > MOVED:
            self._curvature = z[:, :2].copy(), self._tensor(z)
        weighed = np.einsum("sr,sdrx->sdx", c, self._curvature[1])    # by u and u̇; the values are linear in ü
        out[:, :2 * n, :2 * n] += 0.5 * (weighed[:, :, :2 * n] + weighed[:, :, :2 * n].swapaxes(1, 2))
        out[:, :2 * n, 2 * n:3 * n] += weighed[:, :, 2 * n:]
        out[:, 2 * n:3 * n, :2 * n] += weighed[:, :, 2 * n:].swapaxes(1, 2)

    def _tensor(self, z: Array) -> Array:
        """Changes (N, 2 n, count, 3 n) of the derivatives by (u, u̇, ü) along u and u̇; 0 if the loops do not close."""
        n, N, chain = self.chain.size, len(z), self.chain
        lifted = self.lifted(z)
        out = np.zeros((N, 2 * n, self.count, 3 * n))
        if lifted is None:
            return out
        base = np.zeros((N, self.count, 3 * n))
        self._filled(lifted, self._slopes_at(lifted), self._shared, base)
        for i, e in enumerate(np.eye(2 * n).reshape(2 * n, 2, n) * STEP):
            q = chain.closed(z[:, 0] + e[0], chain.moved(lifted.q, np.tile(e[0], (N, 1)))) if i < n else lifted.q
            if not np.isfinite(q).all():
                continue
            moved, displaced = chain.lifted(q, z[:, 1] + e[1], z[:, 2]), np.zeros_like(base)
            shared = chain.efforts(moved) if self._needs_effort else None
            self._filled(moved, slopes(chain, moved, shared), shared, displaced)
            out[:, i] = (displaced - base) / STEP
        return out
