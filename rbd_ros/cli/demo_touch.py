"""`rbd demo touch`: an arm in motion is pushed, yields and resumes; then it lifts a load, weighs it, and tracks well.

The controller of node `feedforward` and the simulator, in the library without ROS. The simulated arm is 1 % heavier
than its model, with a tenth more friction, and its velocities are noisy; thresholds are those of its own motion without
contact.
"""
from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.dynamics.friction import joint_friction
from ..core.dynamics.kinematics import forward_kinematics
from ..core.dynamics.mass_matrix import mass_matrix
from ..core.estimation.external_wrench import external_wrench
from ..core.estimation.payload_estimator import PayloadEstimator
from ..core.estimation.thresholds import contact_thresholds
from ..core.identification.recorded.recording import Recording
from ..core.model.inertia import Inertia
from ..core.model.robot_model import RobotModel
from ..core.motion.trajectory import Reference
from ..core.simulation.simulator import Simulator
from ..runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from ..runtime.inputs.references import Point
from . import demo_report as report
from .demo_motion import DAMPING
from .identification.demo_float import BANDWIDTH, arm

Array = NDArray[np.float64]
STEP = 1e-3                # s
POSES = np.array([[-0.5, 0.4, 0.2, -1.3, 0.3, 0.8, 0.1], [0.6, 0.8, -0.2, -0.8, -0.3, 0.5, 0.4]])    # rad
WAY = 2.0                  # s from pose to pose
FREE = 24.0                # s of motion without contact
MASSES, FRICTION = 1.01, 1.1    # of the arm, relative to its model
NOISE = 2e-3               # rad/s, of velocities
LINK, FORCE = "link_5", np.array([0.0, 60.0, -20.0])    # N, at the origin of the link, axes of the world
PUSHED, LASTS = 0.9, 0.8   # s from the beginning of a motion, and s of the push
BODY = "link_7"
LOAD = Inertia(3.0, np.array([0.02, -0.01, 0.12]), 0.01 * np.eye(3))
WEIGHING = 4.0             # s of motion with the unknown load
EVERY = 10                 # states between samples of the plot


@dataclass
class Bench:
    """Controller and simulated arm, with recorded rows of every state."""

    model: RobotModel
    truth: RobotModel
    settings: dict[str, Any]
    rows: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in (
        "t", "q", "v", "tau", "reference", "external", "force", "mode")})

    def __post_init__(self) -> None:
        self.now, self._at, self._rng = 0.0, 0, np.random.default_rng(0)
        self.controller = FeedforwardController(self.model, FeedforwardSettings.from_values(self.settings, self.model))
        self.controller.activate(0.0)
        self.plant = Simulator(self.truth, step=STEP, q=POSES[0])

    def carry(self, load: Inertia) -> None:
        """Continue with a load on the hand that is unknown to the controller."""
        self.plant = Simulator(self.truth.with_payload(BODY, load), step=STEP, q=self.plant.q, v=self.plant.v)

    def change(self, **values: Any) -> None:
        """Set parameters of the controller."""
        self.settings |= values
        self.controller.apply(FeedforwardSettings.from_values(self.settings, self.model))

    def move(self) -> Array:
        """Start a motion to the other pose; returns this pose."""
        self._at = 1 - self._at
        zero, goal = np.zeros(self.model.nv), POSES[self._at]
        self.controller.on_trajectory(self.now, 0, self.model.joint_names, [Point(WAY, goal, zero, zero)])
        return goal

    def run(self, duration: float, force: Any = None) -> None:
        """Simulate `duration` s; force: time from now (s) → N at the origin of `LINK`, axes of the world."""
        controller, begin = self.controller, self.now
        for _ in range(round(duration / STEP)):
            self.now += STEP
            q, v = np.array(self.plant.q), self.plant.v + NOISE * self._rng.standard_normal(self.model.nv)
            command = controller.on_state(self.now, round(1e9 * self.now), self.model.joint_names, q, v)
            pushed, wrenches = np.zeros(3) if force is None else force(self.now - begin), None
            if pushed.any():
                R = forward_kinematics(self.truth, q)[self.truth.body_index(LINK), :3, :3]
                wrenches = {LINK: np.concatenate([np.zeros(3), R.T @ pushed])}
            reference: Reference | None = None if controller.contacts.yields else controller.reference.sample(
                self.now, round(1e9 * self.now))
            effort = command.effort    # type: ignore[union-attr]
            for name, value in (("t", self.now), ("q", q), ("v", v), ("tau", effort), ("force", pushed),
                                ("reference", np.full_like(q, np.nan) if reference is None else reference.q),
                                ("external", controller.contacts.external), ("mode", controller.safety.mode)):
                self.rows[name].append(value)
            self.plant.step(effort, external_wrenches=wrenches)

    def to_and_fro(self, duration: float) -> None:
        for k in range(math.ceil(duration / WAY)):
            self.move()
            self.run(min(WAY, duration - k * WAY))

    def taken(self) -> dict[str, Array]:
        """The recorded rows, which are then cleared."""
        taken = {name: np.array(values) for name, values in self.rows.items()}
        for values in self.rows.values():
            values.clear()
        return taken


