"""`rbd demo`: the controllers on simulated robots: several scenarios with a common form of report."""
from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..core.errors import RbdError
from ..view.serving import PORT, has_viser
from . import demo_elastic, demo_guide, demo_lift, demo_touch, demo_tracking
from .bringup import demo_rehearsal
from .demo_nodes import RATE
from .identification import demo_float, demo_identify
from .files.robot import add_robot, named

DURATION = 5.0           # s


class Demo(NamedTuple):
    """The function of a scenario, and the reasons for refused options, by name."""

    run: Callable[[argparse.Namespace], int]
    refused: Mapping[str, str]
    ros: bool = True


VIEW = {"view": "--view shows the runs of the demo with rigid joints"}


def _refusing(why: str, *options: str) -> dict[str, str]:
    return VIEW | {option: f"--{option} is {why}" for option in options}


DEMOS = {
    "rigid": Demo(demo_tracking.run, {}),
    "rehearsal": Demo(demo_rehearsal.run, {
        "view": "--view shows three runs, --config makes one: `rbd view --live` follows rehearse.launch.py",
        "rate": "--rate is that of the configuration with --config"}),
    **{name: Demo(story, _refusing(f"not for demo {name}, which is the iiwa on one motion", "rate", "duration",
                                   "config")) for name, story in (
        ("motion", demo_lift.run), ("identify", demo_identify.run))},
    "float": Demo(demo_float.run, _refusing("not for demo float, which is the iiwa in two poses", "rate", "duration",
                                            "config"), ros=False),
    "touch": Demo(demo_touch.run, _refusing("not for demo touch, which is the iiwa between two poses", "rate",
                                            "duration", "config"), ros=False),
    "guide": Demo(demo_guide.run, _refusing("not for demo guide, which is the iiwa above a table", "rate", "duration",
                                            "config"), ros=False),
    **{name: Demo(partial(demo_elastic.run, variant=name), _refusing(
        f"for rigid joints: demo {name} is the iiwa with springs, controlled at {1.0 / demo_elastic.PERIOD:g} Hz",
        "rate", "config"), ros=False) for name in demo_elastic.VARIANTS},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd demo`."""
    add_robot(parser, nargs="?", metavar="STORY|ROBOT", old="--urdf",
              help="rigid: simulator and controller as ROS nodes; motion: likewise, lifting a heavy load by an optimal "
                   "motion; identify: likewise, with a wrong description that is corrected from a recorded motion; "
                   "float: a wrong torque constant that the float test finds; touch: an arm that is pushed, and weighs "
                   "a load; guide: a soft axis, a wall, a peg in a hole, and a hand that teaches; sea: series elastic "
                   "joints; vsa: joints of variable stiffness; the last five use the "
                   "library without ROS (default: rigid, with a KUKA LBR iiwa 14). Or another arm for rigid: ")
    parser.add_argument("--config", metavar="FILE", help="rehearse this configuration of a torque node, such as "
                        "config/ur.yaml, on a simulated arm with that robot's behaviour; rigid only")
    parser.add_argument("--rate", type=float, help=f"joint states per second (default: {RATE:g}); rigid only, the "
                        f"others are controlled at {1.0 / demo_elastic.PERIOD:g} Hz")
    parser.add_argument("--duration", type=float,
                        help=f"duration of each mode in seconds (default: {DURATION:g}); that of motion and "
                        "identify is fixed")
    parser.add_argument("-o", "--output", type=Path, help="output folder (default: output/demo, or output/demo_sea, …)")
    parser.add_argument("--plot", action=argparse.BooleanOptionalAction, default=True,
                        help="draw tracking.png (default: yes)")
    parser.add_argument("--view", action="store_true", help="then show the three runs side by side in the browser, "
                        "until Ctrl-C; rigid only")
    parser.add_argument("--port", type=int, default=PORT, help="of --view (default: %(default)s)")
    parser.add_argument("--no-browser", action="store_true", help="with --view: print the address, open nothing")
    parser.add_argument("--seed", type=int, default=0,
                        help="seed of the random motion of another arm (default: %(default)s)")


def run(namespace: argparse.Namespace) -> int:
    """Check the options, and run the demo."""
    name = "rehearsal" if namespace.config else "rigid"
    if namespace.robot in ("rigid", *(DEMOS.keys() - {"rehearsal"})):
        name, namespace.robot = name if namespace.robot == "rigid" else namespace.robot, None
    demo = DEMOS[name]
    if named(namespace) is not None and name not in ("rigid", "rehearsal"):
        raise RbdError(f"a robot is for rigid joints: demo {name} is the iiwa")
    for option, why in demo.refused.items():
        if not (getattr(namespace, option) is None or getattr(namespace, option) is False):
            raise RbdError(why)
    namespace.duration = _within("--duration", namespace.duration, DURATION, 0.2, 60.0)
    namespace.rate = _within("--rate", namespace.rate, RATE, 20.0, 2000.0)
    namespace.output = namespace.output or Path("output", {"rigid": "demo", "rehearsal": "rehearsal"}.get(
        name, f"demo_{name}"))
    if namespace.view:
        has_viser()
    if demo.ros:
        _check_ros()
    return demo.run(namespace)


def _check_ros() -> None:
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    try:
        importlib.import_module("rclpy")
        importlib.import_module("rbd_interfaces.msg").JointEffort    # noqa: B018 (a folder of that name is not enough)
        importlib.import_module("rbd_ros.nodes.demo_recorder")
    except (ImportError, AttributeError) as error:
        raise RbdError(f"the demo needs ROS 2 and the package rbd_interfaces, which cannot be imported ({error}). "
                       "`scripts/demo` installs and runs everything; or source your ROS 2 installation and "
                       "workspace") from None


def _within(name: str, value: float | None, default: float, low: float, high: float) -> float:
    value = default if value is None else value
    if not low <= value <= high:
        raise RbdError(f"{name} is {value:g}, expected {low:g} to {high:g}")
    return value
