"""Specialised models: single calls and batches against Pinocchio and the ordinary kernels; what making them takes."""
from __future__ import annotations

import dataclasses
import tempfile
import time
import warnings
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import rbd_ros as rbd
from rbd_ros.core.specialize.functions import FUNCTIONS

from . import specialize_check
from .functions import BATCH, batches, single_calls
from .robots import pairs
from .timing import interleaved, table

DERIVATIVES = 500    # states: results of 17 MB for talos, memory that the system does not have to find anew each time
SHARED = 2000        # states of derivatives, for threads: of fewer, the calling one computes all
SINGLE = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "bias_effort", "gravity_effort", "forward_kinematics",
          "body_velocities", "kinetic_energy", "potential_energy", "centroidal_momentum")
MADE = ("inverse_dynamics", "forward_dynamics", "inverse_dynamics_derivatives", "forward_dynamics_derivatives")


def run(quick: bool = False, check: bool = False) -> dict[str, Any]:
    """Print and return ratios to Pinocchio; check: instead, all robots of example-robot-data."""
    if check:
        return specialize_check.run()
    found: dict[str, Any] = {}
    for ordinary in pairs(1000 if quick else BATCH):
        fast = dataclasses.replace(ordinary, ours=rbd.specialize(ordinary.ours))
        rows = []
        for name in MADE:
            begin = time.perf_counter()
            made = rbd.specialize(ordinary.ours, [name])
            rows.append([name, str(made.functions[name]), f"{time.perf_counter() - begin:.2f}"])
        table(f"{ordinary.name}: code of its own (seconds; a second time it comes from disk)",
              ["function", "operations", "s"], rows)
        found[f"{ordinary.name} loading"] = _loading(ordinary)
        for kind, calls in (("single", _singles), ("batch", _batches)):
            rows = []
            ours, own = calls(ordinary), calls(fast)
            for name, (call, theirs) in ours.items():
                times = interleaved({"ordinary": call, "own": own[name][0], "pinocchio": theirs}, 25 if quick else 99)
                ratio = {key: times[key] / times["pinocchio"] for key in ("ordinary", "own")}
                found[f"{ordinary.name} {kind} {name}"] = ratio["own"]
                rows.append([name, f"{ratio['own']:.3f}", f"{ratio['ordinary']:.3f}"])
            table(f"{ordinary.name}, {kind}: time over Pinocchio's", ["function", "own code", "ordinary"], rows)
        found |= _threads(ordinary, 3 if quick else 9)
    return found


def _load(path: Path, description: Any) -> None:
    """In a process of its own: seconds that own code of these functions takes to come from disk, to this file."""
    ordinary = rbd.RobotModel.from_description(description)
    rbd.inverse_dynamics(ordinary, ordinary.neutral(), *np.zeros((2, ordinary.nv)))
    begin = time.perf_counter()
    fast = rbd.specialize(ordinary)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rbd.RbdWarning)    # of those that are too long
        for name in FUNCTIONS:
            fast._specialized.make(name)
    path.write_text(str(time.perf_counter() - begin))


def _loading(p: Any) -> float:
    """Print and return what a fresh process takes to load the code of all functions, those for one state included."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(4):    # the first makes what is not there
            process = get_context("spawn").Process(target=_load, args=(Path(folder) / "s", p.ours.description))
            process.start()
            process.join()
            seconds.append(float((Path(folder) / "s").read_text()))
    print(f"\n{p.name}: code of {len(FUNCTIONS)} functions from disk, fresh process: {min(seconds[1:]):.3f} s")
    return min(seconds[1:])


def _threads(p: Any, repeats: int) -> dict[str, float]:
    """How many times as fast two threads are as one; short runs, as both cores have to be free meanwhile."""
    one, two = rbd.specialize(p.ours), rbd.specialize(p.ours, threads=2)
    rows, found = [], {}
    q, v, a = (np.ascontiguousarray(x[:SHARED]) for x in (p.q, p.v, p.a))
    for name, given in (("inverse_dynamics", (p.q, p.v, p.a)), ("forward_dynamics", (p.q, p.v, p.a)),
                        ("inverse_dynamics_derivatives", (q, v, a))):
        call = getattr(rbd, name)
        ratios = []
        for _ in range(repeats):
            times = interleaved({"one": partial(call, one, *given), "two": partial(call, two, *given)}, 25)
            ratios.append(times["one"] / times["two"])
        found[f"{p.name} two threads {name}"] = max(ratios)
        rows.append([name, str(len(given[0])), f"{np.median(ratios):.2f}", f"{max(ratios):.2f}"])
    table(f"{p.name}: two threads, times as fast as one", ["function", "states", "median", "best"], rows)
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
    rows = range(min(len(p.q), DERIVATIVES))
    q, v, a = (np.ascontiguousarray(x[:len(rows)]) for x in (p.q, p.v, p.a))

    def theirs() -> None:
        for i in rows:
            pin.computeRNEADerivatives(w, d, p.q_pin[i], p.v_pin[i], p.a_pin[i])

    calls["inverse_dynamics_derivatives"] = (lambda: rbd.inverse_dynamics_derivatives(m, q, v, a), theirs)
    return calls
