"""`Usage`: how much of a limit a motion uses."""
from __future__ import annotations

from typing import NamedTuple


class Usage(NamedTuple):
    """The largest ratio of a quantity to its limit (1: at the limit), with its joint and time (s)."""

    ratio: float
    joint: str
    time: float
