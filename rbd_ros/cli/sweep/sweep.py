"""`rbd sweep`: Monte Carlo of a tracking controller over robots that differ from their model."""
from __future__ import annotations

import argparse
import dataclasses
import math
import os
import sys
from functools import partial
from pathlib import Path

import numpy as np

from ...core.batch import batch
from ...core.errors import RbdError
from ...core.model.scalars import positive, whole_number
from ...signals import ends_at_once, interruptible
from .. import demo_motion
from ..files.robot import add_robot, load_robot
from . import report
from .trial import Setup, Spread, run as trial


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd sweep`."""
    add_robot(parser)
    parser.add_argument("--cases", type=int, default=200, help="robots to try (default: %(default)s)")
    parser.add_argument("--mass", type=float, default=Spread.mass, metavar="SIGMA",
                        help="spread of each link's mass and inertia, relative (default: %(default)g)")
    parser.add_argument("--friction", type=float, default=Spread.friction, metavar="SIGMA",
                        help="spread of each joint's friction, relative (default: %(default)g)")
    parser.add_argument("--delay", type=float, default=Spread.delay, metavar="S",
                        help="longest delay from measurement to torque in s (default: %(default)g)")
    parser.add_argument("--position-noise", type=float, default=Spread.position_noise, metavar="RAD",
                        help="standard deviation of measured positions, rad or m (default: %(default)g)")
    parser.add_argument("--velocity-noise", type=float, default=Spread.velocity_noise, metavar="RAD/S",
                        help="standard deviation of measured velocities (default: %(default)g)")
    parser.add_argument("--rate", type=float, default=500.0, help="rate of the controller, Hz (default: %(default)g)")
    parser.add_argument("--duration", type=float, default=2.0, metavar="S",
                        help="duration of the motion, s (default: %(default)g)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1,
                        help="number of processes, without effect on the result (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="write sweep.csv and sweep.png there")


def run(namespace: argparse.Namespace) -> int:
    """Try all robots, print the table, write the files."""
    spread = Spread(*(_spread(namespace, name) for name in ("mass", "friction", "delay", "position_noise",
                                                            "velocity_noise")))
    model = load_robot(namespace, quiet=True, joints=True)
    duration = positive(namespace.duration, "--duration", "time in seconds")
    rate = positive(namespace.rate, "--rate", "rate in Hz")
    if round(duration * rate) < 1:
        raise RbdError(f"--duration {duration:g}: shorter than a period of the controller, {1.0 / rate:g} s")
    scenario = demo_motion.scenario(model, demo_motion.random_motion(model, duration), duration)
    if namespace.output is not None:
        namespace.output.mkdir(parents=True, exist_ok=True)
    setup = Setup(model.with_(armature=scenario.rotors), scenario, spread, rate, duration)
    cases = range(whole_number(namespace.cases, "--cases"))
    workers = whole_number(namespace.workers, "--workers")
    with ends_at_once("sweep"):    # kernels are compiled here
        trial(dataclasses.replace(setup, duration=1.0 / rate), 0, np.random.default_rng(0))
    with interruptible():
        trials = batch(partial(trial, setup), cases, None if workers == 1 else workers, namespace.seed)
    print(report.table(trials))
    if namespace.output is not None:
        report.write(namespace.output / "sweep.csv", trials)
        try:
            report.plot(namespace.output / "sweep.png", trials, f"{model.name}: {len(trials)} robots")
        except ImportError:
            print("no picture: matplotlib is not installed", file=sys.stderr)
        print(f"wrote {namespace.output}")
    return 0


def _spread(namespace: argparse.Namespace, name: str) -> float:
    value = float(getattr(namespace, name))
    if not 0.0 <= value < math.inf:
        raise RbdError(f"--{name.replace('_', '-')} must be a number of at least 0, got {value:g}")
    return value
