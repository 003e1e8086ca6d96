"""The picture of docs/motion.md's motions that hit nothing: `python -m benchmark.collision_picture`."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

import rbd_ros as rbd

from .collision_planning import CLEARANCE, OBJECTIVE, SCENES, arm, problems

PATH = Path(__file__).parents[1] / "docs" / "images" / "motion_around.png"
SHOWN = 9      # postures
FACES = ((0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5))


def posed(axes: Any, model: rbd.RobotModel, motion: Any, title: str) -> None:
    """The shelf and the arm at equal times, from dark to light."""
    for entry in SCENES["shelf"]:
        half = 0.5 * np.array(entry["size"])
        corners = np.array(entry["frame"]) + half * (2 * np.indices((2, 2, 2)).reshape(3, 8).T - 1)
        axes.add_collection3d(Poly3DCollection(corners[np.array(FACES)], facecolor="0.6", edgecolor="0.3", alpha=0.15,
                                               linewidth=0.4))
    for k, t in enumerate(np.linspace(0.0, motion.duration, SHOWN)):
        points = rbd.forward_kinematics(model, motion(t).q)[:, :3, 3]
        color = (0.1 + 0.6 * k / SHOWN, 0.2 + 0.4 * k / SHOWN, 0.7 - 0.5 * k / SHOWN)
        axes.plot(*points.T, color=color, linewidth=3.5, solid_capstyle="round")
    tip = rbd.forward_kinematics(model, motion(np.linspace(0.0, motion.duration, 200)).q)[:, -1, :3, 3]
    axes.plot(*tip.T, color="0.2", linewidth=1.0, linestyle=":")
    axes.set(xlim=(-0.3, 1.1), ylim=(-0.7, 0.7), zlim=(-0.1, 1.3), title=title)
    axes.set_box_aspect((1, 1, 1), zoom=1.45)
    axes.view_init(elev=22.0, azim=-125.0)
    axes.set_axis_off()


def main() -> None:
    model, own, _ = arm("iiwa")
    collisions = own.with_obstacles(SCENES["shelf"])
    for start, goal in problems(model, collisions, "shelf", 40, seed=4):
        straight = rbd.optimize_motion(model, start, goal, None, OBJECTIVE, starts=1, time_limit=60.0)
        around = rbd.optimize_motion(model, start, goal, None, OBJECTIVE, collisions=collisions, clearance=CLEARANCE,
                                     time_limit=60.0)
        x = rbd.forward_kinematics(model, start)[-1, 0, 3]
        depth = -collisions.distances(straight(np.linspace(0.0, straight.duration, 300)).q).min()
        if straight.good and around.good and depth > 0.04 and x < 0.4:
            break
    figure = Figure(figsize=(11.0, 3.9), layout="constrained")
    FigureCanvasAgg(figure)
    posed(figure.add_subplot(1, 3, 1, projection="3d"), model, straight, "without collisions")
    posed(figure.add_subplot(1, 3, 2, projection="3d"), model, around, "with")
    axes = figure.add_subplot(1, 3, 3)
    for motion, label in ((straight, "without"), (around, "with")):
        t = np.linspace(0.0, motion.duration, 600)
        axes.plot(t, 1e3 * collisions.distances(motion(t).q).min(axis=1), label=label)
    axes.axhline(1e3 * CLEARANCE, color="0.5", linestyle="--", linewidth=1.0, label="clearance")
    axes.axhline(0.0, color="0.2", linewidth=0.8)
    axes.set(xlabel="time (s)", ylabel="smallest distance (mm)")
    axes.legend(fontsize=8)
    figure.savefig(PATH, dpi=80, pil_kwargs={"optimize": True})
    print(f"{PATH.name}: {PATH.stat().st_size // 1024} kB, {straight.duration:.2f} s and {around.duration:.2f} s")


if __name__ == "__main__":
    main()
