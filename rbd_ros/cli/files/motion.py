"""Motions from files: trajectory_msgs/JointTrajectory as YAML, or tables as CSV."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import RbdError, unknown_name
from ...core.identification.recorded.reading import read_csv
from ...core.model.robot_model import RobotModel
from ...core.motion.trajectory import Reference

Array = NDArray[np.float64]
FEWEST = 10


def motion_from(path: str, model: RobotModel) -> Reference:
    """Samples (N, nv) of a motion in the model's order; missing velocities and accelerations are derivatives of a
    spline. Raises `RbdError` for an unreadable file, missing joints and invalid numbers.
    """
    table = _table(path)
    missing = [name for name in model.velocity_names if name not in table["joints"]]
    if missing:
        raise unknown_name("joint", missing[0], table["joints"], f"{path}: no column for a joint of the model")
    order = [table["joints"].index(name) for name in model.velocity_names]
    try:
        t = np.asarray(table["t"], dtype=np.float64)
        parts = [np.asarray(table[quantity], dtype=np.float64)[:, order] if table.get(quantity) is not None else None
                 for quantity in ("q", "v", "a")]
    except (TypeError, ValueError, IndexError):
        raise RbdError(f"{path}: expected as many numbers as joints in each point") from None
    if len(t) < FEWEST or not (np.diff(t) > 0.0).all() or not all(np.isfinite(x).all() for x in parts if x is not None):
        raise RbdError(f"{path}: expected at least {FEWEST} points with increasing times and finite numbers")
    from scipy.interpolate import make_interp_spline

    q, v, a = parts
    assert q is not None
    if v is None:
        v = make_interp_spline(t, q, k=5)(t, nu=1)
    return Reference(q, v, make_interp_spline(t, v, k=5)(t, nu=1) if a is None else a)


def _table(path: str) -> dict[str, Any]:
    """t, q, v, a and joints of the file."""
    if Path(path).suffix.lower() == ".csv":
        return read_csv(path, None, None, efforts=False)
    import yaml

    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RbdError(f"cannot read '{path}': {error}") from None
    try:
        points = content["points"]
        times = [point["time_from_start"] for point in points]
        columns = {quantity: [point[field] for point in points] if points and points[0].get(field) else None
                   for quantity, field in (("q", "positions"), ("v", "velocities"), ("a", "accelerations"))}
        return {"t": [time["sec"] + 1e-9 * time["nanosec"] for time in times],
                "joints": [str(name) for name in content["joint_names"]], **columns}
    except (KeyError, TypeError, AttributeError):
        raise RbdError(f"{path}: expected a trajectory_msgs/JointTrajectory with joint_names, and points with "
                       "positions and time_from_start") from None
