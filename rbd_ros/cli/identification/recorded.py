"""Arguments of commands that take a robot and its recording."""
from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ...core.errors import RbdError, shown
from ...core.identification.recorded.reading import JOINT_STATES
from ...core.identification.recorded.recording import Recording
from ...core.identification.recorded.signals import REST
from ...core.model.files.yaml_text import read_yaml
from ...core.model.inertia import finite
from ...core.model.robot_model import RobotModel
from ..files.robot import load_robot


def add_recorded(parser: argparse.ArgumentParser, *, nargs: str | None = None, estimate: str = "") -> None:
    """Declare the recording and how it is read. estimate: help text of a further choice of --gains."""
    parser.add_argument("recording", nargs=nargs, metavar="RECORDING",    # type: ignore[arg-type]
                        help="rosbag2 (folder, .db3, .mcap), .csv or .npz")
    parser.add_argument("--cutoff", type=float, metavar="HZ", help="cutoff of the filter (default: from the positions)")
    parser.add_argument("--gains", nargs="+", metavar="GAIN",
                        help="factors from recorded values to N m: one per joint, joint=gain, or a file of "
                        f"`rbd identify --write-gains`{estimate}")
    parser.add_argument("--slowest", type=float, default=REST, metavar="SPEED",
                        help="rad/s, m/s: efforts of slower joints, which stick, are excluded; 0 with torque sensors "
                             "at the links (default: %(default)s)")
    add_source(parser)


def add_source(parser: argparse.ArgumentParser) -> None:
    """Declare the topics of a recording, and how the robot was mounted and locked."""
    parser.add_argument("--topic", default=JOINT_STATES, help="topic of joint states in a bag (default: %(default)s)")
    parser.add_argument("--effort-topic", metavar="TOPIC", help="topic of the efforts, if joint states have none")
    parser.add_argument("--lock", nargs="+", default=[], metavar="JOINT", help="joints that did not move: at zero, or "
                        "JOINT=POSITION")
    parser.add_argument("--gravity", nargs=3, type=float, default=(0.0, 0.0, -9.81), metavar=("X", "Y", "Z"),
                        help="gravity in the axes of the root link, m/s², for an arm on a wall or a ceiling (default: "
                        "0 0 -9.81)")


def recorded_model(namespace: argparse.Namespace) -> RobotModel:
    """The model, with the mounting and locked joints of the recording."""
    return load_robot(namespace, quiet=True, gravity=namespace.gravity, locked=locked(namespace.lock))


def load_recording(namespace: argparse.Namespace, path: str) -> Recording:
    """A recording, read from the topics of the arguments."""
    return Recording.load(path, topic=namespace.topic, effort_topic=namespace.effort_topic)


def locked(words: Sequence[str]) -> dict[str, float]:
    """Positions of locked joints, by name."""
    try:
        return {name: float(value or 0.0) for name, _, value in (word.partition("=") for word in words)}
    except ValueError:
        raise RbdError(f"--lock: expected JOINT or JOINT=POSITION, got {' '.join(words)[:100]}") from None


def gains_of(words: list[str] | None, model: RobotModel, expected: str = "") -> (
        list[float] | dict[str, float] | None):
    """The gains, in the model's order or by name; None without any. expected: further alternatives in the error."""
    if words is None:
        return None
    if len(words) == 1 and words[0].endswith((".yaml", ".yml")):
        tree, source = read_yaml(Path(words[0]), "gains")
        if not isinstance(tree, dict):
            raise RbdError(f"{source}: expected joint: gain, got {shown(tree)}")
        return {str(name): float(finite(value, (), f"{source}: gain of {name}")) for name, value in tree.items()}
    try:
        if all("=" in word for word in words):
            return {name: float(value) for name, _, value in (word.partition("=") for word in words)}
        return [float(word) for word in words]
    except ValueError:
        raise RbdError(f"--gains: expected {model.nv} numbers, joint=number, or a .yaml file{expected}, got "
                       f"{' '.join(words)[:100]}") from None
