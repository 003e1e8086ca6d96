"""What holds in every cycle for the outputs of a torque controller (docs/safety.md), given what its laws said.

They know nothing of the controller: `Cycle` has what the laws and safe efforts were before any limit, and which limits
may count. Each rule returns "" or what is wrong.
"""
from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

Array = np.ndarray
TOLERANCE = 1e-9    # of the largest number that takes part


@dataclass(frozen=True)
class Cycle:
    """One output (n,) and what it may be made of.

    values: efforts before the limits, of the laws and safe efforts that take part, by whatever names them from one
    cycle to the next. limits: those that may count, from the oldest to the newest; each stays in its place as long as
    it counts. elapsed: s since the output before. ways: shares (0 to 1) by which fades and ramps may have moved on.
    """

    output: Array
    values: Mapping[Hashable, Array]
    limits: Mapping[Hashable, Array]
    rate: Array
    elapsed: float
    ways: tuple[float, ...] = field(default=())

    def clipped(self, key: Hashable) -> list[Array]:
        value = self.values[key]
        return [np.minimum(np.maximum(value, -limit), limit) for limit in self.limits.values()]

    @cached_property
    def alone(self) -> Array | None:
        """The only thing that can be, where one value takes part under one limit and without a rate limit."""
        if len(self.values) != 1 or len(self.limits) != 1 or not np.isinf(self.rate).all():
            return None
        return self.clipped(next(iter(self.values)))[0]

    def hull(self) -> tuple[Array, Array]:
        """Least and greatest of all that takes part, within the limits."""
        return self._hull

    @cached_property
    def _hull(self) -> tuple[Array, Array]:
        rows = np.array([row for key in self.values for row in self.clipped(key)])
        return rows.min(axis=0), rows.max(axis=0)


def limits(cycle: Cycle, last: Array | None) -> str:
    """Finite and within the limits; where a rate limit holds, at most as far beyond a lowered one as it must."""
    if not np.isfinite(cycle.output).all():
        return f"output {cycle.output} is not finite"
    most = np.max([*cycle.limits.values()], axis=0)
    if last is not None:
        most = np.where(np.isinf(cycle.rate), most, np.maximum(most, np.abs(last) - _step(cycle)))
    if (np.abs(cycle.output) > most * (1.0 + 1e-12)).any():
        return f"output {cycle.output} beyond the limits {most}"
    return ""


def interval(cycle: Cycle, last: Array | None) -> str:
    """Between the values that take part; where a rate limit holds, or on the way there."""
    low, high = cycle.hull()
    slack = TOLERANCE * (1.0 + np.abs(low) + np.abs(high))
    low, high, output = low - slack, high + slack, cycle.output
    if last is not None:    # a rate limit may hold back what is not the response to the state
        step = _step(cycle)
        low = np.where(np.isfinite(step), np.minimum(low, last + step - slack), low)
        high = np.where(np.isfinite(step), np.maximum(high, last - step + slack), high)
    inside = (low <= output) & (output <= high)
    if inside.all():
        return ""
    return f"output {output} not between {low} and {high}, last {last}"


def continuity(cycle: Cycle, before: Cycle) -> str:
    """Moved by no more than the values have, and than their distance times the shares of fades and ramps.

    Where a rate limit holds, that is the rule instead; this one holds for what the rate limit is asked for.
    """
    most = np.zeros_like(cycle.output)
    for key in cycle.values.keys() & before.values.keys():
        now, then = cycle.values[key], before.values[key]
        for at in cycle.limits.keys() & before.limits.keys():
            a, b = cycle.limits[at], before.limits[at]
            most = np.maximum(most, np.abs(np.minimum(np.maximum(now, -a), a) - np.minimum(np.maximum(then, -b), b)))
    ways = sum(min(max(way, 0.0), 1.0) for way in cycle.ways)
    most = most + ways * distance(cycle, before)
    moved = np.abs(cycle.output - before.output)
    free = np.isinf(cycle.rate) & np.isinf(before.rate)
    if (moved <= most + TOLERANCE * (1.0 + moved + most))[free].all():
        return ""
    return f"moved by {moved} from {before.output} to {cycle.output}, expected at most {most}"


def distance(cycle: Cycle, before: Cycle) -> Array:
    """Between all that takes part in one of the two cycles."""
    low, high = zip(cycle.hull(), before.hull(), strict=True)
    found: Array = np.max(high, axis=0) - np.min(low, axis=0)
    return found


def exact(cycle: Cycle, wanted: Array) -> str:
    """Just this, as nothing fades, ramps or is held back."""
    return "" if np.array_equal(cycle.output, wanted) else f"output {cycle.output} is not the command {wanted}"


def _step(cycle: Cycle) -> Array:
    return np.where(np.isinf(cycle.rate), np.inf, np.where(np.isinf(cycle.rate), 0.0, cycle.rate) * cycle.elapsed)
