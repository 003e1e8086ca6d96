"""Statistics of a node: rate, latency, deadline misses."""
from __future__ import annotations

import numpy as np

from ..core.steady.stream_times import CYCLES, cycle_received_entry
from .live_numbers import LiveNumbers, Number


class CycleStatistics(LiveNumbers):
    """Latency and rate of the last `window` cycles. A cycle: a joint state is received, and its effort published.

    A deadline miss is an effort published more than `period` after the reception of its state; a late state comes more
    than two periods after the previous one. `period` (s): 1/`rate`, or the mean of the intervals if `rate` is 0.
    """

    period, last, _mean = (Number(CYCLES, name) for name in ("period", "last", "mean"))

    def __init__(self, rate: float = 0.0, window: int = 4096) -> None:
        super().__init__(CYCLES, cycle_received_entry)
        self._numbers[:2] = rate > 0.0, 1.0 / rate if rate > 0.0 else 0.0
        self._latency = np.zeros(window)
        self.cycles = self.deadline_misses = self.late_states = 0

    def received(self, now: float) -> None:
        """Record a valid joint state received at `now` (s, steady)."""
        self.late_states += bool(cycle_received_entry.call(self._numbers, now))

    def is_late(self, now: float) -> bool:
        """Whether no state came for more than two periods; False while the period is unknown."""
        return bool(self.last and self.period and now - self.last > 2.0 * self.period)

    def published(self, latency: float) -> None:
        """Record the effort of the last state, published `latency` seconds after the state's reception."""
        self._latency[self.cycles % len(self._latency)] = latency
        self.cycles += 1
        if self.period and latency > self.period:
            self.deadline_misses += 1

    @property
    def rate_hz(self) -> float:
        return 1.0 / self._mean if self._mean > 0.0 else 0.0

    def latency_us(self) -> tuple[float, float]:
        """50th and 99th percentile in µs, 0 without data."""
        values = self._latency[:self.cycles]
        if not len(values):
            return 0.0, 0.0
        p50, p99 = np.percentile(values, (50, 99)) * 1e6
        return float(p50), float(p99)
