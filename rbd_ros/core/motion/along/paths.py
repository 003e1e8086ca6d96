"""Paths for `time_optimal`: positions by s in [0, 1], through points or along a motion."""
from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import RbdError, shown
from ...model.robot_model import RobotModel
from .path_task import Path
from ..optimization import OptimalMotion
from ..splines import SplineMotion

Array = NDArray[np.float64]


def path_of(model: RobotModel, path: Any) -> Path:
    """Positions (N, nv), and derivatives by s in [0, 1] up to an order: (order + 1, N, nv)."""
    if isinstance(path, OptimalMotion):
        path = path.spline
    if isinstance(path, SplineMotion):
        spline, T = path, path.duration
        if spline.control.shape[1] != model.nv:
            raise RbdError(f"path: a motion of {spline.control.shape[1]} joints, expected {model.nv}")

        def of_motion(s: Array, order: int = 2) -> Array:
            return np.asarray(spline.derivatives(s * T, order) * (T ** np.arange(order + 1))[:, None, None])

        return of_motion
    try:
        points = np.array(path, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        points = np.zeros(0)
    if points.ndim != 2 or points.shape[1] != model.nv or len(points) < 2 or not np.isfinite(points).all():
        raise RbdError(f"path: expected finite positions (N, {model.nv}) with N of at least 2, or a motion, "
                       f"got {shown(path)}")
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    if not lengths.min() > 1e-9 * lengths.max():
        raise RbdError("path: two positions in a row are the same")
    knots = np.concatenate([[0.0], np.cumsum(lengths)]) / lengths.sum()
    knots[-1] = 1.0
    from scipy.interpolate import make_interp_spline    # local import: saves 20 MB in nodes without planning

    # of even degree if a single polynomial
    return InterpolatedPath(make_interp_spline(knots, points, k=min(5, len(points) - 1)))


class InterpolatedPath:
    """A path on a spline of SciPy, a BSpline over [0, 1]."""

    def __init__(self, curve: Any) -> None:
        self.curve = curve

    def __call__(self, s: Array, order: int = 2) -> Array:
        return np.array([self.curve(s, nu=k) for k in range(order + 1)])

    def polynomials(self) -> tuple[Array, Array]:
        """Breaks (K + 1,), and powers (K, m, nv) of s − breaks[k]."""
        breaks = np.unique(self.curve.t)
        return breaks, np.stack([self.curve(breaks[:-1], nu=m) / factorial(m) for m in range(self.curve.k + 1)], axis=1)
