"""The robot argument of all commands."""
from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...core.errors import RbdError, RbdWarning, shortened
from ...core.model.files.urdf import load_urdf
from ...core.model.files.xacro_text import split
from ...core.model.files.xml_tree import PACKAGE
from ...core.model.robot_model import RobotModel
from ...core.model.samples import sample_names, sample_path
from ...runtime.robot import check_model

VARIABLE = "ROS_PACKAGE_PATH"
ARGUMENT = re.compile(r"[^\s:=-][^\s:=]*:=.*", re.DOTALL)
FORMATS = ("a URDF file, a xacro file (*.xacro, its arguments as words NAME:=VALUE), package://NAME/PATH of either, or "
           f"a sample: {', '.join(sample_names())}")


def add_robot(parser: argparse.ArgumentParser, *, nargs: str | None = None, metavar: str = "ROBOT", help: str = "",
              old: str = "") -> None:
    """Declare the robot argument. old: a former option for the robot, still accepted."""
    parser.add_argument("robot", nargs=nargs, metavar=metavar, help=f"{help}{FORMATS}")    # type: ignore[arg-type]
    parser.add_argument("--package-folder", action="append", default=[], metavar="DIR",
                        help="folder of a ROS package or of several, searched for package:// and $(find …) of the "
                        "file; may be repeated")
    if old:
        parser.add_argument(old, dest="old", help=argparse.SUPPRESS)
    parser.set_defaults(old=None, arguments=[], has_robot=True)


def parsed(parser: argparse.ArgumentParser, words: Sequence[str], robot: bool) -> argparse.Namespace:
    """The parsed arguments; with a robot, words NAME:=VALUE in any position are arguments of its file.
    """
    file_arguments = [word for word in words if robot and ARGUMENT.fullmatch(word)]
    namespace = parser.parse_args([word for word in words if word not in file_arguments])
    namespace.arguments = file_arguments
    return namespace


def named(namespace: argparse.Namespace) -> str | None:
    """The robot argument; None if missing."""
    if namespace.old is not None and namespace.robot is not None:
        raise RbdError(f"a robot is named once, got '{namespace.robot}' and '{namespace.old}'")
    if namespace.old is not None:
        print(f"rbd {namespace.command}: write the robot as `rbd {namespace.command} {shlex.quote(namespace.old)}`, "
              "without an option", file=sys.stderr)
        namespace.robot, namespace.old = namespace.old, None
    return namespace.robot    # type: ignore[no-any-return]


@contextmanager
def packages_of(namespace: argparse.Namespace) -> Iterator[None]:
    """Within this context, the folders of --package-folder come first in ROS_PACKAGE_PATH, for other processes, too."""
    before = os.environ.get(VARIABLE)
    folders = [os.path.abspath(folder) for folder in getattr(namespace, "package_folder", ())]
    for folder in folders:
        if not os.path.isdir(folder):
            raise RbdError(f"--package-folder {shortened(folder, 200)}: there is no such folder")
    if not folders:
        yield
        return
    os.environ[VARIABLE] = os.pathsep.join([*folders, *([before] if before else [])])
    try:
        yield
    finally:
        del os.environ[VARIABLE]
        if before is not None:
            os.environ[VARIABLE] = before


def description_of(namespace: argparse.Namespace) -> str:
    """The description's path with its arguments, for `load_urdf`. Raises `RbdError` without a robot."""
    name = named(namespace)
    if name is None:
        raise RbdError(f"no robot is named: expected {FORMATS}")
    if name in sample_names():
        if namespace.arguments:
            raise RbdError(f"sample {name} has no arguments, got {' '.join(namespace.arguments)}")
        return str(sample_path(name))
    if not name.startswith(PACKAGE) and not Path(split(name)[0]).exists():
        raise RbdError(f"cannot read '{shortened(name, 200)}': there is no such file. Expected {FORMATS}")
    return " ".join([name, *map(shlex.quote, namespace.arguments)])


def load_robot(namespace: argparse.Namespace, quiet: bool = False, joints: bool = False, **options: Any) -> RobotModel:
    """The model. quiet: suppress warnings, which `rbd doctor` explains; joints: reject models with joints that joint
    states cannot represent; options: as of `load_urdf`.
    """
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", RbdWarning)
        model = load_urdf(description_of(namespace), **options)
    if joints:
        check_model(model)
    return model
