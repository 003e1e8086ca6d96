"""Finiteness of inputs and of commands."""
from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...core.motion.cycle import HUGE

Array = NDArray[np.float64]


def all_finite(values: Array) -> bool:
    """Whether all numbers (n,) are finite, and their norm below `HUGE`, so that squares of them are finite, too.

    The quickest way, and without a word: numpy warns of squares that are not finite.
    """
    if len(values) > 100:
        return bool(np.abs(values).max() < HUGE)
    return math.hypot(*values.tolist()) < HUGE


def worst(values: Array) -> int:
    """Index of the first non-finite number, or else of the largest."""
    return int(np.argmax(np.nan_to_num(np.abs(values), nan=np.inf)))
