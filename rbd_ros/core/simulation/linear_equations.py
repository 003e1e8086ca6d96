"""Linear equations within kernels."""
from __future__ import annotations

import numpy as np

from ..compiled.kernel import routine


@routine
def inverted(A):
    """A⁻¹ (n, n); NaN where A is singular, because compiled code cannot raise."""
    result = np.empty_like(A)
    try:
        result = np.linalg.inv(A)
    except Exception:    # numba catches no narrower class
        result[:] = np.nan
    return result


@routine
def solved_for(A, b):
    """A⁻¹ b (n,), NaN where A is singular."""
    result = np.empty_like(b)
    try:
        result = np.linalg.solve(A, b)
    except Exception:    # likewise
        result[:] = np.nan
    return result
