"""Verdicts on inputs, accepted or rejected with a reason; rejections are counted per kind."""
from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ...core.errors import RbdError


class Verdict(NamedTuple):
    """True if the input was accepted. text: reason of the rejection ("" for irrelevant input), or a warning.

    jumps: the new motion does not start at the present reference, so the torque may jump.
    """

    taken: bool
    text: str = ""
    jumps: bool = False

    def __bool__(self) -> bool:
        return self.taken


TAKEN, IGNORED = Verdict(True), Verdict(False)


class Rejected(RbdError):
    """A rejected input. `kind` is one of `Rejections.KINDS`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def check_size(topic: str, size: int, most: int, parameter: str = "input_limits.bytes", what: str = "bytes") -> None:
    """Raise `Rejected` for a message larger than `most`, the value of `parameter`."""
    if size > most:
        raise Rejected("too_large", f"message of {size} {what} on {topic}, at most {most}"
                                    + f" (parameter '{parameter}')" * bool(parameter))


class Rejections:
    """Counts of rejected inputs by kind, and the last reason, for reports."""

    KINDS = ("wrong_size", "non_finite", "unknown_joint", "missing_joint", "duplicate_joint", "stamp_backwards",
             "unknown_body", "bad_trajectory", "implausible", "stamp_leap", "malformed", "frame", "not_unit",
             "no_odometry", "too_large", "excessive_wrench", "repeated", "hitting")

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter({kind: 0 for kind in self.KINDS})
        self.last = ""

    def add(self, error: Rejected) -> Verdict:
        """Count a rejection; returns the verdict for the sender."""
        self.counts[error.kind] += 1
        self.last = str(error)
        return Verdict(False, self.last)

    @property
    def total(self) -> int:
        return sum(self.counts.values())
