"""The command `rbd`."""
from __future__ import annotations

import argparse
import contextlib
import importlib
import signal
import sys
from collections.abc import Sequence

from .. import __version__
from ..core.errors import RbdError
from ..streams import be_quiet, flush
from .files.robot import packages_of, parsed

# name → (module with `add_arguments` and `run`, help)
COMMANDS = {
    "doctor": ("doctor", "report what a robot description contains and what is wrong with it"),
    "view": ("view.view", "show a robot in the browser: geometry, inertias, torques, motions, a running node"),
    "compile": ("compile", "compile all kernels in advance, so that no program waits for them"),
    "excite": ("identification.excite", "find a motion to record for identifying an arm's inertial parameters"),
    "identify": ("identification.identify", "find inertial parameters and friction of an arm from a recorded motion"),
    "thresholds": ("identification.thresholds", "find thresholds of external efforts from motions without contact"),
    "float": ("identification.float_test", "would the arm float under the gravity torque of its description alone?"),
    "gazebo": ("bringup.gazebo", "write the files to control an arm by torque in Gazebo"),
    "generate": ("generate", "write a robot's dynamics as C source for controllers and firmware, or for CUDA"),
    "layouts": ("layouts.layouts", "write layouts of PlotJuggler and Foxglove for a robot: torque, limits, latencies"),
    "plan": ("plan", "plan an optimal motion of an arm: least effort, time or jerk within all limits"),
    "retrace": ("retrace", "smooth and time a path that was taught by hand, as a trajectory to play"),
    "secure": ("bringup.secure", "write the SROS2 policy of a node and of those who talk to it, and make their keys"),
    "sweep": ("sweep.sweep", "track with many robots that differ from their model: the distribution of errors"),
    "demo": ("demo", "track a trajectory with a simulated arm, with and without feed-forward"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of `rbd`; returns the exit code."""
    try:
        try:
            return _run(list(sys.argv[1:] if arguments is None else arguments))
        finally:    # while errors can still be reported
            flush()
    except BrokenPipeError:    # the reader has ended, e.g. `head`: 128 + SIGPIPE
        be_quiet()
        return 141
    except OSError as error:    # a full disk, for instance
        be_quiet()
        with contextlib.suppress(OSError):
            print(f"rbd: {error}", file=sys.stderr, flush=True)
        return 1


def _run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="rbd", description="Rigid-body dynamics for robots.")
    parser.add_argument("--version", action="version", version=f"rbd_ros {__version__}")
    robot = False
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, text) in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name in arguments[:1]:    # the others need not be imported
            implementation = importlib.import_module(f".{module}", __package__)
            implementation.add_arguments(command)
            command.set_defaults(run=implementation.run)
            robot = bool(command.get_default("has_robot"))
    namespace = parsed(parser, arguments, robot)
    try:
        with packages_of(namespace):
            return int(namespace.run(namespace))
    except RbdError as error:
        print(f"rbd {namespace.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interrupt:
        print(f"\nrbd {namespace.command}: interrupted", file=sys.stderr)
        return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())
