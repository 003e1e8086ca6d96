"""Results of the identification demo as a table and a picture."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...core.identification.identified import Identification
from ...core.text_table import aligned
from ..demo_report import COLORS, Result, points

Array = NDArray[np.float64]


def table(results: Mapping[str, Result], joints: Sequence[str]) -> str:
    """Lines of text: tracking errors."""
    first = next(iter(results.values())).rms
    rows = [("feed-forward and PD", "RMS error", "better", "largest", "worst joint")]
    for result in results.values():
        worst = int(np.argmax(result.rms_per_joint))
        rows.append((result.title, f"{result.rms:.4f} rad", f"{first / result.rms:.1f} x",
                     f"{np.abs(result.error).max():.4f}", f"{joints[worst]} {result.rms_per_joint[worst]:.4f}"))
    return "\n".join(aligned(rows))


def plot(path: Path, results: Mapping[str, Result], found: Identification, joints: Sequence[str]) -> None:
    """A PNG: tracking errors over time and per joint, residuals per joint. Needs matplotlib (`ImportError`)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 8.0), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, height_ratios=(3, 2))
    over_time, per_joint, efforts = (figure.add_subplot(place) for place in (grid[0, :], grid[1, 0], grid[1, 1]))
    colors = (COLORS[0], COLORS[2])
    residual = found.residual
    for i, (result, color, share) in enumerate(zip(results.values(), colors, (residual.before, residual.after),
                                                   strict=True)):
        over_time.semilogy(result.t, np.maximum(np.sqrt(np.mean(result.error**2, axis=1)), 1e-6), color=color,
                           label=f"{result.title}: {result.rms:.4f} rad RMS", linewidth=1.5)
        points(per_joint, 2 * i, result.rms_per_joint, color)
        points(efforts, 2 * i, 100.0 * share, color)
    over_time.set(xlabel="time (s)", ylabel="tracking error, RMS over joints (rad)", ylim=(1e-4, None),
                  xlim=(0.0, float(next(iter(results.values())).t[-1])),
                  title=f"{found.prior.name}: the same robot, gains and motion, feed-forward from two descriptions")
    over_time.legend(loc="lower right")
    for axes, title, label in ((per_joint, "tracking error, joint by joint", "RMS over time (rad)"),
                               (efforts, "torque that is not explained, on motion not fitted",
                                "‖τ − τ̂‖ / ‖τ‖ (%)")):
        axes.set(yscale="log", xticks=np.arange(len(joints)), xticklabels=joints, title=title, ylabel=label)
        axes.tick_params(axis="x", rotation=30)
        axes.set_axisbelow(True)
    for axes in (over_time, per_joint, efforts):
        axes.grid(which="both", axis="both" if axes is over_time else "y", alpha=0.25)
    figure.savefig(path, dpi=110)
