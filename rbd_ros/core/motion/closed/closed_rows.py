"""What is weighed and limited at nodes of a mechanism with loops, and its derivatives by (u, u̇, ü).

`A T = 0` and its derivatives: `A δv = −∂(A v)/∂q δq`, `A δa = −∂(A a + Ȧq̇)/∂q δq − ∂(A a + Ȧq̇)/∂v δv`, and of virtual
work, `Tᵀ(δ ID − ∂(Aᵀλ)/∂q δq − δτ) = 0` with λ those of the loops.
"""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...derivatives.inverse import inverse_dynamics_derivatives
from ...errors import RbdError
from ..places.plane_limit import Planes
from .closed_chain import FAR, ClosedChain, Index, Lifted, Shared

Array = NDArray[np.float64]
STEP = 1e-6       # rad, m, and per second
MOVED = 0.05      # rad, m: curvature is looked at anew when nodes are farther from where it was (tenth: of speeds)
ARRIVED = 1e-5    # rad, m: of the goal's posture


class ClosedRows:
    """Rows per node, block by block: "effort" and "power" of motors, "position", "velocity", "acceleration" of others;
    then clearances.

    blocks: pairs of a name and velocity coordinates.
    """

    def __init__(self, chain: ClosedChain, blocks: tuple[tuple[str, Index], ...], planes: Planes | None = None) -> None:
        self.chain, self.blocks, self.planes = chain, blocks, planes
        self.count = sum(len(index) for _, index in blocks) + (0 if planes is None else len(planes))
        self._needs_effort = any(name in ("effort", "power") for name, _ in blocks)
        self._z = np.zeros((0, 0, 0))
        self._at: Lifted | None = None
        self._shared: Shared | None = None
        self._seen: tuple[Array, Array] | None = None    # u and q of nodes that were closed
        self._bent: tuple[Array, Array] | None = None    # states where curvature was looked at, and it
        self._begin = chain.start

    def go_on(self) -> None:
        """The next values are of a motion that goes on where the last one ended."""
        if self._seen is not None:
            self._begin, self._seen = self._seen[1][-1], None

    def ended_at(self, posture: Array | None) -> bool:
        """Whether the motion, after `go_on`, has ended at this posture, or it is not known."""
        return posture is None or bool(
            np.isfinite(posture).all()
            and np.abs(self.chain.model.difference(posture, self._begin)).max() <= ARRIVED)

    def values(self, z: Array) -> Array:
        """(N, count) at states z (N, orders, n), along a motion; NaN where the loops cannot be closed."""
        at = self.lifted(z)
        if at is None:
            return np.full((len(z), self.count), np.nan)
        self._shared = self.chain.efforts(at) if self._needs_effort else None
        parts = [np.zeros((len(z), 0))]
        for name, index in self.blocks:
            if name in ("effort", "power"):
                assert self._shared is not None
                parts.append(self._shared.effort * (at.v[:, index] if name == "power" else 1.0))
            else:
                parts.append({"position": self.chain.coordinates(at.q), "velocity": at.v,
                              "acceleration": at.a}[name][:, index])
        if self.planes is not None:
            parts.append(self.planes.values(at.q))
        return np.concatenate(parts, axis=1)

    def lifted(self, z: Array) -> Lifted | None:
        """All coordinates at states z; None where the loops cannot be closed."""
        if self._at is not None and np.array_equal(z, self._z):
            return self._at
        chain, u = self.chain, z[:, 0]
        self._at = self._shared = None
        try:
            q = self._near(u)
            if q is None:
                q = chain.along(u, self._begin)
            if not np.isfinite(q).all():
                return None
            at = chain.lifted(q, z[:, 1], z[:, 2])
        except RbdError:    # beyond what floating point numbers hold
            return None
        if not np.isfinite(at.a).all():
            return None
        self._z, self._at, self._seen = z.copy(), at, (u.copy(), q)
        return at

    def _near(self, u: Array) -> Array | None:
        """q from those of the nodes before, where they were not far."""
        if self._seen is None or self._seen[0].shape != u.shape or np.abs(u - self._seen[0]).max() > FAR:
            return None
        q = self.chain.closed(u, self.chain.moved(self._seen[1], u - self._seen[0]))
        return q if np.isfinite(q).all() else None

    def derivatives(self, z: Array, _: Array) -> Array:
        """Derivatives (N, count, nz) at states z whose values are known."""
        N, orders, n = z.shape
        J = np.zeros((N, self.count, orders * n))
        if not self.count:
            return J
        at = self.lifted(z)
        if at is None:
            return np.full_like(J, np.nan)
        self._slopes(at, self._shared or self.chain.efforts(at), J)
        return J

    def _slopes(self, at: Lifted, shared: Shared, J: Array) -> None:
        """Derivatives to J (N, count, nz), zero before."""
        N, n, chain = len(J), self.chain.size, self.chain
        lam = shared.multipliers
        bias_q, bias_v, load_q, turn_q = chain.slopes(at, lam, at.v)
        Q, V, A = (np.zeros((N, chain.model.nv, 3 * n)) for _ in range(3))
        T, P = at.T, at.P
        Q[:, :, :n] = V[:, :, n:2 * n] = A[:, :, 2 * n:] = T
        d = chain.dependent
        V[:, d, :n] = -P @ (turn_q @ T)
        A[:, d, :n] = -P @ (bias_q @ T + bias_v @ V[:, :, :n])
        A[:, d, n:2 * n] = -P @ (bias_v @ T)
        by_name = {"position": Q, "velocity": V, "acceleration": A}
        tau = self._efforts(at, shared, load_q, Q, V, A) if self._needs_effort else None
        row = 0
        for name, index in self.blocks:
            if name in ("effort", "power"):
                assert tau is not None
                part = tau
                if name == "power":
                    part = at.v[:, index, None] * tau + shared.effort[:, :, None] * V[:, index]
            else:
                part = by_name[name][:, index]
            J[:, row:row + len(index), :3 * n] = part
            row += len(index)
        if self.planes is not None:
            J[:, row:, :n] = self.planes.jacobian(at.q) @ T

    def add_curvature(self, z: Array, c: Array, out: Array) -> None:
        """Add to out (N, nz, nz) second derivatives of cᵀ values by states z, whose values are known; c (N, count).
        By forward differences of the first ones, as `EffortCurvature`, kept until nodes have moved.
        """
        n = self.chain.size
        z = z.reshape(len(z), -1, n)
        if self._bent is None or self._bent[0].shape != z[:, :2].shape or np.abs(
                (z[:, :2] - self._bent[0]) * [[1.0], [0.1]]).max() > MOVED:
            self._bent = z[:, :2].copy(), self._tensor(z)
        weighed = np.einsum("sr,sdrx->sdx", c, self._bent[1])    # by u and u̇, of which ü takes no part
        out[:, :2 * n, :2 * n] += 0.5 * (weighed[:, :, :2 * n] + weighed[:, :, :2 * n].swapaxes(1, 2))
        out[:, :2 * n, 2 * n:3 * n] += weighed[:, :, 2 * n:]
        out[:, 2 * n:3 * n, :2 * n] += weighed[:, :, 2 * n:].swapaxes(1, 2)

    def _tensor(self, z: Array) -> Array:
        """Changes (N, 2 n, count, 3 n) of the derivatives by (u, u̇, ü) along u and u̇; 0 where loops do not close."""
        n, N, chain = self.chain.size, len(z), self.chain
        at = self.lifted(z)
        out = np.zeros((N, 2 * n, self.count, 3 * n))
        if at is None:
            return out
        here = np.zeros((N, self.count, 3 * n))
        self._slopes(at, self._shared or chain.efforts(at), here)
        for i, e in enumerate(np.eye(2 * n).reshape(2 * n, 2, n) * STEP):
            q = chain.closed(z[:, 0] + e[0], chain.moved(at.q, np.tile(e[0], (N, 1)))) if i < n else at.q
            if not np.isfinite(q).all():
                continue
            moved, there = chain.lifted(q, z[:, 1] + e[1], z[:, 2]), np.zeros_like(here)
            self._slopes(moved, chain.efforts(moved), there)
            out[:, i] = (there - here) / STEP
        return out

    def _efforts(self, at: Lifted, shared: Shared, load_q: Array, Q: Array, V: Array, A: Array) -> Array:
        """∂τ of the motors (N, actuated, 3 n)."""
        chain = self.chain
        by = inverse_dynamics_derivatives(chain.model, at.q, at.v, at.a, chain.wrenches)
        slope = chain.friction.slope(at.v)
        h = by.q @ Q + by.v @ V + slope[:, :, None] * V + by.a @ A - load_q @ Q
        motors = chain.actuated
        if len(motors) == chain.size:    # nothing to share
            return np.asarray(np.linalg.solve(np.swapaxes(at.T[:, motors], 1, 2), np.swapaxes(at.T, 1, 2) @ h))
        y = np.matmul(at.T, shared.means[:, :, None])[:, :, 0] if chain.minimize == "effort" else shared.means
        turn = chain.slopes(at, shared.multipliers, y)[3] @ Q    # A δ(y) = −turn, of y = T µ; or δ(A) ν
        if chain.minimize == "effort":
            W = chain.weights[:, None]
            Ta = at.T[:, motors]
            changed = np.zeros_like(Q)
            changed[:, chain.dependent] = -at.P @ turn
            changed = changed[:, motors] / W
            G = np.swapaxes(Ta, 1, 2) @ (Ta / W)
            return np.asarray(changed + (Ta / W) @ np.linalg.solve(
                G, np.swapaxes(at.T, 1, 2) @ h - np.swapaxes(Ta, 1, 2) @ changed))
        Ap, Aa = at.A[:, :, chain.passive], at.A[:, :, motors]
        lam = turn + Ap @ chain.pinv(Ap) @ (h[:, chain.passive] - np.swapaxes(Ap, 1, 2) @ turn)
        return np.asarray(h[:, motors] - np.swapaxes(Aa, 1, 2) @ lam)
