"""Derivatives of all coordinates and of the motors' efforts by the state (u, u̇, ü) of a closed-loop mechanism.

From `A T = 0`: `A δv = −∂(A v)/∂q δq`, `A δa = −∂(A a + Ȧq̇)/∂q δq − ∂(A a + Ȧq̇)/∂v δv`; from virtual work:
`Tᵀ(δ ID − ∂(Aᵀλ)/∂q δq − δτ) = 0` with the loops' multipliers λ.

Along a motion `τ̇ = J ż` with J = ∂τ and ż = (u̇, ü, u⃛). By the symmetry of second derivatives, ∂τ̇ is the change of J
along ż plus J shifted by one order: `∂τ̇ = (D_ż J, 0) + (0, J)`.
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...dynamics.constrained.mechanism import Lifted
from ...dynamics.friction import Friction
from ...derivatives.inverse import inverse_dynamics_derivatives
from .closed_chain import ClosedChain, Shared

Array = NDArray[np.float64]
APART = 3e-3      # rad or m, step of these differences; a tenth for speeds, a hundredth for accelerations
SIXTH = {1: 0.75, 2: -0.15, 3: 1.0 / 60.0}    # weights of central differences of sixth order: exact to some 1e-11


class Slopes(NamedTuple):
    """Derivatives by (u, u̇, ü) of positions, velocities and accelerations (N, nv, 3 n), and of the motors' efforts
    (N, actuated, 3 n), empty if not requested.
    """

    q: Array
    v: Array
    a: Array
    effort: Array


@dataclass(frozen=True)
class _Expanded(Friction):
    """Second-order Taylor expansion of a friction law around `speed`, for exact derivatives along a motion of any
    smoothing.
    """

    speed: Array | float = 0.0
    expanded: tuple[Array, Array, Array] | None = None

    def effort(self, v: Array, tau: Any = None) -> Array:
        assert self.expanded is not None
        d = v - self.speed
        return self.expanded[0] + d * (self.expanded[1] + 0.5 * d * self.expanded[2])

    def slope(self, v: Array, tau: Any = None) -> Array:
        assert self.expanded is not None
        return self.expanded[1] + (v - self.speed) * self.expanded[2]


def slopes(chain: ClosedChain, states: Lifted, shared: Shared | None) -> Slopes:
    """Derivatives at N states; without `shared`, not of the efforts."""
    N, n = len(states.q), chain.size
    lam = np.zeros((N, states.A.shape[1])) if shared is None else shared.multipliers
    bias_q, bias_v, load_q, turn_q = chain.slopes(states, lam, states.v)
    Q, V, A = (np.zeros((N, chain.model.nv, 3 * n)) for _ in range(3))
    T, P = states.T, states.P
    Q[:, :, :n] = V[:, :, n:2 * n] = A[:, :, 2 * n:] = T
    d = chain.dependent
    V[:, d, :n] = -P @ (turn_q @ T)
    A[:, d, :n] = -P @ (bias_q @ T + bias_v @ V[:, :, :n])
    A[:, d, n:2 * n] = -P @ (bias_v @ T)
    no_efforts = np.zeros((N, 0, 3 * n))
    return Slopes(Q, V, A, no_efforts if shared is None else _efforts(chain, states, shared, load_q, Q, V, A))


def rate_slopes(chain: ClosedChain, z: Array, states: Lifted, J: Array) -> Array:
    """∂τ̇ of the motors (N, actuated, 4 n) at states z (N, 4, n), by (u, u̇, ü, u⃛); J (N, actuated, 3 n): ∂τ there."""
    n, along = chain.size, z[:, 1:4]
    out = np.zeros((*J.shape[:2], 4 * n))
    out[:, :, n:] = J
    size = np.maximum(np.abs(along).max(axis=2) * [1.0, 0.1, 0.01], 1e-300).max(axis=1)[:, None, None]
    law = chain.friction
    near = replace(chain, friction=_Expanded(
        speed=states.v, expanded=(law.effort(states.v), law.slope(states.v), law.curvature(states.v))))
    for k, weight in SIXTH.items():
        for sign in (1.0, -1.0):
            moved = z[:, :3] + sign * k * APART / size * along
            q = near.closed(moved[:, 0], near.moved(states.q, moved[:, 0] - z[:, 0]))
            q = np.where(np.isfinite(q), q, states.q)    # at the boundary of closed loops
            displaced = near.lifted(q, moved[:, 1], moved[:, 2])
            out[:, :, :3 * n] += sign * weight / APART * size * slopes(near, displaced, near.efforts(displaced)).effort
    return out


def _efforts(chain: ClosedChain, states: Lifted, shared: Shared, load_q: Array, Q: Array, V: Array, A: Array) -> Array:
    """∂τ of the motors (N, actuated, 3 n)."""
    by = inverse_dynamics_derivatives(chain.model, states.q, states.v, states.a, chain.wrenches)
    slope = chain.friction.slope(states.v)
    h = by.q @ Q + by.v @ V + slope[:, :, None] * V + by.a @ A - load_q @ Q
    motors = chain.actuated
    if len(motors) == chain.size:    # no redundancy
        return np.asarray(np.linalg.solve(np.swapaxes(states.T[:, motors], 1, 2), np.swapaxes(states.T, 1, 2) @ h))
    y = np.matmul(states.T, shared.means[:, :, None])[:, :, 0] if chain.minimize == "effort" else shared.means
    change = chain.slopes(states, shared.multipliers, y)[3] @ Q    # A δ(y) = −turn, of y = T µ; or δ(A) ν
    if chain.minimize == "effort":
        W = chain.weights[:, None]
        Ta = states.T[:, motors]
        changed = np.zeros_like(Q)
        changed[:, chain.dependent] = -states.P @ change
        changed = changed[:, motors] / W
        G = np.swapaxes(Ta, 1, 2) @ (Ta / W)
        return np.asarray(changed + (Ta / W) @ np.linalg.solve(
            G, np.swapaxes(states.T, 1, 2) @ h - np.swapaxes(Ta, 1, 2) @ changed))
    Ap, Aa = states.A[:, :, chain.passive], states.A[:, :, motors]
    lam = change + Ap @ chain.pinv(Ap) @ (h[:, chain.passive] - np.swapaxes(Ap, 1, 2) @ change)
    return np.asarray(h[:, motors] - np.swapaxes(Aa, 1, 2) @ lam)
