"""All solutions of redundantly actuated mechanisms: particular solution and null space, K eq. 59–61 and 70–80."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import RbdError
from ...model.constraints import ConstraintSet
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.state import real
from .hybrid import constrained_hybrid_dynamics
from .inverse import ConstrainedInverse, particular


class Solutions(NamedTuple):
    """λ = `multipliers` + `multipliers_null` s, τ = `effort` + `effort_null` s for any s (k,): K eq. 59, 61.

    `effort` (nv,) and `multipliers` (m,): the solution of least ‖λ‖. `multipliers_null` (m, k): N, an orthonormal basis
    of the null space of A_pᵀ, k = m − rank; `effort_null` (nv, k): −A_aᵀ N at actuated coordinates, 0 elsewhere. `rank`
    of A_p and `residual` as in `ConstrainedInverse`. A batch adds an axis; k is then the largest of its states, with
    zero columns for smaller ones. s are internal forces: loads of the mechanism without motion.
    """

    effort: Array
    multipliers: Array
    effort_null: Array
    multipliers_null: Array
    rank: Any
    residual: Any

    def at(self, s: ArrayLike) -> ConstrainedInverse:
        """The solution for s (k,) or (N, k)."""
        k = self.effort_null.shape[-1]
        x = real(s, "s", f"({k},)")
        if x.shape not in ((k,), (*self.effort.shape[:-1], k)) or not np.isfinite(x).all():
            raise RbdError(f"s: expected {k} finite numbers, one per column of the null space, got shape {x.shape}")
        return ConstrainedInverse(self.effort + (self.effort_null @ x[..., None])[..., 0],
                                  self.multipliers + (self.multipliers_null @ x[..., None])[..., 0], self.rank,
                                  self.residual)


def constrained_inverse_solutions(model: RobotModel, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike,
                                  a: ArrayLike, actuated: ArrayLike | Sequence[str],
                                  passive_effort: ArrayLike | None = None, *, external_wrenches: Any = None,
                                  check_acceleration: bool = True) -> Solutions:
    """All efforts of the actuated coordinates that give accelerations a at (q, v), and their multipliers: K eq. 59–61.

    Arguments and errors as in `constrained_inverse_dynamics`, which returns one of them.

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> motors = ["left_shoulder", "right_shoulder"]
        >>> rbd.constrained_inverse_solutions(model, loop, *np.zeros((3, 5)), motors).effort_null.shape[-1]
        0
    """
    p = particular(model, constraints, q, v, a, actuated, passive_effort, external_wrenches, check_acceleration)
    values, vectors = np.linalg.eigh(p.null)    # a projector: 0 or 1, ascending
    free = values > 0.5
    count = int(free.sum(axis=-1).max(initial=0))
    basis = (vectors * free[..., None, :])[..., ::-1][..., :count]
    effort_null = np.zeros((*p.reference.shape, count))
    effort_null[..., p.mask, :] = -p.A_a @ basis
    effort = p.effort(p.multipliers)
    p.inputs.finite(effort=effort, multipliers=p.multipliers, effort_null=effort_null)
    single = p.inputs.batch is None
    return Solutions(effort, p.multipliers, effort_null, basis, int(p.rank) if single else p.rank,
                     float(p.residual) if single else p.residual)


def constrained_hybrid_solutions(model: RobotModel, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike,
                                 a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike | Sequence[str], *,
                                 external_wrenches: Any = None) -> tuple[Array, Solutions]:
    """The accelerations (nv,) of `constrained_hybrid_dynamics`, which are unique, and all efforts at the prescribed
    coordinates that give them: K eq. 70–80, and 61 with u, v for a, p where m > n_v. Arguments and errors as there.

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> motors = ["left_shoulder", "right_shoulder"]
        >>> rbd.constrained_hybrid_solutions(model, loop, *np.zeros((4, 5)), motors)[0].shape
        (5,)
    """
    result = constrained_hybrid_dynamics(model, constraints, q, v, a, tau, prescribed,
                                         external_wrenches=external_wrenches)
    return result.acceleration, constrained_inverse_solutions(
        model, constraints, q, v, result.acceleration, prescribed, tau, external_wrenches=external_wrenches)
