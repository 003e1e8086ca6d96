"""Parameters that every node that publishes torque shares, and the checks that a model must pass before it moves."""
from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.mass_matrix import mass_matrix
from ...core.errors import RbdError, RbdWarning, unknown_name
from ...core.model.robot_model import RobotModel
from ...core.model.urdf import load_urdf
from ..parameters import Parameter, Table, per_joint
from ..payload import PAYLOAD_TABLE, loaded
from ..safety import SafetySettings
from .adapter_tables import CONTROL_MSGS_TABLE, HANDOVER_TABLE, JTC_TABLE, LBR_TABLE
from .law import COMPENSATES

Array = NDArray[np.float64]

ADAPTERS = ("forward_command", "joint_state", "jtc", "multi_dof", "joint_command", "lbr")
EXECUTORS = ("single_threaded", "events")

TORQUE_TABLE: Table = (
    Parameter("autostart", "bool", True, "Configure and activate as soon as there is a robot description.",
              read_only=True),
    Parameter("executor", "string", "single_threaded", "rclpy executor. Python wheels of ROS deliver nothing with "
              "'events'; ordinary installations are faster with it.", choices=EXECUTORS, read_only=True),
    Parameter("robot_description", "string", "", "URDF text. Empty: from the file below, or else from the topic "
              "robot_description.", read_only=True),
    Parameter("robot_description_file", "string", "", "Path of a URDF file, used if robot_description is empty.",
              read_only=True),
    Parameter("gravity", "numbers", (0.0, 0.0, -9.81), "Acceleration of gravity in the axes of the root link, m/s².",
              read_only=True, count=3),
    Parameter("joints", "strings", (), "Order of all lists with one entry per joint, and of the published effort. "
              "Empty: the order of the model, which is logged at configuration.", read_only=True),
    Parameter("locked.joints", "strings", (), "Joints of the description that do not move and have no state.",
              read_only=True),
    Parameter("locked.positions", "numbers", (0.0,), "Where they are locked: one number, or one per locked joint; "
              "rad or m.", read_only=True, per="locked joint"),
    Parameter("rotor_inertia", "numbers", (-1.0,), "Inertia of the rotors as felt after the gears, kg m² or kg; -1: as "
              "in the description.", lower=-1.0, upper=1e9, read_only=True),
    *PAYLOAD_TABLE,
    Parameter("adapters", "strings", (), "Outputs beside ~/effort.", choices=ADAPTERS, read_only=True),
    Parameter("forward_command.controller", "string", "effort_controller", "Controller that takes "
              "std_msgs/Float64MultiArray on <controller>/commands.", read_only=True),
    Parameter("forward_command.joints", "strings", (), "The order of joints in that controller. Empty: `joints`.",
              read_only=True),
    Parameter("joint_state.topic", "string", "~/effort_commands", "Topic of the sensor_msgs/JointState output.",
              read_only=True),
    *JTC_TABLE, *CONTROL_MSGS_TABLE, *LBR_TABLE, *HANDOVER_TABLE,
    Parameter("robot_compensates", "strings", (), "What the robot's own controller adds to the torque it is sent.",
              choices=COMPENSATES),
    Parameter("gravity_check", "bool", True, "Compare the measured effort with the model's gravity torque after "
              "activation, and log what differs. False where `effort` of the joint states is no torque (UR: current)."),
    Parameter("effort_limits.maximum", "numbers", (math.inf,), "Effort limit, N m or N; the smaller one of this and "
              "the description's counts.", lower=0.0),
    Parameter("effort_limits.override_zero", "numbers", (0.0,), "Effort limit of joints whose limit in the description "
              "is 0, N m or N. Without it such a joint is an error.", lower=0.0, read_only=True),
    Parameter("effort_limits.rate", "numbers", (math.inf,), "Limit of the effort's change, N m/s or N/s.", lower=1e-3),
    Parameter("state_timeout", "number", 0.05, "Age of the last joint state at which the safe output begins, s.",
              lower=1e-3, upper=10.0),
    Parameter("state_rate", "number", 0.0, "Expected rate of joint states, Hz; 0: measured.", lower=0.0, upper=1e5,
              read_only=True),
    Parameter("watchdog_rate", "number", 100.0, "Rate at which the age of the state is checked and the safe output is "
              "repeated, Hz.", lower=1.0, upper=1000.0, read_only=True),
    Parameter("velocity_cutoff", "number", 30.0, "Cut-off of the low-pass on velocities that are estimated because the "
              "joint state has none, Hz; 0: no filter.", lower=0.0, upper=1e5),
    Parameter("plausible_velocity", "numbers", (2.0,), "Joint and motor states are rejected where a joint is faster, "
              "or has moved faster, than this multiple of the description's velocity limit (10 rad/s or 2 m/s where "
              "that is 0 or missing), or where its velocity leaps by more than half of that limit and positions do "
              "not; inf: whatever they say is taken.", lower=1.0),
    Parameter("ramp_in", "number", 0.5, "Time from the safe output to the command after activation, and of the way to "
              "what changed parameters or a stream that begins elsewhere ask for, s.", lower=0.0, upper=60.0),
    Parameter("ramp_out", "number", 0.5, "Time from the command to the safe output at deactivation and at the end, s.",
              lower=0.0, upper=60.0),
    Parameter("safe_output.damping", "number", 5.0, "The safe output is g(q) - damping M(q) v while the state is "
              "fresh: speed decays at this rate, 1/s. (0 if the robot compensates gravity.)", lower=0.0, upper=100.0),
    Parameter("safe_output.hold", "number", 0.5, "How long the safe output of the last state is held when states no "
              "longer come, s.", lower=0.0, upper=1e6),
    Parameter("safe_output.fallback_ramp", "number", 1.0, "Time of the ramp to the fallback after that, s.", lower=0.0,
              upper=1e6),
    Parameter("safe_output.fallback", "numbers", (0.0,), "Effort that is published for ever after that, N m or N.",
              lower=-1e9, upper=1e9),
)


