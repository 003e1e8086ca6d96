"""Medians of interleaved timings: A B A B …, so that a machine's drift falls on both."""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

ROUND = 5e-4    # seconds of one round of one function: short, so that most rounds are not interrupted


def interleaved(functions: Mapping[str, Callable[[], object]], rounds: int = 99) -> dict[str, float]:
    """Median seconds per call of each function, all measured in turns."""
    repeat = {}
    for name, function in functions.items():
        function()
        count = 1
        while (spent := _spent(function, count)) < ROUND / 4:
            count *= 4
        repeat[name] = max(1, round(count * ROUND / spent))
    samples: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            samples[name].append(_spent(function, repeat[name]) / repeat[name])
    return {name: statistics.median(values) for name, values in samples.items()}


def _spent(function: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        function()
    return time.perf_counter() - start


def table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Print an aligned table."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    print(f"\n{title}")
    for row in [header, ["-" * w for w in widths], *rows]:
        print("  " + "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                              for i, (cell, w) in enumerate(zip(row, widths, strict=True))))
