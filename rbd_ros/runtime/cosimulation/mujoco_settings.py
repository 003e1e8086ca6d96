"""Parameters of the MuJoCo plant: those of the simulator, with other defaults."""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ...core.model.robot_model import RobotModel
from ..parameters import Parameter, Table, validate
from ..plant.plant import Plant
from ..plant.simulator_settings import SIMULATOR_TABLE, SimulatorSettings
from .mujoco_robot import INTEGRATORS, MujocoRobot

_DEFAULTS: dict[str, Any] = {"publish_clock": True, "command_timeout": 0.0,    # as in Gazebo
                             "controller": "effort_controller"}
# replaced by MuJoCo's own features, or unsupported
_OTHERS = ("integrator", "constraints_file", "actuation_file", "velocity_limits", "friction.asymmetry",
           "friction.load")
_SHARED = tuple(row for row in SIMULATOR_TABLE if row.name not in _OTHERS)

MUJOCO_TABLE: Table = (
    *(dataclasses.replace(row, default=_DEFAULTS.get(row.name, row.default)) for row in _SHARED),
    Parameter("integrator", "string", "implicitfast", "Integrator of MuJoCo: implicitfast, implicit, euler: order 1; "
              "rk4: order 4.", choices=tuple(INTEGRATORS), read_only=True),
    Parameter("bridge_model", "string", "", "Also take efforts from /model/<bridge_model>/joint/<joint>/cmd_force, as "
              "from ros_gz_bridge. Empty: none.", read_only=True),
)


def mujoco_settings(values: Mapping[str, Any], model: RobotModel) -> SimulatorSettings:
    """Settings shared with the `Simulator` plant, from parameter values by name; missing ones get their defaults."""
    values = validate(MUJOCO_TABLE, values)
    return SimulatorSettings.from_values({row.name: values[row.name] for row in _SHARED}, model)


def mujoco_plant(values: Mapping[str, Any], model: RobotModel, description: str) -> Plant:
    """The plant of these parameter values; description: URDF text or path of `model`."""
    settings = mujoco_settings(values, model)
    robot = MujocoRobot(settings.plant, description, step=settings.step,
                        integrator=validate(MUJOCO_TABLE, values)["integrator"], limits=settings.position_limits,
                        q=settings.initial_position, v=settings.initial_velocity)
    return Plant(model, settings, robot)