@dataclass(frozen=True)
class TorqueSettings:
    """The validated parameters of one node for one model; arrays are read-only and in model order.

    `model`: with the payload; `joints`: names in the order of parameter `joints`; `output`: indices that put an array
    in that order.
    """

    model: RobotModel
    joints: tuple[str, ...]
    output: NDArray[np.intp]
    safety: SafetySettings
    compensates: tuple[str, ...]
    safe_damping: float
    velocity_cutoff: float
    plausible_velocity: Array
    state_rate: float
    gravity_check: bool

    @property
    def unlimited(self) -> list[str]:
        """Joints without any limit of the effort."""
        return [self.model.joint_names[i] for i in np.flatnonzero(np.isinf(self.safety.effort_limit))]

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
                "velocity_cutoff": values["velocity_cutoff"],
                "plausible_velocity": per_joint("plausible_velocity", values["plausible_velocity"], order),
                "state_rate": values["state_rate"],
                "gravity_check": values["gravity_check"]}


def joint_order(names: tuple[str, ...], model: RobotModel) -> tuple[tuple[str, ...], NDArray[np.intp],
                                                                     NDArray[np.intp]]:
    """The names; indices from model order to theirs; and the inverse of these."""
    names = names or model.joint_names
    for name in names:
        if name not in model.joint_names:
            raise unknown_name("joint in parameter 'joints':", name, model.joint_names)
    if sorted(names) != sorted(model.joint_names):
        raise RbdError(f"parameter 'joints' must list every joint once: {', '.join(model.joint_names)}; "
                       f"got {', '.join(names)}. Joints that do not move belong in 'locked.joints'.")
    output = np.array([model.joint_names.index(name) for name in names], dtype=np.intp)
    return tuple(names), output, np.argsort(output)


def effort_limits(values: Mapping[str, Any], model: RobotModel, order: NDArray[np.intp]) -> Array:
    """min(description, parameter), and an override where the description says 0; in model order."""
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


def load_model(values: Mapping[str, Any], description: str) -> tuple[RobotModel, list[str]]:
    """The model of a URDF text or path under the parameters, and warnings about it. Raises `RbdError`."""
    gravity, locked = values["gravity"], values["locked.joints"]
    positions = values["locked.positions"]
    if locked and len(positions) not in (1, len(locked)):
        raise RbdError(f"parameter 'locked.positions' has {len(positions)} numbers, expected 1 or {len(locked)}")
    if len(positions) == 1:
        positions = positions * len(locked)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RbdWarning)
        model = load_urdf(description, gravity=gravity, locked=dict(zip(locked, positions, strict=False)))
    order = joint_order(values["joints"], model)[2]
    rotors = per_joint("rotor_inertia", values["rotor_inertia"], order)
    if (rotors >= 0.0).any() and len(rotors) == model.nv:
        model = model.with_(armature=np.where(rotors < 0.0, model.armature, rotors))
    notes = [str(warning.message) for warning in caught if issubclass(warning.category, RbdWarning)]
    check_model(model)
    return model, notes + _zero_limits(model, values.get("effort_limits.override_zero"))


def _zero_limits(model: RobotModel, override: Sequence[float] | None) -> list[str]:
    """What counts where the description limits the effort to 0; without an override a torque node refuses the model."""
    names = [name for name, limit in zip(model.velocity_names, model.effort_limit, strict=True) if limit == 0.0]
    if not names or (override is not None and not np.any(np.asarray(override) > 0.0)):
        return []
    return [f"the robot description limits the effort of {', '.join(names)} to 0; "
            + ("that counts as no limit here" if override is None else "'effort_limits.override_zero' counts instead")]


def check_model(model: RobotModel) -> None:
    """Raise `RbdError`, naming the joint, unless the model has joints of one coordinate and a regular mass matrix."""
    if not model.nv:
        raise RbdError(f"robot '{model.name}' has no moving joint")
    for joint in model.joints:
        if joint.nq != 1 or joint.nv != 1:
            raise RbdError(f"joint '{joint.name}' is {joint.type} and has {joint.nv} coordinates, but a joint state "
                           "has one position per joint: lock it ('locked.joints') or describe it by single joints")
    for q in (model.neutral(), *(model.random_configuration(seed) for seed in range(3))):
        M = mass_matrix(model, q)
        scale = np.sqrt(np.abs(np.diag(M)))
        bare = np.flatnonzero(scale**2 <= 1e-12 * np.max(scale**2))
        if len(bare):
            raise RbdError(f"joint '{model.velocity_names[bare[-1]]}' moves no mass: the mass matrix is singular. Give "
                           "the links behind it an <inertial>, or the joint a rotor inertia, or lock it "
                           "('locked.joints')")
        values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
        if values[0] <= 1e-12:
            names = [model.velocity_names[i] for i in np.flatnonzero(np.abs(vectors[:, 0]) > 0.1)]
            raise RbdError(f"the mass matrix is singular: joints {', '.join(names)} can move against each other "
                           "without moving any mass. Check the <inertial> of the links between them")
