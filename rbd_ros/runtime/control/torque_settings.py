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
from ..parameters import Parameter, Table, per_joint
from ..robot import PAYLOAD_TABLE, ROBOT_TABLE, joint_order, joints_row, loaded
from ..safety import SafetySettings
from .tracking_law import COMPENSATES

Array = NDArray[np.float64]

VELOCITY_CUTOFF = Parameter("velocity_cutoff", "number", 30.0, "Cut-off frequency of the low-pass filter for "
                            "velocities that are estimated because the joint state has none, Hz; 0: no filter.",
                            lower=0.0, upper=1e5)

ROBOT_COMPENSATES = Parameter("robot_compensates", "strings", (), "What the robot's own controller adds to the torque "
                              "it is sent.", choices=COMPENSATES)
EFFORT_LIMITS: Table = (
    Parameter("effort_limits.maximum", "numbers", (math.inf,), "Effort limit, N m or N; the smaller of this and the "
              "description's limit applies.", lower=0.0),
    Parameter("effort_limits.override_zero", "numbers", (0.0,), "Effort limit of joints whose limit in the description "
              "is 0, N m or N. Without it such a joint is an error.", lower=0.0, read_only=True),
)

TORQUE_TABLE: Table = (
    *ROBOT_TABLE,
    joints_row("all lists with one entry per joint, and of the published effort"),
    *PAYLOAD_TABLE,
    ROBOT_COMPENSATES,
    Parameter("gravity_check", "bool", True, "Compare the measured effort with the model's gravity torque after "
              "activation, and log differences. Set false if `effort` of the joint states is not a torque (UR: "
              "current)."),
    *EFFORT_LIMITS,
    Parameter("effort_limits.rate", "numbers", (math.inf,), "Rate limit of what references, "
              "ramps and fades change in the effort, N m/s or N/s; the response to the state is not held back.",
              lower=1e-3),
    Parameter("state_timeout", "number", 0.05, "Age of the last joint state at which the safe output begins, s.",
              lower=1e-3, upper=10.0),
    Parameter("state_rate", "number", 0.0, "Expected rate of joint states, Hz; 0: measured (`feedback.*` compares with "
              "the fastest since activation).", lower=0.0, upper=1e5,
              read_only=True),
    VELOCITY_CUTOFF,
    Parameter("plausible_velocity", "numbers", (2.0,), "Joint and motor states are rejected if a joint is faster, or "
              "has moved faster, than this multiple of the description's velocity limit (10 rad/s or 2 m/s if that is "
              "0 or missing; for a motor that sets a stiffness what crosses its range in 10 ms), or if its velocity "
              "jumps by more than half of that limit while positions do not; inf: every state is accepted.", lower=1.0),
    Parameter("feedback.max_age", "number", 5.0, "Largest age of a joint state for feedback, from its publication to "
              "the answer, in periods (of `state_rate`). Older ones are answered without feedback, which returns "
              "within ramp_in; if they are older on average, by the safe output. inf: no limit, for simulations that "
              "wait for the answer.", lower=0.5),
    Parameter("feedback.min_rate", "number", 0.25, "Slowest accepted loop, as a fraction of `state_rate`, in the time "
              "of the stamps; a slower one gets the safe output. 0: no limit.", lower=0.0,
              upper=1.0),
    Parameter("ramp_in", "number", 0.5, "Time from the safe output to the command after activation, and to the new "
              "command after a change of parameters or when a stream begins elsewhere, s.", lower=0.0, upper=60.0),
    Parameter("ramp_out", "number", 0.5, "Time from the command to the safe output at deactivation and at the end, s.",
              lower=0.0, upper=60.0),
    Parameter("safe_output.damping", "number", 5.0, "The safe effort is g(q) - damping M(q) v while the state is "
              "fresh, so speed decays at this rate, 1/s. (Without g(q) if the robot compensates gravity.)",
              lower=0.0, upper=100.0),
    Parameter("safe_output.hold_position", "number", 0.1, "Share of the effort limits with which a robot that is "
              "stopped or waits for a command is held in its place, by the gains of the node; where it is pushed by "
              "more, it yields as by dry friction. 0: gravity torque and damping alone, which drifts by errors of the "
              "model.", lower=0.0, upper=1.0),
    Parameter("safe_output.hold", "number", 0.5, "How long the safe effort of the last state is held after states "
              "stop, s.", lower=0.0, upper=1e6),
    Parameter("safe_output.fallback_ramp", "number", 1.0, "Duration of the ramp to the fallback after that, s.",
              lower=0.0, upper=1e6),
    Parameter("safe_output.fallback", "numbers", (0.0,), "Effort that is published for ever after that, N m or N.",
              lower=-1e9, upper=1e9),
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
    compensates: tuple[str, ...]
    safe_damping: float
    hold_position: float
    velocity_cutoff: float
    plausible_velocity: Array
    state_rate: float
    max_age: float
    min_rate: float
    gravity_check: bool

    @property
    def unlimited(self) -> list[str]:
        """Joints without any limit of the effort."""
        return [self.model.joint_names[i] for i in np.flatnonzero(np.isinf(self.safety.effort_limit))]

    def damping_gains(self) -> DampingGains | None:
        """The damping gains and what they act on; None where there are none."""
        return None

    @staticmethod
    def fields_from(values: Mapping[str, Any], model: RobotModel) -> dict[str, Any]:
        """Arguments for the constructor; `values` as `parameters.validate` returns them."""
        joints, output, order = joint_order(values["joints"], model)
        safety = SafetySettings(
            effort_limit=effort_limits(values, model, order),
            rate_limit=per_joint("effort_limits.rate", values["effort_limits.rate"], order),
            fallback=per_joint("safe_output.fallback", values["safe_output.fallback"], order),
            state_timeout=values["state_timeout"], hold=values["safe_output.hold"],
            fallback_ramp=values["safe_output.fallback_ramp"],
            ramp_in=values["ramp_in"], ramp_out=values["ramp_out"])
        return {"model": loaded(model, values), "joints": joints, "output": output, "safety": safety,
                "compensates": values["robot_compensates"], "safe_damping": values["safe_output.damping"],
                "hold_position": values["safe_output.hold_position"],
                "velocity_cutoff": values["velocity_cutoff"],
                "plausible_velocity": per_joint("plausible_velocity", values["plausible_velocity"], order),
                "state_rate": values["state_rate"], "max_age": values["feedback.max_age"],
                "min_rate": values["feedback.min_rate"],
                "gravity_check": values["gravity_check"]}


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
