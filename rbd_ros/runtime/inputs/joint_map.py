"""Mapping of message names to model order: joints, wrenches on bodies, continuous joints."""
from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.model.joints import is_endless
from ...core.model.robot_model import RobotModel
from ...core.motion.cycle import picked_entry
from ...core.motion.point_table import pick_points_entry
from .finite import all_finite, worst
from .rejections import Rejected

Array = NDArray[np.float64]
_EMPTY = np.zeros(0)


class JointMap:
    """Maps arrays in the order of a message to model order, and caches the permutation of the last names.

    Joints may come in any order. Extra names are accepted if `extra`; mimic joints are always accepted, and determine
    a missing source: q_source = (q_mimic − offset) / multiplier.
    """

    def __init__(self, model: RobotModel, extra: bool) -> None:
        self._model = model
        self._extra = extra
        self._names: Sequence[str] | None = None
        self.size = 0
        self.indices: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._scale = self._offset = _EMPTY    # of derived sources, empty if no source is missing

    @property
    def names(self) -> Sequence[str] | None:
        """Names for which the permutation is cached."""
        return self._names

    @property
    def plain(self) -> bool:
        """Whether no joint is derived from a mimic joint."""
        return not len(self._scale)

    def update(self, names: Sequence[str]) -> bool:
        """Compute the permutation for these names; False if none of them belongs to the model."""
        names = list(names)    # a tuple equals no list
        if names == self._names:
            return True
        position = {name: i for i, name in enumerate(names)}
        model = self._model
        mimics = {mimic.name: mimic for mimic in model.mimics}
        if not any(name in position for name in (*model.joint_names, *mimics)):
            return False
        if len(position) != len(names):
            raise Rejected("duplicate_joint", f"joint named twice in {names}")
        unknown = [name for name in names if name not in model.joint_names and name not in mimics]
        if unknown and not self._extra:
            raise Rejected("unknown_joint", f"unknown joint '{unknown[0]}'; joints of the model: "
                                            f"{', '.join(model.joint_names)}")
        indices, scale, offset = [], np.ones(model.nv), np.zeros(model.nv)
        for i, name in enumerate(model.joint_names):
            stand_in = next((mimics[m] for m in mimics if mimics[m].source == name and m in position
                             and mimics[m].multiplier != 0.0), None)
            if name in position:
                indices.append(position[name])
            elif stand_in is not None:
                indices.append(position[stand_in.name])
                scale[i] = 1.0 / stand_in.multiplier
                offset[i] = -stand_in.offset / stand_in.multiplier
            else:
                raise Rejected("missing_joint", f"joint '{name}' is missing in {names}")
        self.indices = np.array(indices, dtype=np.intp)
        self._scale, self._offset = (scale, offset) if (scale != 1.0).any() or offset.any() else (_EMPTY, _EMPTY)
        self.size, self._names = len(names), names
        return True

    def positions(self, what: str, values: ArrayLike) -> Array:
        """Positions in model order; raises `Rejected` if non-finite."""
        return self._finite(what, *self._picked(what, values, self._offset))

    def rates(self, what: str, values: ArrayLike) -> Array:
        """Velocities or accelerations in model order; raises `Rejected` if non-finite."""
        return self._finite(what, *self._picked(what, values, _EMPTY))

    def raw_rates(self, what: str, values: ArrayLike) -> tuple[Array, bool]:
        """Velocities or accelerations in model order, NaN included, and whether all are finite."""
        return self._picked(what, values, _EMPTY)

    def pick_points(self, numbers: Array, places: NDArray[np.int64], field: int, out: Array) -> int:
        """Positions (field 0) or rates of many points (N, nv), by `pick_points_entry`."""
        right: int = pick_points_entry.call(numbers, places, field, self.size, self.indices, self._scale,
                                            _EMPTY if field else self._offset, out)
        return right

    def _picked(self, what: str, values: ArrayLike, offset: Array) -> tuple[Array, bool]:
        listed = as_array(values)
        if listed.shape != (self.size,):
            raise Rejected("wrong_size", f"{what} has {listed.size} numbers for {self.size} names")
        return picked(listed, self.indices, self._scale, offset)

    def _finite(self, what: str, values: Array, finite: bool) -> Array:
        if not finite:
            name = self._model.joint_names[worst(values)]
            raise Rejected("non_finite", f"{what} of joint '{name}' is not finite")
        return values


def total_wrenches(model: RobotModel, wrenches: Sequence[tuple[str, ArrayLike]]) -> Array | None:
    """Sum (bodies, 6) of pairs (body, [moment, force] on the body in its link frame), None without any. Raises
    `Rejected`.
    """
    total = np.zeros((len(model.body_names), 6))
    for body, value in wrenches:
        if body not in model.body_names:
            raise Rejected("unknown_body", f"unknown body '{body}' in external wrenches; bodies: "
                                           f"{', '.join(model.body_names)}")
        wrench = np.asarray(value, dtype=np.float64)
        if not all_finite(wrench.reshape(-1)):    # so that no sum overflows
            raise Rejected("non_finite", f"external wrench on body '{body}' is not finite")
        total[model.body_names.index(body)] += wrench
    return total if total.any() else None


class Turns:
    """Unwrapping of continuous joints, whose angles many drivers report between −π and π."""

    def __init__(self, model: RobotModel) -> None:
        turning = [is_endless(joint.type) for joint in model.joints for _ in range(joint.nv)]
        self._turn = 2.0 * math.pi * np.array(turning, dtype=np.float64)
        self.any = any(turning)

    @property
    def turn(self) -> Array:
        """(nv,) 2π for continuous joints, 0 for all others."""
        return self._turn

    def nearest(self, q: Array, to: Array) -> Array:
        """The equivalent position (nv,) with continuous joints within half a turn of `to`."""
        return q + self._turn * np.round((to - q) / (2.0 * math.pi)) if self.any else q


def as_array(values: Any) -> Array:
    """float64 array of a message's field; an `array.array('d')` is not copied."""
    if values.__class__ is array and values.typecode == "d":
        return np.frombuffer(values) if values else _EMPTY
    return np.asarray(values, dtype=np.float64)


def picked(values: Array, indices: NDArray[np.intp], scale: Array, offset: Array) -> tuple[Array, bool]:
    """Values in model order by `picked_entry`, and whether they are finite."""
    out = np.empty(len(indices))
    try:
        return out, picked_entry.call(values, indices, scale, offset, out)
    except TypeError:    # non-contiguous or read-only
        return out, picked_entry.call(np.array(values), indices, scale, offset, out)
