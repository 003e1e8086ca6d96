"""`rbd identify RECORDING --urdf ROBOT.urdf`: from a recorded motion to a description that deserves the torque."""
from __future__ import annotations

import argparse
import sys
import textwrap
import warnings

from ...core.errors import RbdError, RbdWarning
from ...core.identification.fit import identify
from ...core.identification.identified import Identification
from ...core.identification.recorded.reading import JOINT_STATES
from ...core.identification.recorded.recording import Recording
from ...core.identification.recorded.signals import REST
from ...core.identification.report import joint_table, summary, write_report
from ...core.identification.transmission import Transmission
from ...core.identification.unknowns import MODES
from ...core.model.files.urdf import load_urdf
from ...core.model.robot_model import RobotModel

WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd identify`."""
    parser.add_argument("recording", metavar="RECORDING", help="rosbag2 (folder, .db3, .mcap), .csv or .npz")
    parser.add_argument("--urdf", required=True, metavar="FILE.urdf", help="robot description")
    parser.add_argument("-o", "--output", metavar="NEW.urdf", help="the description with what was found")
    parser.add_argument("--report", metavar="REPORT.html", help="a page with tables and plots")
    parser.add_argument("--validate", metavar="RECORDING", help="another motion, to judge by (default: the last fifth)")
    parser.add_argument("--mode", choices=MODES, default="full", help="what is unknown (default: %(default)s)")
    parser.add_argument("--body", metavar="LINK", help="that carries the load, with --mode payload")
    parser.add_argument("--cutoff", type=float, metavar="HZ", help="of the filter (default: from the positions)")
    parser.add_argument("--delay", type=float, metavar="SECONDS", help="of efforts behind states (default: estimated)")
    parser.add_argument("--gains", nargs="+", metavar="GAIN",
                        help="from what was recorded to N m: one per joint, joint=gain, or 'estimate'")
    parser.add_argument("--transmission", metavar="FILE.yaml",
                        help="of a coupled wrist: per motor its ratio, or joint → ratio")
    parser.add_argument("--slowest", type=float, default=REST, metavar="SPEED",
                        help="rad/s, m/s: slower joints stick and are left out meanwhile; 0 with torque sensors at the "
                             "links (default: %(default)s)")
    parser.add_argument("--topic", default=JOINT_STATES, help="of the joint states in a bag (default: %(default)s)")
    parser.add_argument("--effort-topic", metavar="TOPIC", help="of the efforts, if joint states have none")
    parser.add_argument("--lock", nargs="+", default=[], metavar="JOINT", help="joints that stood at zero")
    parser.add_argument("--no-rotors", action="store_true", help="take rotor inertias from the description")
    parser.epilog = "Exit code: 0 if the result explains the efforts better than the description did, else 1."


def run(namespace: argparse.Namespace) -> int:
    """Identify, print and write; 1 where the result is no better than the description."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RbdWarning)    # what is wrong with the description is about to change
        model = load_urdf(namespace.urdf, locked={name: 0.0 for name in namespace.lock})
    options = {"topic": namespace.topic, "effort_topic": namespace.effort_topic}
    recording = Recording.load(namespace.recording, **options)
    validation = Recording.load(namespace.validate, **options) if namespace.validate else None
    result = identify(model, recording, mode=namespace.mode, body=namespace.body, validation=validation,
                      rotors=not namespace.no_rotors, cutoff=namespace.cutoff,
                      delay="estimate" if namespace.delay is None else namespace.delay,
                      gains=_gains(namespace.gains, model), slowest=namespace.slowest,
                      transmission=Transmission.load(namespace.transmission) if namespace.transmission else None,
                      progress=lambda line: print(f"  {line}", file=sys.stderr, flush=True))
    print("\n".join(as_text(result)))
    if namespace.output:
        result.write_urdf(namespace.output, namespace.urdf)
        print(f"wrote {namespace.output}")
    if namespace.report:
        write_report(result, namespace.report)
        print(f"wrote {namespace.report}")
    return 0 if result.residual.overall < result.residual.overall_before else 1


def _gains(given: list[str] | None, model: RobotModel) -> list[float] | dict[str, float] | str | None:
    if given is None or given == ["estimate"]:
        return given[0] if given else None
    try:
        if all("=" in word for word in given):
            return {name: float(value) for name, _, value in (word.partition("=") for word in given)}
        return [float(word) for word in given]
    except ValueError:
        raise RbdError(f"--gains: expected {model.nv} numbers, joint=number, or 'estimate', got "
                       f"{' '.join(given)[:100]}") from None


def as_text(result: Identification) -> list[str]:
    """The result for a terminal."""
    lines = [line for text in summary(result) for line in _wrapped(text)]
    return [*lines, "", *joint_table(result), "", *(line for finding in result.findings
                                                    for line in _wrapped(f"note: {finding}"))]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
