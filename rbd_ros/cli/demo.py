"""`rbd demo`: a simulated arm follows a trajectory three times: feedback alone, with gravity, with full feed-forward.

Simulator and controller are separate processes, joined by ROS topics, as on a real robot.
"""
from __future__ import annotations

import argparse
import importlib
import math
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..core.compiled.ahead import compile_all, know_all
from ..core.compiled.entry import is_cached
from ..core.compiled.kernel import COMPILED
from ..core.errors import RbdError
from ..core.model.robot_model import RobotModel
from ..core.model.files.xml_tree import PACKAGE
from ..signals import ends_at_once
from ..view.serving import PORT, has_viser
from . import demo_elastic, demo_lift, demo_motion, demo_report
from .bringup import demo_rehearsal
from .identification import demo_identify
from .processes import NodeProcesses
from .files.robot import add_robot, description_of, load_robot, named

# key in summary.json → (title, parameter `feedforward` of the node)
MODES = {"pd": ("PD alone", "none"), "pd_gravity": ("PD + gravity", "gravity"),
         "pd_full": ("PD + full feed-forward", "full")}
STORIES = {"motion": (demo_lift.run, tuple(demo_lift.MODES.values())),
           "identify": (demo_identify.run, (demo_identify.EXCITE, *demo_identify.MODES.values()))}
