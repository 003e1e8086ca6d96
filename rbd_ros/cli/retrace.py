"""`rbd retrace`: a path that was taught by hand, smoothed, timed within all limits, and written as a trajectory."""
from __future__ import annotations

import argparse
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import RbdError, unknown_name
from ..core.model.robot_model import RobotModel
from ..core.motion.optimal.limits import MotionLimits
from ..core.motion.smoothed_path import smoothed_path
from ..core.motion.time_optimal import time_optimal
from ..core.text_table import aligned
from ..runtime.planning.sampled import Points, sampled
from . import plan_report
from .files.robot import add_robot, load_robot
from .files.waiting import waiting

Array = NDArray[np.float64]
LARGEST = 100_000_000    # bytes: of the longest recording, of more than 100 joints


class Retraced(NamedTuple):
    """A trajectory, as `plan_report` writes it."""

    names: Sequence[str]
    points: Points | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd retrace`."""
    add_robot(parser)
    parser.add_argument("taught", type=Path, metavar="TAUGHT", help="file of node cartesian's service ~/teach")
    parser.add_argument("--tolerance", type=float, default=0.01, metavar="RAD",
                        help="largest deviation of a joint from the taught path, rad or m (default: %(default)g)")
    parser.add_argument("--velocity-scaling", type=float, default=0.5, metavar="SHARE",
                        help="share of the velocity limits (default: %(default)g)")
    parser.add_argument("--effort-scaling", type=float, default=0.8, metavar="SHARE",
                        help="share of the effort limits (default: %(default)g)")
    parser.add_argument("--acceleration", type=float, default=2.5, metavar="LIMIT",
                        help="rad/s² or m/s² (default: %(default)g)")
    parser.add_argument("--jerk", type=float, default=np.inf,
                        help="limit in rad/s³ or m/s³ (default: none; with one the search takes seconds)")
    parser.add_argument("--backward", action="store_true", help="from the end to the beginning, where the arm now is")
    parser.add_argument("--sample-period", type=float, default=0.01, metavar="S",
                        help="time between the points of the output, s (default: %(default)g)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", required=True,
                        help="the trajectory: .csv, or .yaml as trajectory_msgs/JointTrajectory")


def run(namespace: argparse.Namespace) -> int:
    """Smooth, time, print, write; returns 1 without a good motion."""
    model = load_robot(namespace, quiet=True, joints=True)
    if namespace.output.suffix not in plan_report.WRITERS:
        raise RbdError(f"--output {namespace.output}: expected a file that ends in "
                       f"{' or '.join(plan_report.WRITERS)}")
    if not namespace.sample_period > 0.0:
        raise RbdError(f"--sample-period: expected a positive time, got {namespace.sample_period:g}")
    positions = taught(namespace.taught, model)
    with waiting("timing", 10.0):
        path = smoothed_path(positions[::-1] if namespace.backward else positions, namespace.tolerance)
        limits = MotionLimits(velocity=namespace.velocity_scaling * model.velocity_limit,
                              effort=namespace.effort_scaling * model.effort_limit,
                              acceleration=namespace.acceleration, jerk=namespace.jerk)
        motion = time_optimal(model, path, limits=limits, grid=max(1000, 10 * len(path.control)))
    print(f"{model.name}: {len(positions)} taught positions, {len(path.control)} control points, "
          f"{motion.duration:.4g} s" + ("" if motion.good else f"; NOT GOOD: {motion.reason}"))
    print("\n".join(aligned([("limit", "used", "by joint", "at"), *(
        (name, f"{100.0 * used.ratio:.1f} %", used.joint, f"{used.time:.3f} s")
        for name, used in motion.usage.items())])))
    if not motion.good:
        return 1
    points = sampled(motion, namespace.sample_period)
    plan_report.WRITERS[namespace.output.suffix](namespace.output, Retraced(model.joint_names, points))
    print(f"wrote {namespace.output} ({len(points.time)} points)")
    return 0


def taught(path: Path, model: RobotModel) -> Array:
    """Positions (N, nq) of a file that service ~/teach wrote, in model order. Raises `RbdError`."""
    try:
        with zipfile.ZipFile(path) as file:
            if (size := sum(item.file_size for item in file.infolist())) > LARGEST:
                raise RbdError(f"'{path}' unpacks to {size} bytes, more than service ~/teach writes")
        with np.load(path, allow_pickle=False) as file:
            listed, positions = file["joints"], file["positions"]
    except (OSError, ValueError, KeyError, TypeError, EOFError, MemoryError, OverflowError, RuntimeError, zlib.error,
            zipfile.BadZipFile) as error:    # of unknown compression, NotImplementedError
        raise RbdError(f"cannot read '{path}' as a file of ~/teach: {error}") from None
    if listed.ndim != 1 or listed.dtype.kind != "U" or positions.dtype.kind != "f":
        raise RbdError(f"cannot read '{path}' as a file of ~/teach: expected names and floating-point positions, got "
                       f"{listed.dtype} {listed.shape} and {positions.dtype}")
    names = listed.tolist()
    for name in model.joint_names:
        if name not in names:
            raise unknown_name("joint", name, names, f"{path}: no positions of a joint of the model")
    if positions.ndim != 2 or positions.shape[1] != len(names):
        raise RbdError(f"{path}: positions have shape {positions.shape}, expected (N, {len(names)})")
    return np.asarray(positions, dtype=np.float64)[:, [names.index(name) for name in model.joint_names]]
