"""Dynamics of an arm on a moving base with odometry: a floating root of known motion.

Only the rotation and the angular velocity ω of the base act on the joints. The base's acceleration, which odometry does
not contain, is assumed zero: the root link turns at constant ω in its own axes about a uniformly moving origin.
"""
from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.inverse import gravity_effort, inverse_dynamics
from ...core.model.robot_model import RobotModel
from ...core.motion.trajectory import Reference
from ..control.tracking_law import TrackingLaw, TrackingLawSettings
from .odometry import OdometryInput

Array = NDArray[np.float64]
NQ, NV = 7, 6    # coordinates of the base: position and quaternion; ω and v in axes of the base


def floating(model: RobotModel) -> RobotModel:
    """The model with a floating root; takes some ms."""
    return RobotModel.from_description(dataclasses.replace(model.description, root="floating"))


class MovingBase:
    """Tracking law of an arm (`model`: with a floating root) on a base with odometry."""

    def __init__(self, model: RobotModel, odometry: OdometryInput, law: TrackingLawSettings) -> None:
        self.model, self._odometry = model, odometry
        self.law = TrackingLaw(model, dataclasses.replace(law, kp=_padded(law.kp), kd=_padded(law.kd)))
        self._still = np.zeros(model.nv)
        self._none = np.zeros(NV)

    def gravity(self, q: Array) -> Array:
        """g(q) of the joints (nv,) at the present rotation of the base."""
        return gravity_effort(self.model, self._positions(q))[NV:]

    def accelerating(self, q: Array, a: Array) -> Array:
        """g(q) + M(q) a of the joints (nv,) at the present rotation of the base."""
        return inverse_dynamics(self.model, self._positions(q), self._still, np.concatenate([self._none, a]))[NV:]

    def effort(self, q: Array, v: Array, reference: Reference | None, wrenches: Any, share: float) -> Array:
        """Torque of the joints (nv,) as by `TrackingLaw.effort`, for a turning base."""
        turning = np.concatenate([self._odometry.twist[:3], np.zeros(3)])    # uniform motion has no effect
        if reference is not None:
            reference = Reference(self._positions(reference.q), np.concatenate([turning, reference.v]),
                                  np.concatenate([self._none, reference.a]))
        return self.law.effort(self._positions(q), np.concatenate([turning, v]), reference, wrenches, share)[NV:]

    def _positions(self, q: Array) -> Array:
        return np.concatenate([np.zeros(3), self._odometry.quaternion, q])


def _padded(values: Array) -> Array:
    return np.concatenate([np.zeros(NV), values])
