"""Results of `rbd sweep` as a table, a plot and a file."""
from __future__ import annotations

from pathlib import Path

import numpy as np

from .trial import LAWS, Trial

DRAWN = ("mass", "friction", "delay")
SHOWN = ("median", "5 %", "95 %", "worst", "peak")


def table(trials: list[Trial]) -> str:
    """Distribution of the tracking error of each law."""
    rms = np.array([trial.rms for trial in trials])
    largest = np.array([trial.largest for trial in trials])
    lines = [f"{'tracking error, mrad or mm':27}" + "".join(f"{name:>9}" for name in SHOWN) + f"{'diverged':>10}"]
    for i, law in enumerate(LAWS):
        low, middle, high = np.percentile(rms[:, i], [5, 50, 95], method="nearest") * 1e3
        lines.append(f"{law:27}{middle:9.3g}{low:9.3g}{high:9.3g}{rms[:, i].max() * 1e3:9.3g}"
                     f"{largest[:, i].max() * 1e3:9.3g}{np.count_nonzero(np.isinf(rms[:, i])):10d}")
    return "\n".join(lines)


def write(path: Path, trials: list[Trial]) -> None:
    """Write CSV with a row per robot: random parameters, RMS and largest error per law (rad or m)."""
    names = [f"{kind}_{law.replace(' + ', '_').replace(' ', '_').replace('-', '')}" for kind in ("rms", "largest")
             for law in LAWS]
    rows = [",".join([*DRAWN, *names])]
    rows += [",".join(f"{x:.9g}" for x in (*(getattr(trial, name) for name in DRAWN), *trial.rms, *trial.largest))
             for trial in trials]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def plot(path: Path, trials: list[Trial], title: str) -> None:
    """Plot the share of robots below an error, one curve per law."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, ScalarFormatter

    figure, axes = pyplot.subplots(figsize=(7.0, 4.2), layout="constrained")
    share = np.arange(1, len(trials) + 1) / len(trials) * 100.0
    for i, law in enumerate(LAWS):
        axes.step(np.sort([trial.rms[i] for trial in trials]) * 1e3, share, where="post", label=law)
    axes.set(xscale="log", xlabel="tracking error, RMS over joints and time (mrad or mm)",
             ylabel="share of robots below (%)", ylim=(0, 101), title=title)
    axes.grid(which="both", alpha=0.3)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda x, _: f"{x:g}" if f"{x:.0e}"[0] in "25" else ""))
    figure.legend(loc="outside lower center", ncols=len(LAWS))
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
