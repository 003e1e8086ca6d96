"""`/diagnostics` as a table in the terminal, once a second: rates, latencies, missed deadlines, rejections, limits.

Executable `diagnostics_view`; arguments: parts of node names to show, none for all. In a pipe the tables are printed
below each other.
"""
from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.clock import Clock, ClockType
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.utilities import remove_ros_args

from ..core.text_table import aligned
from ..streams import be_quiet
from .base.spin import run

COLUMNS = {"Hz": "rate_hz", "p50 µs": "latency_p50_us", "p99 µs": "latency_p99_us", "misses": "deadline_misses",
           "rejected": "rejected_total", "saturated": "saturated", "rate limited": "rate_limited",
           "timeouts": "timeouts"}
LEVELS = {DiagnosticStatus.OK: "ok", DiagnosticStatus.WARN: "WARN", DiagnosticStatus.ERROR: "ERROR",
          DiagnosticStatus.STALE: "STALE"}
WIDEST = 36      # characters of a status in the table; longer ones are printed below the table
SILENT = 3.0    # s without a message after which a node counts as gone
CLEAR = "\033[H\033[J"


def table(statuses: Iterable[tuple[DiagnosticStatus, float]]) -> list[str]:
    """Rows of nodes, from their last status and its age (s); below them long statuses and rejections."""
    rows, notes = [["node", "status", *COLUMNS]], []
    for status, age in sorted(statuses, key=lambda item: item[0].name):
        values = {item.key: item.value for item in status.values}
        text = f"{LEVELS.get(status.level, '?')}: {status.message}"
        if age > SILENT:
            text = f"SILENT for {age:.0f} s (was {text})"
        if len(text) > WIDEST:
            notes.append(f"{status.name} {text}")
            text = text[:WIDEST - 1] + "…"
        rows.append([status.name, text, *(_short(values.get(key, "–")) for key in COLUMNS.values())])
        kinds = _kinds(values)
        if kinds:
            notes.append(f"{status.name} rejected: {kinds}")
    return aligned(rows, 2) + notes


def _short(value: str) -> str:
    try:
        number = float(value)
    except ValueError:
        return value
    return value if number.is_integer() else f"{number:.1f}"


def _kinds(values: Mapping[str, str]) -> str:
    return ", ".join(f"{value} {key.removeprefix('rejected_').replace('_', ' ')}" for key, value in values.items()
                     if key.startswith("rejected_") and key != "rejected_total" and value != "0")


class DiagnosticsView(Node):
    """Stores the last status of every node and prints the table."""

    def __init__(self, wanted: list[str]) -> None:
        super().__init__("diagnostics_view")
        self._wanted = wanted
        self._statuses: dict[str, tuple[DiagnosticStatus, float]] = {}
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        self.create_timer(1.0, self._show, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if not self._wanted or any(part in status.name for part in self._wanted):
                self._statuses[status.name] = status, time.monotonic()

    def _show(self) -> None:
        now = time.monotonic()
        lines = table((status, now - heard) for status, heard in self._statuses.values()) if self._statuses else [
            "nothing on /diagnostics yet"]
        try:
            print(*[CLEAR] * sys.stdout.isatty(), *lines, "", sep="\n", flush=True)
        except BrokenPipeError:    # the reader has ended, e.g. `head`
            be_quiet()
            raise ExternalShutdownException from None


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `diagnostics_view`."""
    argv: list[Any] = sys.argv if arguments is None else ["diagnostics_view", *arguments]
    wanted: list[str] = []
    with contextlib.suppress(RuntimeError):    # for invalid arguments, which `run` reports
        wanted = remove_ros_args(argv)[1:]
    if any(part.startswith("-") for part in wanted):
        print(__doc__.replace("`", ""))
        return
    run(lambda: DiagnosticsView(wanted), arguments)


if __name__ == "__main__":
    main()
