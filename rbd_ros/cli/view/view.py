"""`rbd view ROBOT`: a robot in the browser: inspect, move, play motions, follow a running node."""
from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ...core.dynamics.inverse import inverse_dynamics
from ...core.errors import RbdError
from ...core.model.constraints import ConstraintSet
from ...core.model.samples import constraints_from, sample_names, sample_path
from ...runtime.observed_robot import ObservedRobot
from ...runtime.planning.robot_collisions import robot_collisions
from ...view.efforts import passive_of
from ...view.live import LiveView
from ...view.playing import play_in
from ...view.robot_view import RobotView
from ...view.scene import scene_of
from ...view.serving import LOCAL, PORT, end, open_server, serve
from ...view.timeline import Timeline, read_timeline
from ..demo_motion import published_motion
from ..doctor import Report, examine
from ..files.robot import add_robot, description_of, named

SHOWN, TURNING = "iiwa", 10.0    # default robot, and duration of its motion (s)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd view`."""
    add_robot(parser, nargs="?", old="--sample")
    parser.add_argument("--root", choices=("fixed", "floating"), default="fixed",
                        help="whether the root link is fixed or floating (default: %(default)s)")
    parser.add_argument("--constraints", metavar="FILE", help="closed loops and contacts: a YAML file, or the name of "
                        "a sample robot (default of a sample: its own)")
    parser.add_argument("--actuated", nargs="+", default=[], metavar="JOINT", help="joints with motors, if not all "
                        "have one, as with closed loops")
    parser.add_argument("--play", metavar="FILE", help="a motion: JointTrajectory (.yaml, .json) as `rbd plan` writes "
                        "and `ros2 topic echo` prints it, or a recording (.csv, .npz, a bag)")
    parser.add_argument("--obstacles", type=Path, metavar="FILE", help="YAML file of what stands around the robot "
                        "(docs/collision.md): collision shapes, what hits, and obstacles to drag")
    parser.add_argument("--collisions", action="store_true", help="the same without obstacles")
    parser.add_argument("--srdf", type=Path, metavar="FILE", help="its <disable_collisions> may touch (default: "
                        "neighbours, and pairs that touch in each of some random configurations)")
    parser.add_argument("--live", action="store_true", help="follow a running torque node; without ROBOT, the robot is "
                        "that of the topic /robot_description")
    parser.add_argument("--node", default="/feedforward", help="full name of the node of --live (default: %(default)s)")
    parser.add_argument("--joint-states", default="", metavar="TOPIC",
                        help="topic of joint states of --live (default: joint_states in the namespace of the node)")
    parser.add_argument("--host", default=LOCAL, help="address to serve at (default: %(default)s, this machine only)")
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="with --host: a host name "
                        "under which browsers may open the page (its addresses are always allowed); may be repeated")
    parser.add_argument("--port", type=int, default=PORT, help="port; the next free one if it is taken (default: "
                        "%(default)s)")
    parser.add_argument("--no-browser", action="store_true", help="print the address, do not open a browser")


def run(namespace: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    if namespace.live:
        return follow(namespace)
    alone = named(namespace) is None
    if alone:
        namespace.robot = SHOWN
    view = make(namespace)
    if alone:
        print(f"no robot description given: the sample {SHOWN}. `rbd view ROBOT` shows yours", flush=True)
    if alone and not namespace.play:
        motion = published_motion()
        t = np.linspace(0.0, TURNING, 1001)
        q, v, a = motion.position(t), motion.velocity(t), motion.acceleration(t)
        play_in(view, Timeline(view.model, t, q, inverse_dynamics(view.model, q, v, a), "Torque of the motion",
                               source="demo"), loop=True).play()
    return serve(view.server, not namespace.no_browser)


def follow(namespace: argparse.Namespace) -> int:
    """Follow a running node until Ctrl-C."""
    if namespace.play:
        raise RbdError("--play and --live cannot be combined")
    try:
        from ...nodes.watching.view_listener import ViewListener
    except ImportError as error:
        raise RbdError(f"--live needs ROS 2 and the package rbd_interfaces, which cannot be imported ({error}): source "
                       "your workspace, or use scripts/run") from None
    listener = ViewListener(namespace.node, namespace.joint_states)
    try:
        view = make(namespace, listener.description() if named(namespace) is None else None)
        live = LiveView(view, listener, ObservedRobot(view.model, namespace.node, view.q))
        return serve(view.server, not namespace.no_browser, live.step, 1.0 / 30.0)
    finally:
        listener.close()


def make(namespace: argparse.Namespace, description: str | None = None) -> RobotView:
    """Create server and view from the arguments; description: replaces the named robot."""
    path = description_of(namespace) if description is None else description
    report, constraints = described(path, namespace)
    server = open_server(namespace.host, namespace.port, report.description.name, namespace.allow_host)
    try:
        assert report.model is not None
        with Progress(len(report.model.body_names)) as progress:
            scene = scene_of(report.model, path, progress)
        for finding in scene.findings:
            print(f"link '{finding.subject}': {finding.message}", file=sys.stderr)
        collisions = None
        if namespace.collisions or namespace.obstacles is not None or namespace.srdf is not None:
            collisions, _ = robot_collisions(path, report.model, namespace.srdf, namespace.obstacles)
        view = RobotView(server, scene, constraints, report.findings, namespace.actuated, not namespace.live,
                         collisions)
        if namespace.play:
            view.player = play_in(view, read_timeline(namespace.play, view.model, view.q))
        return view
    except BaseException:
        end(server)
        raise


def described(path: str, namespace: argparse.Namespace) -> tuple[Report, ConstraintSet]:
    """The doctor's report with the model, and the constraints."""
    report = examine(path, namespace.root)
    model = report.model
    if model is None:
        raise RbdError("; ".join(f"{finding.subject}: {finding.message}" for finding in report.findings
                                 if finding.severity == "error") or "no model can be built of it")
    passive_of(model, namespace.actuated)    # raises for unknown names
    name = namespace.constraints
    if name is None and namespace.robot in sample_names() and sample_path(namespace.robot).with_suffix(
            ".constraints.yaml").is_file():
        name = namespace.robot
    return report, constraints_from(name or "", model)


class Progress:
    """Progress of reading links' shapes on a terminal, shown after half a second."""

    def __init__(self, count: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._count, self._clock, self._begin, self._done, self._shown = count, clock, clock(), 0, False

    def __enter__(self) -> Progress:
        return self

    def __call__(self, link: str) -> None:
        self._done += 1
        if sys.stdout.isatty() and self._clock() - self._begin > 0.5:
            self._shown = True
            print(f"\r\033[Kreading shapes: {self._done} of {self._count} links, {link}", end="", flush=True)

    def __exit__(self, *_: object) -> None:
        if self._shown:
            print("\r\033[K", end="", flush=True)
