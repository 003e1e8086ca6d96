"""Results of the elastic-joint demos as a table, a file and a plot."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import RbdError
from ..core.text_table import aligned
from .demo_report import COLORS, points, write_summary

Array = NDArray[np.float64]

SETTLED = 1.0    # s, after which the stiffness error is evaluated


class Run:
    """One mode. At times t (N,): error q − q_ref (N, nv), stiffness k/k_ref − 1 (N, n); µs per command."""

    def __init__(self, title: str, t: Array, error: Array, stiffness: Array, microseconds: float) -> None:
        self.title, self.t, self.error, self.stiffness, self.microseconds = title, t, error, stiffness, microseconds
        self.rms = float(np.sqrt(np.mean(error**2)))
        self.rms_per_joint: Array = np.sqrt(np.mean(error**2, axis=0))
        settled = stiffness[t >= min(SETTLED, 0.5 * float(t[-1]))]
        self.stiffness_error = float(np.abs(settled).max()) if stiffness.size else 0.0


def table(results: Mapping[str, Run], joints: Sequence[str]) -> str:
    """Lines of text."""
    first = next(iter(results.values())).rms
    variable = any(result.stiffness.size for result in results.values())
    rows = [("", "RMS error", "better", "largest", "worst joint", *(["stiffness"] if variable else []), "per command")]
    for result in results.values():
        worst = int(np.argmax(result.rms_per_joint))
        rows.append((result.title, f"{1e3 * result.rms:.3f} mrad", f"{first / result.rms:.1f} x",
                     f"{1e3 * np.abs(result.error).max():.2f} mrad",
                     f"{joints[worst]} {1e3 * result.rms_per_joint[worst]:.3f}",
                     *([f"{100 * result.stiffness_error:.2f} %"] if variable else []),
                     f"{result.microseconds:.0f} µs"))
    return "\n".join(aligned(rows))


def summary(results: Mapping[str, Run], joints: Sequence[str], variable: Sequence[str],
            more: Mapping[str, Any]) -> dict[str, Any]:
    """Contents of `summary.json`."""
    first = next(iter(results.values())).rms
    return {
        "rms_error_rad": {key: result.rms for key, result in results.items()},
        "better": {key: first / result.rms for key, result in results.items()},
        "modes": {key: {
            "title": result.title, "max_error_rad": float(np.abs(result.error).max()),
            "rms_error_rad_per_joint": dict(zip(joints, result.rms_per_joint.tolist(), strict=True)),
            "us_per_command": result.microseconds,
            **({"stiffness_error": result.stiffness_error,
                "stiffness_rms_error_per_joint": dict(zip(variable, np.sqrt(np.mean(result.stiffness**2, axis=0))
                                                          .tolist(), strict=True))} if variable else {}),
        } for key, result in results.items()},
        "joints": list(joints), **more,
    }


def write(folder: Path, results: Mapping[str, Run], joints: Sequence[str], variable: Sequence[str],
          more: Mapping[str, Any]) -> list[Path]:
    """`summary.json`, and the errors over time as `<mode>.npz`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RbdError(f"cannot make folder {folder}: {error.strerror}") from None
    file = folder / "summary.json"
    write_summary(file, summary(results, joints, variable, more))
    for key, result in results.items():
        np.savez_compressed(folder / f"{key}.npz", t=result.t, error=result.error, stiffness=result.stiffness)
    return [file]


def plot(path: Path, results: Mapping[str, Run], joints: Sequence[str], variable: Sequence[str], title: str) -> None:
    """A PNG: the error over time and per joint, and that of the stiffness. Needs matplotlib (`ImportError`)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 10.5 if variable else 8.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(3 if variable else 2, 1, height_ratios=(3, 2, 2) if variable else (3, 2))
    over_time, per_joint = axes[0], axes[1]
    for i, (result, color) in enumerate(zip(results.values(), COLORS, strict=False)):
        label = f"{result.title}: {1e3 * result.rms:.3f} mrad RMS"
        rms = 1e3 * np.sqrt(np.mean(result.error**2, axis=1))
        over_time.semilogy(result.t, np.maximum(rms, 1e-6), color=color, label=label, linewidth=1.5)
        points(per_joint, i, 1e3 * result.rms_per_joint, color)
        if variable:
            worst = 100.0 * np.abs(result.stiffness).max(axis=1)
            axes[2].semilogy(result.t, np.maximum(worst, 1e-5), color=color, linewidth=1.5)
    end = round(float(next(iter(results.values())).t[-1]), 1)    # the last sample is a few periods before the end
    over_time.set(xlabel="time (s)", ylabel="tracking error, RMS over joints (mrad)", xlim=(0.0, end),
                  ylim=(1e-2, None), title=f"{title}: tracking with a robot that differs from its model")
    over_time.legend(loc="lower right")
    per_joint.set(ylabel="RMS over time (mrad)", yscale="log", xticks=np.arange(len(joints)), xticklabels=joints,
                  title="the same error, joint by joint")
    per_joint.set_axisbelow(True)
    if variable:
        axes[2].set(xlabel="time (s)", ylabel="largest over joints (%)", xlim=(0.0, end), ylim=(1e-3, None),
                    title="stiffness: deviation from the desired value")
        axes[2].grid(which="both", alpha=0.25)
    over_time.grid(which="both", alpha=0.25)
    per_joint.grid(axis="y", which="both", alpha=0.25)
    figure.savefig(path, dpi=120)
