"""Parameters common to all torque controllers, besides those of the robot."""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ..damping_gains import DampingGains
from ..parameters import Parameter, Table, parameter, per_joint, setting, taken
from ..robot import PAYLOAD_TABLE, ROBOT_TABLE, joint_order, joints_row, loaded
from ..safety import SafetySettings
from .tracking_law import ROBOT_COMPENSATES

Array = NDArray[np.float64]

VELOCITY_CUTOFF = Parameter("velocity_cutoff", "number", 30.0, "Cut-off frequency of the low-pass filter for "
                            "velocities that are estimated because the joint state has none, Hz; 0: no filter.",
                            lower=0.0, upper=1e5)
EFFORT_LIMITS: Table = (
    Parameter("effort_limits.maximum", "numbers", (math.inf,), "Effort limit, N m or N; the smaller of this and the "
              "description's limit applies.", lower=0.0),
    Parameter("effort_limits.override_zero", "numbers", (0.0,), "Effort limit of joints whose limit in the description "
              "is 0, N m or N. Without it such a joint is an error.", lower=0.0, read_only=True),
)


@dataclass(frozen=True, kw_only=True)
class TorqueSettings:
    """The validated parameters of one node for one model; arrays are read-only and in model order.

    `model`: with the payload; `joints`: names in the order of parameter `joints`; `output`: permutation of an array to
    that order.
    """

    model: RobotModel
    joints: tuple[str, ...]
    output: NDArray[np.intp]
    safety: SafetySettings
    motor_damping: Array | float = 0.0    # damping gains (nv,) that the motors apply by themselves, without delay
    compensates: tuple[str, ...] = setting(ROBOT_COMPENSATES)
    gravity_check: bool = parameter(True, "Compare the measured effort with the model's gravity torque after "
                                    "activation, and log differences. Set false if `effort` of the joint states is not "
                                    "a torque (UR: current).")
    state_rate: float = parameter(0.0, "Expected rate of joint states, Hz; 0: measured (`feedback.*` compares with the "
                                  "fastest since activation).", lower=0.0, upper=1e5, read_only=True)
    velocity_cutoff: float = setting(VELOCITY_CUTOFF)
    plausible_velocity: Array = parameter((2.0,), "Joint and motor states are rejected if a joint is faster, or has "
                                          "moved faster, than this multiple of the description's velocity limit (10 "
                                          "rad/s or 2 m/s if that is 0 or missing; for a motor that sets a stiffness "
                                          "what crosses its range in 10 ms), or if its velocity jumps by more than "
                                          "half of that limit while positions do not; inf: every state is accepted.",
                                          lower=1.0)
    max_age: float = parameter(5.0, "Largest age of a joint state for feedback, from its publication to the answer, in "
                               "periods (of `state_rate`). Older ones are answered without feedback, which returns "
                               "within ramp_in; if they are older on average, by the safe output. inf: no limit, for "
                               "simulations that wait for the answer.", name="feedback.max_age", lower=0.5)
    min_rate: float = parameter(0.25, "Slowest accepted loop, as a fraction of `state_rate`, in the time of the "
                                "stamps; a slower one gets the safe output. 0: no limit.", name="feedback.min_rate",
                                lower=0.0, upper=1.0)
    safe_damping: float = parameter(5.0, "The safe effort is g(q) - damping M(q) v while the state is fresh, so speed "
                                    "decays at this rate, 1/s. (Without g(q) if the robot compensates gravity.)",
                                    name="safe_output.damping", lower=0.0, upper=100.0)
    hold_position: float = parameter(0.1, "Share of the effort limits with which a robot that is stopped or waits for "
                                     "a command is held in its place, by the gains of the node; where it is pushed by "
                                     "more, it yields as by dry friction. Also how far what carried a robot at rest "
                                     "may be from the safe effort and is kept when joint states cease, and from "
                                     "the deactivation on. 0: gravity torque and damping alone, which drifts by "
                                     "errors of the model.",
                                     name="safe_output.hold_position", lower=0.0, upper=1.0)

    def holding_share(self, limit: Array) -> Array:
        """The share `hold_position` of effort limits (n,); 0 without a limit."""
        return self.hold_position * np.where(np.isinf(limit), 0.0, limit)

    @property
    def unlimited(self) -> list[str]:
        """Joints without any limit of the effort."""
        return [self.model.joint_names[i] for i in np.flatnonzero(np.isinf(self.safety.effort_limit))]

    def damping_gains(self) -> DampingGains | None:
        """The damping gains with the matrix or coordinates on which they act; None without damping."""
        return None

    @classmethod
    def fields_from(cls, values: Mapping[str, Any], model: RobotModel) -> dict[str, Any]:
        """Arguments for the constructor; `values` as `parameters.validate` returns them."""
        joints, output, order = joint_order(values["joints"], model)
        safety = SafetySettings(effort_limit=effort_limits(values, model, order),
                                **taken(SafetySettings, values, order))
        return {"model": loaded(model, values), "joints": joints, "output": output, "safety": safety,
                **taken(cls, values, order)}


TORQUE_TABLE: Table = (
    *ROBOT_TABLE, joints_row("all lists with one entry per joint, and of the published effort"), *PAYLOAD_TABLE,
    *EFFORT_LIMITS,
)


def effort_limits(values: Mapping[str, Any], model: RobotModel, order: NDArray[np.intp]) -> Array:
    """min(description, parameter); an override replaces a limit of 0 in the description. In model order."""
    described = model.effort_limit.copy()
    override = per_joint("effort_limits.override_zero", values["effort_limits.override_zero"], order)
    missing = [model.joint_names[i] for i in np.flatnonzero((described == 0.0) & (override == 0.0))]
    if missing:
        raise RbdError(f"the robot description limits the effort of {', '.join(missing)} to 0, so no torque could be "
                       "sent: set parameter 'effort_limits.override_zero' to the real limit (N m or N)")
    limits = np.where(described == 0.0, override, described)
    limits = np.minimum(limits, per_joint("effort_limits.maximum", values["effort_limits.maximum"], order))
    limits.setflags(write=False)
    return limits
