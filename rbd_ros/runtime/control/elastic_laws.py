"""What settings make of a state of a robot with elastic joints."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.motion.trajectory import Reference
from ..inputs.references import ReferenceInput
from .elastic_law import ElasticCommand, ElasticLaw, ElasticState
from .elastic_settings import ElasticSettings
from .flatness import FlatnessLaws
from .quick_flatness import QuickFlatness

Array = NDArray[np.float64]


class ElasticLaws(FlatnessLaws):
    """Beside those of the links, the law of the motors, which has a memory of its own."""

    settings: ElasticSettings

    def __init__(self, settings: ElasticSettings, reference: ReferenceInput) -> None:
        super().__init__(settings, reference)
        self.actuation, self.motors = settings.actuation, ElasticLaw(settings.actuation, settings.law)
        self.quick: QuickFlatness | None = None
        if QuickFlatness.suits(settings.actuation) and settings.law.mode != "feedback_linearization":
            self.quick = QuickFlatness(settings.actuation, self._dynamics, self._friction, settings.friction.smoothing,
                                        self.motors.gains)

    def flat(self, reference: Reference, wrenches: Array | None, state: ElasticState, stiffness: Array,
             share: float) -> tuple[Array, Array | None, ElasticCommand | None]:
        """Effort of the links and its rates, and the command for the motors; None where they are not known."""
        if self.quick is not None and wrenches is None:
            found = self.quick.command(reference, state, share)
            if found is not None:
                return found
        effort, rates = self.feedforward(reference, wrenches)
        if rates is None:
            return effort, None, None
        return effort, rates, self.motors.follow(reference, state, stiffness, (effort, *rates), share)
