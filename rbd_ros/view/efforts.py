"""Torques of the bars: against gravity at rest, with closed loops if any."""
from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ..core.dynamics.constrained.inverse import constrained_inverse_dynamics
from ..core.dynamics.inverse import gravity_effort
from ..core.errors import RbdError, unknown_name
from ..core.model.constraints import ConstraintSet
from ..core.model.inertia import Array
from ..core.model.robot_model import RobotModel
from .bars import driven_of


def passive_of(model: RobotModel, actuated: Sequence[str]) -> frozenset[str]:
    """Coordinates (of `velocity_names`) without a motor: floating joints; if `actuated` is not empty, all others.
    """
    for name in actuated:
        if name not in (*model.joint_names, *model.velocity_names):
            raise unknown_name("joint", name, model.joint_names, "actuated")
    owners = [joint.name for joint in model.joints for _ in range(joint.nv)]
    return frozenset(
        name for name, owner, driven in zip(model.velocity_names, owners, driven_of(model), strict=True)
        if not driven or (actuated and name not in actuated and owner not in actuated))


def holding_effort(model: RobotModel, constraints: ConstraintSet, passive: Collection[str],
                   q: Array) -> tuple[Array, str]:
    """Efforts (nv,) that hold the robot at rest at q, and a note about them."""
    if not constraints.size:
        return gravity_effort(model, q), ""
    zero = np.zeros(model.nv)
    actuated = [name for name in model.velocity_names if name not in passive]
    try:
        solution = constrained_inverse_dynamics(model, constraints, q, zero, zero, actuated, check_acceleration=False)
        return solution.effort, ""
    except RbdError:
        return gravity_effort(model, q), "of the open tree: these motors cannot hold the robot in this pose"
