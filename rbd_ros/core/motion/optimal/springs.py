"""Springs between motors and joints: the speed of a motor is `θ̇ = q̇ + c(τ) τ̇`, with the compliance c = 1 / k(φ(τ))."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...actuation.actuation import Actuation, SeriesDrive, VariableDrive
from ...actuation.series_elastic import SeriesSpring
from ...errors import RbdError, shown
from ...model.robot_model import RobotModel

Array = NDArray[np.float64]
RANGE_SHARE = 1.0 - 1e-12    # share of the springs' effort range in which the compliance is evaluated


@dataclass(frozen=True, eq=False)
class Springs:
    """Springs at the coordinates `index` (k,) of a model with `nv` of them."""

    nv: int
    index: NDArray[np.intp]
    spring: SeriesSpring

    @property
    def max_effort(self) -> Array:
        """The largest efforts of the springs (nv,), N m or N; inf without a spring."""
        out = np.full(self.nv, np.inf)
        out[self.index] = self.spring.max_torque
        return out

    @property
    def nonlinear(self) -> bool:
        """Whether a spring is nonlinear."""
        return bool(np.any(np.atleast_2d(self.spring.coefficients)[:, 1:]))

    def compliance(self, tau: Array) -> tuple[Array, Array]:
        """c (…, nv) at efforts tau (…, nv), rad/(N m) or m/N, 0 if rigid, and ∂c/∂τ; constant beyond the springs'
        range.
        """
        largest = RANGE_SHARE * self.spring.max_torque
        load = np.clip(tau[..., self.index], -largest, largest)
        phi = self.spring.deflection(load)
        inverse = 1.0 / self.spring.stiffness(phi)
        c, slope = np.zeros((2, *tau.shape))
        c[..., self.index] = inverse
        slope[..., self.index] = np.where(np.abs(tau[..., self.index]) > largest, 0.0,
                                          -self.spring.stiffness_slope(phi) * inverse**3)
        return c, slope

    def of(self, index: Any) -> Springs:
        """The springs restricted to the coordinates `index`, numbered as there."""
        position = {int(j): k for k, j in enumerate(index)}
        selected = [k for k, j in enumerate(self.index) if int(j) in position]
        max_deflection = np.broadcast_to(self.spring.max_deflection, len(self.index))
        return Springs(len(index), np.array([position[int(self.index[k])] for k in selected], dtype=np.intp),
                       SeriesSpring(np.atleast_2d(self.spring.coefficients)[selected], max_deflection[selected]))


def links_and_springs(model: RobotModel, actuation: Any) -> tuple[RobotModel, Springs]:
    """The link model with rigidly connected rotors, and the springs. Raises `RbdError` for damped springs and variable
    stiffness, where motor speeds do not follow from q, v, τ and τ̇.
    """
    if not isinstance(actuation, Actuation) or actuation.joint_names != model.joint_names:
        raise RbdError(f"actuation: expected an Actuation of model '{model.name}', got {shown(actuation)}")
    for name, drive in actuation.drives.items():
        if isinstance(drive, SeriesDrive) and drive.damping:
            raise RbdError(f"actuation: the spring of joint '{name}' has damping: its motor's position depends on the "
                           "past motion, which optimize_motion does not support")
        if isinstance(drive, VariableDrive):
            raise RbdError(f"actuation: joint '{name}' has two motors, of variable stiffness, which optimize_motion "
                           "does not support")
    return actuation.model, Springs(actuation.nv, actuation.series, actuation.series_spring)
