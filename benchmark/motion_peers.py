"""Least efforts of the sample iiwa beside CasADi's Ipopt, whose nodes, derivatives and equations are its own."""
from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

import rbd_ros as rbd
from rbd_ros.core.motion.optimal.task import MARGIN

from .ipopt_peer import IpoptPeer
from .motion import problems
from .timing import table

SAME = 1e-3    # of the cost
EACH = 10      # of the peer's nodes per interval of the spline, those of Gauss and Legendre


def gauss_nodes(intervals: int) -> tuple[np.ndarray, np.ndarray]:
    """s in [0, 1] and weights."""
    x, w = np.polynomial.legendre.leggauss(EACH)
    s = (np.arange(intervals)[:, None] + 0.5 * (x + 1.0)).reshape(-1) / intervals
    return s, np.tile(0.5 * w / intervals, intervals)


def run(quick: bool = False) -> dict[str, Any]:
    """Print the table; returns counts, and violations: motions whose cost is not that of a minimum of Ipopt's."""
    model = rbd.sample("iiwa")
    cases = problems(model, 10 if quick else 50)
    wide = rbd.MotionLimits(velocity=np.inf, effort=np.inf)
    peer = IpoptPeer(model, gauss_nodes(15), 20, 1.0 - MARGIN)
    differences, cheaper, dearer, wrong, mine_time, peer_time = [], 0, 0, 0, [], []
    for q0, q1, duration in cases:
        begin = time.process_time()
        mine = rbd.optimize_motion(model, q0, q1, duration, starts=1)
        mine_time.append(time.process_time() - begin)
        first = rbd.optimize_motion(model, q0, q1, duration, "jerk", limits=wide).spline.control
        begin = time.process_time()
        found = peer.solve(q0, q1, duration, first)
        peer_time.append(time.process_time() - begin)
        apart = mine.cost / found.cost - 1.0
        if abs(apart) > SAME:    # another minimum? from mine, Ipopt must end at mine
            cheaper, dearer = cheaper + (apart < 0.0), dearer + (apart > 0.0)
            found = peer.solve(q0, q1, duration, mine.spline.control, near=True)
            apart = mine.cost / found.cost - 1.0
        differences.append(apart)
        wrong += not (mine.good and found.optimal and abs(apart) <= SAME)
    n = len(cases)
    table("Least ∫‖τ‖² of the iiwa beside Ipopt's from the same first guess, on 150 nodes of its own",
          ["of problems", str(n)], [
              ["another minimum: cheaper than Ipopt's", str(cheaper)], ["another minimum: dearer", str(dearer)],
              ["cost above that of Ipopt's same minimum, median (%)", f"{100.0 * statistics.median(differences):.4f}"],
              ["smallest and largest (%)", f"{100.0 * min(differences):.4f}, {100.0 * max(differences):.4f}"],
              ["more than 0.1 % apart, or not good", str(wrong)],
              ["processor time, median (ms)", f"{1e3 * statistics.median(mine_time):.0f}"],
              ["Ipopt's (ms)", f"{1e3 * statistics.median(peer_time):.0f}"]])
    return {"problems": n, "cheaper": cheaper, "dearer": dearer, "largest": max(map(abs, differences)),
            "violations": wrong}
