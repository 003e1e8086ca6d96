"""Optimal motions of the sample iiwa: time, how many are solved, how much effort they save, and their certificates."""
from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
from scipy.integrate import trapezoid

import rbd_ros as rbd

from .timing import table


def problems(model: rbd.RobotModel, count: int) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Random ends within 90 % of the limits; 1.2 times the shortest duration of minimum jerk at the speed limits."""
    found = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        q0, q1 = 0.9 * model.random_configuration(rng), 0.9 * model.random_configuration(rng)
        found.append((q0, q1, float(1.2 * np.max(1.875 * np.abs(q1 - q0) / model.velocity_limit))))
    return found


def squared(motion: Any, duration: float) -> float:
    """∫‖τ‖²."""
    t = np.linspace(0.0, duration, 2001)
    return float(trapezoid(np.sum(motion.effort(t) ** 2, axis=1), t))


def run(quick: bool = False) -> dict[str, Any]:
    """Print the table; returns times (s), shares, the worst certificate, and violations: motions said to be good."""
    model = rbd.sample("iiwa")
    wide = rbd.MotionLimits(velocity=np.inf, effort=np.inf)
    cases = problems(model, 20 if quick else 100)
    rbd.optimize_motion(model, *cases[0])    # compiled, and caches warm
    spent, good, saved, iterations, worst, dishonest = [], 0, 0, [], -np.inf, 0
    for q0, q1, duration in cases:
        begin = time.process_time()    # of one core: others may use the machine
        motion = rbd.optimize_motion(model, q0, q1, duration, starts=1)
        spent.append(time.process_time() - begin)
        iterations.append(motion.iterations)
        good += motion.good
        jerk = rbd.optimize_motion(model, q0, q1, duration, "jerk", limits=wide, starts=1)
        saved += motion.cost <= 0.9 * squared(jerk, duration)
        t = np.arange(0.0, duration, 1e-3)
        q, v = motion(t)[:2]
        ratio = max(np.max(np.abs(v) / model.velocity_limit), np.max(np.abs(motion.effort(t)) / model.effort_limit),
                    np.max(np.abs(q) / model.position_upper))
        worst = max(worst, float(ratio))
        dishonest += bool(motion.good and ratio > 1.0 + 1e-6)
    timed = []
    for q0, q1, _ in cases:
        begin = time.process_time()
        rbd.time_optimal(model, [q0, q1])
        timed.append(time.process_time() - begin)
    n = len(cases)
    table("Least ∫‖τ‖² of the iiwa: 7 joints, 20 control points, 100 nodes; position, velocity and effort limits",
          ["of problems", str(n)], [
              ["solved", str(good)], ["time, median (ms)", f"{1e3 * statistics.median(spent):.1f}"],
              ["time, 95 % (ms)", f"{1e3 * float(np.percentile(spent, 95)):.1f}"],
              ["iterations, median", f"{statistics.median(iterations):.0f}"],
              ["10 % below minimum jerk", str(saved)], ["largest ratio to a limit at 1 kHz", f"{worst:.6f}"],
              ["fastest along a line, median (ms)", f"{1e3 * statistics.median(timed):.1f}"]])
    return {"problems": n, "solved": good, "median": statistics.median(spent), "saved": saved, "worst": worst,
            "violations": dishonest}
