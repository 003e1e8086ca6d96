"""`rbd demo sea` and `rbd demo vsa`: the iiwa with springs in its joints, simulated in the library, without ROS.

Three controllers follow the same trajectory with the same inexact model: feed-forward of rigid joints, feed-forward by
flatness, both with the same PD of the motors; and feedback linearisation.
"""
from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.actuation.actuation import Actuation
from ..core.actuation.actuation_yaml import load_actuation
from ..core.actuation.motor_reference import MotorReference, flat_motors, link_efforts
from ..core.actuation.poles import FeedbackGains
from ..core.actuation.spring_motion import Motion
from ..core.dynamics.mass_matrix import mass_matrix
from ..core.errors import RbdError
from ..core.model.robot_model import RobotModel
from ..core.model.samples import sample
from ..core.simulation.elastic_simulator import ElasticSimulator
from ..core.actuation.elastic_law import ElasticLaw, ElasticLawSettings, ElasticState
from . import demo_report as report
from .demo_motion import Cosines, published_motion

Array = NDArray[np.float64]

VARIANTS = {"sea": "series elastic joints", "vsa": "joints of variable stiffness"}
MODES = {"rigid": "rigid feed-forward + PD", "flatness": "flatness feed-forward + PD",
         "linearization": "feedback linearisation"}
PERIOD = 5e-4        # s, of the control
STEP = 2.5e-4        # s, of the simulation
ERROR = 0.05         # relative error of masses, inertias, rotor inertias, and (softer) series springs
BANDWIDTH = 40.0     # of the motors' position loops, rad/s
DAMPING = 0.7
POLES = 150.0        # of feedback linearisation, 1/s: docs/elastic_joints.md says why so fast
STIFFNESS_POLES = 60.0
SETTLED = 1.0        # s, after which the stiffness error is evaluated

HOUSING = 0.02       # kg m², added to each link's published inertia for its drive
ROTORS = (3.0, 3.0, 2.0, 2.0, 0.6, 0.4, 0.2)                              # kg m², at the output of the gears
STIFFNESS = (8000.0, 8000.0, 6000.0, 6000.0, 3000.0, 2000.0, 1500.0)      # N m/rad
SWING, RATE = 0.25, (1.1, 1.7, 2.3, 1.3, 1.9, 2.9, 3.1)                   # of the desired stiffness; and rad/s


def sea(model: RobotModel, error: float = 0.0) -> Actuation:
    """Linear springs, softer by `error`, and rotors heavier by it."""
    return load_actuation({
        name: {"type": "series_elastic", "stiffness": k * (1.0 - error), "motor": {"rotor_inertia": b * (1.0 + error)}}
        for name, k, b in zip(model.joint_names, STIFFNESS, ROTORS, strict=True)}, model)


def vsa(model: RobotModel, error: float = 0.0) -> Actuation:
    """Antagonistic springs in the first four joints, springs with a stiffness input in the wrist; rotors heavier by
    `error`. The springs have no error: stiffness is not measured, so it is as accurate as their model.
    """
    drives: dict[str, Any] = {}
    for i, (name, k, b) in enumerate(zip(model.joint_names, STIFFNESS, ROTORS, strict=True)):
        b *= 1.0 + error
        if i < 4:    # the middle of the range at a co-contraction of 0.3 rad; two motors share the rotor inertia
            springs = ({"spring": "antagonistic_quadratic", "linear": 0.1 * k, "quadratic": 0.8 * k / 1.2}
                       if i % 2 == 0 else
                       {"spring": "antagonistic_exponential", "scale": 0.5 * k / 5.0 * math.exp(-1.5), "rate": 5.0})
            drives[name] = {"type": "variable_stiffness", **springs, "range": [0.05, 0.6], "stiffness": k,
                            "motor": {"rotor_inertia": 0.5 * b}}
        else:        # the stiffness motor's coordinate is the stiffness
            drives[name] = {"type": "variable_stiffness", "spring": "linear", "range": [0.3 * k, 2.0 * k],
                            "stiffness": k, "motor": {"rotor_inertia": b},
                            "stiffness_motor": {"rotor_inertia": 1e-7 * (1.0 + error)}}
    return load_actuation(drives, model)


