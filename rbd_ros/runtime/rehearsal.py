"""Rehearsal: the unchanged configuration of a real arm, run against a simulated arm.

Outputs without a receiver in the simulation are replaced, and the replacement is reported: adapters `lbr`, `jtc` and
`mit` and node `effort_annotator` by adapter `forward_command` of node `feedforward`; for the annotator, with the gains
of its joint_trajectory_controller.
"""
from __future__ import annotations

import os
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
from .parameter_files import parameters_of
from .parameters import select, validate
from .robot import joint_order, load_model

Values = dict[str, Any]
ROTORS = 0.1    # kg m² at the output of the gears, by default: that of the Panda and the UR5e in the MuJoCo Menagerie
MARGIN = 0.1    # rad or m: a joint with a stop nearer to 0 starts in the middle of its range
# For each configuration of the package: a description of the arm (a sample, or a file of package
# example-robot-data), the replacement of its joint names, and parameters required by the description.
SAMPLES: dict[str, tuple[str, tuple[str, str], Values]] = {
    "ur": ("ur_description/urdf/ur5_robot.urdf", ("", ""), {}),
    "franka": ("panda_description/urdf/panda.urdf", ("panda_", "fr3_"), {}),
    "iiwa_lbr": ("iiwa", ("joint_", "lbr_A"), {}),
    # an xArm 7, which is heavier and has damping of 10 N m s/rad
    "openarm": ("xarm_description/urdf/xarm7.urdf", ("joint", "openarm_joint"), {
        "locked.joints": [""], "feedforward": "full",
        "effort_limits.maximum": [50.0, 50.0, 30.0, 30.0, 20.0, 20.0, 20.0]}),
    **dict.fromkeys(("generic_effort", "generic_jtc", "generic_annotator", "generic_mit", "big_yam", "z1"),
                    ("z1_description/urdf/z1.urdf", ("", ""), {"locked.joints": ["jointGripper"]}))}
TAKEN = ("forward_command", "joint_state")    # adapters with a receiver in node simulator
NO_HANDOVER: Values = {"handover.controller_manager": "", "handover.activate": [""], "handover.deactivate": [""]}


@dataclass(frozen=True)
class Rehearsal:
    """description: URDF text; model: that of node feedforward; robot: parameters of node simulator; given: parameters
    of node feedforward in the file; replaced: their replacements; values: all validated parameters; notes: differences
    from the real arm.
    """

    description: str
    model: RobotModel
    robot: Values
    given: Values
    replaced: Values
    values: Values
    notes: tuple[str, ...]


def rehearse(config: Path, urdf: str | os.PathLike[str] | None = None, like: Path | None = None) -> Rehearsal:
    """The rehearsal of configuration file `config` with the arm `urdf`; None: the sample of a shipped configuration.
    like: configuration (default: `config`) beside which folders `rehearsal/` and `controllers/` have the behaviour of
    the robot and the gains of its controller, in files of the same name.
    """
    like = like or config
    parameters, notes = parameters_of(config, "feedforward"), []
    replaced: Values = {}
    if urdf is None:
        description, replaced = _sample(like.stem)
        notes += [f"{name} is {value} for the sample description" for name, value in replaced.items()]
    else:
        text, _ = read_text(urdf)
        description = text if isinstance(text, str) else text.decode("utf-8", "replace")
    behaviour = like.parent / "rehearsal" / like.name
    robot = parameters_of(behaviour, "simulator") if behaviour.is_file() else {
        name: parameters[name] for name in ("robot_compensates",) if name in parameters}
    if not behaviour.is_file():
        notes.append(f"there is no {behaviour}: the robot compensates what {config.name} says, and never stops itself")
    adapters = [name for name in parameters.get("adapters", []) if name]
    replaced_adapters = [name for name in adapters if name not in TAKEN]
    annotated = "adapters" not in parameters
    if "forward_command" in adapters:
        robot["controller"] = parameters.get("forward_command.controller", "effort_controller")
    robot.setdefault("controller", "effort_controller")
    if replaced_adapters or annotated:
        names = "node effort_annotator" if annotated else f"adapter {', '.join(replaced_adapters)}"
        notes.append(f"{names} is left out" if "forward_command" in adapters else
                     f"{names} is replaced by adapter forward_command" + " of node feedforward" * annotated)
        replaced |= {"adapters": ["forward_command"], "forward_command.controller": robot["controller"]}
        if annotated:
            replaced["feedforward"] = "full"
    if annotated:    # the feedback of joint_trajectory_controller
        gains = _controller_gains(like, parameters["joints"])
        if gains:
            notes.append(f"the gains of controllers/{like.name} count, which joint_trajectory_controller has")
            replaced |= {name: values.tolist() for name, values in gains.items()}
    if parameters.get("handover.controller_manager"):
        replaced |= NO_HANDOVER
        notes.append("no handover to another controller at the end")
    values = validate(FEEDFORWARD_TABLE, select(FEEDFORWARD_TABLE, parameters | replaced))
    model, _ = load_model(values, description)
    joints, output, _ = joint_order(values["joints"], model)
    rotors = np.where(model.armature > 0.0, model.armature, ROTORS)[output]
    if (rotors != model.armature[output]).any():
        notes.append(f"the robot has rotors of {ROTORS:g} kg m^2 where neither file nor description names any; the "
                     "controller does not know")
    robot |= {name: parameters[name] for name in ("gravity", "mounting.rpy", "locked.positions") if name in parameters}
    low, high = np.maximum(model.position_lower, -np.pi), np.minimum(model.position_upper, np.pi)
    start = np.where((low < -MARGIN) & (high > MARGIN), 0.0, 0.5 * (low + high))[output]
    robot |= {"joints": list(joints), "initial_position": start.tolist(), "rotor_inertia": rotors.tolist(),
              "locked.joints": list(values["locked.joints"]) or [""]}
    return Rehearsal(description, model, robot, parameters, replaced, values, tuple(notes))


def _sample(name: str) -> tuple[str, Values]:
    """Text of the sample description of a shipped configuration, and parameters required by it."""
    if name not in SAMPLES:
        raise RbdError(f"there is no sample description for '{name}': give the URDF of your arm; samples are for "
                       f"{', '.join(SAMPLES)}")
    source, (old, new), more = SAMPLES[name]
    if "/" not in source:
        path = sample_path(source)
    else:
        try:
            paths = [Path(str(file.locate())) for file in files("example-robot-data") or ()
                     if str(file).endswith(source)]
        except PackageNotFoundError:
            paths = []
        if not paths:
            raise RbdError(f"the description for '{name}' is in the Python package example-robot-data, which is not "
                           "installed: install it, or give the URDF of your arm")
        path = paths[0]
    text = path.read_text(encoding="utf-8")
    return text.replace(f'"{old}', f'"{new}') if old else text, dict(more)


def _controller_gains(config: Path, joints: list[str]) -> Values:
    """Gains of joint_trajectory_controller in the controller file beside `config`; empty without such a file."""
    path = config.parent / "controllers" / config.name
    tree = read_yaml(path, "controllers")[0] if path.is_file() else {}
    for section in tree.values():
        gains = section.get("ros__parameters", {}).get("gains")
        if gains:
            return {"gains.kp": np.array([gains[name]["p"] for name in joints]),
                    "gains.kd": np.array([gains[name]["d"] for name in joints])}
    return {}
