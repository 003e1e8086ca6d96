"""Interface of problem and solver: values, derivatives and step matrix at a point."""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Values(NamedTuple):
    """Values at one x: cost, rows g ≤ 0 of the limits (flat), equations c = 0 (flat)."""

    cost: float
    rows: Array
    equations: Array


class Step(NamedTuple):
    """Matrix of a Newton step: the band by control points, the border's columns (n, m), and its corner (m, m)."""

    band: Array
    border: Array
    corner: Array


@dataclass(frozen=True, eq=False)
class Linear:
    """Derivatives at one x: of columns by states J (N, R, nz), scaled columns h, states z, u = ∂z/∂T."""

    J: Array
    h: Array
    z: Array
    u: Array
    beta: Array
    T: float
    ends: Array    # the first and the last control point (2, nv)
