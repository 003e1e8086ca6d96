"""The controllers that are walked with, and what changes on the way: parameters, in steps that make sense on an arm."""
from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import rbd_ros as rbd
from rbd_ros.runtime.control.elastic_controller import ElasticController
from rbd_ros.runtime.control.elastic_settings import ElasticSettings
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FlatnessController, FlatnessSettings
from rbd_ros.runtime.control.torque_settings import TorqueSettings

ACTUATION = Path(__file__).resolve().parents[2] / "config" / "sea_example.actuation.yaml"
SERIES = {"shoulder": {"type": "series_elastic", "stiffness": 900.0, "hardening": 1e5, "max_deflection": 0.2,
                       "motor": {"rotor_inertia": 0.3, "damping": 0.4, "coulomb": 0.2, "breakaway": 0.3}},
          "elbow": {"type": "rigid", "motor": {"rotor_inertia": 0.1, "damping": 0.1}}}
LONGEST = 0.2    # s: of ramps and timeouts
Values = dict[str, Any]


@dataclass(frozen=True)
class Arm:
    """A kind of controller: `settings(values)`, `controller(settings)`, first values, and others as (name, value…)."""

    name: str
    model: rbd.RobotModel
    settings: Callable[[Mapping[str, Any]], TorqueSettings]
    controller: Callable[[TorqueSettings], Any]
    values: Values
    others: tuple[tuple[str, tuple[Any, ...]], ...]
    motors: tuple[str, ...] = ()


COMMON: Values = {
    "ramp_in": 0.1, "ramp_out": 0.1, "state_timeout": 0.05, "reference_timeout": 0.1, "wrench_timeout": 0.1,
    "safe_output.hold": 0.05, "safe_output.fallback_ramp": 0.1, "safe_output.fallback": [0.5],
    "safe_output.damping": 5.0, "gravity_check": False, "friction.smoothing": 0.1,
    "tracking_tolerance": [math.inf], "safe_output.hold_position": 0.2}
OTHERS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("ramp_in", (0.0, 0.02, 0.1, LONGEST)), ("ramp_out", (0.0, 0.02, 0.1, LONGEST)),
    ("state_timeout", (0.03, 0.05, 0.1)),
    ("reference_timeout", (0.05, 0.1)), ("wrench_timeout", (0.05, 0.1)), ("safe_output.hold", (0.0, 0.05, 0.1)),
    ("safe_output.fallback_ramp", (0.0, 0.1)), ("safe_output.fallback", ([0.0], [0.5], [-3.0], [1e6])),
    ("safe_output.damping", (0.0, 5.0, 50.0)), ("effort_limits.maximum", ([math.inf], [10.0], [4.0], [1.0], [0.0])),
    ("effort_limits.rate", ([math.inf], [math.inf], [1000.0], [4000.0])), ("velocity_cutoff", (0.0, 30.0, 100.0)),
    ("plausible_velocity", ([2.0], [math.inf])), ("payload.mass", (0.0, 0.5, 2.0)),
    ("payload.com", ([0.0, 0.0, 0.0], [0.1, 0.0, 0.2])),
    ("friction.damping", (True, False)), ("friction.coulomb", (True, False)), ("friction.smoothing", (0.05, 0.1, 1.0)))
RIGID = (("gains.kp", ([0.0], [20.0], [60.0])), ("gains.kd", ([0.0], [2.0], [6.0])),
         ("robot_compensates", ([""], ["gravity"], ["friction"])))


@cache
def arm(name: str) -> Arm:
    """`feedforward` (7 joints), `flatness`, `elastic` or `series` (2 joints: of variable stiffness, or rigid)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rbd.RbdWarning)
        model = rbd.sample("iiwa" if name == "feedforward" else "two_link")
    common = COMMON | {"payload.body": model.body_names[-1]}
    if name == "feedforward":
        laws = ("feedforward", (*("none", "gravity", "full", "computed_torque") * 3, "lqr"))    # without steady cycle
        return Arm(name, model, lambda values: FeedforwardSettings.from_values(values, model),
                   lambda settings: FeedforwardController(model, settings),    # type: ignore[arg-type]
                   common | {"gains.kp": [20.0], "gains.kd": [2.0]}, (*OTHERS, *RIGID, laws, laws))
    if name == "flatness":
        return Arm(name, model, lambda values: FlatnessSettings.from_values(values, model),
                   lambda settings: FlatnessController(model, settings),    # type: ignore[arg-type]
                   common | {"gains.kp": [20.0], "gains.kd": [2.0]}, (*OTHERS, *RIGID))
    actuation = rbd.load_actuation(ACTUATION if name == "elastic" else SERIES, model)
    drives = actuation.drives
    kp, kd = [20.0, 20.0, 0.0][:actuation.nm], [1.0, 1.0, 0.0][:actuation.nm]
    modes = ("feed_forward", "feed_forward_pd")
    own: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("mode", (*modes * (1 if name == "elastic" else 5), "feedback_linearization")),
        ("motor_gains.kp", ([0.0], kp)), ("motor_gains.kd", ([0.0], kd)), ("poles", ([30.0], [100.0])),
        ("motor_effort_limits.maximum", ([-1.0], [8.0], [2.0])),
        ("motor_effort_limits.rate", ([math.inf], [math.inf], [1000.0])))
    if name == "elastic":
        own = (*own, ("stiffness", ([300.0], [200.0], [600.0])))
    return Arm(name, model, lambda values: ElasticSettings.from_drives(values, model, drives),
               lambda settings: ElasticController(model, settings),    # type: ignore[arg-type]
               common | {"state_rate": 500.0, "motor_gains.kp": kp, "motor_gains.kd": kd}, (*OTHERS, *own, *own),
               tuple(actuation.motor_names))


NAMES = ("feedforward", "flatness", "elastic", "series")
