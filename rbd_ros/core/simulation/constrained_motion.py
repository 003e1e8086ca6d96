"""Constraints in a simulation step: accelerations, impulses, projection onto the manifold."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..dynamics.constrained.forward import constrained_forward_dynamics
from ..dynamics.constrained.projection import least_norm, project
from ..dynamics.constrained.values import constraint_jacobian
from ..model.constraints import ConstraintSet
from ..model.inertia import Array
from ..model.robot_model import RobotModel

SHARE = 1e-9    # relative compliance by which rigidly connected joints share an impulse


class ConstrainedMotion:
    """Constraints of a simulated model, and `bound` to it; `multipliers` (m,) are those of the last acceleration."""

    def __init__(self, model: RobotModel, constraints: ConstraintSet) -> None:
        self.model, self.constraints = model, constraints
        self.bound = constraints.bound(model)
        self.multipliers = np.zeros(self.bound.size)

    @property
    def compiled(self) -> bool:
        """Whether kernels evaluate all rows."""
        return self.bound.size > 0 and not (self.bound.is_given or self.model.mimics)

    def acceleration(self, q: Array, v: Array, tau: Array, wrenches: Any) -> Array:
        """Accelerations (nv,) under the constraints."""
        solution = constrained_forward_dynamics(self.model, self.constraints, q, v, tau, external_wrenches=wrenches)
        self.multipliers = solution.multipliers
        return solution.acceleration

    def back(self, q: Array, v: Array, mass_weighted: bool = False) -> tuple[Array, Array]:
        """The state projected onto the manifold; mass_weighted: velocities changed by impulses of the constraints."""
        return project(self.model, self.constraints, q, v, mass_weighted=mass_weighted)

    def jacobian(self, q: Array, v: Array, h: float) -> Array:
        """A (m, nv) at the predicted midpoint of a step of h (s)."""
        return constraint_jacobian(self.model, self.constraints, self.model.integrate(q, 0.5 * h * v))

    def projector(self, A: Array, W: Any) -> tuple[Array, Array]:
        """Projector of velocities, and of W (nv, nv), the velocities per unit impulse, onto the constraints."""
        AW = A @ W
        Z = A @ np.linalg.cholesky(W)
        lam = np.stack([least_norm(Z, column) for column in np.column_stack([A, AW]).T], axis=1)
        n = W.shape[0]
        return (np.ascontiguousarray(np.eye(n) - AW.T @ lam[:, :n]),
                W - AW.T @ lam[:, n:] + SHARE * np.diag(np.diag(W)))

    def multipliers_of(self, A: Array, effort: Array) -> Array:
        """λ (m,) of least norm with Aᵀ λ = effort (nv,)."""
        return least_norm(A, A @ effort)

    def inverse_inertia(self, q: Array, W: Any, v: Any, kept: Array) -> tuple[Array, Array]:
        """Inverse inertia with constraints, `W − W Aᵀ (A W Aᵀ)⁺ A W`, for the unconstrained W (nv, nv); and v after
        constraint impulses with A v = A kept. (A kept is not zero: A is from before the step, kept from after it.)
        """
        A = constraint_jacobian(self.model, self.constraints, q)
        Z = A @ np.linalg.cholesky(W)
        AW = A @ W
        lam = np.stack([least_norm(Z, column) for column in AW.T], axis=1)
        return W - AW.T @ lam + SHARE * np.diag(np.diag(W)), v - AW.T @ least_norm(Z, A @ (v - kept))
