"""Flatness map of elastic joints in one compiled call, where supported (`core/steady/flat.py`)."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.actuation.actuation import Actuation
from ...core.actuation.elastic_law import ElasticCommand, ElasticState
from ...core.actuation.motor_reference import MotorReference
from ...core.model.robot_model import RobotModel
from ...core.motion.trajectory import Reference
from ...core.steady import flat
from ...core.steady.flat import flat_entry

Array = NDArray[np.float64]


class QuickFlatness:
    """Compiled flatness map and PD law.

    dynamics: model of the links; friction: model with their friction, or None. gains: kp, kd (nm,) of a PD, or None.
    """

    def __init__(self, actuation: Actuation, dynamics: RobotModel, friction: RobotModel | None, smoothing: float,
                 gains: tuple[Array, Array] | None) -> None:
        nv = self._nv = actuation.nv
        self._block, self._work = dynamics._block, dynamics._work
        spring, series, motors = actuation.series_spring, actuation.series, actuation.friction
        law = self._law = np.zeros(flat.SCALARS + flat.ROWS * nv)
        law[flat.FEEDBACK], law[flat.RUBS], law[flat.SMOOTHING] = gains is not None, friction is not None, smoothing
        rows = law[flat.SCALARS:].reshape(flat.ROWS, nv)
        if friction is not None:
            rows[flat.DAMPING], rows[flat.COULOMB] = friction.damping, friction.friction
        rows[flat.ELASTIC, series] = 1.0
        rows[flat.LIMIT, series], rows[flat.REACH, series] = spring.max_deflection, actuation.spring_reach
        rows[flat.INERTIA] = actuation.inertia_behind_springs
        for row, numbers in zip((flat.MOTOR_DAMPING, flat.MOTOR_COULOMB, flat.BREAKAWAY, flat.STRIBECK, flat.WIDTH,
                                 flat.ASYMMETRY, flat.VISCOUS_ASYMMETRY, flat.LOAD), (
                motors.damping, motors.coulomb, motors.breakaway, motors.stribeck_velocity, motors.smoothing,
                motors.asymmetry, motors.viscous_asymmetry, motors.load), strict=True):
            rows[row] = numbers
        if gains is not None:
            rows[flat.KP], rows[flat.KD] = gains
        self._springs = np.ones((nv, spring.coefficients.shape[1]))
        self._springs[series] = spring.coefficients
        self._reference, self._measured = np.empty((5, nv)), np.zeros((2, nv))

    @staticmethod
    def suits(actuation: Actuation) -> bool:
        """Whether all drives are rigid or have a series spring without damping."""
        return bool(actuation.quick and not actuation.variable.size and actuation.series.size)

    def command(self, reference: Reference, state: ElasticState,
                share: float) -> tuple[Array, Array, ElasticCommand] | None:
        """Effort (nv,) and its rates (2, nv) of the links, and the command; None if non-finite or beyond a spring's
        range (`flat_motors` reports the reason). reference: with jerk and snap.
        """
        r, measured, out = self._reference, self._measured, np.empty((flat.RESULTS, self._nv))
        r[0], r[1], r[2], r[3], r[4] = reference
        measured[0], measured[1] = state.motor_position, state.motor_velocity
        if not flat_entry.call(self._block, self._law, self._springs, r, measured, share, self._work, out):
            return None
        return links_and_motors(out)

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """Arrays for kernels: block and workspace of the model, the law, the springs."""
        return self._block, self._work, self._law, self._springs


def links_and_motors(out: Array) -> tuple[Array, Array, ElasticCommand]:
    """Result of `QuickFlatness.command` as views of the kernel's output."""
    motors = MotorReference(out[flat.MOTOR], out[flat.MOTOR_RATE], out[flat.MOTOR_ACCELERATION], out[flat.EFFORT],
                            out[flat.STIFFNESS], out[flat.TAU])
    return out[flat.TAU], out[flat.RATE:flat.MOTOR], ElasticCommand(out[flat.COMMAND], motors)
