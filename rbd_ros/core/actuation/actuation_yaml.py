"""Drives from YAML, or from the same mapping in Python:

    actuation:
      joint_1: {type: rigid, motor: {rotor_inertia: 2.0e-4, gear_ratio: 100, damping: 1.0, coulomb: 3.0}}
      joint_2: {type: series_elastic, stiffness: 12000.0, damping: 4.0, motor: {rotor_inertia: 3.0}}
      joint_3: {type: series_elastic, stiffness: 8000.0, hardening: 2.0e6, max_deflection: 0.05}
      joint_4: {type: series_elastic, coefficients: [5000.0, 1.0e5, 3.0e7]}
      joint_5: {type: variable_stiffness, spring: linear, range: [100.0, 2000.0], stiffness: 800.0,
                motor: {rotor_inertia: 0.1}, stiffness_motor: {rotor_inertia: 1.0e-7}}
      joint_6: {type: variable_stiffness, spring: antagonistic_exponential, scale: 2.0, rate: 8.0, range: [0.05, 0.6]}

| key              | of                 | meaning                                                                      |
|------------------|--------------------|------------------------------------------------------------------------------|
| `motor`          | all                | keys: fields of `Motor`; without it the rotor inertia of the model           |
| `stiffness`      | series_elastic     | k₁ in `τ = k₁φ + k₃φ³`, N m/rad                                              |
| `hardening`      | series_elastic     | k₃, N m/rad³; negative: softening, which needs a max_deflection              |
| `coefficients`   | series_elastic     | k₁, k₃, k₅, … instead of these two                                           |
| `damping`        | series_elastic     | D, N m s/rad                                                                 |
| `max_deflection` | both elastic types | largest deflection, rad                                                      |
| `spring`         | variable_stiffness | `linear` (offset, gain), `cubic` (and hardening), `antagonistic_quadratic`   |
|                  |                    | (linear, quadratic), `antagonistic_exponential` (scale, rate)                |
| `range`          | variable_stiffness | least and largest σ, rad, or N m/rad where σ is the stiffness                |
| `stiffness`      | variable_stiffness | default of the desired one, N m/rad; without it: the geometric mean          |
| `stiffness_motor`| variable_stiffness | the second motor; antagonistic springs: default as `motor`                   |

All joints of the model are required, others are rejected.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from ..errors import RbdError, shown, unknown_name
from ..model.files.yaml_text import read_yaml
from ..model.robot_model import RobotModel
from .actuation import Actuation, Drive, RigidDrive, SeriesDrive, VariableDrive
from .motor import Motor
from .series_elastic import SeriesSpring
from .variable_stiffness import AntagonisticExponential, AntagonisticQuadratic, StiffnessInput, VariableSpring

_SPRINGS: dict[str, tuple[type[VariableSpring], tuple[str, ...], tuple[str, ...]]] = {    # required and optional keys
    "linear": (StiffnessInput, (), ("offset", "gain")),
    "cubic": (StiffnessInput, ("hardening",), ("offset", "gain")),
    "antagonistic_quadratic": (AntagonisticQuadratic, ("quadratic",), ("linear",)),
    "antagonistic_exponential": (AntagonisticExponential, ("scale", "rate"), ())}
_MOTOR = tuple(field.name for field in fields(Motor))


def load_actuation(source: str | os.PathLike[str] | Mapping[str, Any], model: RobotModel) -> Actuation:
    """The drives of a YAML file or text, or of a mapping of joint names, for this model: format as above.

    Raises `RbdError` naming the joint, the key and the problem.

        >>> text = "actuation: {shoulder: {type: rigid}, elbow: {type: rigid}}"
        >>> rbd.load_actuation(text, rbd.sample("two_link")).motor_names
        ('shoulder', 'elbow')
    """
    prefix, entries = ("", source) if isinstance(source, Mapping) else _file(source)
    try:
        drives = {}
        for joint, entry in entries.items():
            if joint not in model.joint_names:
                raise unknown_name("joint", joint, model.joint_names)
            try:
                drives[joint] = _drive(entry)
            except RbdError as error:
                raise RbdError(f"joint '{joint}': {error}") from None
        return Actuation(model, drives)
    except RbdError as error:
        raise RbdError(f"{prefix}{error}") from None


def _file(source: str | os.PathLike[str]) -> tuple[str, Mapping[str, Any]]:
    """Prefix of messages, and the entries by joint."""
    tree, name = read_yaml(source, "actuation")
    if not isinstance(tree, Mapping) or not isinstance(tree.get("actuation"), Mapping):
        raise RbdError(f"{name}: expected the key 'actuation' with joints and their drives")
    for key in tree:
        if key != "actuation":
            raise RbdError(f"{name}: {unknown_name('key', key, ['actuation'])}")
    return f"{name}: ", tree["actuation"]


def _drive(entry: Any) -> Drive:
    if not isinstance(entry, Mapping):
        raise RbdError(f"expected keys and values, got {shown(entry)}")
    kind = entry.get("type")
    makers: dict[Any, Callable[[Mapping[str, Any]], Drive]] = {
        "rigid": _rigid, "series_elastic": _series, "variable_stiffness": _variable}
    if not isinstance(kind, str) or kind not in makers:
        raise unknown_name("type", kind, makers)
    return makers[kind](entry)


def _rigid(entry: Mapping[str, Any]) -> RigidDrive:
    _check_keys(entry, (), ("motor",))
    return RigidDrive(_motor(entry, "motor"))


def _series(entry: Mapping[str, Any]) -> SeriesDrive:
    if "coefficients" in entry:
        _check_keys(entry, ("coefficients",), ("damping", "max_deflection", "motor"))
        c = _numbers(entry, "coefficients", None)
    else:
        _check_keys(entry, ("stiffness",), ("hardening", "damping", "max_deflection", "motor"))
        c = [_number(entry, "stiffness"), *([_number(entry, "hardening")] if "hardening" in entry else [])]
    spring = SeriesSpring(np.array(c), _number(entry, "max_deflection", np.inf))
    return SeriesDrive(spring, _number(entry, "damping", 0.0), _motor(entry, "motor"))


def _variable(entry: Mapping[str, Any]) -> VariableDrive:
    name = entry.get("spring")
    if not isinstance(name, str) or name not in _SPRINGS:
        raise unknown_name("spring", name, _SPRINGS)
    spring_class, required, optional = _SPRINGS[name]
    if "damping" in entry:
        raise RbdError("damping: springs of variable stiffness have none; use damping of the motor or of the joint")
    _check_keys(entry, ("spring", "range", *required, *(() if spring_class.antagonistic else ("stiffness_motor",))),
                (*optional, "max_deflection", "stiffness", "motor", "stiffness_motor"))
    lower, upper = _numbers(entry, "range", 2)
    options = {key: _number(entry, key) for key in (*required, *optional) if key in entry}
    spring = spring_class(lower, upper, _number(entry, "max_deflection", np.inf), **options)
    return VariableDrive(spring, _motor(entry, "motor"), _motor(entry, "stiffness_motor"),
                         _number(entry, "stiffness") if "stiffness" in entry else None)


def _motor(entry: Mapping[str, Any], key: str) -> Motor | None:
    if key not in entry:
        return None
    keys = entry[key]
    if not isinstance(keys, Mapping):
        raise RbdError(f"{key}: expected keys and values, got {shown(keys)}")
    for name in keys:
        if name not in _MOTOR:
            raise unknown_name(f"key of {key}", name, _MOTOR)
    if "rotor_inertia" not in keys:
        raise RbdError(f"{key}: rotor_inertia is missing")
    try:
        return Motor(**{name: _number(keys, name) for name in keys})
    except RbdError as error:
        raise RbdError(f"{key}: {error}" if not str(error).startswith("motor") else str(error)) from None


def _check_keys(entry: Mapping[str, Any], required: tuple[str, ...], optional: tuple[str, ...]) -> None:
    for key in entry:
        if key not in ("type", *required, *optional):
            raise unknown_name("key", key, ["type", *required, *optional])
    missing = [key for key in required if key not in entry]
    if missing:
        raise RbdError(f"{', '.join(missing)}: missing")


def _number(entry: Mapping[str, Any], key: str, default: float | None = None) -> float:
    if key not in entry and default is not None:
        return default
    value = entry[key]
    try:
        if isinstance(value, bool):
            raise TypeError
        return float(value)    # YAML reads 1e4, without a point, as a string
    except (TypeError, ValueError, OverflowError):
        raise RbdError(f"{key}: expected a number, got {shown(value)}") from None


def _numbers(entry: Mapping[str, Any], key: str, count: int | None) -> list[float]:
    values = entry[key]
    if not isinstance(values, (list, tuple)) or not values or (count is not None and len(values) != count):
        raise RbdError(f"{key}: expected a list of {count or 'one or more'} numbers, got {shown(values)}")
    return [_number({key: value}, key) for value in values]
