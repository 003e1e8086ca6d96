"""Payloads: a model with loads on bodies, rebuilt from the original for each change; removal is exact."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from ..errors import RbdError
from .inertia import Inertia
from .robot_model import RobotModel

HEAVIEST = 1e6     # kg
FARTHEST = 1e3     # m; the largest inertia is HEAVIEST · FARTHEST²


def payload(mass: float, com: ArrayLike, matrix: ArrayLike) -> Inertia:
    """A load (kg, m, kg m² about its centre of mass), possibly a point mass; `RbdError` if physically impossible."""
    if not 0.0 < mass <= HEAVIEST:    # false for NaN, too
        raise RbdError(f"inertia.m is {mass:g} kg, expected 0 (removes the load) to {HEAVIEST:g}")
    c, I = np.asarray(com, dtype=np.float64), np.asarray(matrix, dtype=np.float64)
    if not np.abs(c).max() <= FARTHEST:
        raise RbdError(f"inertia.com is {c.tolist()} m, expected finite numbers of at most {FARTHEST:g}: the centre of "
                       "mass in the frame of the body")
    if not np.abs(I).max() <= HEAVIEST * FARTHEST**2:
        raise RbdError("inertia: the inertia tensor (ixx … izz, kg m²) is not finite, or larger than any load's")
    moments = np.linalg.eigvalsh(I)
    shown = ", ".join(f"{moment:.3g}" for moment in moments)
    if moments[0] < -1e-9 * np.abs(moments).max():
        raise RbdError(f"inertia: the inertia tensor (ixx … izz) has principal moments {shown} kg m², expected none "
                       "below zero: is it about the centre of mass?")
    if moments[0] + moments[1] < moments[2] * (1.0 - 1e-6):
        raise RbdError(f"inertia: the inertia tensor (ixx … izz) has principal moments {shown} kg m², which no body "
                       "can have: none may be larger than the sum of the other two")
    return Inertia(mass, c, I)


def with_payloads(model: RobotModel, loads: Mapping[str, Inertia]) -> RobotModel:
    """A copy of the model with the loads (body name → inertia in the body's frame); the model itself without loads."""
    for body, load in loads.items():
        model = model.with_payload(body, load)
    return model
