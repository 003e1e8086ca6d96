"""Specialised models: single calls and batches against Pinocchio and the ordinary kernels; what making them takes."""
from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import pinocchio as pin

import rbd_ros as rbd
from rbd_ros.core.specialize.functions import recorded

from .functions import BATCH, batches, single_calls
from .robots import pairs
from .timing import interleaved, table

SINGLE = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "bias_effort", "gravity_effort", "forward_kinematics",
          "body_velocities", "kinetic_energy", "potential_energy", "centroidal_momentum")
MADE = ("inverse_dynamics", "forward_dynamics", "inverse_dynamics_derivatives", "forward_dynamics_derivatives")


def run(quick: bool = False) -> dict[str, Any]:
    """Print and return ratios to Pinocchio."""
    found: dict[str, Any] = {}
    for ordinary in pairs(1000 if quick else BATCH):
        fast = dataclasses.replace(ordinary, ours=rbd.specialize(ordinary.ours))
        rows = []
        for name in MADE:
            try:
                operations = recorded(ordinary.ours, name).operations
            except rbd.RbdError as reason:
                print(f"{ordinary.name}: {name}: {reason}; the ordinary kernels compute it")
                continue
            begin = time.perf_counter()
            fast.ours._specialized.make(name)
            rows.append([name, str(operations), f"{time.perf_counter() - begin:.2f}"])
        table(f"{ordinary.name}: code of its own (seconds; a second time it comes from disk)",
              ["function", "operations", "s"], rows)
        for kind, calls in (("single", _singles), ("batch", _batches)):
            rows = []
            ours, own = calls(ordinary), calls(fast)
            for name, (call, theirs) in ours.items():
                times = interleaved({"ordinary": call, "own": own[name][0], "pinocchio": theirs}, 25 if quick else 99)
                ratio = {key: times[key] / times["pinocchio"] for key in ("ordinary", "own")}
                found[f"{ordinary.name} {kind} {name}"] = ratio["own"]
                rows.append([name, f"{ratio['own']:.3f}", f"{ratio['ordinary']:.3f}"])
            table(f"{ordinary.name}, {kind}: time over Pinocchio's", ["function", "own code", "ordinary"], rows)
    return found


def _singles(p: Any) -> dict[str, Any]:
    calls = {name: pair for name, pair in single_calls(p).items() if name in SINGLE}
    m, w, d = p.ours, p.theirs, p.theirs.createData()
    q, v, a = p.q[0].copy(), p.v[0].copy(), p.a[0].copy()
    x, y, z = p.q_pin[0].copy(), p.v_pin[0].copy(), p.a_pin[0].copy()
    calls["inverse_dynamics_derivatives"] = (lambda: rbd.inverse_dynamics_derivatives(m, q, v, a),
                                             lambda: pin.computeRNEADerivatives(w, d, x, y, z))
    calls["forward_dynamics_derivatives"] = (lambda: rbd.forward_dynamics_derivatives(m, q, v, a),
                                             lambda: pin.computeABADerivatives(w, d, x, y, z))
    return calls


def _batches(p: Any) -> dict[str, Any]:
    calls = {name: pair for name, pair in batches(p).items() if name in ("inverse_dynamics", "forward_dynamics")}
    m, w, d = p.ours, p.theirs, p.theirs.createData()
    rows = range(min(len(p.q), 1000))
    q, v, a = (np.ascontiguousarray(x[:len(rows)]) for x in (p.q, p.v, p.a))

    def theirs() -> None:
        for i in rows:
            pin.computeRNEADerivatives(w, d, p.q_pin[i], p.v_pin[i], p.a_pin[i])

    calls["inverse_dynamics_derivatives"] = (lambda: rbd.inverse_dynamics_derivatives(m, q, v, a), theirs)
    return calls
