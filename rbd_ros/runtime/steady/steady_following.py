"""The steady cycle of controllers that follow references and trajectories."""
from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, TypeVar

from ...core.motion.smooth_trajectory import SmoothTrajectory
from ...core.motion.trajectory import Reference, Trajectory
from ...core.steady import cycle_kernel as at
from ..control.following import FollowingController, FollowingLaws
from ..control.loop_rate import Transit
from .steady_cycle import SteadyCycle

F = TypeVar("F", bound=FollowingLaws)


class FollowingCycle(SteadyCycle[F]):
    """Steady cycle of laws with a reference as the only other input."""

    rows: ClassVar[int] = 3    # of a reference

    def __init__(self, controller: FollowingController[F], transit: Transit) -> None:
        super().__init__(controller, transit)
        self._follower = controller
        self._followed: object = self    # the prepared reference or None; self: unknown

    def rests(self, laws: F) -> bool:
        """Whether these laws need no reference."""
        return False

    @abstractmethod
    def used(self) -> Any:
        """Inputs of the last command (`FollowingLaws.used`)."""

    def ready(self, laws: F) -> bool:
        reference = laws.reference
        return reference is self._follower.reference and not reference.waits and self._follow(laws)

    def happened(self, now: float, laws: F) -> bool:
        follower, reference = self._follower, laws.reference
        return (follower.wrenched or follower.reacts or reference.waits
                or (reference.followed is not self._followed and not self._follow(laws)))

    def after(self, time_ns: int) -> None:
        if self._limits_rate and self._laws is not None:
            self._laws.use(self._now, self.used())
        if self._whole[at.MOVES] and isinstance(self._followed, Trajectory | SmoothTrajectory):
            next_t = (time_ns - self._whole.item(at.START)) * 1e-9 + self._controller.state.clock.period
            if next_t >= self._constants[at.END]:
                self._take_piece(self._followed, next_t)

    def _settle(self, laws: F) -> None:
        super()._settle(laws)
        self._followed = self
        self.limits[at.TOLERANCE] = laws.tolerance

    def _follow(self, laws: F) -> bool:
        """Prepare for the followed reference; returns whether it is known for some time ahead."""
        reference = laws.reference
        followed = reference.followed
        self._followed = self
        self._whole[at.FOLLOWS] = followed is not None
        if followed is None:
            if not self.rests(laws):
                return False
            self._whole[at.MOVES], self._constants[at.EXPIRY] = 0, 0.0
            self.coefficients(self.rows)[:] = 0.0
        elif isinstance(followed, Reference):
            if any(each is None for each in followed[:self.rows]):
                return False
            self._whole[at.MOVES] = 0
            self.coefficients(self.rows)[:] = followed[:self.rows]    # type: ignore[assignment]
            self._constants[at.EXPIRY], self._constants[at.RECEIVED] = reference.expiry
        elif isinstance(followed, Trajectory if self.rows == 3 else SmoothTrajectory):
            start_ns = reference.start_ns - (self._follower.reference_ns - self._follower.state.time_ns)
            t = (self._whole.item(at.TIME) - start_ns) * 1e-9
            if t < 0.0:
                return False
            self._whole[at.MOVES], self._whole[at.START] = 1, start_ns
            self._take_piece(followed, t)
        else:
            return False
        self._followed = followed
        return True

    def _take_piece(self, motion: Trajectory | SmoothTrajectory, t: float) -> None:
        """Store the polynomial piece for this time (s)."""
        K = self._constants
        K[at.BEGIN], K[at.END], K[at.SCALE], coefficients = motion.piece(t)
        self._whole[at.DEGREE] = len(coefficients) - 1
        self.coefficients(len(coefficients))[:] = coefficients
