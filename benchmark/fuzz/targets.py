"""The torque nodes under fire: how each is started, and which of its parameters change."""
from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import rbd_ros as rbd

ROOT = Path(__file__).resolve().parents[2]
DEPTH = 20_000    # of every queue: more than is sent between two looks at the counters, so that nothing is lost
RELIABLE = {"reliability": "reliable", "history": "keep_last", "depth": DEPTH}
STATE_TIMEOUT, REFERENCE_TIMEOUT, RAMP = 0.2, 0.1, 0.05    # s; of a busy machine
# topics of node cartesian by their key
CARTESIAN = {"goal": "target_pose", "twist": "target_twist", "course": "target_trajectory", "push": "target_wrench"}
LONGEST = 0.3     # s: of all times that a parameter is changed to


@dataclass(frozen=True)
class Target:
    """A node to be attacked. `limits`: what no output may exceed, per joint and per motor, by the robot description."""

    name: str
    executable: str
    model: rbd.RobotModel
    parameters: Mapping[str, Any]
    limits: np.ndarray
    motors: tuple[str, ...] = ()
    elastic: tuple[str, ...] = ()
    valid: tuple[tuple[str, Any], ...] = ()
    invalid: tuple[tuple[str, Any], ...] = ()

    @property
    def joints(self) -> list[str]:
        return list(self.model.joint_names)


COMMON = {
    "adapters": ["forward_command", "joint_state", "jtc"], "state_timeout": STATE_TIMEOUT,
    "reference_timeout": REFERENCE_TIMEOUT, "wrench_timeout": 0.1, "ramp_in": RAMP, "ramp_out": RAMP,
    "safe_output.hold": RAMP, "safe_output.fallback_ramp": RAMP, "safe_output.fallback": [0.5],
    "safe_output.damping": 5.0, "velocity_cutoff": 30.0, "effort_limits.maximum": [math.inf],
    "effort_limits.rate": [math.inf], "gravity_check": True, "friction.damping": True, "friction.coulomb": True,
    "feedback.max_age": 5.0, "feedback.min_rate": 0.25, "plausible_velocity": [2.0], "payload.body": "",
    "payload.mass": 0.0, "payload.com": [0.0, 0.0, 0.0]}
VALID = (
    ("state_timeout", 0.02), ("state_timeout", LONGEST), ("reference_timeout", 0.0), ("reference_timeout", LONGEST),
    ("wrench_timeout", 0.0), ("wrench_timeout", 1e6), ("ramp_in", 0.0), ("ramp_in", LONGEST), ("ramp_out", 0.0),
    ("ramp_out", LONGEST), ("safe_output.hold", 0.0), ("safe_output.hold", 1e6), ("safe_output.fallback_ramp", 0.0),
    ("safe_output.fallback", [1e9]), ("safe_output.fallback", [-3.0]), ("safe_output.damping", 100.0),
    ("safe_output.damping", 0.0), ("velocity_cutoff", 0.0), ("velocity_cutoff", 1e5), ("effort_limits.maximum", [5.0]),
    ("effort_limits.maximum", [0.0]), ("effort_limits.maximum", [1e300]), ("effort_limits.rate", [300.0]),
    ("effort_limits.rate", [1e300]), ("gravity_check", False), ("friction.damping", False),
    ("friction.coulomb", False), ("friction.smoothing", 1e-6), ("friction.smoothing", 100.0),
    ("plausible_velocity", [math.inf]), ("plausible_velocity", [1.0]), ("payload.mass", 0.0),
    ("payload.com", [0.1, -0.2, 0.3]))
INVALID = (
    ("state_timeout", 0.0), ("state_timeout", math.nan), ("state_timeout", "soon"), ("ramp_in", -1.0),
    ("ramp_out", math.inf), ("safe_output.fallback", [math.nan]), ("safe_output.fallback", [1.0] * 40),
    ("safe_output.hold", -1e-9), ("effort_limits.maximum", [-1.0]), ("effort_limits.maximum", math.nan),
    ("effort_limits.rate", [0.0]), ("payload.body", "nothing"), ("payload.mass", -1.0), ("payload.com", [1.0]),
    ("robot_compensates", ["everything"]), ("adapters", ["lbr"]), ("joints", ["a"]), ("gravity", [0.0, 0.0, 1e300]),
    ("velocity_cutoff", -1.0), ("plausible_velocity", [0.5]),
    ("no_such_parameter", 1.0), ("gains.kp", [math.inf]), ("gains.kp", math.nan))
GAINS = (("gains.kp", [0.0]), ("gains.kp", [200.0]), ("gains.kp", [1e9]), ("gains.kd", [0.0]), ("gains.kd", [1e9]))


def _target(name: str, executable: str, robot: str, limits: np.ndarray | None = None, own: Mapping[str, Any] = {},
            valid: tuple[tuple[str, Any], ...] = (), without: tuple[str, ...] = (), **fields: Any) -> Target:
    path = rbd.sample_path(robot)
    model = rbd.load_urdf(path)
    tool = model.body_names[-1]
    parameters = COMMON | {"robot_description_file": str(path), "friction.smoothing": 0.1,
                           "forward_command.joints": list(model.joint_names)[::-1]} | dict(own)
    for unknown in without:
        del parameters[unknown]
    changes = (*VALID, ("payload.body", tool), ("payload.mass", 2.0), *valid)
    return Target(name, executable, model, parameters, model.effort_limit if limits is None else limits,
                  valid=tuple(item for item in changes if item[0] not in without), invalid=INVALID, **fields)


