"""Friction and limits of joints, as kernels of the simulation take them."""
from __future__ import annotations

import numpy as np

from ..compiled.kernel import kernel
from ..model.block import all_finite

DAMPING, COULOMB, BREAKAWAY, STRIBECK, BRAKES, FASTEST, ROWS = range(7)    # of `joints` (ROWS, nv)


@kernel
def friction_level(joints, v, scale, low, high):
    """Bounds low, high (nv,) of dry friction's impulses in `scale` s at velocities v; returns whether any is not 0.
    """
    rubs = False
    for i in range(v.shape[0]):
        level = joints[BRAKES, i] + joints[COULOMB, i]
        more = joints[BREAKAWAY, i] - joints[COULOMB, i]
        if more != 0.0:
            level += more * np.exp(-(v[i] / joints[STRIBECK, i]) ** 2)
        low[i], high[i] = -scale * level, scale * level
        rubs |= level != 0.0
    return rubs


@kernel
def within(limits, joints, q, v):
    """Whether a state is finite and within the limits of positions and velocities."""
    inside = True
    for i in range(q.shape[0]):
        inside &= limits[0, i] <= q[i] <= limits[1, i]
    for i in range(v.shape[0]):
        inside &= abs(v[i]) <= joints[FASTEST, i]
    return inside and all_finite(q) and all_finite(v)
