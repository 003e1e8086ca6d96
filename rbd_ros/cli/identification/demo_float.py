"""`rbd demo float`: an arm with a wrong torque constant fails the float test, is calibrated by it, and passes.

The controller of node `float_check` and the simulator, in the library without ROS: the simulated arm equals its model,
except that one drive exerts 1.3 times its commanded torque.
"""
from __future__ import annotations

import argparse
import math
import textwrap
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.inverse import gravity_effort
from ...core.dynamics.mass_matrix import mass_matrix
from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...core.model.samples import sample
from ...core.simulation.simulator import Simulator
from ...runtime.control.float_check import FloatCheck, FloatSettings
from ...runtime.control.float_verdict import RETURNED, FloatedJoint, FloatReport
from .. import demo_report as report
from ..demo_motion import DAMPING

Array = NDArray[np.float64]
JOINT, GAIN = "joint_4", 1.3        # joint with a wrong torque constant, and true over commanded torque
POSES = ("0.1 0.5 0.2 -1.2 0.3 0.8 0.1", "0.4 -0.5 0.3 0.9 -0.3 0.5 0.4")    # rad
RATE = 250.0                        # Hz
BANDWIDTH = 30.0                    # of the position loop, rad/s
ROTORS, COULOMB, VISCOUS = 0.002, 0.01, 0.02    # rotor inertia and friction, per effort limit: kg m², N m, N m s/rad
LONGEST = 600.0                     # s, simulated
WINDOW = 0.035                      # rad
LINE = 100                          # characters


class Tested(NamedTuple):
    """One run. t (N,), q (N, nv): with weights of the gains (N, nv)."""

    title: str
    result: FloatReport
    t: Array
    q: Array
    weight: Array


def arm() -> RobotModel:
    """The iiwa with rotors and friction, as in a complete description."""
    model = sample("iiwa")
    limit = model.effort_limit
    return model.with_(armature=ROTORS * limit, friction=COULOMB * limit, damping=VISCOUS * limit)


def settings_of(model: RobotModel) -> FloatSettings:
    """Gains as those of the other demos."""
    inertia = np.diag(mass_matrix(model, np.array([float(word) for word in POSES[0].split()])))
    return FloatSettings.from_values({
        "gains.kp": (inertia * BANDWIDTH**2).tolist(), "gains.kd": (2.0 * DAMPING * inertia * BANDWIDTH).tolist(),
        "poses": list(POSES), "window": [WINDOW], "state_rate": RATE, "plausible_velocity": [math.inf]}, model)


def tested(title: str, model: RobotModel, gain: Array, progress: report.Progress) -> Tested:
    """The float test of an arm whose drives exert `gain` (nv,) times their commanded torque."""
    check, names = FloatCheck(model, settings_of(model)), list(model.joint_names)
    plant = Simulator(model, step=1.0 / RATE, q=[float(word) for word in POSES[0].split()])
    check.activate(0.0)
    rows: list[tuple[float, Array, Array]] = []
    running, now = False, 0.0
    while now < LONGEST:
        now += 1.0 / RATE
        command = check.on_state(now, round(1e9 * now), names, plant.q, plant.v)
        running = running or not check.start()
        weight = np.ones(model.nv) if check._held is None else check._held.weight
        rows.append((now, np.array(plant.q), np.array(weight)))
        if (result := check.take_report()) is not None:
            t, q, weights = zip(*rows, strict=True)
            return Tested(title, result, np.array(t), np.array(q), np.array(weights))
        plant.step(gain * command.effort)    # type: ignore[union-attr]
        done = check.phase.partition(" of ")[0].removeprefix("pose ")
        share = 0.0 if not running or not done.isdigit() else (int(done) - 1) / len(POSES)
        name = check.phase.partition(", ")[2].partition(":")[0]
        progress.at(share + (names.index(name) / len(names) / len(POSES) if name in names else 0.0))
    raise RbdError(f"the float test did not end: {check.phase}")


def run(namespace: argparse.Namespace) -> int:
    """Test, calibrate, test again, draw."""
    begin, folder = time.monotonic(), namespace.output
    report.prepare(folder)
    model, titles = arm(), ("as it is", "calibrated")
    j = model.joint_names.index(JOINT)
    gain = np.ones(model.nv)
    gain[j] = GAIN
    print(f"{model.name}: the drive of {JOINT} exerts {GAIN:g} times its commanded torque.\n", flush=True)
    runs = [_run(titles[0], titles, model, gain, folder)]
    gains = runs[0].result.gains
    for name, value in gains.items():    # the torque constants are multiplied, so the currents are divided
        gain[model.joint_names.index(name)] /= value
    print("calibration: " + (", ".join(f"torque constant of {name} times {value:.4f}" for name, value in gains.items())
                             or "nothing to change") + "\n")
    runs.append(_run(titles[1], titles, model, gain, folder))
    report.finish(namespace, begin, {
        "robot": model.name, "joint": JOINT, "gain": GAIN, "found": gains,
        "runs": {tested.title: {
            "passed": tested.result.passed, "text": tested.result.text,
            "failed": sorted({joint.name for joint in tested.result.joints if joint.verdict != "rests"}),
            "as_predicted": all(joint.as_predicted for joint in tested.result.joints)} for tested in runs}},
        ["before.json", "after.json"], ("float.png", lambda path: _draw(path, runs, model)))
    return 0 if not runs[0].result.passed and runs[1].result.passed else 1


