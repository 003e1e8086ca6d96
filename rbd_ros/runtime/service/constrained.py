"""Requests of constrained dynamics: inverse, forward or hybrid, under the constraints of the server."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...core.dynamics.bodies.joint_wrenches import Loaded
from ...core.dynamics.constrained.forward import constrained_forward_dynamics
from ...core.dynamics.constrained.hybrid import constrained_hybrid_dynamics
from ...core.dynamics.constrained.inverse import MINIMIZE, RANK_TOLERANCE, constrained_inverse_dynamics
from ...core.dynamics.constrained.values import constraint_bias, constraint_jacobian, constraint_values
from ...core.dynamics.friction import Friction
from ...core.errors import RbdError
from ...core.model.constraints import ConstraintSet
from ...core.model.inertia import Array
from ...core.model.robot_model import RobotModel
from .naming import AS_CONFIGURED, Coordinates, NamedWrenches, by_body, check_mode

INVERSE, FORWARD, HYBRID = range(3)
MODES = ("INVERSE", "FORWARD", "HYBRID")
MULTIPLIERS, EFFORT = range(2)


@dataclass(frozen=True)
class ConstrainedRequest:
    """Fields of the service request; arrays in the order of `name`."""

    mode: int
    name: Sequence[str] = ()
    prescribed: Sequence[bool] = ()
    acceleration: ArrayLike = ()
    effort: ArrayLike = ()
    actuated: Sequence[str] = ()
    minimize: int = MULTIPLIERS
    preferred_effort: ArrayLike = ()
    effort_limit: ArrayLike = ()
    weight: ArrayLike = ()
    with_joint_wrenches: bool = False
    friction: int = AS_CONFIGURED


class ConstrainedMotion(NamedTuple):
    """Accelerations and efforts (nv,); a multiplier per constraint row; the largest residual acceleration of a row; the
    number of independent rows; and, if requested, the wrench on each body by its parent joint.
    """

    name: tuple[str, ...]
    acceleration: Array
    effort: Array
    constraint: tuple[str, ...]
    multiplier: Array
    residual: float
    rank: int
    joint_wrenches: NamedWrenches = ()


def constrained_motion(model: RobotModel, constraints: ConstraintSet, coordinates: Coordinates, q: Array, v: Array,
                       request: ConstrainedRequest, wrenches: dict[str, Array] | None,
                       tolerance: float, friction: Friction | None = None) -> ConstrainedMotion:
    """Answer a request at (q, v), which must satisfy the constraints within `tolerance` (m, rad; per s)."""
    _check(request, constraints)
    a = coordinates.vector("acceleration", request.name, request.acceleration)
    tau = coordinates.vector("effort", request.name, request.effort)
    _check_closed(model, constraints, q, v, tolerance)
    choice = _choice(coordinates, request)
    wanted = request.with_joint_wrenches
    loaded: Loaded
    if request.mode == INVERSE:
        mask = np.zeros(model.nv, dtype=bool)
        mask[coordinates.indices("actuated", request.actuated) if len(request.actuated) else slice(None)] = True
        inverse = constrained_inverse_dynamics(model, constraints, q, v, a, mask, passive_effort=tau,
                                               external_wrenches=wrenches, joint_wrenches=wanted, friction=friction,
                                               **choice)
        tau, multipliers, loaded = inverse.effort, inverse.multipliers, inverse
    elif request.mode == FORWARD:
        forward = constrained_forward_dynamics(model, constraints, q, v, tau, external_wrenches=wrenches,
                                               joint_wrenches=wanted, friction=friction)
        a, multipliers, loaded = forward.acceleration, forward.multipliers, forward
    else:
        mask = coordinates.mask("prescribed", request.name, request.prescribed)
        hybrid = constrained_hybrid_dynamics(model, constraints, q, v, a, tau, mask,
                                             external_wrenches=wrenches, joint_wrenches=wanted, friction=friction,
                                             **choice)
        a, tau, multipliers, loaded = hybrid.acceleration, hybrid.effort, hybrid.multipliers, hybrid
    A = constraint_jacobian(model, constraints, q)
    residual = A @ a + constraint_bias(model, constraints, q, v)
    singular = np.linalg.svd(A, compute_uv=False)
    return ConstrainedMotion(coordinates.names, a, tau, constraints.labels, multipliers,
                             float(np.abs(residual).max(initial=0.0)),
                             int((singular > RANK_TOLERANCE * singular.max(initial=0.0)).sum()),
                             by_body(model, loaded.joint_wrenches) if wanted else ())


def _choice(coordinates: Coordinates, request: ConstrainedRequest) -> dict[str, Any]:
    """Arguments that select one of the solutions."""
    arguments: dict[str, Any] = {"minimize": MINIMIZE[request.minimize]}
    for field, argument, values, others in (
            ("preferred_effort", "preferred_effort", request.preferred_effort, 0.0),
            ("effort_limit", "effort_limit", request.effort_limit, np.inf), ("weight", "weights", request.weight, 1.0)):
        if np.size(values):
            if request.minimize != EFFORT:
                raise RbdError(f"{field} is read where minimize is 1 (EFFORT): expected an empty field")
            arguments[argument] = coordinates.vector(field, request.name, values, others)
    return arguments


def _check(request: ConstrainedRequest, constraints: ConstraintSet) -> None:
    check_mode(request.mode, MODES)
    if not 0 <= request.minimize < len(MINIMIZE):
        raise RbdError(f"minimize is {request.minimize}, expected 0 (MULTIPLIERS) or 1 (EFFORT)")
    if not constraints.size:
        raise RbdError("the server has no constraints: start it with parameter 'constraints_file'")
    mode = MODES[request.mode]
    for field, value, modes in (("prescribed", request.prescribed, (HYBRID,)),
                                ("actuated", request.actuated, (INVERSE,)),
                                ("acceleration", request.acceleration, (INVERSE, HYBRID)),
                                ("preferred_effort", request.preferred_effort, (INVERSE, HYBRID)),
                                ("effort_limit", request.effort_limit, (INVERSE, HYBRID)),
                                ("weight", request.weight, (INVERSE, HYBRID))):
        if np.size(value) and request.mode not in modes:
            read = " and ".join(MODES[m] for m in modes)
            raise RbdError(f"{field} is not read in mode {mode}, only in {read}: expected an empty field")


def _check_closed(model: RobotModel, constraints: ConstraintSet, q: Array, v: Array, tolerance: float) -> None:
    for label, unit, values in (("is open by", "m or rad", constraint_values(model, constraints, q)),
                               ("opens at", "m/s or rad/s", constraint_jacobian(model, constraints, q) @ v)):
        worst = int(np.argmax(np.abs(values)))
        if not abs(values[worst]) <= tolerance:
            raise RbdError(f"state: constraint '{constraints.labels[worst]}' {label} {abs(values[worst]):.3g} {unit}, "
                           f"expected at most {tolerance:g} (parameter 'constraint_tolerance'): send a state that "
                           "meets the constraints; rbd_ros.project finds the nearest one")
