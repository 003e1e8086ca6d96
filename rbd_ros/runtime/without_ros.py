"""Parameters, models and numbers as programs without ROS give them: of `TorqueController` and `EffortObserver`."""
from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import RbdError, shown, warn
from ..core.model.robot_model import RobotModel
from ..core.model.state import not_a_model
from .inputs.rejections import Rejected
from .parameter_files import flat, parameters_of
from .parameters import Table, misspelt, select, validate
from .robot import ROBOT_TABLE, check_model, load_model

Array = NDArray[np.float64]
# parameters whose inputs are topics alone, with what to do instead
NEED_ROS = {"odometry": "the base has to stand still", "mounting.frame": "set 'mounting.rpy'",
            "force.topic": "without it, forces are fed forward alone"}
LATEST = 9e9       # s, of times: their nanoseconds are integers of 64 bits


def values_of(node: str, table: Table, file: str | os.PathLike[str] | None, parameters: Mapping[str, Any]
              ) -> dict[str, Any]:
    """All parameters of a node by full name, from a parameter file and from `parameters`, which take precedence."""
    given: dict[str, Any] = {}
    if file is not None:
        given = parameters_of(file, node)
        for note in misspelt(given, table):
            warn(note)
        _refuse_ros(given)
        given = select(table, given)
    values = validate(table, given | flat(parameters))
    _refuse_ros(values)
    return values


def changed(table: Table, values: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Values with these changes; raises `RbdError` for read-only parameters."""
    changes = flat(parameters)
    for row in table:
        if row.read_only and row.name in changes:
            raise RbdError(f"parameter '{row.name}' is read-only: make another object with it")
    return validate(table, {**values, **changes})


def described(values: Mapping[str, Any], model: RobotModel | str | os.PathLike[str]) -> RobotModel:
    """The model, or that of a URDF (path or text), loaded with these parameters."""
    if not isinstance(model, RobotModel | str | os.PathLike):
        raise not_a_model(model)
    if not isinstance(model, RobotModel):
        loaded, notes = load_model(values, os.fspath(model))
        for note in notes:
            warn(note)
        return loaded
    for row in ROBOT_TABLE:
        if values[row.name] != row.convert(row.default):
            raise RbdError(f"parameter '{row.name}' is for loading a description: give the URDF in place of the "
                           "model, or load the model like that")
    check_model(model)
    return model


def _refuse_ros(values: Mapping[str, Any]) -> None:
    for name, remedy in NEED_ROS.items():
        if values.get(name):
            raise RbdError(f"parameter '{name}' is {shown(values[name])}, a topic of ROS, which there is not here: "
                           f"{remedy}")


def numbers(what: str, values: Any, count: int = 0) -> Array:
    """A vector of numbers, `count` of them if given; raises `Rejected`."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiu":
            raise TypeError
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise Rejected("malformed", f"{what} is {shown(values)}, expected numbers") from None
    if array.ndim != 1 or (count and len(array) != count):
        raise Rejected("wrong_size", f"{what} has shape {array.shape}, expected a vector"
                                     f"{f' of {count} numbers' if count else ''}")
    return array


def checked_time(t: Any) -> float:
    """A time, s; raises `Rejected`."""
    try:
        time = float(t)
    except (TypeError, ValueError, OverflowError):
        time = np.nan
    if not abs(time) <= LATEST:
        raise Rejected("non_finite", f"time t is {shown(t)}, expected a number of seconds")
    return time


def stamp(time: float) -> int:
    """The stamp of a time (s), ns; never 0, which is no stamp."""
    return round(time * 1e9) or 1


def joint_state(q: ArrayLike, v: ArrayLike | None, tau: ArrayLike | None) -> list[Any]:
    """Position, velocity and effort, () if unknown; raises `Rejected`."""
    return [numbers("q", q), *(() if x is None else numbers(name, x) for name, x in (("v", v), ("tau", tau)))]
