"""The smoothest spline within a tolerance of recorded positions, as of an arm that was guided by hand."""
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import RbdError, shown
from ..model.scalars import positive
from .splines import MOST_POINTS, SplineMotion, basis

Array = NDArray[np.float64]
DEGREE, FIRST, GROWTH = 5, 8, 1.3
SAMPLES = 8        # per control point of the finest spline
END_WEIGHT = 1e4
FARTHEST = 1e6     # rad or m


def smoothed_path(positions: ArrayLike, tolerance: float = 0.01) -> SplineMotion:
    """The quintic spline with the fewest control points that stays within `tolerance` (rad or m, of every joint) of the
    polygon through positions (N, nv), with its ends. As a function of the way of the polygon: pauses leave no trace.

    The result's duration has no meaning: `time_optimal` times it. Raises `RbdError` for fewer than two positions that
    are half a tolerance apart, positions beyond 1e6 (rad or m), and if the most control points of a spline are too
    few.

        >>> way = np.linspace(0.0, 1.0, 200)[:, None] * [[1.0, -0.5]]
        >>> rbd.smoothed_path(way, 1e-3).control.shape
        (8, 2)
    """
    q = np.asarray(positions, dtype=np.float64)
    close = positive(tolerance, "tolerance", "distance")
    if q.ndim != 2 or len(q) < 2 or not q.shape[1] or not np.abs(q).max() <= FARTHEST:
        raise RbdError(f"positions: expected finite numbers (N, nv) up to {FARTHEST:g} with N of at least "
                       f"2, got {shown(positions)}")
    polygon = _thinned(q, 0.5 * close)
    if len(polygon) < 2:
        raise RbdError(f"positions: no joint moves by more than half the tolerance, {0.5 * close:g}")
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(polygon, axis=0), axis=1))])
    s = np.union1d(np.linspace(0.0, 1.0, SAMPLES * MOST_POINTS), way / way[-1])    # its corners, and between
    points = np.column_stack([np.interp(s, way / way[-1], column) for column in polygon.T])
    weights = np.ones(len(s))
    weights[[0, -1]] = END_WEIGHT
    count = FIRST
    while True:
        spline = SplineMotion(_fitted(s, points, weights, count), 1.0, DEGREE)
        if np.abs(spline.states(s, 1)[:, 0] - points).max() <= close:
            return spline
        if count == MOST_POINTS:
            raise RbdError(f"positions: a way of {way[-1]:.3g} rad or m needs more than {MOST_POINTS} control points "
                           f"to be followed within {close:g}: take a larger tolerance, or a part of it")
        count = min(int(GROWTH * count) + 1, MOST_POINTS)


def _thinned(q: Array, apart: float) -> Array:
    """Positions of which each is at least `apart` from the one before, in some joint, with both ends."""
    kept = [q[0]]
    for position in q[1:]:
        if np.abs(position - kept[-1]).max() >= apart:
            kept.append(position)
    if len(kept) > 1:
        kept[-1] = q[-1]
    return np.array(kept)


def _fitted(s: Array, points: Array, weights: Array, count: int) -> Array:
    """Control points (count, nv) of least squares."""
    intervals, values = basis(DEGREE, count).values(s, 0)
    rows = np.zeros((len(s), count))
    rows[np.arange(len(s))[:, None], intervals[:, None] + np.arange(DEGREE + 1)] = values[:, 0]
    control = np.linalg.lstsq(weights[:, None] * rows, weights[:, None] * points, rcond=None)[0]
    return np.asarray(control, dtype=np.float64)
