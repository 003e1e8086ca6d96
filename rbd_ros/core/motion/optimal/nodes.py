"""Knots of a motion: midpoints of equal parts, and refinement near limits.

No gap between nodes is larger than another, which counts for limits. The weights are the evenest that are exact for
polynomials of some degree on each interval of the spline, between whose polynomials the cost has kinks.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

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
        return _even_nodes(basis, count, orders) if more is None or not len(more) else cls._made(
            basis, count, orders, more)

    @classmethod
    def _made(cls, basis: Basis, count: int, orders: int, more: Array) -> Nodes:
        each = max(2, -(-count // basis.intervals))
        total = each * basis.intervals
        s = (np.arange(total) + 0.5) / total
        weight = np.tile(_even_weights(each) / basis.intervals, basis.intervals)
        s = np.concatenate([s, more])
        weight = np.concatenate([weight, np.zeros(len(s) - total)])
        order = np.argsort(s, kind="stable")
        s, weight = s[order], weight[order]
        interval, values = basis.values(s, orders - 1)
        return cls(s, weight, interval, np.ascontiguousarray(values))

    @classmethod
    def gauss(cls, basis: Basis, count: int, orders: int) -> Nodes:
        """At least `count` nodes for integrals alone: Gauss–Legendre's on each interval."""
        x, w = np.polynomial.legendre.leggauss(max(2, -(-count // basis.intervals)))
        s = ((np.arange(basis.intervals)[:, None] + 0.5 * (x + 1.0)) / basis.intervals).reshape(-1)
        interval, values = basis.values(s, orders - 1)
        return cls(s, np.tile(0.5 * w / basis.intervals, basis.intervals), interval, np.ascontiguousarray(values))


@lru_cache(maxsize=32)
def _even_nodes(basis: Basis, count: int, orders: int) -> Nodes:
    """They are the same for every motion; nobody writes to them."""
    return Nodes._made(basis, count, orders, np.zeros(0))


def folded(basis: Basis, interval: NDArray[np.int64], values: Array, last: bool) -> Array:
    """Basis values in which the innermost of the points that are alike where a motion rests, at its start or (last)
    its end, stands for all of them.
    """
    out = values.copy()
    for k in range(1, basis.end_derivatives):
        if last:
            at = basis.count - basis.end_derivatives + k - interval
            inward = -k
        else:
            at = basis.end_derivatives - 1 - k - interval
            inward = k
        for node in np.flatnonzero((at >= 0) & (at <= basis.degree)):
            out[node, :, at[node] + inward] += out[node, :, at[node]]
            out[node, :, at[node]] = 0.0
    return out


@lru_cache(maxsize=16)
def _even_weights(count: int) -> Array:
    """Weights of the middles of equal parts of [0, 1], positive, of the highest degree ≤ 8 for which they are."""
    x = (2.0 * np.arange(count) + 1.0) / count - 1.0
    even = np.full(count, 1.0 / count)
    for degree in range(min(8, count - 1), 0, -1):
        rows = np.polynomial.legendre.legvander(x, degree).T
        exact = np.zeros(degree + 1)
        exact[0] = 1.0
        weights: Array = even + np.linalg.lstsq(rows, exact - rows @ even, rcond=None)[0]
        if weights.min() > 0.2 / count:
            return weights
    return even


def apart(s: Array, least: float) -> Array:
    """Ascending numbers without those that follow another too closely."""
    kept: list[float] = []
    for value in s.tolist():
        if not kept or value - kept[-1] > least:
            kept.append(value)
    return np.array(kept)