def make(name: str) -> Target:
    """The target of this name."""
    if name == "feedforward":
        laws = tuple(("feedforward", law) for law in ("none", "gravity", "full", "computed_torque", "lqr"))
        compensates = tuple(("robot_compensates", list(own)) for own in (["gravity"], ["coriolis", "friction"], [""]))
        reactions = tuple(("contact.reaction", reaction) for reaction in ("off", "report", "stop", "yield", "retract"))
        felt = (("contact.threshold", [1e6]), ("contact.threshold", [0.5]), ("contact.release", 0.0))
        return _target(name, name, "iiwa", own={
            "gains.kp": [50.0], "gains.kd": [5.0], "feedforward": "full", "robot_compensates": [""],
            "contact.reaction": "report", "contact.effort": "joint_states", "contact.threshold": [20.0],
            "contact.release": 0.3}, valid=GAINS + laws + compensates + reactions + felt)
    if name == "flatness":
        return _target(name, name, "two_link", own={"gains.kp": [50.0], "gains.kd": [5.0], "robot_compensates": [""]},
                       valid=(*GAINS, ("robot_compensates", ["gravity", "friction"])))
    if name == "cartesian":
        return _target(name, name, "iiwa", own={
            "gains.kp": [50.0], "gains.kd": [5.0], "robot_compensates": [""], "stiffness.translation": [300.0] * 3,
            "stiffness.rotation": [20.0] * 3, "stiffness.frame": "base", "law": "cartesian", "damping_ratio": 1.0,
            "friction.compensation": 0.5, "posture.bandwidth": 3.0, "largest.force": 50.0, "tank.size": 2.0,
            "force.topic": "pushed", "state_rate": 200.0, "guide.free": ["tx", "ty"]},
            without=("reference_timeout", "wrench_timeout"),
            valid=(*(("stiffness.translation", [k] * 3) for k in (0.0, 2000.0, 1e5)), ("damping_ratio", 0.0),
                   ("stiffness.rotation", [500.0] * 3), ("stiffness.frame", "target"), ("law", "joint"),
                   ("damping_ratio", 5.0), ("friction.compensation", 0.0), ("friction.compensation", 0.8),
                   ("posture.bandwidth", 50.0), ("largest.force", 1e5), ("tank.size", 0.0), ("gains.kd", [0.0]),
                   ("guide.free", ["rx", "ry", "rz"]), ("gains.kp", [200.0])))
    file = ROOT / "config" / "sea_example.actuation.yaml"
    actuation = rbd.load_actuation(file, rbd.load_urdf(rbd.sample_path("two_link")))
    names = actuation.motor_names
    of = [*range(actuation.nv), *actuation.variable]
    elastic = tuple(names[i] for i in [*actuation.elastic, *range(actuation.nv, actuation.nm)])
    return _target(
        "elastic", "flatness", "two_link", motors=tuple(names), elastic=elastic,
        limits=actuation.model.effort_limit[of], own={
            "actuation_file": str(file), "state_rate": 500.0, "mode": "feed_forward_pd", "motor_gains.kp": [20.0],
            "motor_gains.kd": [1.0], "poles": [100.0], "stiffness": [300.0], "stiffness_poles": [50.0],
            "motor_effort_limits.maximum": [-1.0], "motor_effort_limits.rate": [math.inf]},
        valid=(*(("mode", mode) for mode in ("feed_forward", "feed_forward_pd", "feedback_linearization")),
               ("motor_gains.kp", [0.0]), ("motor_gains.kp", [1e9]), ("motor_gains.kd", [50.0]), ("poles", [5.0]),
               ("poles", [400.0]), ("stiffness", [60.0]), ("stiffness", [850.0]), ("stiffness", [5.0]),
               ("stiffness_poles", [200.0]), ("motor_effort_limits.maximum", [2.0]),
               ("motor_effort_limits.rate", [300.0])))


NAMES = ("feedforward", "flatness", "cartesian", "elastic")


class Process:
    """The node in a process of its own, its log in a file. Its queues are so long that every message is delivered."""

    def __init__(self, target: Target, folder: Path) -> None:
        node = f"/{target.executable}"
        inputs = ["/joint_states", "/motor_states",
                  *(f"{node}/{topic}" for topic in ("reference", "joint_trajectory", "external_wrenches",
                                                    *CARTESIAN.values())), "/pushed"]
        outputs = [*(f"{node}/{topic}" for topic in ("effort", "effort_commands", "motor_reference", "motor_effort",
                                                     "motor_commands")),
                   "/effort_controller/commands", "/joint_trajectory_controller/joint_trajectory"]
        overrides = {f"qos_overrides.{topic}.{kind}.{policy}": value for kind, topics in (
            ("subscription", inputs), ("publisher", outputs)) for topic in topics for policy, value in RELIABLE.items()}
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{target.name}.yaml"
        file.write_text(yaml.safe_dump({"/**": {"ros__parameters": dict(target.parameters) | overrides}}))
        self._log = folder / f"{target.name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"rbd_ros.nodes.{target.executable}", "--ros-args", "--params-file", str(file)],
                cwd=ROOT, env=dict(os.environ), stdout=log, stderr=subprocess.STDOUT)

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def end(self) -> int | None:
        """Interrupt it; its exit code, None if it had to be killed."""
        if not self.ended:
            self._process.send_signal(signal.SIGINT)
        try:
            return self._process.wait(60.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return None
