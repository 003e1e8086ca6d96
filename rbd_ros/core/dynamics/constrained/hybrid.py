"""Hybrid dynamics under constraints: K eq. 70–80, by `constrained_recursion`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import unknown_name
from ...model.constraints import ConstraintSet
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.state import shaped
from ..friction import Friction, left_over, overcome
from ..hybrid import prescribed_mask
from ..bodies.joint_wrenches import Loaded
from .constraint_wrenches import carry
from .forward import solve, solver_options
from .inverse import MINIMIZE, constrained_inverse_dynamics


class _ConstrainedHybrid(NamedTuple):
    acceleration: Array
    effort: Array
    multipliers: Array
    rank: Any
    residual: Any
    condition: Any


class ConstrainedHybrid(_ConstrainedHybrid, Loaded):
    """`acceleration` and `effort` (nv,) of every coordinate; other fields as in `ConstrainedForward`, rank and
    condition of A_v, the constraints' columns of coordinates without prescribed acceleration.
    """


def constrained_hybrid_dynamics(model: RobotModel, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                                tau: ArrayLike, prescribed: ArrayLike | Sequence[str], *, minimize: str = "multipliers",
                                weights: ArrayLike | None = None, preferred_effort: ArrayLike | None = None,
                                effort_limit: ArrayLike | None = None, external_wrenches: Any = None,
                                friction: Friction | None = None, damping: float = 0.0,
                                baumgarte: float | Sequence[float] | None = None,
                                joint_wrenches: bool = False) -> ConstrainedHybrid:
    """Hybrid dynamics under constraints: accelerations and efforts, one of the two given per coordinate: K eq. 70–80.

    prescribed, a and tau as in `hybrid_dynamics`; (nv,) or (N, nv). If the constraints do not determine the efforts
    (m > n_v), minimize selects the least constraint forces ("multipliers"), or the least efforts at the prescribed
    coordinates ("effort", with weights, preferred_effort and effort_limit as in
    `constrained_inverse_dynamics`). All solutions: `constrained_hybrid_solutions`. Raises `RbdError` with
    rank and residual if the prescribed accelerations contradict the constraints. damping, baumgarte,
    external_wrenches, friction, joint_wrenches and the other errors as in `constrained_forward_dynamics`.

        >>> model = rbd.sample("five_bar")
        >>> loop = rbd.sample_constraints("five_bar", model)
        >>> motors = ["left_shoulder", "right_shoulder"]
        >>> found = rbd.constrained_hybrid_dynamics(model, loop, *np.zeros((4, 5)), motors)
        >>> round(float(np.abs(found.acceleration).max()), 9)    # both motors at rest
        0.0
    """
    if minimize not in MINIMIZE:
        raise unknown_name("quantity to minimize", minimize, MINIMIZE)
    mask = prescribed_mask(model, prescribed)
    inputs = shaped(model, positions={"q": q}, rates={"v": v, "a": a, "tau": tau})
    q, v, a, tau = inputs.arrays
    inputs.check_values()
    net_effort = tau if friction is None else left_over(model, friction, v, tau)
    alone = shaped(model, positions={"q": q}, rates={"v": v, "tau": net_effort})
    result = ConstrainedHybrid(*solve(model, constraints, alone, a, mask, external_wrenches,
                                      solver_options(damping, baumgarte)))
    if friction is not None:
        result = result._replace(effort=np.where(mask, overcome(model, friction, v, result.effort), tau))
    if minimize != "multipliers" or not (weights is None and preferred_effort is None and effort_limit is None):
        inverse = constrained_inverse_dynamics(
            model, constraints, q, v, result.acceleration, mask, minimize=minimize, weights=weights, passive_effort=tau,
            preferred_effort=preferred_effort, effort_limit=effort_limit, external_wrenches=external_wrenches,
            friction=friction, check_acceleration=damping == 0.0 and baumgarte is None)
        result = result._replace(effort=inverse.effort, multipliers=inverse.multipliers)
    if joint_wrenches:
        carry(result, model, constraints, q, v, external_wrenches)
    return result
