"""Conversion of arrays by coordinate name, in any order, to arrays in model order."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.errors import RbdError, unknown_name
from ...core.model.inertia import Array
from ...core.model.robot_model import RobotModel

Result = TypeVar("Result")
MEANING = {0.0: "zero", 1.0: "1", np.inf: "no limit"}
NamedWrenches = tuple[tuple[str, Array], ...]    # (body, [moment, force] on it in its link frame)
AS_CONFIGURED, WITH_FRICTION, WITHOUT_FRICTION = range(3)
FRICTION = ("FRICTION_AS_CONFIGURED", "WITH_FRICTION", "WITHOUT_FRICTION")
BASE = ("base/wx", "base/wy", "base/wz", "base/vx", "base/vy", "base/vz")    # body twist of a floating base


class Coordinates:
    """Names of a model's velocity coordinates: `names` (nv,), floating base first, then one per joint."""

    def __init__(self, model: RobotModel) -> None:
        self.floating = model.description.root == "floating"
        self.joints = model.joint_names[1:] if self.floating else model.joint_names
        self.names: tuple[str, ...] = (BASE + self.joints) if self.floating else self.joints
        self.mimics = {mimic.name: mimic for mimic in model.mimics}
        self._index = {name: i for i, name in enumerate(self.names)}

    def indices(self, field: str, names: Sequence[str]) -> NDArray[np.intp]:
        """Index of each named coordinate; raises `RbdError` for an unknown or repeated name."""
        seen = set()
        for name in names:
            if name in self.mimics:
                raise RbdError(f"{field}: joint '{name}' follows '{self.mimics[name].source}' (mimic) and has no "
                               f"coordinate of its own: name '{self.mimics[name].source}'")
            if name not in self._index:
                raise unknown_name(f"coordinate in `{field}`:", name, self.names)
            if name in seen:
                raise RbdError(f"{field}: coordinate '{name}' is listed twice, expected each name once")
            seen.add(name)
        return np.array([self._index[name] for name in names], dtype=np.intp)

    def vector(self, field: str, names: Sequence[str], values: ArrayLike, rest: float = 0.0) -> Array:
        """Array (nv,) of the values of the named coordinates, `rest` for all others, and for all without values. If
        `rest` is inf, values may be inf, too.
        """
        indices = self.indices("name", names)
        array = numbers(field, names, values, empty=rest)
        out = np.full(len(self.names), rest)
        out[indices] = array if array.size else rest
        return out

    def rows(self, field: str, names: Sequence[str], count: int, values: ArrayLike) -> Array:
        """Array (count, nv) of concatenated rows with a value per named coordinate; otherwise as `vector`."""
        indices = self.indices("name", names)
        array = np.asarray(values, dtype=np.float64)
        if array.size and array.shape != (count * len(names),):
            raise RbdError(f"{field} has {array.size} numbers, expected {count * len(names)}: {count} rows of a number "
                           f"for each of {len(names)} names (or none, for zero)")
        out = np.zeros((count, len(self.names)))
        if array.size:
            finite = np.isfinite(array)
            if not finite.all():
                i = int(np.argmin(finite))
                raise RbdError(f"{field} of '{names[i % len(names)]}' in row {i // len(names)} (the first is row 0) is "
                               f"{array[i]}, expected a finite number")
            out[:, indices] = array.reshape(count, len(names))
        return out

    def mask(self, field: str, names: Sequence[str], flags: Sequence[bool]) -> NDArray[np.bool_]:
        """Flags (nv,) of the named coordinates, False for all others."""
        indices = self.indices("name", names)
        if len(flags) != len(names):
            raise RbdError(f"{field} has {len(flags)} entries for {len(names)} names, expected one per name")
        out = np.zeros(len(self.names), dtype=bool)
        out[indices] = np.asarray(flags, dtype=bool)
        return out


def numbers(field: str, names: Sequence[str], values: ArrayLike, needed: bool = False, empty: float = 0.0) -> Array:
    """The values as an array with one finite number per name, or an empty array unless `needed`. empty: meaning of
    missing values; if inf, values may be inf, too.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (len(names),) and (needed or array.size):
        raise RbdError(f"{field} has {array.size} numbers for {len(names)} names, expected one per name"
                       + ("" if needed else f" (or none, for {MEANING[empty]})"))
    finite = np.isfinite(array) | (array == empty)
    if not finite.all():
        i = int(np.argmin(finite))
        raise RbdError(f"{field} of '{names[i]}' is {array[i]}, expected a finite number")
    return array


def check_mode(mode: int, modes: Sequence[str], field: str = "mode") -> None:
    """Raise `RbdError` unless `mode` is an index of `modes`."""
    if not 0 <= mode < len(modes):
        raise RbdError(f"{field} is {mode}, expected " + ", ".join(f"{i} ({m})" for i, m in enumerate(modes)))


def wrenches_by_body(model: RobotModel, wrenches: Sequence[tuple[str, ArrayLike]]) -> dict[str, Array] | None:
    """{body: (6,)} of pairs (body, [moment, force]), summed per body; None without wrenches."""
    total: dict[str, Array] = {}
    for body, value in wrenches:
        if body not in model.body_names:
            raise unknown_name("body in `external_wrenches`:", body, model.body_names)
        wrench = np.asarray(value, dtype=np.float64)
        if not np.isfinite(wrench).all():
            raise RbdError(f"external_wrenches: the wrench on body '{body}' is not finite")
        total[body] = total.get(body, np.zeros(6)) + wrench
    return total or None


def by_body(model: RobotModel, wrenches: Array) -> tuple[tuple[str, Array], ...]:
    """Pairs (body, [moment, force]) of wrenches (nb, 6)."""
    return tuple(zip(model.body_names, wrenches, strict=True))


def checked(result: Result, names: Sequence[str]) -> Result:
    """The NamedTuple itself; raises `RbdError`, naming field and coordinate, for a non-finite number."""
    fields: dict[str, Any] = result._asdict()    # type: ignore[attr-defined]
    for field, value in fields.items():
        if isinstance(value, (float, np.ndarray)) and not np.isfinite(value).all():
            index = int(np.argmin(np.isfinite(np.atleast_1d(value)).ravel()))
            size = np.size(value)
            place = f" of '{names[index % len(names)]}'" if names and size and size % len(names) == 0 else ""
            raise RbdError(f"{field}{place} would not be finite: the numbers of the request are too large")
    return result
