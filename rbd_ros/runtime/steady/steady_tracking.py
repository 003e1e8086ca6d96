"""The steady cycle of the feed-forward controller."""
from __future__ import annotations

from ...core.steady.cycle_kernel import steady_cycle_entry
from ..control.feedforward import FeedforwardLaws
from .steady_cycle import Array, SteadyCycle


class TrackingCycle(SteadyCycle[FeedforwardLaws]):
    """With all laws of `tracking_law`."""

    entry = steady_cycle_entry

    def suits(self, laws: FeedforwardLaws) -> bool:
        return True

    def arrays(self, laws: FeedforwardLaws) -> tuple[Array, ...]:
        return laws.model._block, laws.model._work, laws.law.packed

    def rests(self, laws: FeedforwardLaws) -> bool:
        return not laws.law.needs_reference
