"""The efforts of a closed-loop mechanism with motors, in its independent coordinates.

By virtual work, `Tᵀ (ID + friction − τ) = 0`; redundant motors share the load by least effort or least multipliers
(K eq. 59–66).
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...derivatives.constrained import constraint_slopes
from ...dynamics.constrained.inverse import MINIMIZE, RANK_TOLERANCE
from ...dynamics.constrained.mechanism import (
    Index, Lifted, Mechanism, apply, independent_coordinates, without_contacts,
)
from ...dynamics.constrained.values import evaluate
from ...dynamics.friction import Friction
from ...dynamics.hybrid import prescribed_mask
from ...dynamics.inverse import inverse_dynamics
from ...errors import RbdError, unknown_name
from ...model.constraints import bound_to
from ...model.robot_model import RobotModel

Array = NDArray[np.float64]


class Shared(NamedTuple):
    """Efforts of the actuated coordinates (N, actuated), ID with friction (N, nv), and the terms of their distribution.
    """

    effort: Array
    whole: Array
    means: Array      # µ (N, n) of least efforts, or ν (N, nv) of least multipliers, 0 where actuated
    multipliers: Array    # λ (N, m)


@dataclass(frozen=True, eq=False)
class ClosedChain(Mechanism):
    """actuated: indices of velocity coordinates. start: a closed posture (nq,)."""

    actuated: Index
    minimize: str
    weights: Array    # of efforts (actuated,)
    friction: Friction
    wrenches: Any
    start: Array

    @cached_property
    def passive(self) -> Index:
        return np.setdiff1d(np.arange(self.model.nv), self.actuated)

    def efforts(self, states: Lifted) -> Shared:
        """Efforts of the motors; redundant ones share the load by `minimize`."""
        h = inverse_dynamics(self.model, states.q, states.v, states.a, self.wrenches) + self.friction.effort(states.v)
        if self.minimize == "effort":
            Ta = states.T[:, self.actuated]
            WTa = Ta / self.weights[:, None]
            means = _solved(np.swapaxes(Ta, 1, 2) @ WTa, apply(np.swapaxes(states.T, 1, 2), h))
            tau = apply(WTa, means)
            residual = h.copy()
            residual[:, self.actuated] -= tau
            # Aᵀλ = residual has a solution, λ by P is one: Tᵀ residual is zero
            lam = apply(np.swapaxes(states.P, 1, 2), residual[:, self.dependent])
            return Shared(tau, h, means, lam)
        Ap = states.A[:, :, self.passive]
        means = np.zeros_like(h)
        means[:, self.passive] = apply(self.pinv(Ap), h[:, self.passive])
        lam = apply(states.A, means)
        tau = h[:, self.actuated] - apply(np.swapaxes(states.A[:, :, self.actuated], 1, 2), lam)
        return Shared(tau, h, means, lam)

    def pinv(self, B: Array) -> Array:
        """(Bᵀ B)⁺ for B (N, m, k)."""
        _, s, Vt = np.linalg.svd(B, full_matrices=False)
        nonzero = s > RANK_TOLERANCE * s.max(axis=1, initial=0.0, keepdims=True)
        inverse = np.where(nonzero, 1.0 / np.where(nonzero, s, 1.0), 0.0) ** 2
        return np.asarray(np.swapaxes(Vt, 1, 2) @ (inverse[:, :, None] * Vt))

    def slopes(self, states: Lifted, lam: Array, y: Array) -> tuple[Array, ...]:
        """∂(A a + Ȧq̇)/∂q, /∂v, ∂(Aᵀλ)/∂q, ∂(A y)/∂q."""
        return constraint_slopes(self.model, self.constraints, states.q, states.v, states.a, lam,
                                 np.ascontiguousarray(y))


def _solved(G: Array, right: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(G, right[:, :, None])[:, :, 0])
    except np.linalg.LinAlgError:
        return np.full_like(right, np.nan)


def closed_chain(model: RobotModel, constraints: Any, actuated: Any, minimize: str, weights: Array,
                 friction: Friction, wrenches: Any, q: Array) -> ClosedChain:
    """The validated mechanism at a closed posture q (nq,). actuated: mask or names. weights: of efforts (nv,)."""
    without_contacts("optimize_motion", model, constraints)
    if bound_to(model, constraints).users:
        raise RbdError("optimize_motion: the derivatives of a UserConstraint's or NonholonomicConstraint's functions "
                       "are unknown")
    if minimize not in MINIMIZE:
        raise unknown_name("quantity to minimize", minimize, MINIMIZE)
    if actuated is None:
        raise RbdError("optimize_motion: which joints of a mechanism with loops have motors? Give actuated=[…]")
    mask = prescribed_mask(model, actuated)
    motors = np.flatnonzero(mask)
    zero = np.zeros((1, model.nv))
    independent = independent_coordinates(model, evaluate(model, constraints, q[None], zero, zero, 1).jacobian, mask)
    motor_weights = weights[motors] if len(motors) and weights[motors].min() > 0.0 else np.ones(len(motors))
    chain = ClosedChain(model, constraints, independent, motors, minimize, motor_weights, friction, wrenches, q)
    rank = np.linalg.matrix_rank(chain.tangents(q[None])[0][0, motors], tol=1e-6) if len(motors) else 0
    if rank < chain.size:
        names = ", ".join(model.velocity_names[j] for j in motors) or "none"
        raise RbdError(f"model '{model.name}' is under-actuated at the start: it has {chain.size} degrees of freedom, "
                       f"of which the actuated coordinates ({names}) control {rank}")
    return chain
