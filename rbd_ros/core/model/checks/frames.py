"""Frames on links: accepted formats."""
from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ...errors import RbdError, shown
from ...lie import se3
from ..inertia import Array, read_only

Frame: TypeAlias = ArrayLike | tuple[ArrayLike, ArrayLike] | None


def frame_pose(value: Frame, what: str) -> Array:
    """Pose (4, 4) of None (the link's frame), xyz (3,) in m, (xyz, rpy) in m and rad, or a pose (4, 4)."""
    if value is None:
        return read_only(np.eye(4))
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(0)
    if array.shape not in ((3,), (2, 3), (4, 4)) or not np.isfinite(array).all():
        raise RbdError(f"{what}: expected xyz (3,), (xyz, rpy) or a pose (4, 4), got {shown(value)}")
    if array.shape == (4, 4):
        return read_only(se3.checked_pose(what, array).copy())
    return read_only(se3.pose(array) if array.ndim == 1 else se3.pose(array[0], array[1]))
