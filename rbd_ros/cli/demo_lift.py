"""`rbd demo motion`: the iiwa lifts a load too heavy for the straight minimum-jerk motion of the same duration.

Both motions are executed by nodes: a simulated robot with the load and saturated torques, node `feedforward`, and for
the optimal motion node `motion_planner`.
"""
from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.dynamics.inverse import inverse_dynamics
from ..core.dynamics.mass_matrix import mass_matrix
from ..core.errors import RbdError
from ..core.model.payload import payload, with_payloads
from ..core.model.robot_model import RobotModel
from ..core.model.samples import sample, sample_path
from . import demo_lift_report as report
from .demo_motion import BANDWIDTH, ROTORS
from .processes import NodeProcesses

Array = NDArray[np.float64]

START = (0.0, -0.65, 0.0, 1.45, 0.0, -0.9, 0.0)    # rad
GOAL = (1.0, 0.15, 0.0, 0.65, 0.0, 0.55, 0.0)
DURATION = 1.8       # s
LOAD = 24.0          # kg
BODY = "link_7"
REACH = 0.3          # m from the flange to the load's centre of mass
SIZE = 0.03          # m: radius of gyration of the load
SCALING = 0.9       # share of the effort limits used by the planner; the rest is for feedback
JERK = 0.1           # weight beside ∫‖τ‖², N² m² s⁶: light joints move calmly, too
MASS_SCALE = 1.01    # of the simulated robot
RATE = 500.0         # Hz
RAMP = 0.2           # s
HOLD = 0.5           # s of holding before the motion, longer than the fade-in
PATIENCE = 5.0       # s for which the simulated robot waits for a torque
HISTORY = 10_000
MODES = {"minimum_jerk": "minimum jerk, straight", "optimal": "least effort within limits"}


def lifter() -> RobotModel:
    """The iiwa with rotors, as in the demo of tracking."""
    arm = sample("iiwa")
    M = mass_matrix(arm, straight(np.linspace(0.0, DURATION, 101))[0])
    return arm.with_(armature=ROTORS * np.median(np.diagonal(M, axis1=1, axis2=2), axis=0))


def loaded(arm: RobotModel, mass: float) -> RobotModel:
    """The arm with a load of this mass (kg)."""
    return with_payloads(arm, {BODY: payload(mass, (0.0, 0.0, REACH), mass * SIZE**2 * np.eye(3))}) if mass else arm


def straight(t: Array) -> tuple[Array, Array, Array]:
    """Positions, velocities, accelerations (N, nv) of the straight minimum-jerk motion from rest to rest."""
    start, way, s = np.array(START), np.array(GOAL) - START, (t / DURATION)[:, None]
    return (start + way * (10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5),
            way * (30.0 * s**2 - 60.0 * s**3 + 30.0 * s**4) / DURATION,
            way * (60.0 * s - 180.0 * s**2 + 120.0 * s**3) / DURATION**2)


def heaviest(arm: RobotModel) -> float:
    """The load (kg) at which the straight motion reaches a joint's torque limit."""
    t = np.linspace(0.0, DURATION, 501)
    low, high = 0.0, 200.0
    for _ in range(30):
        mass = 0.5 * (low + high)
        fits = np.all(np.abs(inverse_dynamics(loaded(arm, mass), *straight(t))) <= arm.effort_limit)
        low, high = (mass, high) if fits else (low, mass)
    return low


def run(namespace: argparse.Namespace, show: Callable[[str], Any]) -> int:
    """Execute both motions, print the table, write the files; `show(title)` creates a progress display."""
    begin = time.monotonic()
    folder: Path = namespace.output
    arm = lifter()
    most = heaviest(arm)
    print(f"{arm.name} lifts {LOAD:g} kg, {1000 * REACH:g} mm before its flange, in {DURATION:g} s. On the straight "
          f"motion of least jerk\nits torques would suffice for {most:.1f} kg. The planner may use {100 * SCALING:.0f} "
          f"% of the torque limits; all masses are\n{100 * (MASS_SCALE - 1):.0f} % larger than it thinks.\n",
          flush=True)
    results = {mode: _execute(mode, arm, folder, show(title)) for mode, title in MODES.items()}
    joints = arm.joint_names
    print("\n" + report.table(results, joints))
    print(f"load: {LOAD / most:.2f} times what the straight motion can carry. torque: largest share of a limit that "
          "the motion needs.\noff: largest distance from the motion, and at its end.")
    files = [folder / "summary.json"]
    report.write(files[0], results, {
        "robot": arm.name, "joints": list(joints), "duration_s": DURATION, "load_kg": LOAD,
        "load_of_minimum_jerk_kg": most, "load_ratio": LOAD / most, "effort_limit": arm.effort_limit.tolist(),
        "elapsed_s": time.monotonic() - begin})
    if namespace.plot:
        try:
            report.plot(folder / "torques.png", results, joints, arm.effort_limit,
                        f"{arm.name} lifts {LOAD:g} kg in {DURATION:g} s")
            files.append(folder / "torques.png")
        except ImportError:
            print("no plot: matplotlib is not installed", file=sys.stderr)
    print(f"wrote {' and '.join(map(str, files))} ({time.monotonic() - begin:.0f} s in all)")
    return 0


