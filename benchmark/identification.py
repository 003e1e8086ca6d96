"""Identification against simulated truth: coverage of the intervals, cost of consistency, the excitation's time,
and how mutilated recordings end.
"""
from __future__ import annotations

import os
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import rbd_ros as rbd
from rbd_ros.core.identification.consistency import is_consistent
from rbd_ros.core.identification.regressor_columns import parameter_names, parameters_of

from .timing import table

sys.path.append(str(Path(__file__).parents[1] / "test"))
ACCELERATION = [15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0]    # rad/s², of the Panda


def _covered(model: rbd.RobotModel, seed: int, _random: np.random.Generator) -> dict[str, Any]:
    """One recording: which intervals hold the truth, the cost of consistency in percent, and processor seconds."""
    from support.recordings import perturbed, periodic, record

    truth = perturbed(model, seed)
    recording = record(truth, periodic(model, seed % 10, periods=3), seed)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = rbd.identify(model, recording)
    spent = time.process_time() - begin
    names = parameter_names(model)
    theta = parameters_of(truth)[[names.index(name) for name in found.base.parameter_names]]
    values = found.base.values(theta)
    bodies = found.model.inertial_parameters.reshape(-1, 10)
    return {"inside": [abs(e.linear - x) <= e.half_width for e, x in zip(found.confidence, values, strict=True)],
            "cost": 100.0 * (found.residual.overall - found.residual.overall_unconstrained),
            "consistent": all(is_consistent(body) for body in bodies if body[0] > 0.0), "time": spent}


def coverage(seeds: int) -> dict[str, Any]:
    """Of simulated recordings of the sample iiwa, with ten motions and other noise and truth each, on all cores."""
    found = rbd.batch(partial(_covered, rbd.sample("iiwa")), range(seeds), os.cpu_count() or 1)
    each = np.mean([one["inside"] for one in found], axis=0)
    return {"coverage": float(np.mean(each)), "least": float(each.min()), "most": float(each.max()),
            "cost": max(one["cost"] for one in found), "consistent": sum(one["consistent"] for one in found),
            "seeds": seeds, "time": float(np.median([one["time"] for one in found]))}


def mutilated(count: int) -> dict[str, int]:
    """How recordings of which a lot is wrong end: clear errors, results that say what was left out, and failures."""
    from support import recordings

    model = rbd.sample("two_link")
    motion = recordings.periodic(model, period=8.0, periods=1)
    whole = recordings.record(recordings.perturbed(model), motion, rate=200.0)
    ends = {"refused": 0, "identified": 0, "failed": 0}
    for seed in range(count):
        recording = recordings.mutilated(whole, np.random.default_rng((5, seed)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                found = rbd.identify(model, recording, stribeck=seed % 5 == 0)
            wrong = recordings.judged(recording, found)
            end = "failed" if wrong else "identified"
        except rbd.RbdError as error:
            wrong, end = "", "refused" if len(str(error)) > 20 else "failed"
        except Exception as error:    # anything else is a failure of ours
            wrong, end = f"{type(error).__name__}: {error}", "failed"
        ends[end] += 1
        if end == "failed":
            print(f"recording {seed}: {wrong}", file=sys.stderr)
    return ends


def panda() -> Any:
    """An excitation of the Panda within Franka's limits."""
    from support.robots import urdf_paths

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = rbd.load_urdf(urdf_paths()["panda_description/panda"], locked={"panda_finger_joint1": 0.0})
    return rbd.excitation(model, 20.0, limits=rbd.MotionLimits(acceleration=ACCELERATION), seconds=40.0)


def run(quick: bool = False) -> dict[str, Any]:
    """Print the tables; violations: coverage outside 93 to 97 %, bodies that cannot be, limits that are broken."""
    found = coverage(20 if quick else 200)
    begin = time.monotonic()
    motion = panda()
    spent = time.monotonic() - begin
    table("Identification of a simulated iiwa: 69 base parameters, 30 s of motion, noise of 0.05 N m at 250 Hz",
          ["of recordings", str(found["seeds"])], [
              ["95 % intervals that hold the truth", f"{100 * found['coverage']:.1f} %"],
              ["least, most of one parameter", f"{100 * found['least']:.1f}, {100 * found['most']:.1f} %"],
              ["physically consistent", str(found["consistent"])],
              ["consistency costs at most (points of residual)", f"{found['cost']:.3f}"],
              ["time (s)", f"{found['time']:.2f}"]])
    worst = max(usage.ratio for usage in motion.usage.values())
    table("Excitation of the Panda: 20 s, 43 inertial parameters, 7 rotors, friction and offsets", ["", "found"], [
        ["condition number", f"{motion.condition:.2f}"], ["largest ratio to a limit at 1 kHz", f"{worst:.4f}"],
        ["time (s)", f"{spent:.1f}"]])
    ends = mutilated(100 if quick else 1000)
    table("Recordings of which a lot is wrong: NaN, gaps, swapped or constant joints, too short, no order",
          ["of recordings", str(sum(ends.values()))], [
              ["refused with a clear error", str(ends["refused"])],
              ["identified, what was left out is said", str(ends["identified"])],
              ["anything else", str(ends["failed"])]])
    bad = (not 0.93 <= found["coverage"] <= 0.97) + (found["consistent"] < found["seeds"]) + (found["cost"] > 0.3)
    return {**found, "condition": motion.condition, "worst": worst, "excitation_time": spent,
            "mutilated": ends, "violations": int(bad) + ends["failed"] + (motion.condition > 13.0) + (worst > 1.0)}
