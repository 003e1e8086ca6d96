"""What `identify` says about efforts of simulated arms: nothing wrong about right ones, and what is wrong with others.

Each recording is of another robot than its description (masses, places, inertias, rotors; friction from little to most
of an effort, near rest, by direction and by load), on another motion, from good ones to short and poor ones.
"""
from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import rbd_ros as rbd

from .timing import table

sys.path.append(str(Path(__file__).parents[1] / "test"))
Array = np.ndarray[Any, np.dtype[np.float64]]
ARMS = {"ur5": ("ur_description/ur5_robot", ()), "kinova": ("kinova_description/kinova", ()), "iiwa": ("", ()),
        "panda": ("panda_description/panda", ("panda_finger_joint1",))}
MOTIONS = {    # seconds, periods, harmonics, reach (rad)
    "good": (10.0, 2, 5, 0.8), "slow": (20.0, 1, 4, 0.6), "short": (4.0, 1, 3, 0.5), "small": (8.0, 1, 3, 0.1),
    "few joints": (6.0, 1, 2, 0.6), "plain": (6.0, 2, 1, 0.4)}
SHOWING = ("good", "slow", "short")
FAULTS = ("sign", "current", "all currents", "gravity", "delay")
WORDS = {"sign": "opposite sign", "current": "gain is unknown", "all currents": "gain is unknown",
         "gravity": "without gravity", "delay": "behind the states"}
ABOUT = ("opposite sign", "gain is unknown", "without gravity")
POOR = 0.1
NAMED = "the residual is "


@cache
def arm(name: str) -> rbd.RobotModel:
    """The description."""
    from support.robots import urdf_paths

    path, locked = ARMS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rbd.load_urdf(urdf_paths()[path], locked=dict.fromkeys(locked, 0.0)) if path else rbd.sample(name)


@dataclass(frozen=True)
class Case:
    """A recording, the joints of which something is wrong, and whether it shows: half of the effort of one of them, at
    least, is of gravity and motion, or for missing gravity as much as gravity would be; and friction is not repeated
    by a motion of one frequency or of few joints.
    """

    recording: rbd.Recording
    motion: str
    faulty: tuple[str, ...]
    shown: bool


