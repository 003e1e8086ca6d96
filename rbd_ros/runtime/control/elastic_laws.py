"""Control laws of a robot with elastic joints."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.actuation.elastic_law import ElasticCommand, ElasticLaw, ElasticState
from ...core.motion.trajectory import Reference
from ..inputs.references import ReferenceInput
from .elastic_settings import ElasticSettings
from .flatness import FlatnessLaws
from .quick_flatness import QuickFlatness

Array = NDArray[np.float64]


class ElasticLaws(FlatnessLaws):
    """The control laws of the links, and the law of the motors, which is stateful."""

    settings: ElasticSettings

    def __init__(self, settings: ElasticSettings, reference: ReferenceInput) -> None:
        self.actuation, self.motors = settings.actuation, ElasticLaw(settings.actuation, settings.law)
        super().__init__(settings, reference)
        gains = self.motors.gains
        self._hold_gains = None if gains is None else self.bounded(*gains, settings.motors.effort_limit)
        self.quick: QuickFlatness | None = None
        suited = settings.friction.plain and QuickFlatness.suits(settings.actuation)
        if suited and settings.law.mode != "feedback_linearization":
            self.quick = QuickFlatness(settings.actuation, self._dynamics, self._friction, settings.friction.smoothing,
                                        self.motors.gains)

    def return_time(self) -> Array:
        nv, none = self.model.nv, np.full(self.model.nv, np.inf)
        if self.motors.gains is None:
            return none
        kp, kd = (gains[:nv] for gains in self.motors.gains)
        return np.divide(kd, kp, out=none, where=(kp > 0.0) & (kd > 0.0))

    def flat(self, reference: Reference, wrenches: Array | None, state: ElasticState, stiffness: Array,
             share: float) -> tuple[Array, Array | None, ElasticCommand | None]:
        """Effort of the links, its rates, and the command for the motors; None for the unknown ones."""
        if self.quick is not None and wrenches is None:
            result = self.quick.command(reference, state, share)
            if result is not None:
                return result
        effort, rates = self.feedforward(reference, wrenches)
        if rates is None:
            return effort, None, None
        return effort, rates, self.motors.follow(reference, state, stiffness, (effort, *rates), share)
