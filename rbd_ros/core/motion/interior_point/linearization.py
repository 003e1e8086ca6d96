"""Interface between optimisation problem and solver: values, derivatives and step matrix at x."""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Values(NamedTuple):
    """Values at x: cost, rows g ≤ 0 of the limits (flat), residuals of the equations c = 0 (flat)."""

    cost: float
    rows: Array
    equations: Array


class StepMatrix(NamedTuple):
    """Symmetric matrix of a Newton step: band of the n control-point unknowns, border (n, m), corner (m, m)."""

    band: Array
    border: Array
    corner: Array


@dataclass(frozen=True, eq=False)
class Linearization:
    """Derivatives at x: J (N, R, nz) of the dynamics rows by the states; scaled columns h, states z, u = ∂z/∂T,
    B-splines beta in time, duration T.
    """

    J: Array
    h: Array
    z: Array
    u: Array
    beta: Array
    T: float
    ends: Array    # first and last control point (2, nv)
