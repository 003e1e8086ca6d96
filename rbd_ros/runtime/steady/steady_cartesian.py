"""The steady cycle of Cartesian control: the link rests at its target, or goes to a goal or along a trajectory."""
from __future__ import annotations

import numpy as np

from ...core.motion.pose_filter import PoseFilter
from ...core.motion.pose_trajectory import PoseTrajectory
from ...core.steady import cartesian_cycle as c
from ...core.steady import cycle_kernel as at
from ...core.steady.cartesian_cycle import cartesian_cycle_entry
from ..control.cartesian import EASY, LEASH, LONGEST, TURN, CartesianController
from ..control.cartesian_law import NEAR
from ..control.cartesian_laws import CartesianLaws
from ..control.loop_rate import Transit
from .steady_cycle import Array, SteadyCycle

UNHURRIED = 0.999 * EASY    # share of velocity limits at which a target certainly keeps its pace


class CartesianCycle(SteadyCycle[CartesianLaws]):
    """Steady cycle of the impedance of a link, whatever the robot compensates, with friction compensation and walls."""

    entry = cartesian_cycle_entry

    def __init__(self, controller: CartesianController, transit: Transit) -> None:
        super().__init__(controller, transit)
        self._cartesian = controller
        nv = controller.model.nv
        C = self._C = np.zeros(c.size_of_numbers(nv))
        C[c.FASTEST:c.FASTEST + nv] = UNHURRIED * controller.fastest
        C[c.LEASH], C[c.TURN], C[c.LONGEST] = NEAR * LEASH, NEAR * TURN, LONGEST
        self._filter: PoseFilter | None = None
        self._changes = 0    # of this filter

    def suits(self, laws: CartesianLaws) -> bool:
        return not laws.of_joints

    def arrays(self, laws: CartesianLaws) -> tuple[Array, ...]:
        C, compensated = self._C, laws.settings.compensates
        C[c.COMPENSATION] = laws.compensation.share
        C[c.OWN_GRAVITY], C[c.OWN_CORIOLIS] = "gravity" in compensated, "coriolis" in compensated
        work, numbers, walls, *rest = laws.law.arrays(C)
        return laws.model._block, work, C, numbers, walls, *rest, laws.compensation.parameters

    def ready(self, laws: CartesianLaws) -> bool:
        controller, C = self._cartesian, self._C
        filter, tank = controller.filter, controller.tank
        if (filter is None or not controller.led or filter.paced or filter.bandwidth != laws.settings.bandwidth
                or not laws.law.whole or tank.weights != {laws: 1.0}):
            return False
        C[c.LEVEL], C[c.FULL], C[c.GAINED] = tank.level, tank.size, controller.gained
        C[c.BANDWIDTH], C[c.SPEED], C[c.ANGULAR_SPEED] = filter.bandwidth, filter.speed, filter.angular_speed
        C[c.STATE:c.GOAL], C[c.GOAL:c.TARGET], C[c.SEEN:c.NEW] = filter.state, filter.goal, laws.law.known
        twist = filter.twist
        C[c.TWISTED], C[c.TWIST:c.TWIST + len(twist)] = len(twist) > 0, twist
        C[c.ON_COURSE] = filter.course is not None
        if filter.course is not None and not self._take_piece(filter.course, filter.time):
            return False
        C[c.PASSED] = filter.time
        self.coefficients(1)[:] = controller.posture
        self._filter, self._changes = filter, filter.changes
        return True

    def _take_piece(self, course: object, t: float) -> bool:
        """Store the piece at this time, s; whether there is one."""
        if not isinstance(course, PoseTrajectory) or t >= course.duration:
            return False
        C = self._C
        C[c.BEGIN], C[c.END], coefficients, C[c.PIECE_AXES:c.PIECE_ROWS] = course.piece(t)
        C[c.COEFFICIENTS:c.PIECE_AXES] = coefficients.reshape(-1)
        return True

    def happened(self, now: float, laws: CartesianLaws) -> bool:
        filter = self._filter
        return (filter is None or filter is not self._cartesian.filter or filter.changes != self._changes
                or not self._cartesian.led)

    def after(self, time_ns: int) -> None:
        filter, controller, C, laws = self._filter, self._cartesian, self._C, self._laws
        assert filter is not None and laws is not None
        filter.state[:], filter.goal[:], laws.law.known[:] = C[c.STATE:c.GOAL], C[c.GOAL:c.TARGET], C[c.SEEN:c.NEW]
        filter.target, filter.time = C[c.TARGET:c.SEEN].copy(), C.item(c.PASSED)
        controller.tank.level = C.item(c.LEVEL)
        controller.follow_steady(self._states[at.REFERENCE].copy(), C.item(c.GAINED))
        if filter.course is not None and (next_t := filter.time + controller.state.clock.period) >= C[c.END]:
            self._take_piece(filter.course, next_t)
