"""Results of the demo as a table, a file and a plot."""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import RbdError
from ..core.text_table import aligned

Array = NDArray[np.float64]

COLORS = ("#d55e00", "#0072b2", "#009e73")    # colour-blind safe


class Result:
    """One mode. error: q − q_ref (N, nv) at times t (N,); report, plant: diagnostics of controller and simulator."""

    def __init__(self, title: str, t: Array, error: Array, report: Mapping[str, float],
                 plant: Mapping[str, float]) -> None:
        self.title, self.t, self.error, self.report, self.plant = title, t, error, report, plant
        self.rms = float(np.sqrt(np.mean(error**2)))
        self.rms_per_joint: Array = np.sqrt(np.mean(error**2, axis=0))

    @property
    def latency(self) -> tuple[float, float]:
        """p50 and p99 in µs."""
        return self.report["latency_p50_us"], self.report["latency_p99_us"]


def table(results: Mapping[str, Result], joints: Sequence[str]) -> str:
    """Lines of text; a single result is not better than any."""
    first = next(iter(results.values())).rms
    rows: list[tuple[str, ...]] = [("", "RMS error", "better", "worst joint", "latency p50 / p99", "late", "waits")]
    for result in results.values():
        worst = int(np.argmax(result.rms_per_joint))
        p50, p99 = result.latency
        rows.append((result.title, f"{result.rms:.4f} rad", f"{first / max(result.rms, 1e-9):.1f} x",
                     f"{joints[worst]} {result.rms_per_joint[worst]:.4f}", f"{p50:.0f} / {p99:.0f} µs",
                     f"{result.report['deadline_misses']:.0f}", f"{result.plant['waits']:.0f}"))
    if len(results) == 1:
        rows = [(*row[:2], *row[3:]) for row in rows]
    return "\n".join(aligned(rows))


def summary(results: Mapping[str, Result], joints: Sequence[str], more: Mapping[str, Any]) -> dict[str, Any]:
    """Contents of `summary.json`; latency and rate of the last mode, misses of all modes."""
    last = list(results.values())[-1]
    return {
        "rms_error_rad": {key: result.rms for key, result in results.items()},
        "latency_us": dict(zip(("p50", "p99"), last.latency, strict=True)),
        "deadline_misses": int(sum(result.report["deadline_misses"] for result in results.values())),
        "rate_hz": last.report["rate_hz"],
        "modes": {key: {
            "title": result.title, "states": len(result.t), "rate_hz": result.report["rate_hz"],
            "latency_us": dict(zip(("p50", "p99"), result.latency, strict=True)),
            "deadline_misses": int(result.report["deadline_misses"]), "saturated": int(result.report["saturated"]),
            "simulator_waits": int(result.plant["waits"]),
            "simulator_deadline_misses": int(result.plant["deadline_misses"]),
            "max_error_rad": float(np.abs(result.error).max()),
            "rms_error_rad_per_joint": dict(zip(joints, result.rms_per_joint.tolist(), strict=True)),
        } for key, result in results.items()},
        **more,
    }


def write_summary(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file; raises `RbdError` on failure."""
    try:
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise RbdError(f"cannot write {path}: {error.strerror}") from None


def points(axes: Any, i: int, values: Array, color: str) -> None:
    """Curve number i of values per joint: points, as bars have no foot on a logarithmic axis."""
    axes.plot(np.arange(len(values)) + 0.12 * (i - 1), values, "osD"[i % 3], color=color, markersize=8.0)


def plot(path: Path, results: Mapping[str, Result], joints: Sequence[str], robot: str) -> None:
    """A PNG: the error over time, and per joint. Needs matplotlib (`ImportError`)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 8.0), layout="constrained")
    FigureCanvasAgg(figure)
    over_time, per_joint = figure.subplots(2, 1, height_ratios=(3, 2))
    for i, (result, color) in enumerate(zip(results.values(), COLORS, strict=False)):
        label = f"{result.title}: {result.rms:.4f} rad RMS"
        over_time.semilogy(result.t, np.maximum(np.sqrt(np.mean(result.error**2, axis=1)), 1e-6), color=color,
                           label=label, linewidth=1.5)
        points(per_joint, i, result.rms_per_joint, color)
    over_time.set(xlabel="time (s)", ylabel="tracking error, RMS over joints (rad)", ylim=(3e-4, None),
                  xlim=(0.0, float(next(iter(results.values())).t[-1])),
                  title=f"{robot}: tracking a trajectory with a robot that differs from its model")
    over_time.legend(loc="lower right")
    over_time.grid(which="both", alpha=0.25)
    per_joint.set(ylabel="RMS over time (rad)", yscale="log", xticks=np.arange(len(joints)), xticklabels=joints,
                  title="the same error, joint by joint")
    per_joint.grid(axis="y", which="both", alpha=0.25)
    per_joint.set_axisbelow(True)
    if len(joints) > 8:
        per_joint.tick_params(axis="x", rotation=30)
    figure.savefig(path, dpi=120)
