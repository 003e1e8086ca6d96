"""Parameters of the motion planner, and the models and limits derived from them."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.friction import Friction
from ...core.errors import RbdError, unknown_name
from ...core.model.robot_model import RobotModel
from ...core.motion.optimal.limits import MotionLimits
from ...core.motion.position_limits import limits as position_limits
from ...core.motion.splines import MOST_POINTS
from ..control.torque_settings import EFFORT_LIMITS, VELOCITY_CUTOFF, effort_limits
from ..friction_terms import FrictionTerms, drive_friction_rows, friction_rows
from ..parameters import Parameter, Table, parameter, per_joint, setting, table_of, taken, validate
from ..robot import PAYLOAD_TABLE, ROBOT_TABLE, joint_order, joints_row, loaded
from .collision_settings import CollisionSettings

Array = NDArray[np.float64]

MODEL_AND_LIMITS: Table = (    # parameters of models and limits
    *ROBOT_TABLE, joints_row("all lists with one entry per joint in the parameters"), *PAYLOAD_TABLE, *EFFORT_LIMITS,
    *friction_rows("Plan with"), *drive_friction_rows(),
    Parameter("effort_limits.scaling", "numbers", (1.0,), "Share of the effort limits that a motion may use; the rest "
              "is left to feedback.", lower=1e-3, upper=1.0),
    Parameter("velocity_limits.scaling", "numbers", (1.0,), "Share of the description's velocity limits that a motion "
              "may use.", lower=1e-3, upper=1.0),
    Parameter("acceleration_limits", "numbers", (np.inf,), "Limit of the acceleration, rad/s² or m/s².", lower=1e-6),
    Parameter("jerk_limits", "numbers", (np.inf,), "Limit of the jerk, rad/s³ or m/s³.", lower=1e-6),
    Parameter("passive_joints", "strings", (), "Joints without motors: motions need no effort of them, nor have "
              "trajectories."),
)


@dataclass(frozen=True, kw_only=True)
class PlannerSettings(CollisionSettings):
    """Validated parameters. unloaded, model: without and with the load."""

    unloaded: RobotModel
    model: RobotModel
    limits: MotionLimits
    friction: Friction
    actuated: tuple[str, ...] | None = None    # joints with motors; None: all
    sample_period: float = parameter(0.01, "Time between the points of an answer whose request leaves it open, s.",
                                     lower=1e-3, upper=1.0)
    time_limit: float = parameter(5.0, "Longest search, s.", lower=0.01, upper=600.0)
    starts: int = parameter(1.0, "Number of first guesses, the best of whose motions is the answer: each takes as long "
                            "as one search. Where no motion is good, up to 3 are tried in any case.", lower=1.0,
                            upper=100.0)
    memory_limit: float = parameter(1024.0, "Memory that a search may take, MiB; it ends with an error beyond it.",
                                    lower=16.0)
    most_waypoints: float = parameter(100.0, "Number of waypoints above which a request is refused unread.",
                                      name="waypoint_limit", lower=0.0, upper=MOST_POINTS / 3)
    state_timeout: float = parameter(0.5, "Age of the latest joint state at which requests that start at the present "
                                     "state fail, s.", lower=1e-3, upper=1e6)
    rest_velocity: float = parameter(0.05, "Such a request fails if a joint is faster: motions start at rest. rad/s or "
                                     "m/s.", lower=0.0)
    velocity_cutoff: float = setting(VELOCITY_CUTOFF)

    @staticmethod
    def from_values(values: Mapping[str, Any], model: RobotModel) -> PlannerSettings:
        """Validate parameter values by name; missing ones get their defaults. Raises `RbdError`."""
        values = validate(PLANNER_TABLE, values)
        order = joint_order(values["joints"], model)[2]
        friction = FrictionTerms.from_values(values, order).law(model) or Friction()
        lower, upper = position_limits(model)

        def of(name: str) -> Array:
            return per_joint(name, values[name], order)

        speed = np.where(model.velocity_limit > 0.0, model.velocity_limit, np.inf)
        limits = MotionLimits(
            position_lower=lower, position_upper=upper, velocity=speed * of("velocity_limits.scaling"),
            acceleration=of("acceleration_limits"), jerk=of("jerk_limits"),
            effort=effort_limits(values, model, order) * of("effort_limits.scaling"))
        return PlannerSettings(
            unloaded=model, model=loaded(model, values), limits=limits, friction=friction,
            actuated=_actuated(values["passive_joints"], model),
            **taken(PlannerSettings, values) | {"starts": int(values["starts"])})


PLANNER_TABLE: Table = (*MODEL_AND_LIMITS, *table_of(PlannerSettings))


def _actuated(passive: tuple[str, ...], model: RobotModel) -> tuple[str, ...] | None:
    for name in passive:
        if name not in model.joint_names:
            raise unknown_name("joint in `passive_joints`:", name, model.joint_names)
    if len(set(passive)) == model.nv:
        raise RbdError(f"passive_joints are all joints of '{model.name}', expected some with a motor")
    return tuple(name for name in model.joint_names if name not in passive) if passive else None
