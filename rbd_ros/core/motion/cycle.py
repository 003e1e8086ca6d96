"""Per-cycle operations on joint arrays, one call each: selection from a message, clipping to limits. For few numbers
the overhead of a NumPy call exceeds its arithmetic.
"""
from __future__ import annotations

import numpy as np

from ..compiled.entry import quick_entry
from ..compiled.exact import exact

HUGE = 1e150    # larger norms count as non-finite


@exact
def picked(given, indices, scale, offset, out):
    """out = given[indices], times scale and plus offset unless these are empty. Returns whether all numbers are finite
    and their norm is below `HUGE`.
    """
    square = 0.0
    for i in range(len(indices)):
        x = given[indices[i]]
        if len(scale):
            x *= scale[i]
        if len(offset):
            x += offset[i]
        out[i] = x
        square += (x / HUGE) ** 2
    return square < 1.0


@exact
def clipped(x, limit, out):
    """out = x clipped to ±limit; returns whether x is within the limits."""
    same = True
    for i in range(len(x)):
        out[i] = min(max(x[i], -limit[i]), limit[i])
        same = same and out[i] == x[i]
    return same


@exact
def followed(x, last, rate, elapsed, out):
    """out = x rate-limited relative to last (rate inf: no limit); returns whether x is within the rate limit."""
    same = True
    for i in range(len(x)):
        out[i] = x[i]
        if rate[i] < np.inf:
            step = rate[i] * elapsed
            out[i] = min(max(x[i], last[i] - step), last[i] + step)
        same = same and out[i] == x[i]
    return same


@quick_entry("boolean(float64[::1], int64[::1], float64[::1], float64[::1], float64[::1])")
def picked_entry(given, indices, scale, offset, out):
    return picked(given, indices, scale, offset, out)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1])")
def clipped_entry(x, limit, out):
    return clipped(x, limit, out)


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64, float64[::1])")
def followed_entry(x, last, rate, elapsed, out):
    return followed(x, last, rate, elapsed, out)