def _run(title: str, titles: tuple[str, ...], model: RobotModel, gain: Array, folder: Path) -> Tested:
    progress = report.Progress(title, titles)
    test = tested(title, model, gain, progress)
    progress.done(textwrap.fill(test.result.text, LINE, subsequent_indent=" " * (max(map(len, titles)) + 2),
                                break_on_hyphens=False))
    if test.result.aborted:
        raise RbdError(test.result.text)
    name = "before.json" if title == titles[0] else "after.json"
    try:
        (folder / name).write_text(test.result.as_json() + "\n", encoding="utf-8")
    except OSError as error:
        raise RbdError(f"cannot write {folder / name}: {error.strerror}") from None
    return test


def worst(result: FloatReport, name: str) -> FloatedJoint:
    """The release of this joint in the pose where it drifted farthest."""
    return max((joint for joint in result.joints if joint.name == name), key=lambda joint: abs(joint.seen.drift))


def released(run: Tested, j: int) -> list[tuple[Array, Array]]:
    """Time (s) and displacement (rad) of joint j from the beginning of each of its releases to its catch."""
    free = np.concatenate([[False], run.weight[:, j] < 1.0, [False]])
    edges = np.flatnonzero(np.diff(free.astype(int)))
    return [(run.t[a:b] - run.t[a], run.q[a:b, j] - run.q[a, j]) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _draw(path: Path, runs: list[Tested], model: RobotModel) -> None:
    """Measured drifts over their predictions, and the wrong joint while it is free."""
    mrad, j = 1e3, model.joint_names.index(JOINT)

    def content(figure: Any) -> None:
        per_joint, over_time = figure.subplots(2, 1)
        edge = 1.6 * mrad * WINDOW
        gravity = [gravity_effort(model, np.array([float(word) for word in pose.split()]))[j] for pose in POSES]
        for axes in (per_joint, over_time):
            axes.axhspan(-mrad * WINDOW, mrad * WINDOW, color="#009e73", alpha=0.12, label="accepted (2°)")
        for i, (run, color) in enumerate(zip(runs, report.COLORS, strict=False)):
            for k, name in enumerate(model.joint_names):
                seen, x = worst(run.result, name), k + 0.24 * (i - 0.5)
                low, high = mrad * seen.low, mrad * seen.high
                per_joint.plot([x, x], np.clip([low - 0.4, high + 0.4], -edge, edge), color=color, linewidth=6.0,
                               alpha=0.35, solid_capstyle="butt",
                               label=f"{run.title}: predicted, 95 %" if k == 0 else None)
                for end in (low, high):
                    if abs(end) > edge:    # beyond the frame
                        per_joint.annotate(f" to {end:.0f}", (x + 0.05, math.copysign(0.93 * edge, end)), color=color,
                                           fontsize=9, verticalalignment="center")
                per_joint.plot([x], [mrad * seen.seen.drift], "osD"[i], color=color, markersize=7.0,
                               label=f"{run.title}: measured" if k == 0 else None)
            ends = [joint.seen.left for joint in run.result.joints if joint.name == JOINT]
            for number, (t, moved) in enumerate(released(run, j)):
                over_time.plot(t, mrad * moved, color=color, linewidth=(3.5, 1.8)[number % 2],
                               alpha=(0.4, 1.0)[number % 2], label=f"{run.title}, pose {number + 1}: gravity "
                               f"{gravity[number]:+.1f} N m")
                if ends[number]:
                    over_time.plot(t[-1:], mrad * moved[-1:], "x", color=color, markersize=9.0, markeredgewidth=2.0,
                                   label=f"its gains returned ({RETURNED[ends[number]]})" if number == 0 else None)
        per_joint.set(ylabel="drift, farthest pose (mrad)", xticks=np.arange(model.nv), xticklabels=model.joint_names,
                      ylim=(-edge, edge), title=f"{model.name}, gravity torque alone: one joint free at a time")
        over_time.set(xlabel="time since its gains began to fade (s)", ylabel=f"{JOINT} from its place (mrad)",
                      xlim=(0.0, None), ylim=(-edge, edge), title=f"{JOINT}, whose drive exerts {GAIN:g} times what it "
                      "is told")
        for axes in (per_joint, over_time):
            axes.grid(axis="y", alpha=0.25)
            axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=9)

    report.draw(path, (11.0, 8.0), content)
