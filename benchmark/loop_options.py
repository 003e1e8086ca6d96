"""What the options of the control loop and of the middleware change in the round trip of `feedforward`."""
from __future__ import annotations

from typing import Any

from . import roundtrip


def run(seconds: float = 10.0) -> dict[str, Any]:
    """Print a row for each option, idle and loaded; returns the figures."""
    return roundtrip.run(seconds, options=True)