def bench() -> Bench:
    model = arm()
    inertia = np.diag(mass_matrix(model, POSES[0]))
    truth = model.with_scaled_masses(MASSES).with_(friction=FRICTION * model.friction, damping=FRICTION * model.damping)
    return Bench(model, truth, {
        "gains.kp": (inertia * BANDWIDTH**2).tolist(), "gains.kd": (2.0 * DAMPING * inertia * BANDWIDTH).tolist(),
        "state_rate": 1.0 / STEP})


def run(namespace: argparse.Namespace) -> int:
    """Thresholds, push, load; table, files, picture."""
    begin, folder = time.monotonic(), namespace.output
    report.prepare(folder)
    titles = ("without contact", "pushed", "with a load", "load known")
    arm = bench()
    model = arm.model
    print(f"{model.name}: {100 * (MASSES - 1):.0f} % heavier than its model, {100 * (FRICTION - 1):.0f} % more "
          "friction.\n", flush=True)

    progress = report.Progress(titles[0], titles)
    arm.to_and_fro(FREE)
    free = arm.taken()
    free = {name: values[round(WAY / STEP):] for name, values in free.items()}    # once it moves
    recording = Recording(free["t"], free["q"], free["v"], tau=free["tau"], joints=model.joint_names)
    thresholds = contact_thresholds(model, recording, friction=joint_friction(model, 0.01))
    progress.done(f"{FREE:g} s; thresholds " + " ".join(f"{x:.2g}" for x in thresholds.threshold) + " N m")

    progress = report.Progress(titles[1], titles)
    arm.change(**{"contact.reaction": "yield", "contact.threshold": thresholds.threshold.tolist()})
    arm.run(1.0)
    alarms = arm.controller.report()["contacts"]
    arm.taken()
    start, goal = arm.now, arm.move()
    arm.run(6.0 + WAY, lambda t: FORCE * (math.sin(math.pi * (t - PUSHED) / LASTS)
                                           if PUSHED <= t <= PUSHED + LASTS else 0.0))
    pushed = arm.taken()
    pushed["t"] -= start
    changes = arm.controller.contacts.take_changes()
    first = next((change for change in changes if change.touching), None)
    seen = math.nan if first is None else first.time_ns * 1e-9 - start
    detected = math.nan if first is None else float(np.linalg.norm(pushed["force"][np.searchsorted(pushed["t"], seen)]))
    yields = pushed["mode"] == "waiting"
    led = float(np.ptp(pushed["q"][yields], axis=0).max(initial=0.0))
    missed = float(np.abs(pushed["q"][-1] - goal).max())
    estimate = estimated(model, pushed)
    true = np.linalg.norm(pushed["force"], axis=1)[::EVERY]
    error_of_force = float(np.abs(estimate[true > 0.0] - true[true > 0.0]).max()) if true.any() else math.nan
    progress.done(f"felt {1e3 * (seen - PUSHED):.0f} ms after the push began, at {detected:.1f} N of {true.max():.0f}; "
                  f"the goal is reached within {1e3 * missed:.1f} mrad")

    progress = report.Progress(titles[2], titles)
    arm.change(**{"contact.reaction": "off"})
    arm.carry(LOAD)
    arm.to_and_fro(WAY)
    arm.taken()
    arm.to_and_fro(WEIGHING)
    heavy = arm.taken()
    load = weighed(model, heavy)
    progress.done(f"{error(heavy):.1f} mrad off at most; weighed in {WEIGHING:g} s of motion: {load.mass:.3f} kg "
                  f"(true {LOAD.mass:g})")

    progress = report.Progress(titles[3], titles)
    arm.change(**{"payload.body": BODY, "payload.mass": load.mass, "payload.com": load.com.tolist(),
                  "payload.inertia": [*np.diag(load.matrix), load.matrix[0, 1], load.matrix[0, 2], load.matrix[1, 2]]})
    arm.run(2.0)
    arm.taken()
    arm.to_and_fro(WEIGHING)
    known = arm.taken()
    progress.done(f"{error(known):.1f} mrad off at most")

    good = (first is not None and not alarms and missed < 0.02 and abs(load.mass / LOAD.mass - 1.0) < 0.05
            and error(known) < 0.7 * error(heavy))
    report.finish(namespace, begin, {
        "robot": model.name, "threshold": thresholds.threshold.tolist(), "false_alarms": alarms, "delay_ms": 1e3 * (
            seen - PUSHED), "force_at_detection_n": detected, "largest_error_of_force_n": error_of_force,
        "led_rad": led, "goal_missed_rad": missed, "load_kg": LOAD.mass, "load_found_kg": load.mass,
        "com_found_m": load.com.tolist(),
        "off_mrad": {"unknown": error(heavy), "known": error(known)}},
        picture=("touch.png", lambda path: _draw(path, model, pushed, estimate, seen, heavy, known)))
    return 0 if good else 1


