"""Static transforms of topic `tf_static`, for the direction of gravity in the root link."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.errors import RbdError
from ...core.lie.so3 import from_quaternion

Array = NDArray[np.float64]
UNIT = 1e-2    # largest error of a quaternion's norm; it is normalised


class Transform(NamedTuple):
    """Rotation of frame `child` in frame `parent`, as a quaternion x, y, z, w."""

    parent: str
    child: str
    quaternion: Sequence[float]


def unit_quaternion(what: str, quaternion: Sequence[float]) -> Array:
    """Quaternion (4,) normalised to 1; raises `RbdError`, naming `what`, if non-finite or far from unit norm."""
    values = np.asarray(quaternion, dtype=np.float64)
    if not np.isfinite(values).all():
        raise RbdError(f"{what} is not finite")
    norm = float(np.linalg.norm(values))
    if not abs(norm - 1.0) <= UNIT:
        raise RbdError(f"{what} has norm {norm:g}, expected a unit quaternion x, y, z, w")
    return np.asarray(values / norm)


class StaticFrames:
    """The newest transform to each frame."""

    def __init__(self) -> None:
        self._parent: dict[str, tuple[str, Array]] = {}

    def accept(self, transforms: Iterable[Transform]) -> list[str]:
        """Take transforms; returns the reasons for those that are rejected."""
        wrong = []
        for parent, child, quaternion in transforms:
            parent, child = parent.lstrip("/"), child.lstrip("/")    # as tf2 does
            try:
                if not parent or not child or parent == child:
                    raise RbdError(f"transform from '{parent}' to '{child}': expected the names of two frames")
                self._parent[child] = parent, from_quaternion(unit_quaternion(
                    f"transform from '{parent}' to '{child}': its rotation", quaternion))
            except RbdError as error:
                wrong.append(str(error))
        return wrong

    def rotation(self, world: str, root: str) -> Array:
        """R (3, 3) with x_world = R x_root; `RbdError` names the end of an incomplete chain from `root` to `world`."""
        R, frame, seen = np.eye(3), root, [root]
        while frame != world:
            if frame not in self._parent:
                raise RbdError(f"no static transform from '{world}' to '{root}': the chain "
                               f"{' → '.join(reversed(seen))} begins at '{frame}', which has no parent")
            frame, step = self._parent[frame]
            R = step @ R
            if frame in seen:
                raise RbdError(f"no static transform from '{world}' to '{root}': {' → '.join([*seen, frame])} is a "
                               "loop")
            seen.append(frame)
        return R
