"""Parameters of law `lqr`."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..parameters import parameter

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class LQRSettings:
    """Weights (nv,) and period (s) of law `lqr`."""

    position: Array = parameter((1e4,), "Weight of position errors, 1/rad² or 1/m², with lqr.", name="lqr.position",
                                lower=1e-6, upper=1e12)
    velocity: Array = parameter((10.0,), "Weight of velocity errors, s²/rad² or s²/m², with lqr.", name="lqr.velocity",
                                lower=0.0, upper=1e12)
    effort: Array = parameter((0.01,), "Weight of efforts, 1/(N m)² or 1/N², with lqr.", name="lqr.effort", lower=1e-9,
                              upper=1e9)
    period: float = parameter(0.001, "Period of the loop that applies the gains of lqr, s: of joint states, or, with "
                              "adapter linear_feedback, of the local loop.", name="lqr.period", lower=1e-5, upper=0.1)