@dataclass(frozen=True)
class Scenario:
    """Robot, its model, motion, and gains of the motors' PD (nm,)."""

    variant: str
    believed: Actuation
    real: Actuation
    motion: Cosines
    kp: Array
    kd: Array

    def stiffness(self, t: float) -> Array:
        """Desired k, k̇, k̈ (3, n) of the joints with variable stiffness."""
        middle = self.believed.stiffness
        rate = np.array(RATE)[self.believed.variable]
        wave = Cosines(middle, SWING * middle, rate)
        return np.stack([wave.position(t), wave.velocity(t), wave.acceleration(t)])


def arm() -> RobotModel:
    """The iiwa, each link with the additional inertia of a drive: without it, almost no inertia lies between two
    springs of aligned axes, which gives modes of 4000 rad/s, too fast for sampled control.
    """
    model = sample("iiwa")
    for name in model.body_names[1:]:
        model = model.with_body(name, inertia=model.description.links[name].matrix + HOUSING * np.eye(3))
    return model


def scenario(variant: str) -> Scenario:
    """The iiwa on M's trajectory, and a robot that differs from its model by 5 %."""
    model, motion = arm(), published_motion()
    make = {"sea": sea, "vsa": vsa}[variant]
    believed = make(model)
    t = np.linspace(0.0, 5.0, 201)
    links = np.median(np.diagonal(mass_matrix(model, motion.position(t)), axis1=1, axis2=2), axis=0)
    inertia = believed.inertia.copy()
    inertia[:model.nv] += links
    for joints, spring in believed.groups:
        if spring.antagonistic:    # two motors share the link
            shared = believed.inertia[model.nv + joints] + 0.5 * links[believed.variable[joints]]
            inertia[believed.variable[joints]], inertia[model.nv + joints] = shared, shared
    return Scenario(variant, believed, make(model.with_scaled_masses(1.0 + ERROR), ERROR), motion,
                    inertia * BANDWIDTH**2, 2.0 * DAMPING * inertia * BANDWIDTH)


def rigid_reference(actuation: Actuation, r: Array, stiffness: Array) -> MotorReference:
    """Motor reference for rigid springs: efforts of rigid joints, stiffness motors without load."""
    nv = actuation.nv
    still = np.zeros(nv)
    tau = link_efforts(actuation, *r)[0]
    motors = flat_motors(actuation, Motion(r[0], r[1], r[2]), Motion(still, still, still),
                         Motion(stiffness[0], stiffness[1], stiffness[2]))
    effort = motors.effort.copy()
    share = np.ones(nv)
    for joints, spring in actuation.groups:
        if spring.antagonistic:
            share[actuation.variable[joints]] = 0.5
            effort[nv + joints] += 0.5 * tau[actuation.variable[joints]]
    effort[:nv] += share * tau
    return motors._replace(effort=effort, torque=tau)


class Run(report.Result):
    """One mode. stiffness: k/k_ref − 1 (N, n) of `joints`; microseconds: per command."""

    def __init__(self, title: str, t: Array, error: Array, stiffness: Array, joints: list[str],
                 microseconds: float) -> None:
        super().__init__(title, t, error)
        self.stiffness, self.joints, self.microseconds = stiffness, joints, microseconds
        settled = stiffness[t >= min(SETTLED, 0.5 * float(t[-1]))]
        self.stiffness_error = float(np.abs(settled).max()) if stiffness.size else 0.0

    def figures(self) -> dict[str, Any]:
        rms = np.sqrt(np.mean(self.stiffness**2, axis=0)).tolist()
        return {"us_per_command": self.microseconds, **({
            "stiffness_error": self.stiffness_error,
            "stiffness_rms_error_per_joint": dict(zip(self.joints, rms, strict=True))} if self.joints else {})}


