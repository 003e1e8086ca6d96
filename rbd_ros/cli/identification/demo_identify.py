"""`rbd demo identify`: an arm with a wrong description is excited, recorded and identified, and then tracks better.

The simulated robot differs from its description in masses, centres of mass and inertias, and has rotors and friction
that the description lacks. Every motion is executed by the nodes `simulator` and `feedforward`; noise and a delay are
added to the recording.
"""
from __future__ import annotations

import argparse
import dataclasses
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.inverse import inverse_dynamics
from ...core.dynamics.mass_matrix import mass_matrix
from ...core.errors import RbdError
from ...core.identification.excited.excitation import excitation
from ...core.identification.fit import identify
from ...core.identification.identified import Identification
from ...core.identification.recorded.recording import Recording
from ...core.identification.written.report import joint_table, summary, write_report
from ...core.identification.written.urdf_writer import rewritten
from ...core.model.files.urdf import load_urdf
from ...core.model.inertia import Inertia
from ...core.model.robot_model import RobotModel
from ...core.model.samples import sample, sample_path
from ...core.motion.optimal.limits import MotionLimits
from .. import demo_report as report
from ..demo_motion import BANDWIDTH, DAMPING, ROTORS, published_motion
from ..demo_nodes import RATE, Executed, Points, cycles, driving, execute, points_of

Array = NDArray[np.float64]

MODES = {"before": "description as it was", "after": "identified description"}
EXCITE = "excitation"
MASS, PLACE, SIZE = 0.3, 0.03, 0.3    # errors: masses (relative), centres of mass (m), second moments (relative)
COULOMB, VISCOUS = 0.04, 0.03         # friction over the peak torque of the motion, and at its peak speed
LEAST = 0.1          # N m: additional Coulomb friction, as of seals and gears of light joints
EXCITATION = 20.0    # s
SECONDS = 12.0       # of its computation
SPEED, FASTEST = 0.6, 8.0    # of the velocity limits, rad/s²
DURATION = 5.0       # s of the motion that is tracked
NOISE, ENCODER = 0.05, 1e-5   # N m, rad: standard deviations, added to what was recorded
LATE = 3             # delay of recorded efforts, cycles
LOST = 0.5           # rad: larger errors mean that the motion was not followed


def robot(model: RobotModel, seed: int = 1) -> RobotModel:
    """The real arm: bodies that differ from those of the model, rotors and friction."""
    rng = np.random.default_rng(seed)
    links = {}
    for name, old in model.description.links.items():
        if old.is_zero:
            links[name] = old
            continue
        sizes, axes = np.linalg.eigh(0.5 * np.trace(old.matrix) * np.eye(3) - old.matrix)
        sizes = np.maximum(sizes, 0.05 * sizes[-1]) * rng.uniform(1.0 - SIZE, 1.0 + SIZE, 3)    # second moments
        second = axes @ np.diag(sizes) @ axes.T
        links[name] = Inertia(old.mass * rng.uniform(1.0 - MASS, 1.0 + MASS), old.com + PLACE * rng.uniform(-1, 1, 3),
                              np.trace(second) * np.eye(3) - second)
    real = RobotModel.from_description(dataclasses.replace(model.description, links=links))
    _, q, v, a = points()
    rotors = ROTORS * _felt(model, q)
    peak = np.abs(inverse_dynamics(real.with_(armature=rotors), q, v, a)).max(axis=0)
    return real.with_(armature=rotors, friction=LEAST + COULOMB * peak, damping=VISCOUS * peak / np.abs(v).max(axis=0))


def _felt(model: RobotModel, q: Array) -> Array:
    """Median inertia reflected to each joint along positions q (nv,)."""
    inertia: Array = np.median(np.diagonal(mass_matrix(model, q), axis1=1, axis2=2), axis=0)
    return inertia


def points() -> Points:
    """The tracked motion: times, positions, velocities, accelerations."""
    return points_of(published_motion(), DURATION)


def measured(t: Array, q: Array, effort: Array, joints: tuple[str, ...], seed: int = 0) -> Recording:
    """The recording of a driver: with delayed efforts, and noise."""
    rng = np.random.default_rng(seed)
    late = np.concatenate([np.repeat(effort[:1], LATE, axis=0), effort[:-LATE]])
    return Recording(t, q + ENCODER * rng.normal(size=q.shape), tau=late + NOISE * rng.normal(size=late.shape),
                     joints=joints, source="excitation")


