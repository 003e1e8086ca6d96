"""Arrays by coordinate name, in any order, to arrays in the order of the model."""
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
    """Names of a model's velocity coordinates: `names` (nv,), those of a floating base first, then one per joint."""

    def __init__(self, model: RobotModel) -> None:
        self.floating = model.description.root == "floating"
        self.joints = model.joint_names[1:] if self.floating else model.joint_names
        self.names: tuple[str, ...] = (BASE + self.joints) if self.floating else self.joints
        self.mimics = {mimic.name: mimic for mimic in model.mimics}
        self._index = {name: i for i, name in enumerate(self.names)}

    def indices(self, field: str, names: Sequence[str]) -> NDArray[np.intp]:
        """Where each named coordinate is; `RbdError` for a name that is unknown or comes twice."""
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
        """(nv,) of the values of the named coordinates, `rest` (inf: values may be, too) for all others, and for all
        where there are no values.
        """
        at = self.indices("name", names)
        given = numbers(field, names, values, empty=rest)
        out = np.full(len(self.names), rest)
        out[at] = given if given.size else rest
        return out

    def rows(self, field: str, names: Sequence[str], count: int, values: ArrayLike) -> Array:
        """(count, nv) of so many rows, one after the other, of a value per named coordinate each; else as `vector`."""
        at = self.indices("name", names)
        given = np.asarray(values, dtype=np.float64)
        if given.size and given.shape != (count * len(names),):
            raise RbdError(f"{field} has {given.size} numbers, expected {count * len(names)}: {count} rows of a number "
                           f"for each of {len(names)} names (or none, for zero)")
        out = np.zeros((count, len(self.names)))
        if given.size:
            finite = np.isfinite(given)
            if not finite.all():
                i = int(np.argmin(finite))
                raise RbdError(f"{field} of '{names[i % len(names)]}' in row {i // len(names)} (the first is row 0) is "
                               f"{given[i]}, expected a finite number")
            out[:, at] = given.reshape(count, len(names))
        return out

    def mask(self, field: str, names: Sequence[str], flags: Sequence[bool]) -> NDArray[np.bool_]:
        """(nv,) of the flags of the named coordinates, False for all others."""
        at = self.indices("name", names)
        if len(flags) != len(names):
            raise RbdError(f"{field} has {len(flags)} entries for {len(names)} names, expected one per name")
        out = np.zeros(len(self.names), dtype=bool)
        out[at] = np.asarray(flags, dtype=bool)
        return out


def numbers(field: str, names: Sequence[str], values: ArrayLike, needed: bool = False, empty: float = 0.0) -> Array:
    """The values as an array, one finite number per name (or inf if `empty` is, what no values mean), or none at all
    unless they are needed.
    """
    given = np.asarray(values, dtype=np.float64)
    if given.shape != (len(names),) and (needed or given.size):
        raise RbdError(f"{field} has {given.size} numbers for {len(names)} names, expected one per name"
                       + ("" if needed else f" (or none, for {MEANING[empty]})"))
    finite = np.isfinite(given) | (given == empty)
    if not finite.all():
        i = int(np.argmin(finite))
        raise RbdError(f"{field} of '{names[i]}' is {given[i]}, expected a finite number")
    return given


def check_mode(mode: int, modes: Sequence[str], field: str = "mode") -> None:
    """`RbdError` unless mode is the place of one of the modes."""
    if not 0 <= mode < len(modes):
        raise RbdError(f"{field} is {mode}, expected " + ", ".join(f"{i} ({m})" for i, m in enumerate(modes)))


def wrenches_by_body(model: RobotModel, wrenches: Sequence[tuple[str, ArrayLike]]) -> dict[str, Array] | None:
    """{body: (6,)} of pairs (body, [moment, force]); those of one body add up. None where there are none."""
    found: dict[str, Array] = {}
    for body, value in wrenches:
        if body not in model.body_names:
            raise unknown_name("body in `external_wrenches`:", body, model.body_names)
        wrench = np.asarray(value, dtype=np.float64)
        if not np.isfinite(wrench).all():
            raise RbdError(f"external_wrenches: the wrench on body '{body}' is not finite")
        found[body] = found.get(body, np.zeros(6)) + wrench
    return found or None


def by_body(model: RobotModel, wrenches: Array) -> tuple[tuple[str, Array], ...]:
    """Pairs (body, [moment, force]) of wrenches (nb, 6)."""
    return tuple(zip(model.body_names, wrenches, strict=True))


def checked(result: Result, names: Sequence[str]) -> Result:
    """The NamedTuple itself; `RbdError` naming field and coordinate if a number in it is not finite."""
    fields: dict[str, Any] = result._asdict()    # type: ignore[attr-defined]
    for field, value in fields.items():
        if isinstance(value, (float, np.ndarray)) and not np.isfinite(value).all():
            at = int(np.argmin(np.isfinite(np.atleast_1d(value)).ravel()))
            size = np.size(value)
            where = f" of '{names[at % len(names)]}'" if names and size and size % len(names) == 0 else ""
            raise RbdError(f"{field}{where} would not be finite: the numbers of the request are too large")
    return result
