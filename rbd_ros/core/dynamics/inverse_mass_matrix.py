"""Dense inverse of the mass matrix, for impulses."""
from __future__ import annotations

import numpy as np

from ..errors import RbdError
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from .forward import forward_dynamics
from .mass_matrix import mass_matrix


def inverse_mass_matrix(model: RobotModel, q: Array) -> Array:
    """`M⁻¹` (nv, nv) at one q; raises `RbdError`, naming the joint, if M is singular."""
    try:
        return np.asarray(np.linalg.inv(mass_matrix(model, q)))
    except np.linalg.LinAlgError:
        forward_dynamics(model, q, np.zeros(model.nv), np.zeros(model.nv))    # raises naming the joint, in most cases
        raise RbdError(f"model '{model.name}': the mass matrix is singular") from None
