"""Checks of poses as received, and of points of a trajectory of one link's pose."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.lie import so3
from ...core.motion.pose_trajectory import PosePoints
from ...core.motion.trajectory import check_times
from .finite import all_finite
from .rejections import Rejected

Array = NDArray[np.float64]
UNIT = 1e-2    # deviation of a quaternion's norm from 1 that is accepted


class PosePoint(NamedTuple):
    """A point as received: time from start (s); per link its position and quaternion x, y, z, w (7,), and the
    derivatives of the position followed by those of the rotation (6,).
    """

    time: float
    poses: Sequence[Sequence[float]]
    velocities: Sequence[Sequence[float]] = ()
    accelerations: Sequence[Sequence[float]] = ()


def rotation(what: str, quaternion: Array) -> Array:
    """Rotation matrices (…, 3, 3) of quaternions (…, 4), nearly of norm 1; raises `Rejected`."""
    sizes = np.linalg.norm(quaternion, axis=-1)
    off = np.ravel(np.abs(sizes - 1.0))
    i = int(np.argmax(off))
    if not off[i] <= UNIT:
        where = f"{what} {i}" if quaternion.ndim > 1 else what
        raise Rejected("not_unit", f"{where}: the quaternion has norm {np.ravel(sizes)[i]:.3g}, expected 1")
    return so3.from_quaternion(quaternion / sizes[..., None])


def pose_points(names: Sequence[str], points: Sequence[PosePoint], link: str) -> PosePoints:
    """The points, which are those of this link alone; raises `RbdError`."""
    if list(names) != [link]:
        shown = ", ".join(name[:80] for name in names[:3])
        raise Rejected("unknown_body", f"trajectory of [{shown}], expected ['{link}']")
    table = []
    for i, point in enumerate(points):
        row: list[float] = [point.time]
        for values, what, least in ((point.poses, "transforms", 1),
                                    (point.velocities, "velocities", len(points[0].velocities)),
                                    (point.accelerations, "accelerations", len(points[0].accelerations))):
            if len(values) != least or least > 1:
                raise Rejected("wrong_size", f"trajectory point {i} has {len(values)} {what}, expected {min(least, 1)}")
            row += [number for value in values for number in value]
        if not all_finite(np.array(row)):
            raise Rejected("non_finite", f"trajectory point {i} is not finite")
        table.append(row)
    numbers = np.array(table)
    check_times(numbers[:, 0])
    rates = [numbers[:, [k + 3, k + 4, k + 5, k, k + 1, k + 2]] for k in range(8, numbers.shape[1], 6)]
    if points[0].accelerations and not points[0].velocities:
        raise Rejected("wrong_size", "trajectory with accelerations, but no velocities")
    return PosePoints(numbers[:, 0], rotation("trajectory point", numbers[:, 4:8]), numbers[:, 1:4], *rates)
