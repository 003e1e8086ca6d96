"""Collision distances of arms from Python: µs per call, and per state of a batch."""
from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .timing import table

sys.path.append(str(Path(__file__).parents[1] / "test"))
ARMS = ("ur_description/ur5_robot", "xarm_description/xarm7", "z1_description/z1", "kinova_description/kinova",
        "panda_description/panda", "panda_description/panda_collision")


def best(call: Callable[[Any], Any], inputs: Any, rounds: int) -> float:
    """Least mean time (µs) of a call, over rounds of all inputs."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for x in inputs:
            call(x)
        times.append(time.perf_counter() - start)
    return min(times) / len(inputs) * 1e6


def run(quick: bool = False) -> dict[str, Any]:
    """Print the table; returns its numbers by arm."""
    from support.collisions import arm

    count, rounds = (20, 2) if quick else (200, 5)
    results: dict[str, Any] = {}
    for name in ARMS:
        model, collisions = arm(name)
        rng = np.random.default_rng(0)
        q = np.array([model.random_configuration(rng) for _ in range(count)])
        results[name.rpartition("/")[2]] = {
            "pieces": len(collisions.pieces), "pairs": len(collisions.pairs),
            "distances": best(collisions.distances, q, rounds),
            "of a batch": best(collisions.distances, q[None], rounds) / count,
            "closest": best(collisions.closest, q, rounds),
            "within 0.1 m": best(partial(collisions.closest, within=0.1), q, rounds),
            "collides": best(collisions.collides, q, rounds)}
    titles = list(next(iter(results.values())))
    table("Collision distances from Python, µs", ["arm", *titles],
          [[name, *(f"{row[title]:.0f}" for title in titles)] for name, row in results.items()])
    return results
