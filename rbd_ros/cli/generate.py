"""`rbd generate`: a robot's functions as C source for controllers and firmware, or as CUDA kernels."""
from __future__ import annotations

import argparse
from pathlib import Path

from ..core.specialize.c_source import ARGUMENTS, PRECISIONS, TARGETS, c_files
from .files.robot import add_robot, load_robot
from .files.written import write_files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("--functions", nargs="+", default=["inverse_dynamics"], metavar="FUNCTION",
                        help=f"of {', '.join(ARGUMENTS)}; with parameters jacobian:LINK[:body|world|aligned], "
                             "hybrid_dynamics:JOINT,… (whose accelerations are given), "
                             "inverse_dynamics_time_derivatives:ORDER (default: inverse_dynamics)")
    parser.add_argument("-o", "--output", type=Path, default=Path("."), help="folder for the files")
    parser.add_argument("--name", default="", help="prefix of files and functions (default: the robot's name)")
    parser.add_argument("--precision", choices=PRECISIONS, default="double")
    parser.add_argument("--target", choices=TARGETS, default="c", help="C99, or CUDA kernels with a thread per state "
                        "(default: c)")
    parser.add_argument("--inertias", nargs="+", default=[], metavar="LINK", help="links whose inertial parameters are "
                        "an argument of the functions")
    parser.add_argument("--payload", default="", metavar="LINK", help="link with a load, whose inertial parameters are "
                        "an argument of the functions")
    parser.add_argument("--gravity", action="store_true", help="gravity is an argument of the functions, too")
    parser.add_argument("--root", choices=("fixed", "floating"), default="fixed", help="how the base link stands")


def run(arguments: argparse.Namespace) -> int:
    model = load_robot(arguments, root=arguments.root)
    files = c_files(model, arguments.functions, arguments.name, arguments.precision, target=arguments.target,
                    inertias=arguments.inertias, payload=arguments.payload, gravity=arguments.gravity)
    write_files(arguments.output, files)
    for name, text in files.items():
        print(f"{arguments.output / name}  ({len(text) / 1000:.0f} kB)")
    print(f"try it: cmake -S {arguments.output} -B {arguments.output}/build && cmake --build {arguments.output}/build "
          f"&& ctest --test-dir {arguments.output}/build")
    return 0