def case(name: str, seed: int, fault: str = "") -> Case:
    """The recording of this number; fault: one of `FAULTS`, or none."""
    from support.recordings import periodic, perturbed

    model, rng = arm(name), np.random.default_rng((31, seed))
    truth = perturbed(model, seed, place=0.015, friction=False, rotors=False)
    motion = str(rng.choice(list(MOTIONS)))
    period, periods, harmonics, reach = MOTIONS[motion]
    way = periodic(model, seed, period * rng.uniform(0.7, 1.3), periods, harmonics, reach)
    rate = float(rng.choice([100.0, 125.0, 250.0, 500.0]))
    t = np.arange(0.0, way.duration, 1.0 / rate)
    if motion == "few joints":
        c = np.array(way.coefficients)
        c[1:, rng.permutation(model.nv)[:model.nv // 2]] = 0.0
        way = type(way)(c, way.period, way.periods)
    late = 0.03 * (fault == "delay") + rng.uniform(0.0, 0.004)
    tau, share = efforts(truth, way, np.mod(t - late, way.duration), rng, fault == "gravity")
    tau += 0.01 * np.sqrt(np.mean(tau**2, axis=0)).max() * rng.uniform(0.1, 1.0) * rng.normal(size=tau.shape)
    gain = np.ones(model.nv)
    one = int(rng.integers(model.nv))
    if fault == "sign":
        gain[one] = -1.0
    elif fault == "current":
        gain[one] = 10.0 ** (rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 2.0))
    elif fault == "all currents":
        gain /= rng.uniform(3.0, 30.0, model.nv)
    names = model.velocity_names
    faulty = names if fault in ("all currents", "gravity", "delay") else (names[one],) if fault else ()
    q = way(t).q + 1e-5 * rng.normal(size=tau.shape)
    shown = motion in SHOWING and bool(max((share[names.index(name)] for name in faulty), default=0.0) > 0.5)
    return Case(rbd.Recording(t, q, tau=gain * tau, joints=names), motion, faulty, shown)


def efforts(truth: rbd.RobotModel, way: Any, t: Array, rng: np.random.Generator, light: bool) -> tuple[Array, Array]:
    """Of motors, with rotors and friction, (N, nv), and the share (nv,) that is of gravity and motion. light: without
    gravity, of which the share is told.
    """
    q, v, a = way(t)[:3]
    gravity, whole = rbd.gravity_effort(truth, q), rbd.inverse_dynamics(truth, q, v, a)
    size = np.sqrt(np.mean(whole**2, axis=0))
    felt = np.median(np.diagonal(rbd.mass_matrix(truth, q), axis1=1, axis2=2), axis=0)
    tau = whole - gravity * light + a * felt * 10.0 ** rng.uniform(-1.0, 1.0, truth.nv)
    strong = np.maximum(size, 0.03 * size.max())
    dry, wet = (strong * 10.0 ** rng.uniform(-1.5, 0.5, truth.nv) for _ in range(2))
    side, near, load = rng.uniform(-0.2, 0.2, truth.nv), rng.uniform(0.0, 0.4, truth.nv), rng.uniform(0, 0.1, truth.nv)
    slip = np.tanh(v / 10.0 ** rng.uniform(-2.5, -1.0))
    fast = np.maximum(np.abs(v).max(axis=0), 1e-9)
    dry_now = dry * (1.0 + near * np.exp(-(v / 0.1)**2) + side * slip) + load * np.abs(whole)
    tau = tau + dry_now * slip + wet * np.sign(v) * np.abs(v / fast) ** rng.uniform(0.6, 1.0)
    tau = np.asarray(tau + 0.1 * size * rng.normal(size=truth.nv))
    return tau, np.std(gravity if light else whole, axis=0) / np.std(tau, axis=0)


def judged(name: str, fault: str, seed: int, _random: np.random.Generator) -> dict[str, Any]:
    """What `identify` said of a recording."""
    one = case(name, seed, fault)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = rbd.identify(arm(name), one.recording)
    except rbd.RbdError as error:
        return {"arm": name, "motion": one.motion, "fault": fault, "refused": str(error), "seed": seed}
    said = [x for x in found.findings if any(words in x for words in ABOUT)]
    right = any(WORDS[fault] in x and (fault == "delay" or any(joint in x for joint in one.faulty)) for x in
                (found.findings if fault else ()))
    return {"arm": name, "motion": one.motion, "fault": fault, "seed": seed, "shown": one.shown, "said": said,
            "right": right, "error": found.residual.overall, "training": found.residual.training,
            "named": any(NAMED in x for x in found.findings), "held_out": found.residual.held_out}


def each(count: int, fault: str = "") -> list[dict[str, Any]]:
    """Of `count` recordings per arm, on all cores."""
    return [one for name in ARMS for one in rbd.batch(partial(judged, name, fault), range(count), os.cpu_count() or 1)]


def run(quick: bool = False) -> dict[str, Any]:
    """Print the tables; violations: more than one finding in a thousand about right efforts, poor results not named,
    fewer than half of the faults found that are shown.
    """
    right = each(25 if quick else 500)
    told = [one for one in right if "said" in one]
    wrong = [one for one in told if one["said"]]
    poor = [one for one in told if one["error"] > POOR]
    silent = [one for one in poor if not one["named"]]
    for one in (*wrong, *silent):
        print(f"{one['arm']} {one['seed']} ({one['motion']}): {one['said'] or one['error']}", file=sys.stderr)
    table("Simulated recordings of right efforts", ["of recordings", str(len(right))], [
        ["in which something is found about efforts", str(len(wrong))], ["refused", str(len(right) - len(told))],
        [f"held-out error above {100 * POOR:.0f} %", str(len(poor))], ["of these not named", str(len(silent))]])
    rows, missed = [], 0
    for fault in FAULTS:
        found = [one for one in each(10 if quick else 50, fault) if "said" in one]
        good = [one for one in found if one["shown"]]
        rows.append([fault, *(f"{sum(one['right'] for one in part)} of {len(part)}" for part in (found, good))])
        missed += 2 * sum(one["right"] for one in good) < len(good)
    table("Faults that are found", ["fault", "all", "those that show it"], rows)
    return {"right": len(right), "wrong": len(wrong), "poor": len(poor), "silent": len(silent),
            "found": {row[0]: row[1:] for row in rows},
            "violations": int(1000 * len(wrong) > max(len(right), 1000)) + len(silent) + missed}
