"""Fuzz: every torque node under a storm of good, nearly good and hostile messages over DDS.

A process of its own for each node; this one sends joint states, references, trajectories, wrenches, motor states,
emergency stops, parameter changes and transitions, and checks every message of every output: finite in every field,
within the effort limits, of the right size and names, the same on all outputs. The node must answer good states
always, its counters must add up with what was sent, nothing may be a traceback in its log, and after the storm its
answers must equal those of the fresh node to the last bit (of node cartesian, to 1e-9 N m). A seed gives the same
messages in the same order.
"""
from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..timing import table
from . import targets
from .storm import Storm

NODES = targets.NAMES


def run(messages: int = 100_000, seed: int = 1, nodes: Sequence[str] = NODES,
        folder: Path = Path("output/fuzz")) -> dict[str, Any]:
    """Attack these nodes one after another; prints a row for each, and returns them with all `violations`."""
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 99))
    folder.mkdir(parents=True, exist_ok=True)
    rows = [Storm(targets.make(name), folder, seed, _Progress()).run(messages) for name in nodes]
    print()
    table(f"Fuzz: seed {seed}, {messages} messages per node", [
        "node", "messages", "and good", "states", "efforts", "rejected", "s", "as fresh", "tries", "violations"],
        [[row["node"], str(row["messages"]), str(row["sent"] - row["messages"]),
          *(str(row[key]) for key in ("states", "efforts", "rejected")),
          f"{row['seconds']:.0f}", str(row["exams"]), str(row["tries"]), str(len(row["violations"]))] for row in rows])
    violations = [f"{row['node']}: {what}" for row in rows for what in row["violations"]]
    print("  and good: good ones that had to be answered, between those of the storm. as fresh: how often its answers "
          f"equalled those of the fresh node. {'; '.join(violations) or 'No violation'}")
    return {"rows": rows, "violations": violations}


class _Progress:
    """A line that is overwritten, on a terminal; else a line now and then."""

    def __init__(self) -> None:
        self._due, self._terminal = 0.0, sys.stdout.isatty()

    def __call__(self, text: str) -> None:
        if time.monotonic() >= self._due:
            print(f"\r  {text}" if self._terminal else f"  {text}", end="" if self._terminal else "\n", flush=True)
            self._due = time.monotonic() + (0.2 if self._terminal else 10.0)
