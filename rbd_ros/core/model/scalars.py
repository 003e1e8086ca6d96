"""Validation of scalar arguments."""
from __future__ import annotations

from typing import Any

from ..errors import RbdError, shown


def positive(value: Any, name: str, what: str) -> float:
    """A positive finite number; otherwise raises `RbdError`: `name` must be a positive `what`."""
    try:
        number = float("nan") if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not 0.0 < number < float("inf"):
        raise RbdError(f"{name} must be a positive {what}, got {shown(value)}")
    return number


def at_least(least: float, value: Any, name: str, unit: str) -> float:
    """A finite number of at least `least`; raises `RbdError` otherwise."""
    try:
        number = float("nan") if isinstance(value, str | bytes | bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not least <= number < float("inf"):
        raise RbdError(f"{name} must be a number of at least {least:g}{unit and f' {unit}'}, got {shown(value)}")
    return number


def step_count(n: Any) -> int:
    """A positive number of steps; raises `RbdError` otherwise."""
    return whole_number(n, "n", "number of steps")


def whole_number(n: Any, name: str, what: str = "whole number", most: float = float("inf")) -> int:
    """A whole number from 1 to `most`; otherwise raises `RbdError`: `name` must be a positive `what`."""
    try:
        count = int(n)
        whole = bool(count == n)
    except (TypeError, ValueError, OverflowError):
        count, whole = 0, False
    if not (whole and 1 <= count <= most):
        bound = f" of at most {most:g}" if most < float("inf") else ""
        raise RbdError(f"{name} must be a positive {what}{bound}, got {shown(n)}")
    return count
