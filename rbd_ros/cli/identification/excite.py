"""`rbd excite ROBOT`: a motion to record for identification, as a joint trajectory, fast or through poses."""
from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from ...core.dynamics.friction import friction_effort
from ...core.dynamics.inverse import inverse_dynamics
from ...core.dynamics.kinematics import forward_kinematics
from ...core.errors import RbdError
from ...core.identification.excited.excitation import excitation
from ...core.identification.excited.poses import SPEED, excitation_poses
from ...core.model.robot_model import RobotModel
from ...core.motion.collision.collision_model import CollisionModel
from ...core.motion.optimal.limits import CheckedLimits, MotionLimits
from ...core.motion.periodic_motion import PeriodicMotion
from ...core.motion.sampled_motion import SampledMotion
from ...core.motion.places.plane_limit import PlaneLimit
from ..files.collisions import add_collisions, collisions_of
from ..files.robot import add_robot, load_robot
from .recorded import locked

RATE = 200.0    # Hz, sampling of unlimited quantities
POINTS, SLOW_POINTS = 100.0, 20.0    # per second in the file; of a slow motion, which is long


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd excite`."""
    add_robot(parser)
    parser.add_argument("-o", "--output", default="excitation.yaml", metavar="FILE",
                        help="trajectory_msgs/JointTrajectory as YAML, or a table if it ends in .csv "
                             "(default: %(default)s)")
    parser.add_argument("--poses", type=int, metavar="COUNT",
                        help="a slow motion through this many poses (20 to 60) instead of a fast one; each is passed "
                             "slowly in both directions")
    parser.add_argument("--speed", type=float, default=SPEED, metavar="SPEED",
                        help="largest speed between poses with --poses, rad/s or m/s (default: %(default)s)")
    parser.add_argument("--duration", type=float, default=20.0, help="s (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=40.0, help="computation time (default: %(default)s)")
    parser.add_argument("--rate", type=float, help=f"points per second (default: {POINTS:g}, with --poses "
                        f"{SLOW_POINTS:g})")
    parser.add_argument("--velocity", type=float, default=1.0, metavar="SHARE",
                        help="share of the velocity limits (default: %(default)s)")
    parser.add_argument("--effort", type=float, default=0.9, metavar="SHARE",
                        help="share of the effort limits (default: %(default)s)")
    parser.add_argument("--acceleration", type=float, nargs="+", metavar="LIMIT",
                        help="acceleration limit, rad/s² or m/s², one number or one per joint (default: none)")
    parser.add_argument("--margin", type=float, default=0.05, metavar="SHARE",
                        help="unused share of the range of each position, at both ends (default: %(default)s)")
    parser.add_argument("--floor", type=float, metavar="HEIGHT",
                        help="height, m, above which the frames of moving links stay, if they can sink below it")
    add_collisions(parser)
    parser.add_argument("--lock", nargs="+", default=[], metavar="JOINT", help="joints that do not move: at zero, or "
                        "JOINT=POSITION")
    parser.add_argument("--gravity", nargs=3, type=float, default=(0.0, 0.0, -9.81), metavar=("X", "Y", "Z"),
                        help="gravity in the axes of the root link, m/s², for an arm on a wall or a ceiling (default: "
                        "0 0 -9.81)")
    parser.epilog = "It begins and ends at rest: move to its first point first, with the workspace clear."


def run(namespace: argparse.Namespace) -> int:
    """Write the trajectory; returns 0."""
    model = load_robot(namespace, gravity=namespace.gravity, locked=locked(namespace.lock))
    for name in ("velocity", "effort"):
        if not 0.0 < getattr(namespace, name) <= 1.0:
            raise RbdError(f"--{name} must be a share above 0, at most 1, got {getattr(namespace, name):g}")
    if not 0.0 <= namespace.margin < 0.5:
        raise RbdError(f"--margin must be a share from 0 to below 0.5, got {namespace.margin:g}")
    base = MotionLimits().checked(model)
    reach = base.position_upper - base.position_lower
    margin = namespace.margin * np.where(np.isfinite(reach), reach, 0.0)    # continuous joints have no ends
    acceleration = None
    if namespace.acceleration is not None:
        acceleration = namespace.acceleration[0] if len(namespace.acceleration) == 1 else namespace.acceleration
    limits = MotionLimits(position_lower=base.position_lower + margin, position_upper=base.position_upper - margin,
                          velocity=namespace.velocity * base.velocity, effort=namespace.effort * base.effort,
                          acceleration=acceleration)
    collisions, said = collisions_of(namespace, model, needed=True)
    options: dict[str, Any] = {"limits": limits, "collisions": collisions, "clearance": namespace.clearance,
                               "planes": _floor(model, namespace.floor),
                               "progress": lambda line: print(f"  {line}", file=sys.stderr, flush=True)}
    if namespace.poses is not None:
        slow = excitation_poses(model, namespace.poses, speed=namespace.speed, **options)
        slow.motion.write_trajectory(namespace.output, model.velocity_names,
                                     SLOW_POINTS if namespace.rate is None else namespace.rate)
        print(f"{slow} (below 10 is good); `rbd identify --zeros` also finds zero offsets of its joints")
        _close(model, slow.motion, namespace.output, collisions, said)
        return 0
    made = excitation(model, namespace.duration, seconds=namespace.seconds, **options)
    made.motion.write_trajectory(namespace.output, model.velocity_names,
                                 POINTS if namespace.rate is None else namespace.rate)
    print(f"{model.name}: {made.duration:g} s in {made.periods} period{'s' * (made.periods != 1)}, condition number "
          f"{made.condition:.1f} (below 20 is good, above 100 some parameters will be poorly determined)")
    for name, usage in made.usage.items():
        if name in ("clearance", "distance"):
            least = 1.0 - usage.ratio + (namespace.clearance if name == "distance" else 0.0)
            print(f"  {name:13} at least {least:.3f} m: {usage.joint} at {usage.time:.2f} s")
            continue
        print(f"  {name:13} up to {100.0 * usage.ratio:5.1f} % of its limit: {usage.joint} at {usage.time:.2f} s")
    for line in _unlimited(model, made.motion, limits.checked(model)):
        print(f"  {line}")
    if made.without_collisions is not None:
        condition, log_det = made.without_collisions
        print(f"  without collisions it would be {condition:.1f}; log det of the information is {made.log_det:.1f} "
              f"instead of {log_det:.1f}")
    _close(model, made.motion, namespace.output, collisions, said)
    return 0


def _close(model: RobotModel, motion: SampledMotion, output: str, collisions: CollisionModel | None,
           said: str) -> None:
    """Print both ends of the motion and its limitations."""
    for ends, t in (("begins at rest at", 0.0), ("ends at rest at", motion.duration)):
        print(ends, ", ".join(f"{name} {x:.3f}" for name, x in zip(model.velocity_names, motion(t).q, strict=True)))
    print(said)
    if collisions is not None:
        way = collisions.certify(np.array([model.neutral(), motion(0.0).q]))
        print("the straight way to its first point, from where all joints are 0, " + (
            "is clear" if way.clear else f"is not: {way.reason}; rbd plan finds another"))
    print("cables are not considered: play it slowly first")
    print(f"wrote {output}")


def _unlimited(model: RobotModel, motion: PeriodicMotion, limits: CheckedLimits) -> list[str]:
    """Text about the ranges of unlimited quantities (a limit of 0 in a URDF means none)."""
    _, (q, v, a, *_) = motion.sampled(RATE)
    lines = []
    for name, values in (("position", q), ("velocity", v), ("acceleration", a),
                         ("effort", inverse_dynamics(model, q, v, a) + friction_effort(model, v))):
        lower, upper = limits.of(name)
        if (free := np.flatnonzero(~np.isfinite(upper) & ~np.isfinite(lower))).size:
            largest = np.abs(values[:, free]).max(axis=0)
            lines.append(f"{name:13} no limit: " + ", ".join(
                f"{model.velocity_names[j]} up to {x:.3g}" for j, x in zip(free, largest, strict=True)))
    return lines


def _floor(model: RobotModel, height: float | None) -> list[PlaneLimit]:
    """Plane limits above the floor for all links whose frame changes its height."""
    if height is None:
        return []
    rng = np.random.default_rng(0)
    heights = forward_kinematics(model, np.stack([model.random_configuration(rng) for _ in range(50)]))[..., 2, 3]
    return [PlaneLimit(name, (0.0, 0.0, 1.0), height) for name, z in zip(model.body_names, heights.T, strict=True)
            if np.ptp(z) > 1e-6]
