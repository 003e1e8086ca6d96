"""`rbd generate`: a robot's functions as C source or CUDA kernels, or a controller for ros2_control."""
from __future__ import annotations

import argparse
from pathlib import Path

from ..core.errors import RbdError
from ..core.model.robot_model import RobotModel
from ..core.specialize.c_source import ARGUMENTS, PRECISIONS, TARGETS, c_files
from .files.robot import add_robot, load_robot
from .files.written import write_files
from .identification.recorded import locked
from .ros2_control.package import package_files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("--functions", nargs="+", default=["inverse_dynamics"], metavar="FUNCTION",
                        help=f"of {', '.join(ARGUMENTS)}; with parameters jacobian:LINK[:body|world|aligned], "
                             "hybrid_dynamics:JOINT,… (whose accelerations are given), "
                             "inverse_dynamics_time_derivatives:ORDER (default: inverse_dynamics)")
    parser.add_argument("--ros2-control", type=Path, metavar="DIR", help="write an ament_cmake package in C++17 "
                        "instead: a chainable effort controller with laws and safety of node feedforward, and a plugin "
                        "of inverse_dynamics_solver")
    parser.add_argument("--package", default="", metavar="NAME", help="name of that package (default: "
                        "<name>_effort_controller)")
    parser.add_argument("-o", "--output", type=Path, default=Path("."), help="folder for the files")
    parser.add_argument("--name", default="", help="prefix of files and functions (default: the robot's name)")
    parser.add_argument("--precision", choices=PRECISIONS, default="double")
    parser.add_argument("--target", choices=TARGETS, default="c", help="C99, or CUDA kernels with a thread per state "
                        "(default: c)")
    parser.add_argument("--inertias", nargs="+", default=[], metavar="LINK", help="links whose inertial parameters are "
                        "an argument of the functions")
    parser.add_argument("--payload", default="", metavar="LINK", help="link with a load, whose inertial parameters are "
                        "an argument of the functions")
    parser.add_argument("--gravity-input", action="store_true", help="gravity is an argument of the functions, too")
    parser.add_argument("--lock", nargs="+", default=[], metavar="JOINT", help="joints that do not move: at zero, or "
                        "JOINT=POSITION")
    parser.add_argument("--root", choices=("fixed", "floating"), default="fixed", help="how the base link stands")


def run(arguments: argparse.Namespace) -> int:
    model = load_robot(arguments, root=arguments.root, locked=locked(arguments.lock))
    if arguments.ros2_control is not None:
        return _write_package(model, arguments)
    files = c_files(model, arguments.functions, arguments.name, arguments.precision, target=arguments.target,
                    inertias=arguments.inertias, payload=arguments.payload, gravity=arguments.gravity_input)
    write_files(arguments.output, files)
    for name, text in files.items():
        print(f"{arguments.output / name}  ({len(text) / 1000:.0f} kB)")
    print(f"try it: cmake -S {arguments.output} -B {arguments.output}/build && cmake --build {arguments.output}/build "
          f"&& ctest --test-dir {arguments.output}/build")
    return 0


def _write_package(model: RobotModel, arguments: argparse.Namespace) -> int:
    if arguments.root != "fixed":
        raise RbdError("--ros2-control is for arms on a fixed base, got --root floating")
    folder, files = arguments.ros2_control, package_files(model, arguments.name, arguments.package)
    kept = [name for name in files if name.startswith("config/") and (folder / name).exists()]
    files = {name: text for name, text in files.items() if name not in kept}
    write_files(folder, files)
    for name in kept:
        print(f"{folder / name} is kept" + (", and overrides the numbers of the description" if "dynamics" in name
                                            else ""))
    print(f"{folder}: {len(files)} files; config/*_dynamics.yaml has inertias, rotors and friction")
    print(f"build it: colcon build --base-paths {folder}; try it: see {folder / 'README.md'}")
    return 0
