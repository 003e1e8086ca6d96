"""Where a motion is looked at: evenly, in the middle of equal parts, and where limits ask for more.

The midpoint rule is exact to rounding for smooth motions from rest to rest, and no gap between nodes is larger than
another, which counts for limits.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..splines import Basis

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Nodes:
    """s (N,) in ascending order, quadrature weights (N,) over [0, 1], intervals (N,), basis values by s."""

    s: Array
    weight: Array
    interval: NDArray[np.int64]
    values: Array    # (N, orders, degree + 1)

    @classmethod
    def of(cls, basis: Basis, count: int, orders: int, more: Array | None = None) -> Nodes:
        """At least `count` nodes, the same number per interval; `more` (M,) without weight."""
        each = max(2, -(-count // basis.intervals))
        total = each * basis.intervals
        s = (np.arange(total) + 0.5) / total
        weight = np.full(total, 1.0 / total)
        s = np.concatenate([s, np.zeros(0) if more is None else more])
        weight = np.concatenate([weight, np.zeros(len(s) - total)])
        order = np.argsort(s, kind="stable")
        s, weight = s[order], weight[order]
        interval, values = basis.values(s, orders - 1)
        return cls(s, weight, interval, np.ascontiguousarray(values))
