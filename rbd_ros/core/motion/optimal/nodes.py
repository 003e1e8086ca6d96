"""Knots of a motion, at which limits apply and costs are summed, and their quadrature weights.

Knots are midpoints of equal parts, plus further ones near limits. The weights are the most equal ones that are exact
for polynomials of the highest possible degree on each interval of the spline; the cost has kinks between intervals.
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
    """Knots: ascending s (N,), quadrature weights (N,) over [0, 1], intervals (N,), B-splines and derivatives by s."""

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
    """Cached equidistant knots."""
    return Nodes._made(basis, count, orders, np.zeros(0))


def folded(basis: Basis, interval: NDArray[np.int64], values: Array, last: bool) -> Array:
    """Basis values for a motion at rest at its start, or at its end (last): values of the equal control points there
    are added to those of the innermost one.
    """
    out = values.copy()
    for k in range(1, basis.end_derivatives):
        if last:
            point_index = basis.count - basis.end_derivatives + k - interval
            inward = -k
        else:
            point_index = basis.end_derivatives - 1 - k - interval
            inward = k
        for node in np.flatnonzero((point_index >= 0) & (point_index <= basis.degree)):
            out[node, :, point_index[node] + inward] += out[node, :, point_index[node]]
            out[node, :, point_index[node]] = 0.0
    return out


@lru_cache(maxsize=16)
def _even_weights(count: int) -> Array:
    """Positive quadrature weights of the midpoints of equal parts of [0, 1], of the highest possible degree ≤ 8."""
    x = (2.0 * np.arange(count) + 1.0) / count - 1.0
    equal = np.full(count, 1.0 / count)
    for degree in range(min(8, count - 1), 0, -1):
        rows = np.polynomial.legendre.legvander(x, degree).T
        exact = np.zeros(degree + 1)
        exact[0] = 1.0
        weights: Array = equal + np.linalg.lstsq(rows, exact - rows @ equal, rcond=None)[0]
        if weights.min() > 0.2 / count:
            return weights
    return equal


def thinned(s: Array, distance: float) -> Array:
    """The ascending numbers s, thinned to distances above `distance`."""
    spaced: list[float] = []
    for value in s.tolist():
        if not spaced or value - spaced[-1] > distance:
            spaced.append(value)
    return np.array(spaced)
