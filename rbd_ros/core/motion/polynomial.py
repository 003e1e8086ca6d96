"""One piece of a motion: a polynomial in time and its derivatives, by Horner's scheme."""
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compiled.entry import quick_entry
from ..compiled.exact import exact

Array = NDArray[np.float64]


@exact
def polynomial_rows(c, x, scale, out):
    """Rows of out: Σ c_i x^i and its derivatives by scale·x; c (degree + 1, n), out (derivatives + 1, n)."""
    rows = out.shape[0]
    for j in range(out.shape[1]):
        for k in range(rows):
            out[k, j] = 0.0
        for i in range(c.shape[0] - 1, -1, -1):
            for k in range(rows - 1, 0, -1):
                out[k, j] = out[k, j] * x + out[k - 1, j]
            out[0, j] = out[0, j] * x + c[i, j]
    factor = 1.0
    for k in range(1, rows):
        factor *= k / scale
        for j in range(out.shape[1]):
            out[k, j] *= factor


@quick_entry("void(float64[:, ::1], float64, float64, float64[:, ::1])")
def polynomial_entry(c, x, scale, out):
    polynomial_rows(c, x, scale, out)


def polynomial(coefficients: Array, x: float, scale: float, derivatives: int) -> Array:
    """(derivatives + 1, n): values and derivatives by time of a polynomial (degree + 1, n) in x = time/scale."""
    out = np.empty((derivatives + 1, coefficients.shape[1]))
    polynomial_entry.call(coefficients, x, scale, out)
    return out
