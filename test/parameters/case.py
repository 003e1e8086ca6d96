"""A parameter is shown to act by what is observed with another value than its default, and not with the default."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from rbd_ros import RbdError
from rbd_ros.runtime.parameters import Table

Values = Mapping[str, Any]
_LATE = ContextVar("late", default=False)


@dataclass(frozen=True)
class Case:
    """`observe` maps parameter values by name to numbers, texts, or tuples of them.

    expected: what it sees with `value`, or a function that makes that from what it sees with the default. given: other
    parameters that both have. tolerance: absolute, of numbers. An `RbdError` is seen as its text.
    """

    value: Any
    observe: Callable[[Values], Any]
    expected: Any
    given: Values = field(default_factory=dict)
    tolerance: float = 1e-9


def check(table: Table, name: str, case: Case) -> None:
    """Fails if the parameter is ignored: both observations are alike then."""
    [row] = [row for row in table if row.name == name]
    assert name not in case.given and row.convert(case.value) != row.convert(row.default), "no other value"
    plain = _seen(case, case.given)
    changed = _seen(case, {**case.given, name: case.value})
    assert not alike(changed, plain, case.tolerance), f"'{name}' changes nothing: {plain}"
    expected = case.expected(plain) if callable(case.expected) else case.expected
    assert alike(changed, expected, case.tolerance), f"{changed}, expected {expected}; by default {plain}"


@contextmanager
def while_running() -> Iterator[None]:
    """Within, observations begin with the defaults of parameters that may change, and set these afterwards."""
    token = _LATE.set(True)
    try:
        yield
    finally:
        _LATE.reset(token)


def split(table: Table, values: Values) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The values to begin with; and those to be set afterwards, None if nothing is."""
    if not _LATE.get():
        return dict(values), None
    fixed = {row.name for row in table if row.read_only}
    return {name: value for name, value in values.items() if name in fixed}, dict(values)


def begun(kind: Any, settings: Any, table: Table, model: Any, values: Values) -> Any:
    """The logic `kind(model, settings.from_values(values, model))`; `while_running`, values are applied afterwards."""
    first, later = split(table, values)
    logic = kind(model, settings.from_values(first, model))
    if later is not None:
        logic.apply(settings.from_values(later, model))
    return logic


def seconds_until_refused(read: Callable[[float], Any]) -> float:
    """The first time (s), in steps of 10 ms, at which `read` raises `RbdError`."""
    for k in count():
        try:
            read(0.01 * k)
        except RbdError:
            return 0.01 * k
    raise AssertionError


def alike(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two observations are the same, numbers within the tolerance."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(alike(*pair, tolerance) for pair in zip(one, other, strict=True))
    if isinstance(one, (float, np.ndarray)) and isinstance(other, (float, np.ndarray)):
        return np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=0.0, atol=tolerance)
    return type(one) is type(other) and bool(one == other)


def _seen(case: Case, values: Values) -> Any:
    try:
        return case.observe(values)
    except RbdError as error:
        return str(error)
