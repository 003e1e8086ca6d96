"""Cost of chains of 10 to 1,000 bodies: linear in the number of bodies."""
from __future__ import annotations

from typing import Any

import numpy as np

import rbd_ros as rbd

from .timing import interleaved, table

LENGTHS = (10, 30, 100, 300, 1000)


def chain(count: int) -> rbd.RobotModel:
    """A serial chain of `count` revolute joints about alternating axes."""
    inertia = rbd.Inertia(1.0, np.array([0.0, 0.0, 0.05]), np.diag([1e-3, 1e-3, 5e-4]))
    links = {f"link_{i}": inertia for i in range(count + 1)}
    axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    joints = tuple(rbd.JointSpec(f"joint_{i}", "revolute", f"link_{i}", f"link_{i + 1}", axis=axes[i % 2],
                                 position=np.array([0.0, 0.0, 0.1])) for i in range(count))
    return rbd.RobotModel.from_description(rbd.Description(f"chain_{count}", links, joints))


def run() -> dict[str, Any]:
    """Print microseconds per body; returns the exponent of growth from 100 to 1,000 bodies by function."""
    rows, per_body = [], {}
    for count in LENGTHS:
        m = chain(count)
        rng = np.random.default_rng(count)
        q, v, a = rng.uniform(-0.3, 0.3, size=(3, count))
        tau = rbd.inverse_dynamics(m, q, v, a)
        times = interleaved({"inverse_dynamics": lambda: rbd.inverse_dynamics(m, q, v, a),    # noqa: B023
                             "forward_dynamics": lambda: rbd.forward_dynamics(m, q, v, tau)})    # noqa: B023
        per_body[count] = times
        rows.append([f"{count} bodies", *(f"{1e6 * t:.1f}" for t in times.values()),
                     *(f"{1e9 * t / count:.0f}" for t in times.values())])
    table("Serial chains (µs per call; ns per body)",
          ["chain", "inverse", "forward", "inverse/body", "forward/body"], rows)
    growth = {name: float(np.log10(per_body[1000][name] / per_body[100][name])) for name in per_body[1000]}
    print("  growth from 100 to 1,000 bodies: " + ", ".join(f"{name} n^{x:.2f}" for name, x in growth.items()))
    return growth
