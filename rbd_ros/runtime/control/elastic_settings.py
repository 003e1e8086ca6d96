"""Validated parameters of the controller for elastic joints."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.actuation.actuation import Actuation, Drive, VariableDrive
from ...core.actuation.actuation_yaml import load_actuation
from ...core.actuation.elastic_law import ElasticLawSettings
from ...core.actuation.poles import FeedbackGains
from ...core.errors import RbdError
from ...core.model.inertia import read_only
from ...core.model.robot_model import RobotModel
from ..damping_gains import DampingGains
from ..parameters import per_joint, validate
from ..robot import joint_order
from ..safety import SafetySettings
from .flatness import ELASTIC_TABLE, FLATNESS_TABLE, FlatnessSettings

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ElasticSettings(FlatnessSettings):
    """Validated parameters. model: of the links. motors: limits and fallback of the motors (nm,).

    motor_output: permutation of an array (nm,) to the order of messages: joints in the order of parameter `joints`,
    then the second motors in the same order; motor_names: in the order of messages. stiffness, stiffness_poles: (n,)
    of the joints in `actuation.variable`. given: the drives of the file, without parameter `stiffness`.
    """

    given: Mapping[str, Drive]
    actuation: Actuation
    law: ElasticLawSettings
    motors: SafetySettings
    motor_output: NDArray[np.intp]
    motor_names: tuple[str, ...]
    stiffness: Array
    stiffness_poles: Array

    @staticmethod
    def from_drives(values: Mapping[str, Any], model: RobotModel, drives: Mapping[str, Drive]) -> ElasticSettings:
        """Validate parameter values by name, with the drives of `load_actuation`; missing values get their defaults.

        Raises `RbdError`.
        """
        values = validate(FLATNESS_TABLE, values)
        _refuse_what_is_rigid(values)
        rigid = FlatnessSettings.from_values(values, model)
        loaded = rigid.model.with_(damping=model.damping if rigid.friction.damping else 0.0,
                                   friction=model.friction if rigid.friction.coulomb else 0.0)
        order = joint_order(values["joints"], model)[2]
        declared = Actuation(loaded, drives)
        output, variable_order = _motor_order(declared, rigid.output)
        orders = {"joint": order, "motor": np.argsort(output), "joint of variable stiffness": variable_order}
        listed = {row.name: per_joint(row.name, values[row.name], orders[row.per], row.per) for row in ELASTIC_TABLE
                  if row.kind == "numbers"}
        stiffness, stiffness_poles = listed["stiffness"], listed["stiffness_poles"]
        desired = {declared.variable_name(i): float(k) for i, k in enumerate(stiffness) if k >= 0.0}
        try:
            actuation = Actuation(loaded, {name: _wanting(drive, desired.get(name)) for name, drive in drives.items()})
        except RbdError as error:
            raise RbdError(f"parameter 'stiffness': {error}") from None

        gains = FeedbackGains.placed(
            actuation, dict(zip(actuation.joint_names, map(float, listed["poles"]), strict=True)),
            {actuation.variable_name(i): float(b) for i, b in enumerate(stiffness_poles)})
        joint_of = np.concatenate([np.arange(actuation.nv), actuation.variable]).astype(np.intp)
        described = rigid.safety.effort_limit[joint_of]
        limit = listed["motor_effort_limits.maximum"]
        motors = replace(rigid.safety, effort_limit=read_only(np.where(limit < 0.0, described, limit)),
                         rate_limit=listed["motor_effort_limits.rate"],
                         fallback=read_only(held(actuation, rigid.safety.fallback)))
        law = ElasticLawSettings(
            period=1.0 / values["state_rate"] if values["state_rate"] > 0.0 else 1e-3, mode=values["mode"],
            kp=listed["motor_gains.kp"], kd=listed["motor_gains.kd"], gains=gains)
        if values["state_rate"] <= 0.0 and (values["mode"] == "feedback_linearization" or actuation.damped.size):
            raise RbdError("parameter 'state_rate' must be the rate of joint states (Hz) for "
                           + ("feedback_linearization" if not actuation.damped.size else "springs with damping"))
        if values["mode"] == "feedback_linearization" and not rigid.friction.plain:
            raise RbdError("parameters 'friction.asymmetry', 'friction.viscous_asymmetry' and 'friction.load' must be "
                           "0 with mode feedback_linearization, which does not support them")
        fields = {name: getattr(rigid, name) for name in FlatnessSettings.__dataclass_fields__}
        names = tuple(actuation.motor_names[i] for i in output)
        return ElasticSettings(**(fields | {"model": actuation.model}), given=drives, actuation=actuation, law=law,
                               motors=motors, motor_output=output, motor_names=names, stiffness=actuation.stiffness,
                               stiffness_poles=stiffness_poles)

    def damping_gains(self) -> DampingGains | None:
        if self.law.mode != "feed_forward_pd":
            return None
        actuation = self.actuation    # only the motor's own inertia counts: the spring decouples the link
        kd = np.broadcast_to(np.asarray(self.law.kd, dtype=float), actuation.nm)
        return DampingGains("motor_gains.kd", actuation.motor_names, kd, actuation.inertia_behind_springs,
                            np.ones(actuation.nm, dtype=bool))


def flatness_settings(values: Mapping[str, Any], model: RobotModel,
                      before: FlatnessSettings | None = None) -> FlatnessSettings:
    """Settings of rigid or, with `actuation_file`, elastic joints. before: the present ones, whose file was read."""
    if not values.get("actuation_file"):
        return FlatnessSettings.from_values(values, model)
    given = before.given if isinstance(before, ElasticSettings) else load_actuation(
        Path(values["actuation_file"]), model).drives
    return ElasticSettings.from_drives(values, model, given)


def held(actuation: Actuation, torque: Array) -> Array:
    """Motor efforts (nm,) that hold link-side torques (nv,); second motors carry no load of their own."""
    efforts = np.concatenate([torque, np.zeros(actuation.nm - actuation.nv)])
    for joints, spring in actuation.groups:
        first, second = actuation.variable[joints], actuation.nv + joints
        efforts[first], efforts[second] = spring.loads(torque[first], np.zeros(joints.size))
    return efforts


def _motor_order(actuation: Actuation, output: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Permutation of the motors to the order of messages, and positions of the variable-stiffness joints in it."""
    variable = list(actuation.variable)
    listed = np.array([variable.index(i) for i in output if i in variable], dtype=np.intp)
    return np.concatenate([output, actuation.nv + listed]).astype(np.intp), np.argsort(listed)


def _wanting(drive: Drive, stiffness: float | None) -> Drive:
    return drive if stiffness is None or not isinstance(drive, VariableDrive) else replace(drive, stiffness=stiffness)


def _refuse_what_is_rigid(values: Mapping[str, Any]) -> None:
    for name in ("gains.kp", "gains.kd"):
        if any(values[name]):
            raise RbdError(f"parameter '{name}' is for rigid joints only; with 'actuation_file' the motors are "
                           "controlled: use 'motor_gains.kp', 'motor_gains.kd' or 'poles'")
    if values["robot_compensates"]:
        raise RbdError(f"parameter 'robot_compensates' is {', '.join(values['robot_compensates'])}, but with "
                       "'actuation_file' this node commands the whole motor torque: expected nothing")
