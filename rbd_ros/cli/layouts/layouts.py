"""`rbd layouts`: PlotJuggler and Foxglove show a robot's torque, limits, residual and latencies."""
from __future__ import annotations

import argparse
from pathlib import Path

from ...core.errors import unknown_name
from ..files.robot import add_robot, load_robot
from ..files.written import write_files
from . import foxglove, plotjuggler
from .panels import tabs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    parser.add_argument("-o", "--output", type=Path, default=Path("."), help="folder for the files")
    parser.add_argument("--node", default="/feedforward", help="node that commands the torque (/feedforward)")
    parser.add_argument("--joint-states", default="/joint_states", help="topic of the joint states (/joint_states)")
    parser.add_argument("--residual", default="/residual/residual", help="topic of node residual (/residual/residual)")
    parser.add_argument("--joints", nargs="+", default=None, metavar="JOINT",
                        help="order of the node's parameter `joints` (default: that of the model)")


def run(arguments: argparse.Namespace) -> int:
    model = load_robot(arguments)
    names = ["/" + name.strip("/") for name in (arguments.node, arguments.joint_states, arguments.residual)]
    joints = list(model.joint_names) if arguments.joints is None else arguments.joints
    for joint in joints:
        if joint not in model.joint_names:
            raise unknown_name("joint", joint, model.joint_names)
    node, joint_states, residual = names
    shown = tabs(model, joints, node, joint_states, residual)
    files = {f"{model.name}_plotjuggler.xml": plotjuggler.layout(shown, joint_states),
             f"{model.name}_foxglove.json": foxglove.layout(shown, node)}
    write_files(arguments.output, files)
    for name in files:
        print(arguments.output / name)
    return 0
