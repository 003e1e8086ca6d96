"""Common parts of the demos: output folder and compiled kernels, progress, report as table, file and picture."""
from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.compiled.ahead import compile_all, know_all
from ..core.compiled.entry import is_cached
from ..core.compiled.kernel import COMPILED
from ..core.errors import RbdError
from ..core.text_table import aligned
from ..signals import ends_at_once

Array = NDArray[np.float64]
Columns = Mapping[str, Callable[[Any], str]]    # heading → text of a result

COLORS = ("#d55e00", "#0072b2", "#009e73")    # colour-blind safe
UNITS = {"rad": (1.0, 4), "mrad": (1e3, 3)}   # per rad, and decimals


def prepare(folder: Path) -> None:
    """Make the output folder, and compile the kernels: here, once and visibly, rather than in several children."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RbdError(f"cannot make folder {folder}: {error.strerror}") from None
    if COMPILED:
        know_all()
        if not is_cached():
            print("compiling the kernels, once: this takes some minutes", flush=True)
            with ends_at_once("demo"):
                compile_all(print)
            print()
        else:
            compile_all()


class Progress:
    """One line per mode: a bar on a terminal, plain text elsewhere."""

    def __init__(self, title: str, titles: Iterable[str]) -> None:
        self._title = title.ljust(max(map(len, titles)))
        self._tty, self._shown = sys.stdout.isatty(), -1
        self._show("starting …")

    def at(self, fraction: float) -> None:
        percent = int(100.0 * fraction)
        if percent != self._shown:
            self._shown = percent
            self._show(f"[{'#' * (percent // 4):25}] {percent:3d} %")

    def done(self, text: str) -> None:
        print(f"\r\033[K{self._title}  {text}" if self._tty else f"{self._title}  {text}", flush=True)

    def _show(self, text: str) -> None:
        if self._tty:
            print(f"\r\033[K{self._title}  {text}", end="", flush=True)


class Result:
    """One mode. error: q − q_ref (N, nv) at times t (N,)."""

    def __init__(self, title: str, t: Array, error: Array) -> None:
        self.title, self.t, self.error = title, t, error
        self.rms = float(np.sqrt(np.mean(error**2)))
        self.rms_per_joint: Array = np.sqrt(np.mean(error**2, axis=0))
        self.largest = float(np.abs(error).max())

    def figures(self) -> dict[str, Any]:
        """Further entries of this mode in `summary.json`."""
        return {}


def errors(results: Mapping[str, Result], joints: Sequence[str], unit: str = "rad") -> Columns:
    """Columns of tracking errors. better: ratio to the first result; omitted for a single one."""
    (scale, decimals), first = UNITS[unit], next(iter(results.values())).rms

    def worst(result: Result) -> str:
        i = int(np.argmax(result.rms_per_joint))
        return f"{joints[i]} {scale * result.rms_per_joint[i]:.{decimals}f}"

    columns = {"RMS error": lambda result: f"{scale * result.rms:.{decimals}f} {unit}",
               "better": lambda result: f"{first / max(result.rms, 1e-9):.1f} x",
               "largest": lambda result: f"{scale * result.largest:.{decimals - 1}f} {unit}", "worst joint": worst}
    return {name: text for name, text in columns.items() if name != "better" or len(results) > 1}


def table(results: Mapping[str, Any], columns: Columns, heading: str = "") -> str:
    """The table as text. heading: of the column of titles."""
    return "\n".join(aligned([(heading, *columns), *((result.title, *(text(result) for text in columns.values()))
                                                  for result in results.values())]))


def summary(results: Mapping[str, Result], joints: Sequence[str], more: Mapping[str, Any]) -> dict[str, Any]:
    """Contents of `summary.json`."""
    return {
        "rms_error_rad": {key: result.rms for key, result in results.items()},
        "modes": {key: {
            "title": result.title, "max_error_rad": result.largest,
            "rms_error_rad_per_joint": dict(zip(joints, result.rms_per_joint.tolist(), strict=True)),
            **result.figures(),
        } for key, result in results.items()},
        "joints": list(joints), **more,
    }


def write_summary(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file; raises `RbdError` on failure."""
    try:
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise RbdError(f"cannot write {path}: {error.strerror}") from None


def finish(namespace: argparse.Namespace, begin: float, content: Mapping[str, Any], files: Sequence[str] = (),
           picture: tuple[str, Callable[[Path], None]] | None = None) -> None:
    """Write `summary.json` and the picture (name, and a function that writes it), and print the names of written files,
    with other `files` of the output folder. begin: start of the demo (`time.monotonic`, s).
    """
    folder: Path = namespace.output
    write_summary(folder / "summary.json", {**content, "elapsed_s": time.monotonic() - begin})
    written = ["summary.json", *files]
    if namespace.plot and picture is not None:
        try:
            picture[1](folder / picture[0])
            written.append(picture[0])
        except ImportError:
            print("no plot: matplotlib is not installed", file=sys.stderr)
    paths = [str(folder / name) for name in written]
    print(f"wrote {' and '.join(filter(None, (', '.join(paths[:-1]), paths[-1])))} "
          f"({time.monotonic() - begin:.0f} s in all)")


def draw(path: Path, size: tuple[float, float], content: Callable[[Any], None], dpi: int = 120) -> None:
    """A PNG of a figure of `size` (inches) with this content. Needs matplotlib (`ImportError`)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    content(figure)
    figure.savefig(path, dpi=dpi)


def draw_errors(over_time: Any, per_joint: Any, results: Mapping[str, Result], joints: Sequence[str], title: str,
                unit: str = "rad", colors: Sequence[str] = COLORS, least: float = 3e-4) -> None:
    """Tracking errors on two axes. least: lower end of the first one, in `unit`."""
    (scale, decimals), pairs = UNITS[unit], list(zip(results.values(), colors, strict=False))
    for result, color in pairs:
        rms = scale * np.sqrt(np.mean(result.error**2, axis=1))
        over_time.semilogy(result.t, np.maximum(rms, 1e-6), color=color, linewidth=1.5,
                           label=f"{result.title}: {scale * result.rms:.{decimals}f} {unit} RMS")
    end = round(float(pairs[0][0].t[-1]), 1)    # the last sample may be a few periods before the end
    over_time.set(xlabel="time (s)", ylabel=f"tracking error, RMS over joints ({unit})", ylim=(least, None),
                  xlim=(0.0, end), title=title)
    over_time.legend(loc="lower right")
    over_time.grid(which="both", alpha=0.25)
    draw_joints(per_joint, [(scale * result.rms_per_joint, color) for result, color in pairs], joints,
                "the same error, joint by joint", f"RMS over time ({unit})")


def draw_joints(axes: Any, values: Sequence[tuple[Array, str]], joints: Sequence[str], title: str, label: str) -> None:
    """Values (nv,) with their colours, as points, because bars have no base on a logarithmic axis."""
    for i, (each, color) in enumerate(values):
        axes.plot(np.arange(len(each)) + 0.12 * (i - (len(values) - 1) / 2.0), each, "osD"[i % 3], color=color,
                  markersize=8.0)
    axes.set(ylabel=label, yscale="log", xticks=np.arange(len(joints)), xticklabels=joints, title=title)
    axes.grid(axis="y", which="both", alpha=0.25)
    axes.set_axisbelow(True)
    if len(joints) > 8:
        axes.tick_params(axis="x", rotation=30)