RATE = 500.0             # Hz
DURATION = 5.0           # s
RELEASED_LATER = 1e12    # a stamp that never comes
RAMP = 0.2               # s
HISTORY = 10_000         # depth of the recorder's queue of states, for busy machines
PATIENCE = 5.0           # s for which the simulated robot waits for a torque


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd demo`."""
    add_robot(parser, nargs="?", metavar="STORY|ROBOT", old="--urdf",
              help="rigid: simulator and controller as ROS nodes; motion: likewise, lifting a heavy load by an optimal "
                   "motion; identify: likewise, with a wrong description that is mended from a recorded motion; sea: "
                   "series elastic joints; vsa: joints of variable stiffness; these two use the library without ROS "
                   "(default: rigid, with a KUKA LBR iiwa 14). Or another arm for rigid: ")
    parser.add_argument("--config", metavar="FILE", help="rehearse this configuration of a torque node, such as "
                        "config/ur.yaml, on a simulated arm that does what its robot does itself; rigid only")
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
    """Run all modes, print the table, write the files."""
    begin = time.monotonic()
    namespace.joints = "rigid"
    if namespace.robot in ("rigid", *STORIES, *demo_elastic.VARIANTS):
        namespace.joints, namespace.robot = namespace.robot, None
    if named(namespace) is not None and namespace.joints != "rigid":
        raise RbdError(f"a robot is for rigid joints: demo {namespace.joints} is the iiwa")
    if namespace.joints in STORIES:
        return _story(namespace)
    duration = _within("--duration", DURATION if namespace.duration is None else namespace.duration, 0.2, 60.0)
    rate = _within("--rate", RATE if namespace.rate is None else namespace.rate, 20.0, 2000.0)
    elastic = namespace.joints != "rigid"
    if namespace.view and elastic:
        raise RbdError("--view shows the runs of the demo with rigid joints")
    if namespace.config and namespace.view:
        raise RbdError("--view shows three runs, --config makes one: `rbd view --live` follows rehearse.launch.py")
    if namespace.config and namespace.rate is not None:
        raise RbdError("--rate is that of the configuration with --config")
    for name in ("rate", "config") if elastic else ():
        if getattr(namespace, name) is not None:
            raise RbdError(f"--{name} is for rigid joints: demo {namespace.joints} is the iiwa with springs, "
                           f"controlled at {1.0 / demo_elastic.PERIOD:g} Hz")
    if namespace.output is None:
        namespace.output = Path("output", "rehearsal" if namespace.config else
                                f"demo_{namespace.joints}" if elastic else "demo")
    if elastic:
        _make(namespace.output)
        _compile()
        return demo_elastic.run(namespace, namespace.joints, duration,
                                lambda title: Progress(title, demo_elastic.MODES.values()))
    if namespace.view:
        has_viser()
    _check_ros()
    if namespace.config:
        _make(namespace.output)
        _compile()
        return demo_rehearsal.run(namespace, duration, lambda title: Progress(title, [title]))
    another = named(namespace) is not None
    namespace.robot = namespace.robot or "iiwa"
    urdf = description_of(namespace)
    if not urdf.startswith(PACKAGE):
        urdf = os.path.abspath(urdf)
    model = load_robot(namespace, quiet=True, joints=True)
    motion = (demo_motion.random_motion(model, duration, namespace.seed) if another
              else demo_motion.published_motion())
    scenario = demo_motion.scenario(model, motion, duration)
    folder: Path = namespace.output
    _make(folder)
    _compile()
    print(f"{model.name}, {model.nv} joints, {duration:g} s at {rate:g} Hz. The robot differs from its model:\n"
          f"masses {100 * (demo_motion.MASS_SCALE - 1):+.0f} %, Coulomb friction {100 * demo_motion.COULOMB:.0f} % and "
          f"viscous friction {100 * demo_motion.VISCOUS:.0f} % of the peak torque.\n"
          f"If this machine is too busy, the simulation waits for its torque for up to {PATIENCE:g} s.\n")
    results = {key: _mode(key, model, urdf, scenario, duration, rate, folder) for key in MODES}
    print("\n" + demo_report.table(results, model.joint_names))
    print("better: than PD alone. latency: from a joint state to its torque. late: later than one period.\n"
          "waits: states for which the simulation waited for a torque.")
    files = [folder / "summary.json"]
    demo_report.write_summary(files[0], demo_report.summary(results, model.joint_names, {
        "robot": model.name, "joints": list(model.joint_names), "duration_s": duration, "nominal_rate_hz": rate,
        "mass_scale": demo_motion.MASS_SCALE, "gains": {"kp": scenario.kp.tolist(), "kd": scenario.kd.tolist()},
        "rotor_inertia": scenario.rotors.tolist(), "elapsed_s": time.monotonic() - begin}))
    if namespace.plot:
        try:
            demo_report.plot(folder / "tracking.png", results, model.joint_names, model.name)
            files.append(folder / "tracking.png")
        except ImportError:
            print("no plot: matplotlib is not installed", file=sys.stderr)
    print(f"wrote {' and '.join(map(str, files))} ({time.monotonic() - begin:.0f} s in all)")
    if namespace.view:
        from .view.demo_view import show
        return show(folder, {key: title for key, (title, _) in MODES.items()}, model, urdf, namespace.port,
                    not namespace.no_browser)
    return 0


def _story(namespace: argparse.Namespace) -> int:
    """A demo of one robot on one motion."""
    if namespace.view:
        raise RbdError("--view shows the runs of the demo with rigid joints")
    for name in ("rate", "duration", "config"):
        if getattr(namespace, name) is not None:
            raise RbdError(f"--{name} is not for demo {namespace.joints}, which is the iiwa on one motion")
    _check_ros()
    namespace.output = namespace.output or Path("output", f"demo_{namespace.joints}")
    _make(namespace.output)
    _compile()
    tell, titles = STORIES[namespace.joints]
    return tell(namespace, lambda title: Progress(title, titles))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RbdError(f"cannot make folder {folder}: {error.strerror}") from None


def _mode(key: str, model: RobotModel, urdf: str, scenario: demo_motion.Scenario, duration: float, rate: float,
          folder: Path) -> demo_report.Result:
    from ..nodes.demo_recorder import DemoRecorder

    title, feedforward = MODES[key]
    progress = Progress(title, (title for title, _ in MODES.values()))
    namespace = f"/rbd_demo_{os.getpid()}"
    motion = scenario.motion
    common = {"robot_description_file": urdf, "rotor_inertia": scenario.rotors.tolist()}
    with NodeProcesses(folder / "logs" / key, namespace) as processes:
        processes.start("simulator", common | _plant(scenario, rate, namespace))
        processes.start("feedforward", common | _controller(model, scenario, feedforward, rate, namespace))
        with DemoRecorder(namespace, model.joint_names, processes.check, HISTORY) as recorder:
            recorder.wait_until_ready(60.0)
            t = np.linspace(0.0, duration, math.ceil(100.0 * duration) + 1)
            recording = recorder.play((t, motion.position(t), motion.velocity(t), motion.acceleration(t)), progress.at)
        processes.close_after(recording.report)
    np.savez_compressed(folder / f"{key}.npz", t=recording.t, q=recording.q, v=recording.v, effort=recording.effort,
                        reference=motion.position(recording.t))
    result = demo_report.Result(title, recording.t, recording.q - motion.position(recording.t), recording.report,
                                recording.plant)
    progress.done(f"RMS error {result.rms:.4f} rad")
    return result


def _plant(scenario: demo_motion.Scenario, rate: float, namespace: str) -> dict[str, Any]:
    return {"initial_position": scenario.motion.position(0.0).tolist(), "brakes_until": RELEASED_LATER,
            "publish_rate": rate, "step": 1.0 / (rate * math.ceil(1000.0 / rate)),
            "mass_scale": demo_motion.MASS_SCALE, "friction.damping": scenario.damping.tolist(),
            "friction.coulomb": scenario.friction.tolist(), "command_timeout": 0.5, "wait_for_command": PATIENCE,
            f"qos_overrides.{namespace}/joint_states.publisher.depth": HISTORY}


def _controller(model: RobotModel, scenario: demo_motion.Scenario, feedforward: str, rate: float,
                namespace: str) -> dict[str, Any]:
    override = np.where(model.effort_limit > 0.0, 0.0, 10.0 * np.maximum(scenario.peak_effort, 1.0))
    return {"feedforward": feedforward, "gains.kp": scenario.kp.tolist(), "gains.kd": scenario.kd.tolist(),
            "adapters": ["joint_state"], "joint_state.topic": f"{namespace}/simulator/effort_commands",
            "effort_limits.override_zero": override.tolist(), "state_rate": rate,
            "feedback.max_age": math.inf, "tracking_tolerance": [math.inf],
            "state_timeout": 2.0 * PATIENCE, "ramp_in": RAMP, "ramp_out": RAMP}


class Progress:
    """One line per mode: a bar on a terminal, plain text elsewhere."""

    def __init__(self, title: str, titles: Iterable[str]) -> None:
        self._title = title.ljust(max(map(len, titles)))
        self._tty, self._shown = sys.stdout.isatty(), -1
        self._show("starting …")

    def at(self, fraction: float) -> None:
        percent = int(100.0 * fraction)
        if percent != self._shown:
            self._shown = percent
            self._show(f"[{'#' * (percent // 4):25}] {percent:3d} %")

    def done(self, text: str) -> None:
        print(f"\r\033[K{self._title}  {text}" if self._tty else f"{self._title}  {text}", flush=True)

    def _show(self, text: str) -> None:
        if self._tty:
            print(f"\r\033[K{self._title}  {text}", end="", flush=True)


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


def _compile() -> None:
    """Kernels are compiled here, once and visibly, rather than in both children at the same time."""
    if COMPILED:
        know_all()
        if not is_cached():
            print("compiling the kernels, once: this takes some minutes", flush=True)
            with ends_at_once("demo"):
                compile_all(print)
            print()
        else:
            compile_all()


def _within(name: str, value: float, low: float, high: float) -> float:
    if not low <= value <= high:
        raise RbdError(f"{name} is {value:g}, expected {low:g} to {high:g}")
    return value
