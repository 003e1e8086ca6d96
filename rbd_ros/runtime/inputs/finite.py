"""Finiteness of inputs and of commands."""
from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...core.motion.cycle import HUGE

Array = NDArray[np.float64]


def all_finite(values: Array) -> bool:
    """Whether all numbers (n,) are finite and their norm is below `HUGE`, so that their squares are finite, too.

    Fast, and without numpy's overflow warnings.
    """
    if len(values) > 100:
        return bool(np.abs(values).max() < HUGE)
    return math.hypot(*values.tolist()) < HUGE


def worst(values: Array) -> int:
    """Index of the first non-finite number, else of the largest."""
    return int(np.argmax(np.nan_to_num(np.abs(values), nan=np.inf)))
