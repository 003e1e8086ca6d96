"""Declaration tables of parameters: one per node, validated here and declared to ROS by `nodes.base.parameters`.

A parameter is written once. Where its value is a field of the settings of some logic, the row is that field
(`parameter`, `setting`): `table_of` makes the rows of the fields, and `taken` their values.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import RbdError, shown, unknown_name

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Parameter:
    """One row of a table.

    `kind`: "bool", "string", "strings", "number" or "numbers"; integers are accepted as numbers. `numbers` takes one
    number for all or a list with one per joint, or per item named by `per`; with `count`, exactly `count` numbers.
    `lower`, `upper`: closed range of every number.
    """

    name: str
    kind: str
    default: Any
    description: str
    lower: float = -math.inf
    upper: float = math.inf
    choices: tuple[str, ...] = ()
    read_only: bool = False
    per: str = "joint"
    count: int = 0

    @property
    def constraints(self) -> str:
        """The accepted values in words."""
        words = {"bool": "true or false", "string": "text", "strings": "list of text", "number": "a number",
                 "numbers": f"{self.count} numbers" if self.count else f"a number, or a list with one per {self.per}"
                 }[self.kind]
        if self.choices:
            words += ": " + ", ".join(repr(choice) for choice in self.choices)
        if self.lower > -math.inf or self.upper < math.inf:
            words += f", from {self.lower:g} to {self.upper:g}"
        return words

    def convert(self, value: Any) -> Any:
        """`value` as bool, str, tuple of str, float or tuple of float; `RbdError` says what was expected."""
        try:
            return self._convert(value)
        except (TypeError, ValueError, OverflowError):
            raise RbdError(f"parameter '{self.name}' is {shown(value)}, expected {self.constraints}") from None

    def _convert(self, value: Any) -> Any:
        if self.kind == "bool":
            if not isinstance(value, (bool, np.bool_)):
                raise TypeError
            return bool(value)
        if self.kind in ("string", "strings"):
            values = [value] if self.kind == "string" else _listed(value)
            if not all(isinstance(item, str) for item in values):
                raise TypeError
            # A parameter file cannot contain an empty list, so empty strings are dropped.
            texts = tuple(values) if self.kind == "string" else tuple(item for item in values if item)
            if self.choices and not set(texts) <= set(self.choices):
                raise ValueError
            return texts[0] if self.kind == "string" else texts
        numbers = tuple(_number(item) for item in ([value] if self.kind == "number" else _listed(value)))
        if not numbers or any(not self.lower <= number <= self.upper for number in numbers):
            raise ValueError
        if self.count and len(numbers) != self.count:
            raise ValueError
        return numbers[0] if self.kind == "number" else numbers


Table = tuple[Parameter, ...]
# kinds of the annotations of fields
KINDS = {"bool": "bool", "str": "string", "tuple[str, ...]": "strings", "float": "number", "int": "number",
         "Array": "numbers"}


def parameter(default: Any, description: str, **options: Any) -> Any:
    """A field of a dataclass of settings that is the value of a parameter; fields of numbers have no default.

    options: of `Parameter`; `name` and `kind` are by default the field's name and type.
    """
    return field(default=MISSING if isinstance(default, tuple) and default else default,
                 metadata={"row": {"default": default, "description": description, **options}})


def setting(row: Parameter) -> Any:
    """A field that is the value of this row, which other tables have, too."""
    return parameter(**vars(row))


def table_of(*kinds: type) -> Table:
    """The rows at the fields of these dataclasses of settings."""
    return tuple(dict.fromkeys(row for kind in kinds for row in _rows(kind).values()))


@cache
def _rows(kind: type) -> dict[str, Parameter]:
    """The rows of a dataclass of settings by the names of their fields."""
    return {each.name: Parameter(**{"name": each.name, "kind": KINDS[str(each.type)], **each.metadata["row"]})
            for each in fields(kind) if each.metadata}


def taken(kind: type, values: Mapping[str, Any], order: Sequence[int] | NDArray[np.intp] = ()) -> dict[str, Any]:
    """Arguments for the constructor of `kind`: its fields with a row, from validated values by the rows' names. Numbers
    become arrays in model order (`per_joint`), unless their `count` is given.
    """
    return {name: per_joint(row.name, values[row.name], range(row.count) if row.count else order)
            if row.kind == "numbers" else values[row.name] for name, row in _rows(kind).items()}


def validate(table: Table, values: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of `table`, converted; those missing in `values` get their defaults."""
    rows = {row.name: row for row in table}
    for name in values:
        if name not in rows:
            raise unknown_name("parameter", name, rows)
    return {name: row.convert(values.get(name, row.default)) for name, row in rows.items()}


def select(table: Table, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of parameters in this table."""
    return {row.name: values[row.name] for row in table if row.name in values}


def misspelt(names: Iterable[str], table: Table) -> list[str]:
    """Warnings for misspelt parameter names, which ROS ignores silently.

    Names dissimilar to all rows are assumed to belong to other nodes, which often share a file.
    """
    rows = [row.name for row in table]
    near = {name: get_close_matches(name, rows, n=1, cutoff=0.9) for name in names if name not in rows}
    return [f"parameter '{name}' has no effect; did you mean '{match[0]}'?" for name, match in near.items() if match]


def per_joint(name: str, values: tuple[float, ...], order: Sequence[int] | NDArray[np.intp],
              per: str = "joint") -> Array:
    """Read-only array per joint of the model, or other item, from one number or a list in the order of the parameters.

    `order[i]`: index of the model's i-th joint in that list.
    """
    if len(values) not in (1, len(order)):
        raise RbdError(f"parameter '{name}' has {len(values)} numbers, expected 1 or {len(order)} (one per {per})")
    array = np.full(len(order), values[0]) if len(values) == 1 else np.array(values)[order]
    array.setflags(write=False)
    return array


def _listed(value: Any) -> list[Any]:
    if isinstance(value, (str, bool, int, float)):
        return [value]
    if not isinstance(value, Iterable):
        raise TypeError
    return list(value)


def _number(value: Any) -> float:
    if isinstance(value, (bool, np.bool_, str)):
        raise TypeError
    number = float(value)
    if math.isnan(number):
        raise ValueError
    return number
