"""The picture of docs/contact.md: `python -m benchmark.contact_picture` runs the page and writes ball_on_plate.png."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", (DOCS / "contact.md").read_text(encoding="utf-8"), re.DOTALL):
        exec(code, names)
    history = names["history"]
    t, x, y, normal, friction = history[:, :5].T
    figure = Figure(figsize=(10.0, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    path, forces, efforts = figure.subplots(1, 3, width_ratios=(1.0, 1.3, 1.3))
    path.plot(x, y, linewidth=1.2)
    path.plot(x[0], y[0], "o", color="tab:blue")
    path.plot(0.0, 0.0, "+", color="black", markersize=10)
    path.set(xlim=(-0.1, 0.1), ylim=(-0.1, 0.1), xlabel="x on the plate (m)", ylabel="y (m)", aspect="equal")
    forces.plot(t, normal, label="normal force")
    forces.plot(t, friction, label="friction")
    forces.axhline(0.11 * 9.81, color="gray", linewidth=0.8, linestyle="--", label="weight of the ball")
    forces.set(xlabel="t (s)", ylabel="N", ylim=(0.0, None))
    efforts.plot(t, history[:, 5:], label=names["arm"])
    efforts.set(xlabel="t (s)", ylabel="effort (N m)")
    for axes in (forces, efforts):
        axes.legend(fontsize=8)
    for axes in (path, forces, efforts):
        axes.grid(alpha=0.3)
    figure.savefig(DOCS / "images" / "ball_on_plate.png", dpi=80)


if __name__ == "__main__":
    main()
