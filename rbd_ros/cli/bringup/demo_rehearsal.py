"""`rbd demo --config`: the configuration of a real arm, run on a simulated arm with that robot's behaviour."""
from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.model.robot_model import RobotModel
from ...runtime.control.feedforward import FeedforwardSettings
from ...runtime.rehearsal import Rehearsal, rehearse
from .. import demo_motion, demo_report
from ..demo_nodes import RATE, Executed, columns, cycles, execute, points_of
from ..files.robot import description_of, named

Array = NDArray[np.float64]
REFLEX = "the robot stops itself: "
LOST = 0.5            # rad or m: the arm counts as not held at larger deviations


def run(namespace: argparse.Namespace) -> int:
    """Run the motion, print the result, write the files; returns 1 if the robot stopped itself or was not held."""
    begin, duration = time.monotonic(), namespace.duration
    config = Path(namespace.config)
    plan = rehearse(config, description_of(namespace) if named(namespace) else None)
    settings = FeedforwardSettings.from_values(plan.values, plan.model)
    still = not (settings.law.kp.any() or settings.law.kd.any() or settings.law.feedforward == "lqr")
    motion = slow_motion(plan.model, settings, duration, namespace.seed)
    if still:
        motion = demo_motion.Cosines(motion.position(0.0), np.zeros(plan.model.nv), np.zeros(plan.model.nv))
    rate = float(plan.robot.get("publish_rate", RATE))
    demo_report.prepare(namespace.output)
    print(f"rehearsal of {config} on {plan.model.name}, {plan.model.nv} joints, {duration:g} s at {rate:g} Hz. "
          f"The robot differs from its model: masses {100 * (demo_motion.MASS_SCALE - 1):+.0f} %, friction.")
    print("\n".join(f"- {note}" for note in plan.notes))
    if still:
        print("- without gains no motion is followed: the arm should stay in its initial pose")
    print()
    result, reflex = _play(plan, motion, duration, rate, namespace.output, demo_report.Progress(
        config.name, [config.name]))
    results, joints = {"config": result}, plan.model.joint_names
    worst = np.unravel_index(np.argmax(np.abs(result.error)), result.error.shape)
    excursion, joint = result.largest, joints[worst[1]]
    print("\n" + demo_report.table(results, columns(results, joints)))
    print(f"worst excursion: {excursion:.4f} rad (or m), {joint} at {result.t[worst[0]]:.2f} s. saturated: "
          f"{result.report['saturated']:.0f} torques. rate-limited: {result.report['rate_limited']:.0f}.")
    print(f"The simulated robot stopped itself: {reflex}" if reflex else "The simulated robot did not stop itself.")
    demo_report.finish(namespace, begin, demo_report.summary(results, joints, {
        **cycles(results), "robot": plan.model.name, "config": str(config), "replaced": plan.replaced,
        "notes": list(plan.notes), "worst_excursion": excursion, "worst_joint": joint, "stopped_itself": reflex,
        "duration_s": duration, "nominal_rate_hz": rate}))
    if excursion > LOST:
        print(f"{config.name} does not hold this arm")
    return int(bool(reflex) or excursion > LOST)


def slow_motion(model: RobotModel, settings: FeedforwardSettings, duration: float, seed: int) -> demo_motion.Cosines:
    """The motion of the demo, slowed down to the limits of the configuration."""
    limited = model.with_(effort_limit=settings.safety.effort_limit)
    if "gravity" in settings.law.compensates:
        limited = limited.with_(gravity=np.zeros(3))
    return demo_motion.random_motion(limited, duration, seed)


def _play(plan: Rehearsal, motion: demo_motion.Cosines, duration: float, rate: float, folder: Path,
          progress: demo_report.Progress) -> tuple[Executed, str]:
    """Run both nodes; returns the result and the reason of a protective stop."""
    description = folder / "description.urdf"
    description.write_text(plan.description, encoding="utf-8")
    common = {"robot_description_file": str(description)}
    order = [plan.model.joint_names.index(joint) for joint in plan.robot["joints"]]
    recording, processes = execute(folder / "logs", plan.model.joint_names, {
        "simulator": {**common, **plan.robot, **deviations(plan, motion),
                      "initial_position": motion.position(0.0)[order].tolist()},
        "feedforward": {**plan.given, **plan.replaced, **common}}, points_of(motion, duration), progress, rate)
    result = Executed(plan.model.name, recording, motion.position(recording.t))
    progress.done(f"RMS error {result.rms:.4f} rad")
    return result, processes.said("simulator", REFLEX)


def deviations(plan: Rehearsal, motion: demo_motion.Cosines) -> dict[str, Any]:
    """Parameters of the simulated robot that differ from its model, as in the demo."""
    t = np.linspace(0.0, 5.0, 501)
    peak = demo_motion.peak_effort(plan.model, motion, 5.0)
    speed = np.maximum(np.abs(motion.velocity(t)).max(axis=0), 0.1)
    order = [plan.model.joint_names.index(joint) for joint in plan.robot["joints"]]
    return {"mass_scale": demo_motion.MASS_SCALE,
            "friction.coulomb": (plan.model.friction + demo_motion.COULOMB * peak)[order].tolist(),
            "friction.damping": (plan.model.damping + demo_motion.VISCOUS * peak / speed)[order].tolist()}
