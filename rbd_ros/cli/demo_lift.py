"""`rbd demo motion`: the iiwa lifts a load too heavy for the straight minimum-jerk motion of the same duration.

Both motions are executed by nodes: a simulated robot with the load and saturated torques, node `feedforward`, and for
the optimal motion node `motion_planner`.
"""
from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
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
from . import demo_report as report
from .demo_motion import BANDWIDTH, ROTORS
from .demo_nodes import Points, driving, execute

Array = NDArray[np.float64]

START = (0.0, -0.65, 0.0, 1.45, 0.0, -0.9, 0.0)    # rad
GOAL = (1.0, 0.15, 0.0, 0.65, 0.0, 0.55, 0.0)
DURATION = 1.8       # s
LOAD = 24.0          # kg
BODY = "link_7"
REACH = 0.3          # m from the flange to the load's centre of mass
SIZE = 0.03          # m: radius of gyration of the load
SCALING = 0.9       # share of the effort limits used by the planner; the rest is for feedback
JERK = 0.1           # weight relative to ∫‖τ‖², N² m² s⁶: limits the motion of light joints
MASS_SCALE = 1.01    # of the simulated robot
HOLD = 0.5           # s of holding before the motion, longer than the fade-in
MODES = {"minimum_jerk": "minimum jerk, straight", "optimal": "least effort within limits"}


class Run(report.Result):
    """One motion. needed: its efforts (N, nv) by the model, at times t_needed (N,); t, applied, error: times (M,),
    efforts and q − q_ref (M, nv) of the simulated robot; planned: figures of the planner.
    """

    def __init__(self, title: str, t_needed: Array, needed: Array, t: Array, applied: Array, error: Array,
                 limit: Array, planned: Mapping[str, Any]) -> None:
        super().__init__(title, t, error)
        self.t_needed, self.needed, self.applied, self.planned = t_needed, needed, applied, planned
        self.share: Array = np.abs(needed).max(axis=0) / limit
        self.saturated = float(np.mean(np.any(np.abs(applied) >= limit * (1.0 - 1e-9), axis=1)))
        self.off_at_end = float(np.abs(error[-1]).max())
        power = (needed**2).sum(axis=1)
        self.squared = float(np.diff(t_needed) @ (power[1:] + power[:-1]) / 2.0)

    def figures(self) -> dict[str, Any]:
        return {"effort_share": self.share.tolist(), "effort_squared": self.squared, "time_at_a_limit": self.saturated,
                "end_error_rad": self.off_at_end, **self.planned}


def columns(joints: Sequence[str]) -> report.Columns:
    return {"torque": lambda run: f"{100.0 * run.share.max():.0f} %",
            "by joint": lambda run: joints[int(run.share.argmax())],
            "∫‖τ‖²": lambda run: f"{run.squared:.0f} N²m²s",
            "at a limit": lambda run: f"{100.0 * run.saturated:.0f} % of time",
            "off": lambda run: f"{1e3 * run.largest:.1f} mrad",
            "at the end": lambda run: f"{1e3 * run.off_at_end:.1f} mrad"}


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


def run(namespace: argparse.Namespace) -> int:
    """Execute both motions, print the table, write the files."""
    begin, folder = time.monotonic(), namespace.output
    report.prepare(folder)
    arm = lifter()
    largest_load = heaviest(arm)
    print(f"{arm.name} lifts {LOAD:g} kg, {1000 * REACH:g} mm before its flange, in {DURATION:g} s. On the straight "
          f"motion of least jerk\nits torques would suffice for {largest_load:.1f} kg. The planner may use "
          f"{100 * SCALING:.0f} % of the torque limits; all masses are\n{100 * (MASS_SCALE - 1):.0f} % larger than in "
          "its model.\n",
          flush=True)
    results = {mode: _execute(mode, arm, folder) for mode in MODES}
    joints = arm.joint_names
    print("\n" + report.table(results, columns(joints)))
    print(f"load: {LOAD / largest_load:.2f} times what the straight motion can carry. torque: largest share of a limit "
          "that the motion needs.\noff: largest distance from the motion, and at its end.")
    report.finish(namespace, begin, report.summary(results, joints, {
        "robot": arm.name, "duration_s": DURATION, "load_kg": LOAD, "load_of_minimum_jerk_kg": largest_load,
        "load_ratio": LOAD / largest_load, "effort_limit": arm.effort_limit.tolist()}), picture=(
            "torques.png", lambda path: report.draw(path, (12.0, 7.0), lambda figure: torques(
                figure, results, joints, arm.effort_limit, f"{arm.name} lifts {LOAD:g} kg in {DURATION:g} s"), 100)))
    return 0


