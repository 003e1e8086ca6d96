"""`rbd view arm.urdf`: a robot in the browser, to look at, to move, to play a motion on."""
from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable

from ..core.errors import RbdError
from ..core.model.constraints import ConstraintSet
from ..core.model.samples import constraints_from, sample_names, sample_path
from ..view.efforts import passive_of
from ..view.robot_view import RobotView
from ..view.scene import scene_of
from ..view.serving import LOCAL, PORT, end, open_server, serve
from .doctor import Report, examine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd view`."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="robot description: URDF, or xacro")
    parser.add_argument("arguments", nargs="*", metavar="NAME:=VALUE", help="arguments of a xacro file")
    parser.add_argument("--sample", metavar="NAME", help=f"instead, a sample robot: {', '.join(sample_names())}")
    parser.add_argument("--root", choices=("fixed", "floating"), default="fixed",
                        help="whether the root link is fixed or floating (default: %(default)s)")
    parser.add_argument("--constraints", metavar="FILE", help="closed loops and contacts: a YAML file, or the name of "
                        "a sample robot (default with --sample: its own)")
    parser.add_argument("--actuated", nargs="+", default=[], metavar="JOINT", help="joints with motors, where not all "
                        "have one, as with closed loops")
    parser.add_argument("--host", default=LOCAL, help="address to serve at (default: %(default)s, this machine alone)")
    parser.add_argument("--port", type=int, default=PORT, help="the next free one if taken (default: %(default)s)")
    parser.add_argument("--no-browser", action="store_true", help="print the address, open nothing")


def run(namespace: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    view = make(namespace)
    return serve(view.server, not namespace.no_browser)


def make(namespace: argparse.Namespace) -> RobotView:
    """Server and view, as the arguments say."""
    path = description_of(namespace)
    report, constraints = described(path, namespace)
    server = open_server(namespace.host, namespace.port, report.description.name)
    try:
        assert report.model is not None
        with Progress(len(report.model.body_names)) as progress:
            scene = scene_of(report.model, path, progress)
        for finding in scene.findings:
            print(f"link '{finding.subject}': {finding.message}", file=sys.stderr)
        return RobotView(server, scene, constraints, report.findings, namespace.actuated)
    except BaseException:
        end(server)
        raise


def description_of(namespace: argparse.Namespace) -> str:
    """The description's path, as `load_urdf` takes it."""
    if (namespace.file is None) == (namespace.sample is None):
        raise RbdError("give a robot description, or --sample and one of " + ", ".join(sample_names()))
    if namespace.sample is not None:
        return str(sample_path(namespace.sample))
    if namespace.file in sample_names() and not namespace.arguments:
        return str(sample_path(namespace.file))
    return " ".join([namespace.file, *map(shlex.quote, namespace.arguments)])


def described(path: str, namespace: argparse.Namespace) -> tuple[Report, ConstraintSet]:
    """What the doctor says of it, with the model, and its constraints."""
    report = examine(path, namespace.root)
    model = report.model
    if model is None:
        raise RbdError("; ".join(f"{finding.subject}: {finding.message}" for finding in report.findings
                                 if finding.severity == "error") or "no model can be built of it")
    passive_of(model, namespace.actuated)    # says which names are none
    name = namespace.constraints
    if name is None and namespace.sample is not None and sample_path(namespace.sample).with_suffix(
            ".constraints.yaml").is_file():
        name = namespace.sample
    return report, constraints_from(name or "", model)


class Progress:
    """Which link's shapes are being read, on a terminal; nothing of what takes less than half a second."""

    def __init__(self, count: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._count, self._clock, self._begin, self._done, self._shown = count, clock, clock(), 0, False

    def __enter__(self) -> Progress:
        return self

    def __call__(self, link: str) -> None:
        self._done += 1
        if sys.stdout.isatty() and self._clock() - self._begin > 0.5:
            self._shown = True
            print(f"\r\033[Kreading shapes: {self._done} of {self._count} links, {link}", end="", flush=True)

    def __exit__(self, *_: object) -> None:
        if self._shown:
            print("\r\033[K", end="", flush=True)
