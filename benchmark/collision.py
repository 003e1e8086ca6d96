"""Collision distances of arms from Python: µs per call, and per state of a batch; obstacles that are points."""
from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rbd_ros.core.lie import se3

from .timing import table

sys.path.append(str(Path(__file__).parents[1] / "test"))
ARMS = ("ur_description/ur5_robot", "xarm_description/xarm7", "z1_description/z1", "kinova_description/kinova",
        "panda_description/panda", "panda_description/panda_collision")


def best(call: Callable[[Any], Any], inputs: Any, rounds: int) -> float:
    """Least mean processor time (µs) of a call, over rounds of all inputs."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        for x in inputs:
            call(x)
        times.append(time.process_time() - start)
    return min(times) / len(inputs) * 1e6


def clouds(quick: bool) -> list[list[Any]]:
    """A shelf of seven boards, as points on them: rows of voxels (mm), boxes, ms to make the collision model, and the
    median of s of motions into it; upright and askew in the axes of the voxels.
    """
    import rbd_ros as rbd

    from .collision_planning import CLEARANCE, ENDS, OBJECTIVE, SCENES, arm, problems

    model, own, _ = arm("iiwa")
    rng, shelf = np.random.default_rng(0), SCENES["shelf"]
    points = rng.uniform(-0.5, 0.5, (len(shelf), 4000 if quick else 40_000, 3))
    side = rng.integers(0, 3, points.shape[:2])[..., None] == np.arange(3)
    points = np.where(side, 0.5 * np.sign(points), points) * [[it["size"]] for it in shelf] + [
        [it["frame"]] for it in shelf]
    askew = se3.pose([0.0, 0.0, 0.0], [0.1, 0.2, 0.3])
    obstacles: dict[str, list[dict[str, Any]]] = {"boards": shelf, **{
        f"{what}, {1e3 * size:g} mm": [{"name": "shelf", "shape": "points", "voxel_size": size, "frame": pose,
                                        "points": points.reshape(-1, 3) @ pose[:3, :3]}]
        for size in (0.05, 0.025) for what, pose in (("upright", np.eye(4)), ("askew", askew))}}
    made = {name: own.with_obstacles(each) for name, each in obstacles.items()}
    ends = [pair for pair in problems(model, made["boards"], "shelf", 60, seed=1)
            if not any(collisions.collides(q, ENDS) for collisions in made.values() for q in pair)]
    rows = []
    for name, collisions in made.items():
        def move(pair: Any, among: Any = collisions) -> None:
            rbd.optimize_motion(model, *pair, None, OBJECTIVE, collisions=among, clearance=CLEARANCE, time_limit=60.0)

        seconds = [best(move, [pair], 2) / 1e6 for pair in ends[:1 if quick else None]]
        rows.append([name, str(len(collisions.pieces) - len(own.pieces)),
                     f"{best(own.with_obstacles, [obstacles[name]], 3) / 1e3:.0f}", f"{np.median(seconds):.2f}",
                     f"{max(seconds):.2f}"])
    return rows


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
    rows = clouds(quick)
    table("A shelf as points, and motions into it", ["voxels", "boxes", "made, ms", "motion, s", "longest, s"], rows)
    return {**results, "clouds": rows}
