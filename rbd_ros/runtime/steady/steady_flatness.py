"""The steady cycle of the elastic-joint controller, for laws supported by `quick_flatness`."""
from __future__ import annotations

import numpy as np

from ...core.actuation.motor_reference import MotorReference
from ...core.steady import flat_cycle
from ...core.steady.flat import RESULTS
from ...core.steady.flat_cycle import flat_cycle_entry
from ..safety import Command
from ..control.elastic_controller import ElasticController
from ..control.elastic_laws import ElasticLaws
from ..control.loop_rate import Transit
from ..control.quick_flatness import links_and_motors
from .steady_cycle import Array
from .steady_following import FollowingCycle


class FlatnessCycle(FollowingCycle[ElasticLaws]):
    """Steady cycle with series elastic and rigid drives."""

    entry = flat_cycle_entry
    rows = 5

    def __init__(self, controller: ElasticController, transit: Transit) -> None:
        super().__init__(controller, transit)
        self._elastic = controller
        self._needs_motors = True
        self._motors = np.zeros((flat_cycle.ROWS, self._nv))
        self._out = self._motors[:RESULTS]
        controller.motor_state.live_in(self._motors[flat_cycle.POSITION:flat_cycle.LIMIT_OF_MOTORS])
        _, rates, (_, reference) = links_and_motors(self._out)
        self._command = Command(self._command.effort, rates, self._motors[flat_cycle.SENT], reference)

    def suits(self, laws: ElasticLaws) -> bool:
        return laws.quick is not None and self._elastic.led

    def arrays(self, laws: ElasticLaws) -> tuple[Array, ...]:
        assert laws.quick is not None
        self._needs_motors = laws.settings.law.mode != "feed_forward"
        limits = self._elastic.safety.channels[1].limiter.limits
        self._motors[flat_cycle.LIMIT_OF_MOTORS], self._motors[flat_cycle.RATE_OF_MOTORS] = limits
        return *laws.quick.arrays, self._motors

    def happened(self, now: float, laws: ElasticLaws) -> bool:
        elastic = self._elastic
        return (not elastic.led or (self._needs_motors and not elastic.motor_state.fresh(now))
                or super().happened(now, laws))

    def used(self) -> MotorReference:
        return links_and_motors(self._out.copy())[2].reference

    def keep(self) -> None:
        self._elastic.hear()
        super().keep()
        self._elastic.lead(links_and_motors(self._out.copy())[2].reference)
