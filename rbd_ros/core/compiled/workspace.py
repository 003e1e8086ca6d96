"""Scratch memory of calls with one state: one array per model, or per constraint set bound to it.

Compiled calls hold the interpreter's lock while they use it: all functions and threads share the array
(`RobotModel._work`, `Bound.work`). In plain Python each call allocates an array. The size is the largest need of any
function; functions register their needs, from their layouts, before the first array is allocated.
"""
from __future__ import annotations

from collections.abc import Callable


class Workspace:
    """Registered sizes of all functions that share an array, as functions of named counts."""

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
        """Largest registered size for these counts."""
        self._made = True
        return max((need(*(counts[name] for name in self._counts)) for need in self._needs), default=0)


# columns: of S, summed over nodes: nv, or more with mimic joints
ONE_STATE = Workspace("nodes", "columns", "nv")
CONSTRAINED = Workspace("nodes", "nv", "rows")