def _execute(mode: str, arm: RobotModel, folder: Path) -> Run:
    """Plan the motion, and execute it by the nodes."""
    progress, heavy = report.Progress(MODES[mode], MODES.values()), folder / "iiwa_with_load.urdf"
    _write_urdf(heavy)
    rotors = {"rotor_inertia": arm.armature.tolist()}
    model = {**rotors, "robot_description_file": str(sample_path("iiwa")), "payload.body": BODY, "payload.mass": LOAD,
             "payload.com": [0.0, 0.0, REACH], "payload.inertia": [LOAD * SIZE**2] * 3 + [0.0] * 3}
    nodes = {"simulator": {**rotors, "robot_description_file": str(heavy), "initial_position": list(START),
                           "mass_scale": MASS_SCALE},
             "feedforward": {**model, **driving(), "feedforward": "computed_torque", "gains.kp": BANDWIDTH**2,
                             "gains.kd": 2.0 * BANDWIDTH}}
    times = np.linspace(0.0, DURATION, round(100.0 * DURATION) + 1)
    moves: list[tuple[Points, dict[str, Any]]] = []
    if mode == "optimal":
        nodes["motion_planner"] = {**model, "effort_limits.scaling": SCALING}

    def points_of(recorder: Any) -> Points:
        moves.append(recorder.plan(GOAL, DURATION, {"effort": 1.0, "jerk": JERK}) if mode == "optimal"
                     else ((times, *straight(times)), {}))
        return _held_first(moves[0][0])

    recording, _ = execute(folder / "logs" / mode, arm.joint_names, nodes, points_of, progress)
    (t, q, v, a), planned = moves[0]
    moving = recording.t >= HOLD
    since = recording.t[moving] - HOLD
    desired = np.column_stack([np.interp(since, t, column) for column in q.T])
    result = Run(MODES[mode], t, inverse_dynamics(loaded(arm, LOAD), q, v, a), since, recording.effort[moving],
                 recording.q[moving] - desired, arm.effort_limit, planned)
    progress.done(f"{1000.0 * result.largest:.1f} mrad off at most")
    return result


def _held_first(points: Points) -> Points:
    """The points preceded by `HOLD` s at rest."""
    t, q, v, a = points
    still = np.zeros_like(q[:1])
    return (np.concatenate([[0.0], t + HOLD]), np.concatenate([q[:1], q]), np.concatenate([still, v]),
            np.concatenate([still, a]))


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


def torques(figure: Any, results: Mapping[str, Run], joints: Sequence[str], limit: Array, title: str) -> None:
    """Torques of each joint against its limits."""
    width = 4
    grid = figure.subplots(-(-len(joints) // width), width, sharex=True).ravel()
    end = float(next(iter(results.values())).t_needed[-1])
    for j, name in enumerate(joints):
        axes = grid[j]
        for i, (run, color) in enumerate(zip(results.values(), report.COLORS, strict=False)):
            over = 100.0 * run.share[j]
            axes.plot(run.t_needed, run.needed[:, j], color=color, linewidth=2.0)
            axes.plot(run.t, run.applied[:, j], color=color, linewidth=0.8, linestyle=":")
            axes.text(0.72 + 0.28 * i, 1.02, f"{over:.0f} %", color=color, ha="right", va="bottom",
                      transform=axes.transAxes, weight="bold" if over > 100.0 else "normal")
        for bound in (-limit[j], limit[j]):
            axes.axhline(bound, color="black", linestyle="--", linewidth=1.0)
        reach = 1.15 * max(limit[j], *(np.abs(run.needed[:, j]).max() for run in results.values()))
        axes.axhspan(limit[j], 2.0 * reach, color="black", alpha=0.08)
        axes.axhspan(-2.0 * reach, -limit[j], color="black", alpha=0.08)
        axes.set_title(name, loc="left")
        axes.set(xlim=(0.0, end), ylim=(-reach, reach))
        axes.grid(alpha=0.25)
        if j % width == 0:
            axes.set_ylabel("torque (N m)")
        if j >= len(joints) - width:
            axes.set_xlabel("time (s)")
            axes.tick_params(labelbottom=True)
    for axes in grid[len(joints):]:
        axes.axis("off")
    handles = [grid[0].plot([], [], color=color, linewidth=2.0, label=run.title)[0]
               for run, color in zip(results.values(), report.COLORS, strict=False)]
    handles += [grid[0].plot([], [], color="gray", linewidth=0.8, linestyle=":",
                             label="applied by the simulated arm")[0],
                grid[0].plot([], [], color="black", linestyle="--", linewidth=1.0, label="limit")[0]]
    place = grid[-1] if len(joints) < len(grid) else figure
    place.legend(handles=handles, loc="center" if place is grid[-1] else "outside lower center")
    figure.suptitle(f"{title}: torque that each motion needs, and its share of the limit")
