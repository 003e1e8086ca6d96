"""Verdict of a float test on the arm: measured against predicted drifts, and causes of torque errors."""
from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.mass_matrix import mass_matrix
from ...core.identification.float_test import INERTIA, drift, drift_interval
from ...core.identification.torque_errors import (
    JointTorques, MissingLoad, TorqueError, cause, load_cause, missing_load, torque_error,
)
from ...core.model.robot_model import RobotModel

Array = NDArray[np.float64]
RESOLUTION = 1e-3    # rad or m: drifts up to this are never a failure
RETURNED = {"window": "it left the window", "speed": "it became too fast"}
UNEXPLAINED = 0.005  # share of gravity torque and friction that a slow motion both ways leaves as their error


@dataclass(frozen=True)
class Sweep:
    """Torque of one joint, moved slowly both ways about a pose: missing: of the model's gravity torque, the mean of
    both directions, with its standard deviation; level: half their difference, friction. N m or N.
    """

    missing: float
    deviation: float
    level: float


@dataclass(frozen=True, eq=False)
class Released:
    """One joint, released in the pose q (nv,): gravity: of the model, N m or N; sweep: None if the joint did not move;
    drift: rad or m within `time` s after the gains were gone, begun up to `fade` s earlier; left: why the gains
    returned early, a key of `RETURNED`, "" if they did not.
    """

    joint: int
    q: Array
    gravity: float
    sweep: Sweep | None
    drift: float
    time: float
    fade: float
    left: str


@dataclass(frozen=True, eq=False)
class FloatedJoint:
    """Measured drift of a joint in one pose, with prediction and 95 % interval (NaN without sweep), rad or m; most:
    largest accepted. verdict: "rests", "sinks" or "climbs".
    """

    name: str
    seen: Released
    predicted: float
    low: float
    high: float
    most: float
    verdict: str

    @property
    def as_predicted(self) -> bool:
        """Whether the joint moved at most as far as predicted plus interval."""
        return bool(abs(self.seen.drift) <= max(abs(self.low), abs(self.high)) + RESOLUTION)


@dataclass(frozen=True, eq=False)
class FloatReport:
    """The result of the test. aborted: reason of an early end, or "". gains: true torque over commanded torque, of
    joints with wrong gain. advice: errors and remedies, as text.
    """

    joints: tuple[FloatedJoint, ...]
    advice: tuple[str, ...]
    gains: dict[str, float]
    load: MissingLoad | None
    aborted: str = ""

    @property
    def passed(self) -> bool:
        return not self.aborted and bool(self.joints) and all(joint.verdict == "rests" for joint in self.joints)

    @property
    def text(self) -> str:
        """The verdict in a line."""
        if self.aborted:
            return f"float test aborted: {self.aborted}"
        if self.passed:
            return "float test: pass" + (f"; {'; '.join(self.advice)}" if self.advice else "")
        worst: dict[str, FloatedJoint] = {}
        for joint in self.joints:
            if joint.verdict != "rests" and abs(joint.seen.drift) >= abs(getattr(worst.get(joint.name), "seen",
                                                                                 joint.seen).drift):
                worst[joint.name] = joint
        failures = [f"{name} {joint.verdict} by {abs(joint.seen.drift):.3g} (rad or m) within "
                 f"{joint.seen.time + joint.seen.fade:.2g} s, " + (
                     f"then its gains returned ({RETURNED[joint.seen.left]})" if joint.seen.left else
                     f"at most {joint.most:.3g}")
                 for name, joint in worst.items()]
        return f"float test: fail: {'; '.join([*failures, *self.advice])}"

    def as_json(self) -> str:
        """The report as one JSON object; numbers that are not known are null."""
        load = self.load
        return json.dumps(_finite({
            "passed": self.passed, "aborted": self.aborted, "text": self.text, "advice": list(self.advice),
            "gains": self.gains, "load": None if load is None else {
                "body": load.body, "mass": load.mass, "half_width": load.half_width, "com": list(load.com)},
            "joints": [{
                "joint": joint.name, "verdict": joint.verdict, "pose": joint.seen.q.tolist(),
                "gravity": joint.seen.gravity, "drift": joint.seen.drift, "time": joint.seen.time,
                "left": joint.seen.left, "predicted": joint.predicted, "low": joint.low, "high": joint.high,
                "most": joint.most, "missing": joint.seen.sweep and joint.seen.sweep.missing,
                "friction": joint.seen.sweep and joint.seen.sweep.level} for joint in self.joints]}))