def simulate(s: Scenario, mode: str, duration: float, progress: report.Progress) -> Run:
    """Follow the trajectory; every mode starts in the state of the model's flatness map."""
    gains = FeedbackGains.placed(s.believed, POLES, STIFFNESS_POLES)
    control = ElasticLaw(s.believed, ElasticLawSettings(
        PERIOD, "feedback_linearization" if mode == "linearization" else "feed_forward_pd", s.kp, s.kd, gains))
    forward = ElasticLaw(s.believed, ElasticLawSettings(PERIOD, "feed_forward"))
    r = s.motion.derivatives(0.0)
    start = forward.command(r, stiffness=s.stiffness(0.0)).reference
    robot = ElasticSimulator(s.real, step=STEP, integrator="rk4", q=r[0], v=r[1], motor_position=start.position,
                             motor_velocity=start.velocity)
    count = round(duration / PERIOD)
    times, errors, ratios, took = [], [], [], 0.0
    for i in range(count):
        t = i * PERIOD
        r, k = s.motion.derivatives(t), s.stiffness(t)
        state = ElasticState(robot.q, robot.v, robot.motor_position, robot.motor_velocity)
        begin = time.perf_counter()
        if mode == "rigid":
            motors = rigid_reference(s.believed, r, k)
            effort = motors.effort + control.feedback(motors, state)
        else:
            effort = control.command(r, state, k).effort
        took += time.perf_counter() - begin
        if i % 8 == 0:
            times.append(t)
            errors.append(robot.q - r[0])
            ratios.append(robot.stiffness[s.believed.variable] / k[0] - 1.0)
            progress.at(t / duration)
        try:
            robot.step(effort, round(PERIOD / STEP))
        except RbdError as error:
            raise RbdError(f"{MODES[mode]}: {error}") from None
    joints = [s.believed.joint_names[i] for i in s.believed.variable]
    result = Run(MODES[mode], np.array(times), np.array(errors), np.array(ratios), joints, 1e6 * took / count)
    progress.done(f"RMS error {1e3 * result.rms:.3f} mrad")
    return result


def run(namespace: argparse.Namespace, variant: str) -> int:
    """Run all modes, print the table, write the files."""
    begin, duration, folder = time.monotonic(), namespace.duration, namespace.output
    report.prepare(folder)
    s = scenario(variant)
    print(f"{s.believed.model.name} with {VARIANTS[variant]}, {duration:g} s, controlled at {1.0 / PERIOD:g} Hz. The "
          f"robot differs from its model:\nmasses, inertias and rotors {100 * ERROR:+.0f} %"
          + (f", springs {-100 * ERROR:+.0f} %" if variant == "sea" else "; springs as modelled") + ".\n", flush=True)
    results = {mode: simulate(s, mode, duration, report.Progress(title, MODES.values()))
               for mode, title in MODES.items()}
    for mode, result in results.items():
        np.savez_compressed(folder / f"{mode}.npz", t=result.t, error=result.error, stiffness=result.stiffness)
    joints = s.believed.joint_names
    print("\n" + table(results, joints))
    print("better: than with rigid feed-forward. Per command: time to compute it." + (
        "\nstiffness: largest deviation from the desired value, after the first second." if variant == "vsa" else ""))
    report.finish(namespace, begin, report.summary(results, joints, {
        "better": {mode: results["rigid"].rms / result.rms for mode, result in results.items()},
        "robot": s.believed.model.name, "variant": variant, "duration_s": duration, "period_s": PERIOD,
        "step_s": STEP, "model_error": ERROR, "stiffness_n_m_per_rad": list(STIFFNESS),
        "rotor_inertia_kg_m2": list(ROTORS), "gains": {"kp": s.kp.tolist(), "kd": s.kd.tolist()}, "poles": POLES,
    }), picture=("tracking.png", lambda path: plot(path, results, joints, f"iiwa with {VARIANTS[variant]}")))
    return 0


def table(results: dict[str, Run], joints: tuple[str, ...]) -> str:
    """The table as text."""
    stiffness: report.Columns = {"stiffness": lambda result: f"{100 * result.stiffness_error:.2f} %"}
    return report.table(results, {**report.errors(results, joints, "mrad"), **(
        stiffness if results["rigid"].joints else {}), "per command": lambda result: f"{result.microseconds:.0f} µs"})


def plot(path: Path, results: dict[str, Run], joints: tuple[str, ...], title: str) -> None:
    """A PNG: the error over time and per joint, and that of the stiffness. Needs matplotlib (`ImportError`)."""
    variable = bool(results["rigid"].joints)

    def content(figure: Any) -> None:
        over_time, per_joint, *more = figure.subplots(3 if variable else 2, 1,
                                                      height_ratios=(3, 2, 2) if variable else (3, 2))
        report.draw_errors(over_time, per_joint, results, joints,
                           f"{title}: tracking with a robot that differs from its model", "mrad", least=1e-2)
        for axes in more:
            for result, color in zip(results.values(), report.COLORS, strict=True):
                worst = 100.0 * np.abs(result.stiffness).max(axis=1)
                axes.semilogy(result.t, np.maximum(worst, 1e-5), color=color, linewidth=1.5)
            axes.set(xlabel="time (s)", ylabel="largest over joints (%)", xlim=over_time.get_xlim(), ylim=(1e-3, None),
                     title="stiffness: deviation from the desired value")
            axes.grid(which="both", alpha=0.25)

    report.draw(path, (10.0, 10.5 if variable else 8.0), content)
