"""`rbd demo rigid`: a simulated arm follows a trajectory three times: feedback alone, with gravity, with full
feed-forward.
"""
from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.model.files.xml_tree import PACKAGE
from ..core.model.robot_model import RobotModel
from . import demo_motion, demo_report
from .demo_nodes import PATIENCE, Executed, columns, cycles, driving, execute, points_of
from .files.robot import description_of, load_robot, named

# key in summary.json → (title, parameter `feedforward` of the node)
MODES = {"pd": ("PD alone", "none"), "pd_gravity": ("PD + gravity", "gravity"),
         "pd_full": ("PD + full feed-forward", "full")}


def run(namespace: argparse.Namespace) -> int:
    """Run all modes, print the table, write the files."""
    begin, duration, rate, folder = time.monotonic(), namespace.duration, namespace.rate, namespace.output
    another = named(namespace) is not None
    namespace.robot = namespace.robot or "iiwa"
    urdf = description_of(namespace)
    if not urdf.startswith(PACKAGE):
        urdf = os.path.abspath(urdf)
    model = load_robot(namespace, quiet=True, joints=True)
    motion = (demo_motion.random_motion(model, duration, namespace.seed) if another
              else demo_motion.published_motion())
    scenario = demo_motion.scenario(model, motion, duration)
    demo_report.prepare(folder)
    print(f"{model.name}, {model.nv} joints, {duration:g} s at {rate:g} Hz. The robot differs from its model:\n"
          f"masses {100 * (demo_motion.MASS_SCALE - 1):+.0f} %, Coulomb friction {100 * demo_motion.COULOMB:.0f} % and "
          f"viscous friction {100 * demo_motion.VISCOUS:.0f} % of the peak torque.\n"
          f"If this machine is too busy, the simulation waits for its torque for up to {PATIENCE:g} s.\n")
    results = {key: _mode(key, model, urdf, scenario, duration, rate, folder) for key in MODES}
    print("\n" + demo_report.table(results, columns(results, model.joint_names)))
    print("better: than PD alone. latency: from a joint state to its torque. late: later than one period.\n"
          "waits: states for which the simulation waited for a torque.")
    demo_report.finish(namespace, begin, demo_report.summary(results, model.joint_names, {
        **cycles(results), "robot": model.name, "duration_s": duration, "nominal_rate_hz": rate,
        "mass_scale": demo_motion.MASS_SCALE, "gains": {"kp": scenario.kp.tolist(), "kd": scenario.kd.tolist()},
        "rotor_inertia": scenario.rotors.tolist()}),
        picture=("tracking.png", lambda path: plot(path, results, model.joint_names, model.name)))
    if namespace.view:
        from .view.demo_view import show
        return show(folder, {key: title for key, (title, _) in MODES.items()}, model, urdf, namespace.port,
                    not namespace.no_browser)
    return 0


def plot(path: Path, results: Mapping[str, Executed], joints: Sequence[str], robot: str) -> None:
    """A PNG: the error over time, and per joint. Needs matplotlib (`ImportError`)."""
    def content(figure: Any) -> None:
        over_time, per_joint = figure.subplots(2, 1, height_ratios=(3, 2))
        demo_report.draw_errors(over_time, per_joint, results, joints,
                                f"{robot}: tracking a trajectory with a robot that differs from its model")

    demo_report.draw(path, (10.0, 8.0), content)


def _mode(key: str, model: RobotModel, urdf: str, scenario: demo_motion.Scenario, duration: float, rate: float,
          folder: Path) -> Executed:
    title, feedforward = MODES[key]
    progress = demo_report.Progress(title, (title for title, _ in MODES.values()))
    motion = scenario.motion
    common = {"robot_description_file": urdf, "rotor_inertia": scenario.rotors.tolist()}
    override = np.where(model.effort_limit > 0.0, 0.0, 10.0 * np.maximum(scenario.peak_effort, 1.0))
    recording, _ = execute(folder / "logs" / key, model.joint_names, {
        "simulator": {**common, "initial_position": motion.position(0.0).tolist(),
                      "mass_scale": demo_motion.MASS_SCALE, "friction.damping": scenario.damping.tolist(),
                      "friction.coulomb": scenario.friction.tolist()},
        "feedforward": {**common, **driving(rate), "feedforward": feedforward, "gains.kp": scenario.kp.tolist(),
                        "gains.kd": scenario.kd.tolist(), "effort_limits.override_zero": override.tolist()},
    }, points_of(motion, duration), progress, rate)
    reference = motion.position(recording.t)
    np.savez_compressed(folder / f"{key}.npz", t=recording.t, q=recording.q, v=recording.v, effort=recording.effort,
                        reference=reference)
    result = Executed(title, recording, reference)
    progress.done(f"RMS error {result.rms:.4f} rad")
    return result