def estimated(model: RobotModel, rows: dict[str, Array]) -> Array:
    """Magnitude (N) of the force at the origin of `LINK` that explains the external efforts, every 10 ms."""
    return np.array([np.linalg.norm(external_wrench(model, q, effort, LINK, point=np.zeros(3)).wrench[3:])
                     for q, effort in zip(rows["q"][::EVERY], rows["external"][::EVERY], strict=True)])


def weighed(model: RobotModel, rows: dict[str, Array]) -> Inertia:
    """The load on `BODY`, from the states and efforts of a motion with it."""
    estimator = PayloadEstimator(model, BODY, joint_friction(model, 0.01))
    for k in range(1, len(rows["t"])):
        estimator.update(rows["t"][k], rows["q"][k], rows["v"][k], None, rows["tau"][k - 1])
    return estimator.load


def error(rows: dict[str, Array]) -> float:
    """Largest distance (mrad) from the reference."""
    return float(1e3 * np.abs(rows["q"] - rows["reference"]).max())


def _draw(path: Path, model: RobotModel, pushed: dict[str, Array], estimate: Array, seen: float,
          heavy: dict[str, Array], known: dict[str, Array]) -> None:
    """Force, true and estimated; the joint that yields most; tracking with the load unknown and known."""
    yields = pushed["mode"] == "waiting"
    j = int(np.argmax(np.ptp(pushed["q"][yields], axis=0))) if yields.any() else 0
    black, blue, orange = "#333333", report.COLORS[1], report.COLORS[0]

    def content(figure: Any) -> None:
        force, way, load = figure.subplots(3, 1, gridspec_kw={"height_ratios": [3, 3, 2]})
        t = pushed["t"]
        force.plot(t, np.linalg.norm(pushed["force"], axis=1), color=black, label="pushed with")
        force.plot(t[::EVERY], estimate, color=blue, label="estimated")
        force.axvline(seen, color=orange, linewidth=1.0, linestyle="--", label=f"felt, {1e3 * (seen - PUSHED):.0f} ms "
                                                                                "after it began")
        force.set(ylabel=f"force on {LINK} (N)", title=f"{model.name} in motion is pushed, yields, and goes on")
        way.plot(t, pushed["reference"][:, j], color=black, linestyle="--", label="reference")
        way.plot(t, pushed["q"][:, j], color=blue, label="arm")
        if yields.any():
            way.axvspan(t[yields][0], t[yields][-1], color=orange, alpha=0.15, label="yields")
        way.set(xlabel="time since the motion began (s)", ylabel=f"{model.velocity_names[j]} (rad)")
        for rows, color, label in ((heavy, orange, "load unknown"), (known, blue, "load estimated and set")):
            off = 1e3 * np.abs(rows["q"] - rows["reference"]).max(axis=1)
            load.plot(rows["t"] - rows["t"][0], off, color=color, label=f"{label}: {off.max():.1f} mrad at most")
        load.set(xlabel="time (s)", ylabel="off its path (mrad)", title=f"with {LOAD.mass:g} kg in the hand")
        for axes in (force, way, load):
            axes.grid(alpha=0.25)
            axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=9)

    report.draw(path, (11.0, 10.0), content)
