"""`rbd thresholds ROBOT RECORDING…`: thresholds of external efforts from motions without contact."""
from __future__ import annotations

import argparse

import numpy as np

from ...core.dynamics.friction import SMOOTHING, joint_friction
from ...core.errors import RbdError
from ...core.estimation.thresholds import contact_thresholds
from ...core.identification.written.node_files import write_text
from ...core.text_table import aligned
from ..files.robot import add_robot
from .recorded import add_source, load_recording, recorded_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd thresholds`."""
    add_robot(parser)
    parser.add_argument("recordings", nargs="*", metavar="RECORDING", help="of motions without contact: rosbag2 "
                        "(folder, .db3, .mcap), .csv or .npz")
    parser.add_argument("-o", "--output", metavar="CONTACT.yaml", help="parameters of node observer")
    parser.add_argument("--gain", type=float, default=50.0, help="of the observer, 1/s (default: %(default)s)")
    parser.add_argument("--alarms-per-hour", type=float, default=0.1, metavar="RATE",
                        help="false ones, of all joints together (default: %(default)s)")
    add_source(parser)


def run(namespace: argparse.Namespace) -> int:
    """Print the thresholds and write them; returns 0."""
    if not namespace.recordings:
        raise RbdError("expected ROBOT RECORDING…: a recording is a bag, .csv or .npz")
    model = recorded_model(namespace)
    recordings = [load_recording(namespace, path) for path in namespace.recordings]
    rubs = bool(model.damping.any() or model.friction.any())
    thresholds = contact_thresholds(model, recordings, gain=namespace.gain, alarms_per_hour=namespace.alarms_per_hour,
                                    friction=joint_friction(model, SMOOTHING) if rubs else None)
    rows = [[name, f"{level:.4g}", f"{largest:.4g}", f"{speed:.3g}", f"{1e3 * delay:.1f}"] for
            name, level, largest, speed, delay in zip(
                model.velocity_names, thresholds.threshold, thresholds.largest, thresholds.speed,
                thresholds.delay(2.0 * thresholds.threshold), strict=True)]
    head = ["joint", "threshold", "largest seen", "up to speed", "delay at twice it"]
    print("\n".join([f"{model.name}: {thresholds.seconds:.0f} s without contact, {namespace.alarms_per_hour:g} false "
                     "alarms per hour", *aligned([head, *rows]), "(N m or N; rad/s or m/s; ms)",
                     "faster motions, other loads and colder drives were not shown: record them, too"]))
    if namespace.output:
        levels, sigma, means = (", ".join(f"{x:.6g}" for x in values) for values in (
            thresholds.threshold, np.sqrt(np.diag(thresholds.covariance)), thresholds.mean_covariance.reshape(-1)))
        names = ", ".join(f'"{name}"' for name in model.joint_names)
        write_text(namespace.output, "".join(
            f"{node}:\n  ros__parameters:\n    joints: [{names}]\n    {prefix}gain: {namespace.gain:g}\n"
            f"    {prefix}threshold: [{levels}]\n{more}" for node, prefix, more in (
                ("observer", "", f"    sigma: [{sigma}]\n    mean_covariance: [{means}]\n"),
                ("feedforward", "contact.", ""))))
        print(f"wrote {namespace.output}")
    return 0