def _execute(mode: str, arm: RobotModel, folder: Path, progress: Any) -> report.Run:
    """Plan the motion, and execute it by the nodes."""
    from ..nodes.demo_recorder import DemoRecorder

    namespace = f"/rbd_demo_{os.getpid()}"
    heavy = folder / "iiwa_with_load.urdf"
    _write_urdf(heavy)
    rotors = {"rotor_inertia": arm.armature.tolist()}
    model = rotors | {"robot_description_file": str(sample_path("iiwa"))}
    load = {"payload.body": BODY, "payload.mass": LOAD, "payload.com": [0.0, 0.0, REACH],
            "payload.inertia": [LOAD * SIZE**2] * 3 + [0.0] * 3}
    figures: dict[str, Any] = {}
    with NodeProcesses(folder / "logs" / mode, namespace) as processes:
        processes.start("simulator", rotors | {"robot_description_file": str(heavy)} | _plant(namespace))
        processes.start("feedforward", model | load | _controller(namespace))
        if mode == "optimal":
            processes.start("motion_planner", model | load | {"effort_limits.scaling": SCALING})
        with DemoRecorder(namespace, arm.joint_names, processes.check, HISTORY) as recorder:
            recorder.wait_until_ready(60.0)
            if mode == "optimal":
                points, figures = recorder.plan(GOAL, DURATION, {"effort": 1.0, "jerk": JERK})
            else:
                t = np.linspace(0.0, DURATION, round(100.0 * DURATION) + 1)
                points = (t, *straight(t))
            recording = recorder.play(_held_first(points), progress.at)
        processes.close_after(recording.report)
    t, q, v, a = points
    needed = inverse_dynamics(loaded(arm, LOAD), q, v, a)
    moving = recording.t >= HOLD
    since = recording.t[moving] - HOLD
    desired = np.column_stack([np.interp(since, t, column) for column in q.T])
    result = report.Run(MODES[mode], t, needed, since, recording.effort[moving], recording.q[moving] - desired,
                       arm.effort_limit, figures)
    progress.done(f"{1000.0 * result.off:.1f} mrad off at most")
    return result


def _held_first(points: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
    """The points preceded by `HOLD` s at rest."""
    t, q, v, a = points
    still = np.zeros_like(q[:1])
    return (np.concatenate([[0.0], t + HOLD]), np.concatenate([q[:1], q]), np.concatenate([still, v]),
            np.concatenate([still, a]))


def _plant(namespace: str) -> dict[str, Any]:
    return {"initial_position": list(START), "brakes_until": 1e12, "publish_rate": RATE, "mass_scale": MASS_SCALE,
            "step": 1.0 / (RATE * math.ceil(1000.0 / RATE)), "command_timeout": 0.5, "wait_for_command": PATIENCE,
            f"qos_overrides.{namespace}/joint_states.publisher.depth": HISTORY}


def _controller(namespace: str) -> dict[str, Any]:
    return {"feedforward": "computed_torque", "gains.kp": BANDWIDTH**2, "gains.kd": 2.0 * BANDWIDTH,
            "adapters": ["joint_state"], "joint_state.topic": f"{namespace}/simulator/effort_commands",
            "state_rate": RATE, "feedback.max_age": math.inf, "tracking_tolerance": [math.inf],
            "state_timeout": 2.0 * PATIENCE,
            "ramp_in": RAMP, "ramp_out": RAMP}


def _write_urdf(path: Path) -> None:
    """The iiwa with the load as a link."""
    moment = LOAD * SIZE**2
    extra = (f'<link name="load"><inertial><mass value="{LOAD}"/><inertia ixx="{moment}" iyy="{moment}" '
             f'izz="{moment}" ixy="0" ixz="0" iyz="0"/></inertial></link>\n<joint name="load" type="fixed">'
             f'<parent link="{BODY}"/><child link="load"/><origin xyz="0 0 {REACH}"/></joint>\n</robot>')
    try:
        path.write_text(sample_path("iiwa").read_text(encoding="utf-8").replace("</robot>", extra), encoding="utf-8")
    except OSError as error:
        raise RbdError(f"cannot write {path}: {error.strerror}") from None
