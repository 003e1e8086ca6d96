"""The shipped configurations, each with a suitable arm: parameters of the node, its model, terms added by the robot."""
from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import rbd_ros as rbd
from rbd_ros.core.actuation.actuation import Drive, SeriesDrive
from rbd_ros.core.actuation.motor import Motor
from rbd_ros.core.actuation.series_elastic import SeriesSpring
from rbd_ros.runtime.control.cartesian import CartesianController
from rbd_ros.runtime.control.cartesian_settings import CARTESIAN_TABLE, CartesianSettings
from rbd_ros.runtime.control.elastic_controller import ElasticController
from rbd_ros.runtime.control.elastic_settings import ElasticSettings
from rbd_ros.runtime.control.feedforward import FEEDFORWARD_TABLE, FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FLATNESS_TABLE
from rbd_ros.runtime.control.loop_rate import Transit
from rbd_ros.runtime.control.mit import MitSettings, within
from rbd_ros.runtime.parameters import select, table_of, validate
from rbd_ros.runtime.robot import load_model
from rbd_ros.runtime.steady.steady_flatness import FlatnessCycle
from rbd_ros.runtime.steady.steady_tracking import TrackingCycle

from ..robots import robot_file

CONFIG = Path(__file__).resolve().parents[2] / "config"
# inertia of rotors behind the gears, kg m²: where a description has none, feedback in N m/rad would meet light wrists
UR_ROTORS = [1.2, 1.2, 1.2, 0.3, 0.3, 0.3]
PANDA_ROTORS = [0.6, 0.6, 0.5, 0.5, 0.2, 0.2, 0.1]
LBR = {f"lbr_A{i}": f"joint_{i}" for i in range(1, 8)}
# of an iiwa with springs: reflected inertia of the motors, kg m², and stiffness, N m/rad
MOTORS = np.array([0.6, 2.4, 0.5, 0.4, 0.1, 0.06, 0.04])
SPRINGS = np.array([8e3, 8e3, 6e3, 6e3, 4e3, 2e3, 1e3])
UR = {f"joint{i + 1}": name for i, name in enumerate(
    ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint"))}


@dataclass(frozen=True)
class Case:
    """values: of the node; model: as the node knows it; friction: share of the effort limits, Coulomb and viscous.
    springs: inertia of motors and stiffness of springs (2, nv) of an arm with elastic joints. link: whether node
    `cartesian` controls the arm.
    """

    name: str
    values: Mapping[str, Any]
    model: rbd.RobotModel
    rate: float                          # Hz, of joint states
    compensates: tuple[str, ...] = ()    # what the robot adds itself
    friction: float = 0.01
    simulated: bool = False              # its time stands still where the machine does
    poses: tuple[np.ndarray, np.ndarray] = field(default_factory=lambda: (np.zeros(0), np.zeros(0)))
    springs: np.ndarray | None = None
    delay: float = 0.005                 # s, the longest transport of a command
    link: bool = False
    mit: Mapping[str, Any] | None = None    # parameters of output `mit`, for motors that close a loop themselves

    def settings(self, **changed: Any) -> FeedforwardSettings | ElasticSettings | CartesianSettings:
        values = {**self.values, **changed}
        if self.link:
            return CartesianSettings.from_values(values, self.model)
        if self.mit is not None:
            settings = FeedforwardSettings.from_values(values, self.model)
            return within(settings, MitSettings.from_values(self.mit, settings))
        if self.springs is None:
            return FeedforwardSettings.from_values(values, self.model)
        drives: dict[str, Drive] = {
            name: SeriesDrive(SeriesSpring((stiffness,), 0.2), 0.0, Motor(inertia))
            for name, inertia, stiffness in zip(self.model.joint_names, *self.springs.tolist(), strict=True)}
        return ElasticSettings.from_drives(values, self.model, drives)

    def controller(self, settings: Any) -> FeedforwardController | ElasticController | CartesianController:
        if self.link:
            return CartesianController(self.model, settings)
        return (FeedforwardController if self.springs is None else ElasticController)(self.model, settings)

    def steady(self, controller: Any, transit: Transit) -> TrackingCycle | FlatnessCycle | None:
        """Its fast path; None: without."""
        if self.link:
            return None
        return (TrackingCycle if self.springs is None else FlatnessCycle)(controller, transit)

    @property
    def gains(self) -> tuple[str, str]:
        """Their names."""
        if self.link:
            return "stiffness.translation", "stiffness.rotation"
        return ("gains.kp", "gains.kd") if self.springs is None else ("motor_gains.kp", "motor_gains.kd")


# name: files whose sections /** and that of the node count, description, renamings, further values
CASES: dict[str, tuple[tuple[str, ...], str, Mapping[str, str], Mapping[str, Any]]] = {
    "demo": (("demo",), "iiwa", {}, {}),
    "rate": (("demo",), "iiwa", {}, {"effort_limits.rate": [500.0]}),    # N m/s, as configurations of robots have it
    "simulation": (("simulation",), "iiwa", {}, {}),
    "gazebo": (("gazebo",), "iiwa", {}, {}),
    "iiwa_lbr": (("iiwa_lbr",), "iiwa", LBR, {"rotor_inertia": [0.602, 2.437, 0.0813, 0.4268, 0.06, 0.06, 0.02]}),
    "franka": (("franka",), "panda_description/urdf/panda.urdf", {"fr3_": "panda_"}, {"rotor_inertia": PANDA_ROTORS}),
    "ur": (("ur",), "ur_description/urdf/ur5_robot.urdf", {}, {"rotor_inertia": UR_ROTORS}),
    "generic_effort": (("generic_effort",), "ur_description/urdf/ur5_robot.urdf", UR, {"rotor_inertia": UR_ROTORS}),
    "generic_jtc": (("generic_jtc",), "ur_description/urdf/ur5_robot.urdf", UR, {"rotor_inertia": UR_ROTORS}),
    "generic_mit": (("generic_mit",), "z1_description/urdf/z1.urdf", {}, {
        "rotor_inertia": [0.1, 0.1, 0.1, 0.03, 0.03, 0.03], "locked.joints": ["jointGripper"]}),
    "openarm": (("openarm",), "xarm_description/urdf/xarm7.urdf", {"openarm_joint": "joint"}, {
        "rotor_inertia": [0.1, 0.1, 0.1, 0.1, 0.03, 0.03, 0.03], "locked.joints": [""],
        "effort_limits.maximum": [50.0, 50.0, 30.0, 30.0, 20.0, 20.0, 20.0]}),
    "big_yam": (("big_yam",), "z1_description/urdf/z1.urdf", {}, {
        "rotor_inertia": [0.1, 0.1, 0.1, 0.03, 0.03, 0.03], "locked.joints": ["jointGripper"]}),
    "flatness": (("flatness",), "iiwa", {}, {
        "state_rate": 500.0, "motor_gains.kp": [float(x) for x in 900.0 * MOTORS],
        "motor_gains.kd": [float(x) for x in 45.0 * MOTORS]}),
}


# likewise, under node `cartesian`
LINKS: dict[str, tuple[tuple[str, ...], str, Mapping[str, str], Mapping[str, Any]]] = {
    "cartesian": (("cartesian", "demo"), "iiwa", {}, {
        "gains.kp": [722.3, 2924.8, 97.57, 512.2, 6.76, 9.92, 2.134], "state_rate": 500.0,
        "gains.kd": [50.56, 204.73, 6.83, 35.85, 0.473, 0.6946, 0.1494]}),
}


@cache
def case(name: str) -> Case:
    """The configuration with this name."""
    link, elastic = name in LINKS, name == "flatness"
    files, description, names, further = (LINKS if link else CASES)[name]
    table, node = ((CARTESIAN_TABLE, "cartesian") if link else (FLATNESS_TABLE, "flatness") if elastic else
                   (FEEDFORWARD_TABLE, "feedforward"))
    values: dict[str, Any] = {}
    for file in files:
        text = (CONFIG / f"{file}.yaml").read_text()
        for old, new in names.items():
            text = text.replace(old, new)
        sections = yaml.safe_load(text)
        for section in ("/**", node):
            values |= sections.get(section, {}).get("ros__parameters", {})
    known, output = {row.name for row in table}, table_of(MitSettings)
    mit = validate(output, select(output, values)) if "mit" in values.get("adapters", ()) else None
    values = {key: value for key, value in values.items() if key in known} | dict(further)
    path = str(rbd.sample_path(description) if "/" not in description else robot_file(description))
    full = validate(table, values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rbd.RbdWarning)
        model, _ = load_model(full, path)
    given = select(table, values)
    share = 0.0 if name == "gazebo" else 0.01    # Gazebo has the description's
    model = model.with_(friction=share * model.effort_limit, damping=share * model.effort_limit)
    low, high = np.maximum(model.position_lower, -3.0), np.minimum(model.position_upper, 3.0)
    middle, reach = 0.5 * (low + high), 0.3 * (high - low)
    return Case(name, given, model, full["state_rate"] or 500.0, tuple(full["robot_compensates"]), share,
                name == "gazebo", (middle - reach, middle + reach), *((np.stack([MOTORS, SPRINGS]), 0.001) if elastic
                                                                     else ()), link=link,
                **({} if mit is None else {"mit": mit, "delay": 0.01}))
