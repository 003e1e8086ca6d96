"""Results of the lifting demo as a table, a file and a picture."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.text_table import aligned
from .demo_report import COLORS, write_summary

Array = NDArray[np.float64]


class Run:
    """One motion. needed: efforts (N, nv) that it takes, by the model, at times t (N,); applied, error: efforts and
    q − q_ref (M, nv) of the simulated robot at times t_applied (M,); figures: of the planner.
    """

    def __init__(self, title: str, t: Array, needed: Array, t_applied: Array, applied: Array, error: Array,
                 limit: Array, figures: Mapping[str, Any]) -> None:
        self.title, self.t, self.needed, self.figures = title, t, needed, figures
        self.t_applied, self.applied = t_applied, applied
        self.share: Array = np.abs(needed).max(axis=0) / limit
        self.saturated = float(np.mean(np.any(np.abs(applied) >= limit * (1.0 - 1e-9), axis=1)))
        self.off = float(np.abs(error).max())
        self.off_at_end = float(np.abs(error[-1]).max())
        power = (needed**2).sum(axis=1)
        self.squared = float(np.diff(t) @ (power[1:] + power[:-1]) / 2.0)


def table(results: Mapping[str, Run], joints: Sequence[str]) -> str:
    """Lines of text."""
    rows = [("", "torque", "by joint", "∫‖τ‖²", "at a limit", "off", "at the end")]
    for run in results.values():
        worst = int(np.argmax(run.share))
        rows.append((run.title, f"{100.0 * run.share[worst]:.0f} %", joints[worst], f"{run.squared:.0f} N²m²s",
                     f"{100.0 * run.saturated:.0f} % of time", f"{1e3 * run.off:.1f} mrad",
                     f"{1e3 * run.off_at_end:.1f} mrad"))
    return "\n".join(aligned(rows))


def write(path: Path, results: Mapping[str, Run], more: Mapping[str, Any]) -> None:
    """`summary.json`."""
    write_summary(path, {**more, "modes": {key: {
        "title": run.title, "effort_share": run.share.tolist(), "effort_squared": run.squared,
        "time_at_a_limit": run.saturated, "max_error_rad": run.off, "end_error_rad": run.off_at_end, **run.figures,
    } for key, run in results.items()}})


def plot(path: Path, results: Mapping[str, Run], joints: Sequence[str], limit: Array, title: str) -> None:
    """A PNG: torques of each joint against its limits. Needs matplotlib (`ImportError`)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 7.0), layout="constrained")
    FigureCanvasAgg(figure)
    columns = 4
    grid = figure.subplots(-(-len(joints) // columns), columns, sharex=True).ravel()
    end = float(next(iter(results.values())).t[-1])
    for j, name in enumerate(joints):
        axes = grid[j]
        for i, (run, color) in enumerate(zip(results.values(), COLORS, strict=False)):
            over = 100.0 * run.share[j]
            axes.plot(run.t, run.needed[:, j], color=color, linewidth=2.0)
            axes.plot(run.t_applied, run.applied[:, j], color=color, linewidth=0.8, linestyle=":")
            axes.text(0.72 + 0.28 * i, 1.02, f"{over:.0f} %", color=color, ha="right", va="bottom",
                      transform=axes.transAxes, weight="bold" if over > 100.0 else "normal")
        for bound in (-limit[j], limit[j]):
            axes.axhline(bound, color="black", linestyle="--", linewidth=1.0)
        reach = 1.15 * max(limit[j], *(np.abs(run.needed[:, j]).max() for run in results.values()))
        axes.axhspan(limit[j], 2.0 * reach, color="black", alpha=0.08)
        axes.axhspan(-2.0 * reach, -limit[j], color="black", alpha=0.08)
        axes.set_title(name, loc="left")
        axes.set(xlim=(0.0, end), ylim=(-reach, reach))
        axes.grid(alpha=0.25)
        if j % columns == 0:
            axes.set_ylabel("torque (N m)")
        if j >= len(joints) - columns:
            axes.set_xlabel("time (s)")
            axes.tick_params(labelbottom=True)
    for axes in grid[len(joints):]:
        axes.axis("off")
    handles = [grid[0].plot([], [], color=color, linewidth=2.0, label=run.title)[0]
               for run, color in zip(results.values(), COLORS, strict=False)]
    handles += [grid[0].plot([], [], color="gray", linewidth=0.8, linestyle=":",
                             label="applied by the simulated arm")[0],
                grid[0].plot([], [], color="black", linestyle="--", linewidth=1.0, label="limit")[0]]
    place = grid[-1] if len(joints) < len(grid) else figure
    place.legend(handles=handles, loc="center" if place is grid[-1] else "outside lower center")
    figure.suptitle(f"{title}: torque that each motion needs, and its share of the limit")
    figure.savefig(path, dpi=100)
