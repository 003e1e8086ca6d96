"""Gains of law `lqr`: a linear-quadratic regulator for the linearisation at the reference, as if it held forever."""
from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.friction import Friction
from ...core.feedback.linearization import RigidPlant
from ...core.feedback.tracking_gains import standing_gain
from ...core.model.robot_model import RobotModel
from ...core.motion.trajectory import Reference
from .lqr_settings import LQRSettings

Array = NDArray[np.float64]


class LQRGains:
    """Gains of one robot, with the friction that its feed-forward compensates."""

    def __init__(self, model: RobotModel, friction: Friction | None, settings: LQRSettings) -> None:
        self._plant = RigidPlant(model, np.ones(model.nv, dtype=bool), friction)
        self._of_state = np.diag(np.concatenate([settings.position, settings.velocity]))
        self._of_effort, self._period = np.diag(settings.effort), settings.period
        self._known: deque[tuple[Array, Array]] = deque(maxlen=2)    # references with gains, before and after a cycle

    def at(self, reference: Reference) -> Array:
        """K (nv, 2 nv) of `effort = K (q ⊖ q_ref, v − v_ref)`; raises `RbdError` if efforts cannot hold it."""
        place = np.concatenate(reference[:3])
        for known, gain in self._known:
            if np.array_equal(known, place):
                return gain
        gain = standing_gain(self._plant, reference, self._of_state, self._of_effort, self._period)
        self._known.append((place, gain))
        return gain