def run(namespace: argparse.Namespace) -> int:
    """Run all steps, print the table, write the files."""
    begin, folder = time.monotonic(), namespace.output
    report.prepare(folder)
    model, old, real, new = sample("iiwa"), sample_path("iiwa"), folder / "robot.urdf", folder / "identified.urdf"
    truth = robot(model)
    _write(real, rewritten(old, model, truth))
    joints = model.joint_names
    print(f"{model.name}: masses and inertias of the simulated robot differ from its description by up to "
          f"{100 * MASS:.0f} %,\ncentres of mass by up to {1000 * PLACE:.0f} mm; its rotors and friction are missing "
          "there.\n", flush=True)
    progress = report.Progress(EXCITE, (EXCITE, *MODES.values()))
    motion = excitation(model, EXCITATION, seconds=SECONDS, limits=MotionLimits(
        velocity=SPEED * model.velocity_limit, acceleration=FASTEST))
    t = np.linspace(0.0, EXCITATION, round(100.0 * EXCITATION) + 1)
    wanted = motion(t)
    played = _played(EXCITE, truth, real, old, "gravity", (t, wanted.q, wanted.v, wanted.a), folder, progress)
    progress.done(f"condition number {motion.condition:.1f}, recorded {played.t[-1]:.0f} s with noise of {NOISE:g} N m "
                  f"and {1e3 * LATE / RATE:.0f} ms of delay")
    recording = measured(played.t, played.q, played.effort, joints)
    np.savez_compressed(folder / "recording.npz", t=recording.t, q=recording.q, tau=recording.tau,
                        joints=np.array(joints))
    result = identify(model, recording)
    result.write_urdf(new, old)
    result.write_parameters(folder / "nodes.yaml")
    write_report(result, folder / "report.html")
    load_urdf(new)    # raises if it is invalid
    notes = [f"note: {finding}" for finding in result.findings]
    print("\n" + "\n".join([*summary(result), "", *joint_table(result), *notes]) + "\n")
    results = {}
    for mode, urdf in (("before", old), ("after", new)):
        progress = report.Progress(MODES[mode], (EXCITE, *MODES.values()))
        tracking = _played(mode, truth, real, urdf, "full", points(), folder, progress)
        results[mode] = Executed(MODES[mode], tracking, published_motion().position(tracking.t))
        progress.done(f"RMS error {results[mode].rms:.4f} rad")
    print("\n" + report.table(results, report.errors(results, joints), "feed-forward and PD"))
    residual = result.residual
    report.finish(namespace, begin, report.summary(results, joints, {
        **cycles(results), "robot": model.name, "better": results["before"].rms / results["after"].rms,
        "residual": {"before": residual.overall_before, "after": residual.overall, "training": residual.training},
        "delay_s": result.delay, "findings": list(result.findings)}),
        ("identified.urdf", "nodes.yaml", "report.html"), ("identified.png", lambda path: report.draw(
            path, (11.0, 8.0), lambda figure: picture(figure, results, result, joints), 110)))
    return 0


def picture(figure: Any, results: dict[str, Executed], result: Identification, joints: tuple[str, ...]) -> None:
    """Tracking errors over time and per joint, residuals per joint."""
    grid, colors = figure.add_gridspec(2, 2, height_ratios=(3, 2)), (report.COLORS[0], report.COLORS[2])
    over_time, per_joint, efforts = (figure.add_subplot(place) for place in (grid[0, :], grid[1, 0], grid[1, 1]))
    report.draw_errors(over_time, per_joint, results, joints, f"{result.prior.name}: the same robot, gains and motion, "
                       "feed-forward from two descriptions", colors=colors, least=1e-4)
    report.draw_joints(efforts, [(100.0 * share, color) for share, color in zip(
        (result.residual.before, result.residual.after), colors, strict=True)], joints,
        "torque that is not explained, on motion not fitted", "‖τ − τ̂‖ / ‖τ‖ (%)")
    for axes in (per_joint, efforts):
        axes.tick_params(axis="x", rotation=30)


def _played(step: str, truth: RobotModel, robot_file: Path, urdf: Path, feedforward: str, motion: Points,
            folder: Path, progress: Any) -> Any:
    """Execute a motion by the nodes; returns the recording of `DemoRecorder`."""
    inertia = _felt(truth, points()[1])
    recording, processes = execute(folder / "logs" / step, truth.joint_names, {
        "simulator": {"robot_description_file": str(robot_file.resolve()), "initial_position": motion[1][0].tolist()},
        "feedforward": {**driving(), "robot_description_file": str(urdf.resolve()), "feedforward": feedforward,
                        "gains.kp": (inertia * BANDWIDTH**2).tolist(),
                        "gains.kd": (2.0 * DAMPING * inertia * BANDWIDTH).tolist()}}, motion, progress)
    off = recording.q - np.column_stack([np.interp(recording.t, motion[0], column) for column in motion[1].T])
    if np.abs(off).max() > LOST:
        j = int(np.argmax(np.abs(off).max(axis=0)))
        raise RbdError(f"the arm lost the motion ({truth.joint_names[j]} is off by {np.abs(off).max():.2f} rad): did "
                       f"the machine pause? {processes.last_words('feedforward')}")
    return recording


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RbdError(f"cannot write {path}: {error.strerror}") from None
