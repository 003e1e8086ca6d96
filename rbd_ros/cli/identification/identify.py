"""`rbd identify ROBOT RECORDING`: identify a robot description from a recorded motion."""
from __future__ import annotations

import argparse
import json
import sys
import textwrap

import numpy as np
from numpy.typing import NDArray

from ...core.errors import RbdError
from ...core.identification.drive_gains import DriveGains, drive_gains
from ...core.identification.fit import SOLVERS, identify
from ...core.identification.identified import Identification
from ...core.identification.known_load import read_known_load
from ...core.identification.recorded.recording import Recording
from ...core.identification.transmission import Transmission
from ...core.identification.unknowns import MODES
from ...core.identification.written.node_files import write_text
from ...core.identification.written.report import (
    EXPECTED, expected_head, expected_rows, joint_table, summary, write_report,
)
from ...core.model.robot_model import RobotModel
from ...core.model.samples import constraints_from
from ...core.text_table import aligned
from ..files.motion import motion_from
from ..files.robot import add_robot, description_of
from .recorded import add_recorded, gains_of, load_recording, recorded_model

Array = NDArray[np.float64]
WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd identify`."""
    add_robot(parser, old="--urdf")
    add_recorded(parser, nargs="?", estimate=", or 'estimate'")
    parser.add_argument("-o", "--output", metavar="NEW.urdf", help="the description with the identified values")
    parser.add_argument("--parameters", metavar="NODES.yaml", help="rotors and friction as parameters of the nodes")
    parser.add_argument("--actuation", metavar="DRIVES.yaml", help="drives for parameter actuation_file")
    parser.add_argument("--controller", metavar="ARM.yaml", help="inertias, rotors, friction and gains as parameters "
                        "of a controller by rbd generate --ros2-control")
    parser.add_argument("--ur-friction", metavar="UR.yaml", help="settings that disable a UR's own friction "
                        "compensation")
    parser.add_argument("--report", metavar="REPORT.html", help="a page with tables and plots")
    parser.add_argument("--expect", metavar="MOTION", help="print the expected error of feed-forward on this motion, "
                        ".yaml or .csv as of `rbd excite` and `rbd plan`")
    parser.add_argument("--stiffness", nargs="+", type=float, metavar="STIFFNESS", help="of the position controller, "
                        "N m/rad or N/m, one number or one per joint, for position errors with --expect")
    parser.add_argument("--validate", metavar="RECORDING", help="another motion for validation (default: the last "
                        "fifth)")
    parser.add_argument("--mode", choices=MODES, default="full", help="what is unknown (default: %(default)s)")
    parser.add_argument("--body", metavar="LINK", help="link that carries the load, with --mode payload")
    parser.add_argument("--delay", type=float, metavar="SECONDS", help="delay of efforts relative to states (default: "
                        "estimated)")
    parser.add_argument("--known-load", metavar="LOAD.yaml", help="find the gains first, from --loaded and RECORDING: "
                        "body, mass and, if known, com and inertia of the load, as payload.* of the nodes; --gains "
                        "joint=gain is for joints whose gain the recordings do not determine")
    parser.add_argument("--loaded", nargs="+", default=[], metavar="RECORDING", help="recordings with the load of "
                        "--known-load")
    parser.add_argument("--write-gains", metavar="GAINS.yaml", help="the gains from the known load, for --gains of "
                        "this command and `rbd float`")
    parser.add_argument("--transmission", metavar="FILE.yaml",
                        help="file of a coupled wrist: per motor its ratio, or joint → ratio")
    parser.add_argument("--constraints", metavar="FILE.yaml", help="closed loops of the robot, or a sample's name")
    parser.add_argument("--zeros", action="store_true", help="also identify zero offsets of the joints and the tilt of "
                        "the mounting, as far as gravity determines them")
    parser.add_argument("--drives", action="store_true", help="also identify friction by direction and by load, if "
                        "held-out motion shows it")
    parser.add_argument("--stribeck", action="store_true", help="also identify friction near rest, with a velocity per "
                        "joint")
    parser.add_argument("--prior", type=float, default=0.1, metavar="WEIGHT",
                        help="weight of the description for unidentifiable directions (default: %(default)s)")
    parser.add_argument("--solver", choices=tuple(SOLVERS), default="newton", help="solver of the consistent fit; "
                        "semidefinite needs the package clarabel (default: %(default)s)")
    parser.add_argument("--no-rotors", action="store_true", help="take rotor inertias from the description")
    parser.epilog = "Exit code: 0 if the result explains the efforts better than the description did, else 1; "\
        "1, and no model is written, if an effort has the wrong sign."


def run(namespace: argparse.Namespace) -> int:
    """Identify, print and write; returns 1 if the result is no better than the description. Raises `RbdError` for wrong
    signs.
    """
    if namespace.old is not None and namespace.recording is None:    # RECORDING --urdf ROBOT
        namespace.robot, namespace.recording = None, namespace.robot
    if namespace.recording is None:
        raise RbdError("expected ROBOT RECORDING: a recording is a bag, .csv or .npz")
    model = recorded_model(namespace)
    if namespace.expect and namespace.constraints:
        raise RbdError("--expect: not supported with --constraints: motor efforts in closed loops depend on how the "
                       "motors share the load")
    motion = motion_from(namespace.expect, model) if namespace.expect else None
    stiffness = _stiffness(namespace.stiffness, model)
    if stiffness is not None and motion is None:
        raise RbdError("--stiffness: give the motion, too: --expect MOTION")
    if namespace.drives and namespace.actuation and not namespace.parameters:
        raise RbdError("--actuation with --drives: give --parameters NODES.yaml, too, which has friction by direction "
                       "and by load")
    constraints = constraints_from(namespace.constraints, model) if namespace.constraints else None
    recording = load_recording(namespace, namespace.recording)
    validation = load_recording(namespace, namespace.validate) if namespace.validate else None
    gains = "estimate" if namespace.gains == ["estimate"] else gains_of(namespace.gains, model, ", or 'estimate'")
    drives = None
    if namespace.write_gains and not namespace.known_load:
        raise RbdError("--write-gains is for gains from --known-load LOAD.yaml and --loaded RECORDING")
    if namespace.known_load or namespace.loaded:
        loaded = [load_recording(namespace, path) for path in namespace.loaded]
        drives, gains = _found_gains(model, recording, loaded, namespace, gains)
        if namespace.write_gains:
            write_text(namespace.write_gains, "".join(f"{json.dumps(name)}: {gain:.6g}\n"
                                                      for name, gain in gains.items()))
            print(f"wrote {namespace.write_gains}\n")
    result = identify(model, recording, mode=namespace.mode, body=namespace.body, constraints=constraints,
                      validation=validation, rotors=not namespace.no_rotors, stribeck=namespace.stribeck,
                      drives=namespace.drives,
                      zeros=namespace.zeros,
                      cutoff=namespace.cutoff, prior=namespace.prior, solver=namespace.solver,
                      delay="estimate" if namespace.delay is None else namespace.delay,
                      gains=gains, slowest=namespace.slowest,
                      transmission=Transmission.load(namespace.transmission) if namespace.transmission else None,
                      progress=lambda line: print(f"  {line}", file=sys.stderr, flush=True))
    print("\n".join(as_text(result)))
    if motion is not None:
        print("\n".join(["", f"feed-forward on {namespace.expect}:", *aligned([expected_head(stiffness), *expected_rows(
            result, motion, stiffness)]), *_wrapped(EXPECTED), ""]))
    if namespace.report:
        write_report(result, namespace.report, motion, stiffness, drives)
        print(f"wrote {namespace.report}")
    result.require_signs()
    for path, write in ((namespace.output, lambda path: result.write_urdf(path, description_of(namespace))),
                        (namespace.parameters, result.write_parameters), (namespace.actuation, result.write_actuation),
                        (namespace.controller, lambda path: result.write_controller(
                            path, None if isinstance(gains, str) else gains)),
                        (namespace.ur_friction, result.write_ur_friction)):
        if path:
            write(path)
            print(f"wrote {path}")
    return 0 if result.residual.overall < result.residual.overall_before else 1


def _stiffness(values: list[float] | None, model: RobotModel) -> Array | None:
    if values is None:
        return None
    stiffness = np.array(values)
    if len(values) not in (1, model.nv) or not np.isfinite(stiffness).all() or not (stiffness > 0.0).all():
        raise RbdError(f"--stiffness: expected one positive number or {model.nv}, got "
                       f"{' '.join(map(str, values))[:100]}")
    return np.array(np.broadcast_to(stiffness, model.nv))


def _found_gains(model: RobotModel, unloaded: Recording, loaded: list[Recording], namespace: argparse.Namespace,
                 named: list[float] | dict[str, float] | str | None) -> tuple[DriveGains, dict[str, float]]:
    """Gains from the known load, printed; and gains by joint, in which the `named` ones replace these. Joints with
    undetermined gain must be among the named ones.
    """
    if not (namespace.known_load and loaded):
        raise RbdError("--known-load LOAD.yaml and --loaded RECORDING go together: the load, and a motion with it")
    if namespace.transmission or namespace.constraints:
        raise RbdError("--known-load: gains of coupled wrists and closed loops cannot be found, give them by --gains")
    if not isinstance(named, dict | None):
        raise RbdError("--gains: with --known-load, give joint=gain for joints with undetermined gain")
    body, load, known = read_known_load(namespace.known_load)
    gains = drive_gains(model, unloaded, loaded, body, load, known=known, cutoff=namespace.cutoff,
                        slowest=namespace.slowest)
    print("\n".join(_gain_lines(gains)), end="\n\n", flush=True)
    if lacking := [name for name in gains.missing if name not in (named or {})]:
        raise RbdError(f"the gain of {', '.join(lacking)} is not shown: give {lacking[0]}=GAIN by --gains, or record "
                       "a motion that turns the load against gravity by these joints, or accelerates it")
    return gains, {**dict(zip(gains.joints, map(float, gains.gains), strict=True)), **(named or {})}


def _gain_lines(gains: DriveGains) -> list[str]:
    """Gains with their intervals for a terminal."""
    width = max(map(len, gains.joints))
    rows = [f"{name:{width}}  " + ("not shown" if gain != gain else f"{gain:10.4g}  {low:10.4g} to {high:.4g}")
            + f"  {100.0 * unexplained:8.1f} %" for name, gain, (low, high), unexplained in
            zip(gains.joints, gains.gains, gains.interval, gains.residual, strict=True)]
    notes = [line for finding in gains.findings for line in _wrapped(f"note: {finding}")]
    return ["gains from the known load, 95 % intervals, and what they leave unexplained:", *rows, *notes]


def as_text(result: Identification) -> list[str]:
    """The result for a terminal."""
    lines = [line for text in summary(result) for line in _wrapped(text)]
    return [*lines, "", *joint_table(result), "", *(line for finding in result.findings
                                                    for line in _wrapped(f"note: {finding}"))]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
