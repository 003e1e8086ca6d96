"""Half-space limits of points of bodies."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...dynamics.kinematics import forward_kinematics, jacobian
from ...errors import RbdError, shown
from ...model.inertia import finite
from ...model.robot_model import RobotModel

Array = NDArray[np.float64]
STEP = 1e-6    # rad, m, for finite differences


@dataclass(frozen=True, eq=False)
class PlaneLimit:
    """A half-space in world axes for a point of a body: normal · point ≥ distance (m).

    offset (3,): the point in the body's frame, m; normal (3,) of any length; name: of the point, by default the
    body's.

        >>> above = rbd.PlaneLimit("link_7", (0.0, 0.0, 1.0), 0.1)    # it stays 0.1 m above the floor
        >>> above.body
        'link_7'
    """

    body: str
    normal: ArrayLike
    distance: float
    offset: ArrayLike = (0.0, 0.0, 0.0)
    name: str = ""

    def __post_init__(self) -> None:
        normal = finite(self.normal, (3,), "PlaneLimit: normal")
        length = float(np.linalg.norm(normal))
        if not 1e-9 < length < 1e9:
            raise RbdError(f"PlaneLimit: normal must be a direction, got {shown(self.normal)}")
        object.__setattr__(self, "normal", normal / length)
        object.__setattr__(self, "offset", finite(self.offset, (3,), "PlaneLimit: offset"))
        object.__setattr__(self, "distance", float(finite(self.distance, (), "PlaneLimit: distance")))
        object.__setattr__(self, "name", self.name or str(self.body))


class Planes:
    """Clearances of points: distances (m) from their planes, and derivatives."""

    def __init__(self, model: RobotModel, planes: Any) -> None:
        planes = list(planes) if isinstance(planes, Iterable) else [planes]
        if not all(isinstance(plane, PlaneLimit) for plane in planes):
            raise RbdError(f"planes: expected a list of PlaneLimit, got {shown(planes)}")
        for plane in planes:
            model.body_index(plane.body)
        self.model, self.planes = model, tuple(planes)
        self.names = tuple(plane.name for plane in planes)

    def __len__(self) -> int:
        return len(self.planes)

    def values(self, q: Array) -> Array:
        """Clearances (N, P) at q (N, nq)."""
        poses = forward_kinematics(self.model, q)
        out = np.empty((len(q), len(self)))
        for i, plane in enumerate(self.planes):
            pose = poses[:, self.model.body_index(plane.body)]
            out[:, i] = (pose[:, :3, :3] @ np.asarray(plane.offset) + pose[:, :3, 3]) @ np.asarray(
                plane.normal) - plane.distance
        return out

    def jacobian(self, q: Array) -> Array:
        """Derivatives (N, P, nv) of the clearances."""
        out = np.empty((len(q), len(self), self.model.nv))
        poses = forward_kinematics(self.model, q)
        for i, plane in enumerate(self.planes):
            J = jacobian(self.model, q, plane.body)
            normal = np.swapaxes(poses[:, self.model.body_index(plane.body), :3, :3], 1, 2) @ np.asarray(plane.normal)
            moved = J[:, 3:] + np.cross(J[:, :3], np.asarray(plane.offset), axisa=1, axisc=1)
            out[:, i] = np.matmul(normal[:, None, :], moved)[:, 0]
        return out

    def curvature(self, q: Array, weights: Array) -> Array:
        """Second derivatives (N, nv, nv) of Σ weights (N, P) · clearances, by differences of first derivatives."""
        n = self.model.nv
        slope = np.matmul(weights[:, None], self.jacobian(q))[:, 0]
        out = np.empty((len(q), n, n))
        for j in range(n):
            moved = q.copy()
            moved[:, j] += STEP
            out[:, j] = (np.matmul(weights[:, None], self.jacobian(moved))[:, 0] - slope) / STEP
        return 0.5 * (out + np.swapaxes(out, 1, 2))
