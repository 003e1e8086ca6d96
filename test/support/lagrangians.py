"""Cost and limits of a problem of optimal motion, summed as the search sums them."""
from __future__ import annotations

from typing import Any

import numpy as np


def summed(problem: Any, T: Any, columns: list[Any], y: Any) -> Any:
    """Cost and y times the limits, of columns at the nodes and duration T (s), real or complex."""
    task = problem.task
    h = np.array(columns) / task.scale
    total = T * problem.nodes.weight @ (h**2 @ task.omega) + T * task.omega_duration
    lower, upper = task.bounds(problem.nodes.s)
    rows = [(h - np.where(np.isfinite(upper), upper, 0.0))[np.isfinite(upper)],
            (np.where(np.isfinite(lower), lower, 0.0) - h)[np.isfinite(lower)]]
    if problem.free_duration:
        low, high = task.durations
        rows.append(np.array([low / T - 1.0, T / high - 1.0]))
    return total / problem.unit + y @ np.concatenate(rows)
