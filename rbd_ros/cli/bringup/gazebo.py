"""`rbd gazebo ROBOT`: files for torque control of an arm in Gazebo."""
from __future__ import annotations

import argparse
from pathlib import Path

from ...runtime.cosimulation.gazebo_files import INTERFACES, write_files
from ...runtime.cosimulation.gazebo_world import read_world
from ..files.robot import add_robot, description_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd gazebo`."""
    add_robot(parser)
    parser.add_argument("--interface", choices=INTERFACES, default="ros2_control",
                        help="how Gazebo receives torque: controllers of gz_ros2_control, or topics of ros_gz_bridge "
                             "(default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, default=Path("gazebo"), metavar="FOLDER",
                        help="output folder (default: %(default)s)")
    parser.add_argument("--model", default="", help="name of the arm in the world (default: the robot's)")
    parser.add_argument("--world", default="", metavar="FILE.sdf",
                        help="world file, for the name and step of the world (default: a world named rbd, 1 ms)")
    parser.add_argument("--controller", default="effort_controller",
                        help="name of the controller (default: %(default)s)")


def run(namespace: argparse.Namespace) -> int:
    """Write the files, and print the changes."""
    world, step = "rbd", 0.001
    if namespace.world:
        sdf_world = read_world(namespace.world)
        world, step = sdf_world.name, sdf_world.step
    files = write_files(description_of(namespace), namespace.output, namespace.interface, world=world,
                        model=namespace.model, step=step, controller=namespace.controller)
    for note in files.notes:
        print(note)
    print(f"wrote {files.description}, {files.bridge.name} and {files.controllers.name} for world {world}")
    return 0
