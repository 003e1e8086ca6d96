"""The pictures of docs/motion.md: `python -m benchmark.motion_pictures` writes docs/images/motion_<objective>.png.

The same start and goal of the sample iiwa with a load of 8 kg; each motion lasts 2.4 s, except the fastest one.
"""
from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import rbd_ros as rbd
from rbd_ros.cli.plan_report import draw
from rbd_ros.runtime.planning.motion_planner import MotionPlanner
from rbd_ros.runtime.planning.motion_request import MotionRequest
from rbd_ros.runtime.planning.planner_settings import PlannerSettings

FOLDER = Path(__file__).parents[1] / "docs" / "images"
START = [0.0, 0.9, 0.0, -1.2, 0.0, 0.8, 0.0]
GOAL = [1.0, -0.3, 0.3, -0.5, 0.4, -0.4, 0.6]
DURATION = 2.4
OBJECTIVES = ("effort", "effort_rate", "power", "velocity", "acceleration", "jerk", "duration")
TITLES = {"effort": "∫Σ τ²", "effort_rate": "∫Σ (dτ/dt)²", "power": "∫Σ (τ v)²", "velocity": "∫Σ v²",
          "acceleration": "∫Σ a²", "jerk": "∫Σ jerk²", "duration": "T"}


def main() -> None:
    model = rbd.sample("iiwa")
    planner = MotionPlanner(model, PlannerSettings.from_values(
        {"payload.body": "link_7", "payload.mass": 8.0, "payload.com": [0.0, 0.0, 0.1], "acceleration_limits": 15.0,
         "time_limit": 60.0}, model))
    for objective in OBJECTIVES:
        request = MotionRequest(model.joint_names, GOAL, START, objective=[objective],
                                duration=0.0 if objective == "duration" else DURATION)
        task = planner.prepare(request, 0.0)
        plan = planner.search(task)
        assert plan.good, plan.reason
        figure = Figure(figsize=(10.0, 2.6), layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure.subplots(1, 3), plan.motion, task, ("position", "velocity", "effort"))
        figure.axes[1].set_ylim(-110.0, 110.0)
        figure.axes[2].set_ylim(-105.0, 105.0)
        figure.suptitle(f"{objective}: least {TITLES[objective]}, {plan.motion.duration:.2f} s", fontsize=10)
        figure.legend(figure.axes[0].lines, model.joint_names, fontsize=8, loc="outside right center")
        path = FOLDER / f"motion_{objective}.png"
        figure.savefig(path, dpi=80, pil_kwargs={"optimize": True})
        t = np.linspace(0.0, plan.motion.duration, 1000)
        tau = plan.motion.effort(t)
        print(f"{path.name}: {path.stat().st_size // 1024} kB, {plan.motion.duration:.3f} s, "
              f"mean square effort {np.mean((tau**2).sum(axis=1)):.0f}, {plan.motion.seconds:.2f} s")


if __name__ == "__main__":
    main()
