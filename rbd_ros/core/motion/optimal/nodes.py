"""Knots of a motion: midpoints of equal parts, and refinement near limits.

Knots are equidistant, which suits limits. Their quadrature weights are the most even ones that are exact for
polynomials of some degree on each interval of the spline; the cost has kinks between intervals.
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
    """Knots: s (N,) in ascending order, quadrature weights (N,) over [0, 1], intervals (N,), basis values by s."""

    s: Array
    weight: Array
    interval: NDArray[np.int64]
    values: Array    # (N, orders, degree + 1)

    @classmethod
    def of(cls, basis: Basis, count: int, orders: int, more: Array | None = None) -> Nodes:
        """At least `count` knots, equally many per interval; `more` (M,): further knots without weight."""
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
        """At least `count` Gauss–Legendre points per motion, for integrals."""
        x, w = np.polynomial.legendre.leggauss(max(2, -(-count // basis.intervals)))
        s = ((np.arange(basis.intervals)[:, None] + 0.5 * (x + 1.0)) / basis.intervals).reshape(-1)
        interval, values = basis.values(s, orders - 1)
        return cls(s, np.tile(0.5 * w / basis.intervals, basis.intervals), interval, np.ascontiguousarray(values))


@lru_cache(maxsize=32)
def _even_nodes(basis: Basis, count: int, orders: int) -> Nodes:
    """Cached equidistant knots; read-only."""
    return Nodes._made(basis, count, orders, np.zeros(0))


def folded(basis: Basis, interval: NDArray[np.int64], values: Array, last: bool) -> Array:
    """Basis values for a motion at rest at its start or (last) its end, whose equal control points are represented by
    the innermost one.
    """
    out = values.copy()
    for k in range(1, basis.end_derivatives):
        if last:
            place = basis.count - basis.end_derivatives + k - interval
            inward = -k
        else:
            place = basis.end_derivatives - 1 - k - interval
            inward = k
        for node in np.flatnonzero((place >= 0) & (place <= basis.degree)):
            out[node, :, place[node] + inward] += out[node, :, place[node]]
            out[node, :, place[node]] = 0.0
    return out


@lru_cache(maxsize=16)
def _even_weights(count: int) -> Array:
    """Positive quadrature weights of the midpoints of equal parts of [0, 1], of the highest possible degree ≤ 8."""
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
    """Ascending numbers, thinned to a distance of at least `least`."""
    spaced: list[float] = []
    for value in s.tolist():
        if not spaced or value - spaced[-1] > least:
            spaced.append(value)
    return np.array(spaced)