def report_of(model: RobotModel, released: Sequence[Released], window: Array, uncertainty: Array) -> FloatReport:
    """The report of all releases. window (nv,): rad or m. uncertainty (nv,): of the model's gravity torque, N m or N;
    negative: unknown, so drifts are judged by the window alone.
    """
    rows = [[seen for seen in released if seen.joint == j] for j in range(model.nv)]
    swept = [[seen for seen in row if seen.sweep is not None] for row in rows]
    torques = [_torques(row) if row else None for row in swept]
    errors = [None if each is None else torque_error(each) for each in torques]
    load = missing_load(model, model.body_names[-1], [np.array([seen.q for seen in row]) for row in swept], torques,
                        errors)
    joints = tuple(_judged(model, seen, errors[seen.joint], window, uncertainty) for seen in released)
    names, advice, gains = model.velocity_names, [], {}
    for j, (row, error) in enumerate(zip(rows, errors, strict=True)):
        failed = any(joint.verdict != "rests" for joint in joints if joint.seen.joint == j)
        if error is None:
            if failed:
                advice.append(f"{names[j]} did not move both ways, so the torque that it lacks is not known: larger "
                              "'gains.kp' or 'tolerance'")
            continue
        text = cause(names[j], error)
        if not text:
            continue
        if error.kind in ("factor", "both"):
            gains[names[j]] = error.gain
        if error.kind == "factor" and len(row) == 1:
            text += f", or an offset of {row[0].sweep.missing:+.3g} (N m or N): a second pose tells"    # type: ignore[union-attr]
        advice.append(text if failed else f"{text} (friction holds it)")
    return FloatReport(joints, (load_cause(load),) if load is not None else tuple(advice),
                       {} if load is not None else gains, load)


def _torques(row: Sequence[Released]) -> JointTorques:
    sweeps = [seen.sweep for seen in row if seen.sweep is not None]
    gravity = np.array([seen.gravity for seen in row])
    missing = np.array([sweep.missing for sweep in sweeps])
    largest = max(float(np.abs(gravity).max()), max(abs(sweep.level) for sweep in sweeps))
    noise = float(np.sqrt(np.mean([sweep.deviation**2 for sweep in sweeps])) + UNEXPLAINED * largest + 1e-9)
    return JointTorques(gravity + missing, gravity, np.zeros((len(row), 0)), noise)


def _judged(model: RobotModel, seen: Released, error: TorqueError | None, window: Array,
            uncertainty: Array) -> FloatedJoint:
    j = seen.joint
    inertia, damping = float(mass_matrix(model, seen.q)[j, j]), float(model.damping[j])
    predicted = low = high = math.nan
    if seen.sweep is not None:
        # Commanded torques are `factor` times the true ones; so must be the inertia.
        share = error.factor if error is not None and error.kind in ("factor", "both") and error.factor > 0.0 else 1.0
        missing, half = seen.sweep.missing, 1.96 * seen.sweep.deviation + UNEXPLAINED * abs(seen.gravity)
        low_friction, high_friction = max(seen.sweep.level - half, 0.0), seen.sweep.level + half
        predicted = drift(-missing, seen.sweep.level, damping, share * inertia, seen.time + 0.5 * seen.fade)
        ends = [end for time in (seen.time, seen.time + seen.fade) for end in drift_interval(
            -missing, half, (low_friction, high_friction), (0.5 * damping, 1.5 * damping),
            ((1.0 - INERTIA) * share * inertia, (1.0 + INERTIA) * share * inertia), time)]
        low, high = min(ends), max(ends)
    limit = float(window[j])
    if uncertainty[j] >= 0.0:
        limit = min(limit, RESOLUTION + abs(drift(float(uncertainty[j]), float(model.friction[j]), damping, inertia,
                                                  seen.time + seen.fade)))
    fails = bool(seen.left) or abs(seen.drift) > limit
    verdict = "rests" if not fails else "climbs" if seen.drift * seen.gravity > 0.0 else "sinks"
    return FloatedJoint(model.velocity_names[j], seen, predicted, low, high, limit, verdict)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
