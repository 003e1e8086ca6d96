"""Shooting: Newton's method on the end of a curve, along a continuation from a problem whose solution is known.

Slopes come from an imaginary step of 1e-30: exact to rounding.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..so3 import Array

_TOLERANCE = 1e-11    # of the last Newton step, relative; it converges quadratically
_STEPS = 15
_DIRECTIONS = np.concatenate([np.zeros((1, 6)), 1e-30j * np.eye(6)])


def shoot(miss: Callable[[float, Any], Any], unknown: Array, smallest: float) -> Array | None:
    """The unknowns (6,) with which the curve of share 1 meets its end, by continuation from those of share 0. None if
    the branch folds back.

    miss(share, unknowns (7, 6)): end error (7, 6) of each curve, complex; None if too large. smallest: step of the
    share.
    """
    reached, step, slope = 0.0, 1.0, np.zeros(6)
    while reached < 1.0:
        share = min(1.0, reached + step)
        solution = _newton(partial(miss, share), unknown + (share - reached) * slope)
        if solution is not None:
            slope = (solution - unknown) / (share - reached)
            reached, unknown, step = share, solution, 1.5 * step
        elif step > smallest:
            step *= 0.4
        else:
            return None
    return unknown


def _newton(miss: Callable[[Any], Any], unknown: Array) -> Array | None:
    """Newton's method; None unless it contracts from the first step on, which keeps it on the branch."""
    before = 1.0
    for _ in range(_STEPS):
        off = miss(unknown + _DIRECTIONS)
        if off is None:
            return None
        try:
            change = np.linalg.solve(off[1:].imag.T / 1e-30, off[0].real)
        except np.linalg.LinAlgError:
            return None
        unknown = unknown - change
        norm = float(np.linalg.norm(change)) / (1.0 + float(np.linalg.norm(unknown)))
        if norm < _TOLERANCE:
            return unknown
        if not norm <= 0.5 * before:
            return None
        before = norm
    return None
