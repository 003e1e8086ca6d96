"""`rbd plan`: an optimal motion of an arm as a table, a plot and a trajectory."""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import RbdError, unknown_name
from ..core.lie.so3 import from_rpy
from ..core.model.robot_model import RobotModel
from ..core.motion.optimal.arguments import WEIGHED
from ..core.motion.optimization import STARTS
from ..core.motion.places.body_goal import BodyGoal
from ..runtime.planning.motion_planner import MotionPlanner
from ..runtime.planning.motion_request import CALM, MotionRequest, MotionWaypoint
from ..runtime.planning.planner_settings import PlannerSettings
from . import plan_report
from .files.collisions import add_collisions, collisions_of
from .files.robot import add_robot, load_robot
from .files.waiting import waiting


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd plan`."""
    pose = "positions in the order of the model, or JOINT=POSITION (others 0); rad or m"
    add_robot(parser)
    for option, name, text in (("--from", "start", f"start at rest: {pose}"),
                               ("--to", "goal", "goal at rest, likewise")):
        either = parser.add_mutually_exclusive_group(required=True)
        either.add_argument(option, dest=name, nargs="+", metavar="Q", help=text)
        either.add_argument(f"{option}-body", dest=f"{name}_body", nargs="+", metavar=("LINK", "X"),
                            help="or position of a link's origin: LINK X Y Z, m, and optionally ROLL PITCH YAW, rad")
    parser.add_argument("--passive", nargs="+", default=[], metavar="JOINT", help="joints without motors")
    parser.add_argument("--via", nargs="+", action="append", default=[], metavar=("FRACTION", "Q"),
                        help="pass these positions at that fraction of the duration; may be repeated")
    parser.add_argument("--duration", nargs="+", type=float, default=[], metavar="S",
                        help="duration in s, or the shortest and the longest (default: free)")
    parser.add_argument("--objective", nargs="+", default=[], metavar="NAME[=WEIGHT]",
                        help=f"objective to minimise: {', '.join(WEIGHED)} (default: effort, or duration if it is "
                        f"free, with jerk_share={CALM:g}, a share of jerk that keeps the motion smooth)")
    parser.add_argument("--payload", nargs="+", type=float, default=[], metavar=("KG", "XYZ"),
                        help="mass of a load, and its centre of mass in the frame of its link, m (default: 0 0 0)")
    parser.add_argument("--payload-body", metavar="LINK", help="link that carries it (default: the last one)")
    parser.add_argument("--effort-scaling", type=float, default=1.0, metavar="SHARE",
                        help="share of the effort limits that the motion may use (default: %(default)g)")
    parser.add_argument("--velocity-scaling", type=float, default=1.0, metavar="SHARE",
                        help="share of the velocity limits (default: %(default)g)")
    parser.add_argument("--acceleration", type=float, default=np.inf, help="limit in rad/s² or m/s² (default: none)")
    parser.add_argument("--jerk", type=float, default=np.inf, help="limit in rad/s³ or m/s³ (default: none)")
    add_collisions(parser)
    parser.add_argument("--time-limit", type=float, default=10.0, metavar="S",
                        help="time limit of the search, s (default: %(default)g)")
    parser.add_argument("--starts", type=int, metavar="N",
                        help="number of first guesses, the best of whose motions is taken (default: "
                        f"{STARTS}, 1 with --passive)")
    parser.add_argument("--sample-period", type=float, default=0.01, metavar="S",
                        help="time between the points of the output, s (default: %(default)g)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE",
                        help="write the trajectory: .csv, or .yaml as trajectory_msgs/JointTrajectory")
    parser.add_argument("--plot", nargs="?", const="", metavar="FILE", help="picture, in a window without FILE")


def run(namespace: argparse.Namespace) -> int:
    """Plan, print, write; returns 1 without a good motion."""
    model = load_robot(namespace, quiet=True, joints=True)
    names = model.joint_names
    payload = namespace.payload
    if payload and len(payload) not in (1, 4):
        raise RbdError(f"--payload takes a mass, or a mass and x y z, got {len(payload)} numbers")
    if len(namespace.duration) > 2:
        raise RbdError(f"--duration takes one number, or two, got {len(namespace.duration)}")
    if namespace.output and namespace.output.suffix not in plan_report.WRITERS:
        raise RbdError(f"--output {namespace.output}: expected a file that ends in "
                       f"{' or '.join(plan_report.WRITERS)}")
    objective = [part.partition("=") for part in namespace.objective]
    planner = MotionPlanner(model, PlannerSettings.from_values({
        "effort_limits.scaling": namespace.effort_scaling, "velocity_limits.scaling": namespace.velocity_scaling,
        "acceleration_limits": namespace.acceleration, "jerk_limits": namespace.jerk,
        "time_limit": namespace.time_limit, "effort_limits.override_zero": np.inf,
        "starts": (1 if namespace.passive else STARTS) if namespace.starts is None else namespace.starts,
        "passive_joints": namespace.passive}, model))
    times = namespace.duration
    request = MotionRequest(
        names, _positions("--to", namespace.goal or ["0"] * model.nv, model),
        _positions("--from", namespace.start or ["0"] * model.nv, model),
        [MotionWaypoint(_number("--via", part[0]), _positions("--via", part[1:], model)) for part in namespace.via],
        duration=times[0] if len(times) == 1 else 0.0, shortest_duration=times[0] if len(times) == 2 else 0.0,
        longest_duration=times[1] if len(times) == 2 else 0.0, objective=[name for name, _, _ in objective],
        weight=[_number("--objective", weight or "1") for _, _, weight in objective],
        payload_body=(namespace.payload_body or model.body_names[-1]) if payload else "",
        payload=(payload[0], payload[1:] or (0.0, 0.0, 0.0), np.zeros((3, 3))) if payload else (0.0, (0, 0, 0), ()),
        sample_period=namespace.sample_period)
    collisions, said = collisions_of(namespace, model)
    task = replace(planner.prepare(request, 0.0), collisions=collisions, clearance=namespace.clearance)
    if namespace.start_body:
        task = replace(task, start=_pose("--from-body", namespace.start_body))    # instead of those zeros
    if namespace.goal_body:
        task = replace(task, goal=_pose("--to-body", namespace.goal_body))
    with waiting("searching", namespace.time_limit):
        plan = planner.search(task)
    print(plan_report.text(plan, task, said))
    if plan.points is not None and namespace.output:
        plan_report.WRITERS[namespace.output.suffix](namespace.output, plan)
        print(f"wrote {namespace.output} ({len(plan.points.time)} points)")
    if namespace.plot is not None:
        try:
            plan_report.plot(namespace.plot, plan.motion, task)
        except ImportError:
            print("no plot: matplotlib is not installed", file=sys.stderr)
    return 0 if plan.good else 1


def _pose(option: str, parts: Sequence[str]) -> BodyGoal:
    """LINK X Y Z, or LINK X Y Z ROLL PITCH YAW."""
    if len(parts) not in (4, 7):
        raise RbdError(f"{option} takes a link, x y z, and if wanted roll pitch yaw, got {' '.join(parts)}")
    numbers = [_number(option, part) for part in parts[1:]]
    return BodyGoal(parts[0], numbers[:3], from_rpy(numbers[3:]) if numbers[3:] else None)


def _positions(option: str, parts: Sequence[str], model: RobotModel) -> Any:
    """(nv,) from numbers in the order of the model, separated by commas or not, or from JOINT=NUMBER."""
    items = [item for part in parts for item in part.split(",") if item]
    if not any("=" in item for item in items):
        if len(items) != model.nv:
            raise RbdError(f"{option} has {len(items)} numbers, expected {model.nv}: {', '.join(model.joint_names)}")
        return [_number(option, item) for item in items]
    q = np.zeros(model.nv)
    for item in items:
        name, _, value = item.partition("=")
        if name not in model.joint_names:
            raise unknown_name("joint", name, model.joint_names, option)
        q[model.joint_names.index(name)] = _number(option, value)
    return q


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise RbdError(f"{option}: '{text[:40]}' is not a number") from None
