"""The steady cycle of the feed-forward controller."""
from __future__ import annotations

from ...core.motion.trajectory import Reference
from ...core.steady import cycle_kernel as at
from ...core.steady.cycle_kernel import steady_cycle_entry
from ..control.feedforward import FeedforwardLaws
from .steady_cycle import Array
from .steady_following import FollowingCycle


class TrackingCycle(FollowingCycle[FeedforwardLaws]):
    """Steady cycle for all laws of `tracking_law` but lqr."""

    entry = steady_cycle_entry

    def suits(self, laws: FeedforwardLaws) -> bool:
        return not laws.law.lqr

    def arrays(self, laws: FeedforwardLaws) -> tuple[Array, ...]:
        return laws.model._block, laws.model._work, laws.law.packed

    def used(self) -> tuple[Reference | None, None]:
        rows = self._states[at.REFERENCE:at.REFERENCE + self.rows]
        return None if self._followed is None else Reference(*rows.copy()), None

    def rests(self, laws: FeedforwardLaws) -> bool:
        return not laws.law.needs_reference
