"""Scratch memory of calls with one state: one array that a frozen model, or a set of constraints in it, owns.

Compiled, such calls hold the interpreter's lock from the first number they write to the last one they read, so one
array serves all functions and all threads (`RobotModel._work`, `Bound.work`). In plain Python each call takes its own.
The size is what the most demanding of the functions needs: each says what it takes, from its layouts, before the first
array is made.
"""
from __future__ import annotations

from collections.abc import Callable


class Workspace:
    """The needs of all functions that share an array, in terms of these counts."""

    def __init__(self, *counts: str) -> None:
        self._counts = counts
        self._needs: list[Callable[..., int]] = []
        self._made = False

    def takes(self, need: Callable[..., int]) -> None:
        """Register the size that a function needs, given the counts by name."""
        if self._made:
            raise RuntimeError("a function that uses the workspace was imported after a workspace had been made")
        self._needs.append(need)

    def size(self, **counts: int) -> int:
        """Size that suffices for all functions."""
        self._made = True
        return max((need(*(counts[name] for name in self._counts)) for need in self._needs), default=0)


# columns: of S, of all nodes together: nv, or more where bodies share coordinates
ONE_STATE = Workspace("nodes", "columns", "nv")
CONSTRAINED = Workspace("nodes", "nv", "rows")
