"""Checks of single numbers that a user gives."""
from __future__ import annotations

from typing import Any

from ..errors import RbdError, shown


def positive(value: Any, name: str, what: str) -> float:
    """A positive finite number; `RbdError` for anything else, which says that `name` is a positive `what`."""
    try:
        number = float("nan") if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not 0.0 < number < float("inf"):
        raise RbdError(f"{name} must be a positive {what}, got {shown(value)}")
    return number


def step_count(n: Any) -> int:
    """A positive number of steps."""
    try:
        count = int(n)
        whole = bool(count == n)
    except (TypeError, ValueError, OverflowError):
        count, whole = 0, False
    if count < 1 or not whole:
        raise RbdError(f"n must be a positive number of steps, got {shown(n)}")
    return count
