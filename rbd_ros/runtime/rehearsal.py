"""Rehearsal: the configuration of a real arm, run unchanged against a simulated arm that behaves like it.

What there is no receiver for here is replaced, and named: adapters `lbr` and `jtc` and node `effort_annotator` by
adapter `forward_command` of node `feedforward`; behind the annotator with the gains of its joint_trajectory_controller.
"""
from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import RbdError
from ..core.model.files.xml_tree import read_text
from ..core.model.files.yaml_text import read_yaml
from ..core.model.robot_model import RobotModel
from ..core.model.samples import sample_path
from .control.feedforward import FEEDFORWARD_TABLE
from .parameters import select, validate
from .robot import joint_order, load_model

Values = dict[str, Any]
ROTORS = 0.1    # kg m^2 after the gears, where nobody says: that of the Panda and the UR5e in the MuJoCo Menagerie
MARGIN = 0.1    # rad or m: a joint with a stop nearer to 0 starts in the middle of its range
# Of each configuration that comes with the package: a description of the arm (of a sample, or of package
# example-robot-data), how its joints are called in the configuration, and what it has beyond the arm.
SAMPLES: dict[str, tuple[str, tuple[str, str], Values]] = {
    "ur": ("ur_description/urdf/ur5_robot.urdf", ("", ""), {}),
    "franka": ("panda_description/urdf/panda.urdf", ("panda_", "fr3_"), {}),
    "iiwa_lbr": ("iiwa", ("joint_", "lbr_A"), {}),
    **dict.fromkeys(("generic_effort", "generic_jtc", "generic_annotator"),
                    ("z1_description/urdf/z1.urdf", ("", ""), {"locked.joints": ["jointGripper"]}))}
TAKEN = ("forward_command", "joint_state")    # adapters that node simulator has a receiver for
NO_HANDOVER: Values = {"handover.controller_manager": "", "handover.activate": [""], "handover.deactivate": [""]}


@dataclass(frozen=True)
class Rehearsal:
    """description: text of the URDF; model: what node feedforward makes of it; robot: parameters of node simulator;
    given: those of node feedforward in the file; replaced: what counts instead of them; values: all that its logic has;
    notes: what differs from the real arm.
    """

    description: str
    model: RobotModel
    robot: Values
    given: Values
    replaced: Values
    values: Values
    notes: tuple[str, ...]


def parameters_of(path: Path, node: str) -> Values:
    """Those for this node in a ROS parameter file: under its name and under /**."""
    tree, source = read_yaml(path, "parameters")
    found: Values = {}
    for section in ("/**", node, f"/{node}", f"/**/{node}"):
        given = tree.get(section, {}) if isinstance(tree, Mapping) else {}
        found |= given.get("ros__parameters", {}) if isinstance(given, Mapping) else {}
    if not found:
        raise RbdError(f"{source} has no parameters for node {node}: expected `/**: ros__parameters:`")
    return found


def rehearse(config: Path, urdf: str | os.PathLike[str] | None = None, like: Path | None = None) -> Rehearsal:
    """What to start for this file, with the arm of this description; None: the sample for a shipped file. like: the
    configuration (default: this one) beside which `rehearsal/` says what the robot does, and `controllers/` what gains
    its controller has, in files of the same name.
    """
    like = like or config
    given, notes = parameters_of(config, "feedforward"), []
    replaced: Values = {}
    if urdf is None:
        description, replaced = _sample(like.stem)
        notes += [f"{name} is {value} for the sample description" for name, value in replaced.items()]
    else:
        text, _ = read_text(urdf)
        description = text if isinstance(text, str) else text.decode("utf-8", "replace")
    own = like.parent / "rehearsal" / like.name
    robot = parameters_of(own, "simulator") if own.is_file() else {
        name: given[name] for name in ("robot_compensates",) if name in given}
    if not own.is_file():
        notes.append(f"there is no {own}: the robot compensates what {config.name} says, and never stops itself")
    adapters = [name for name in given.get("adapters", []) if name]
    others = [name for name in adapters if name not in TAKEN]
    annotated = "adapters" not in given
    if "forward_command" in adapters:
        robot["controller"] = given.get("forward_command.controller", "effort_controller")
    robot.setdefault("controller", "effort_controller")
    if others or annotated:
        names = "node effort_annotator" if annotated else f"adapter {', '.join(others)}"
        notes.append(f"{names} is left out" if "forward_command" in adapters else
                     f"{names} is replaced by adapter forward_command" + " of node feedforward" * annotated)
        replaced |= {"adapters": ["forward_command"], "forward_command.controller": robot["controller"]}
        if annotated:
            replaced["feedforward"] = "full"
    if annotated:    # what follows the trajectory there
        gains = _controller_gains(like, given["joints"])
        if gains:
            notes.append(f"the gains of controllers/{like.name} count, which joint_trajectory_controller has")
            replaced |= {name: values.tolist() for name, values in gains.items()}
    if given.get("handover.controller_manager"):
        replaced |= NO_HANDOVER
        notes.append("no handover to another controller at the end")
    values = validate(FEEDFORWARD_TABLE, select(FEEDFORWARD_TABLE, given | replaced))
    model, _ = load_model(values, description)
    joints, output, _ = joint_order(values["joints"], model)
    rotors = np.where(model.armature > 0.0, model.armature, ROTORS)[output]
    if (rotors != model.armature[output]).any():
        notes.append(f"the robot has rotors of {ROTORS:g} kg m^2 where neither file nor description names any; the "
                     "controller does not know")
    robot |= {name: given[name] for name in ("gravity", "mounting.rpy", "locked.positions") if name in given}
    low, high = np.maximum(model.position_lower, -np.pi), np.minimum(model.position_upper, np.pi)
    start = np.where((low < -MARGIN) & (high > MARGIN), 0.0, 0.5 * (low + high))[output]
    robot |= {"joints": list(joints), "initial_position": start.tolist(), "rotor_inertia": rotors.tolist(),
              "locked.joints": list(values["locked.joints"]) or [""]}
    return Rehearsal(description, model, robot, given, replaced, values, tuple(notes))


def _sample(name: str) -> tuple[str, Values]:
    """Text of the description for a configuration that comes with the package, and what it needs."""
    if name not in SAMPLES:
        raise RbdError(f"there is no sample description for '{name}': give the URDF of your arm; samples are for "
                       f"{', '.join(SAMPLES)}")
    where, (old, new), more = SAMPLES[name]
    if "/" not in where:
        path = sample_path(where)
    else:
        try:
            found = [Path(str(file.locate())) for file in files("example-robot-data") or ()
                     if str(file).endswith(where)]
        except PackageNotFoundError:
            found = []
        if not found:
            raise RbdError(f"the description for '{name}' is in the Python package example-robot-data, which is not "
                           "installed: install it, or give the URDF of your arm")
        path = found[0]
    text = path.read_text(encoding="utf-8")
    return text.replace(f'"{old}', f'"{new}') if old else text, dict(more)


def _controller_gains(config: Path, joints: list[str]) -> Values:
    """Gains of the joint_trajectory_controller in the file of controllers beside it; none without such a file."""
    path = config.parent / "controllers" / config.name
    tree = read_yaml(path, "controllers")[0] if path.is_file() else {}
    for section in tree.values():
        gains = section.get("ros__parameters", {}).get("gains")
        if gains:
            return {"gains.kp": np.array([gains[name]["p"] for name in joints]),
                    "gains.kd": np.array([gains[name]["d"] for name in joints])}
    return {}
