"""The result as files for nodes and drivers: rotors and friction as parameters, drives, and settings of a UR."""
from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...dynamics.friction import Friction
from ...errors import RbdError
from ...model.robot_model import RobotModel
from ...specialize.model_inputs import lumped

Array = NDArray[np.float64]
UR_JOINTS = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint",
             "wrist_3_joint")
UR_SCALES = {"viscous_scale": (0.9, 0.9, 0.8, 0.9, 0.9, 0.9), "coulomb_scale": (0.8, 0.8, 0.7, 0.8, 0.8, 0.8)}
DIRECTION_AND_LOAD = ("asymmetry", "viscous_asymmetry", "load")
UR_SERVICE = "friction_model_controller/set_friction_model_parameters"


def parameters_text(model: RobotModel, friction: Friction) -> str:
    """Parameters of the nodes (`--params-file`): rotors and smoothing of friction for all, friction values for the
    simulator. The other nodes take friction from `<dynamics>` of the description by `write_urdf`.
    """
    _check_joints(model)
    return (f"# Identified: rotors and friction of {model.name}, for --params-file of any node, behind your own file.\n"
            "# The nodes take inertias, damping and friction from the description that was written with this file;\n"
            "# only the simulator takes friction from here. Lists are in the order of joints: if another file gives\n"
            "# another order, change the lists, too.\n"
            "/**:\n  ros__parameters:\n"
            f"    joints: {_list(model.joint_names)}\n"
            f"    rotor_inertia: {_list(model.armature)}    # kg m² or kg, behind the gear\n"
            f"    friction.smoothing: {_number(friction.smoothing)}    # rad/s or m/s\n" + "".join(
                f"    friction.{name}: {_list(getattr(friction, name) * np.ones(model.nv))}\n"
                for name in DIRECTION_AND_LOAD if np.any(getattr(friction, name))) +
            "/**/simulator:\n  ros__parameters:\n"
            f"    friction.damping: {_list(model.damping)}    # N m s/rad or N s/m\n"
            f"    friction.coulomb: {_list(model.friction)}    # N m or N\n")


def controller_text(model: RobotModel, friction: Friction, gains: Array | None = None) -> str:
    """Parameters of a controller by `rbd generate --ros2-control`: inertial parameters, rotors, friction, and the gains
    (nv,) of drives that are commanded in the unit of the recorded efforts, N m or N per unit.
    """
    _check_joints(model)
    links = [joint.child for joint in model.joints]
    rows = lumped(model).inertial_parameters.reshape(-1, 10)[[model.body_index(link) for link in links]]
    tens = "".join(f"        {', '.join(map(_exact, row))},    # {link}\n"
                   for link, row in zip(links, rows, strict=True))
    return (f"# Numbers of {model.name} for its controller by `rbd generate --ros2-control`, read when that is\n"
            "# configured. All lists are in the order of the joints of the description.\n"
            "/**:\n  ros__parameters:\n    dynamics:\n"
            f"      joints: {_list(model.joint_names)}\n"
            "      # per joint, of all that moves with the link behind it, in the frame of that link: mass, mass *\n"
            "      # centre (3), moments of inertia about its origin: xx, xy, yy, xz, yz, zz; kg, kg m, kg m²\n"
            f"      inertias: [\n{tens}      ]\n"
            f"      rotor_inertia: {_exact_list(model.armature)}    # kg m² or kg, behind the gear\n"
            f"      damping: {_exact_list(model.damping)}    # N m s/rad or N s/m\n"
            f"      coulomb: {_exact_list(model.friction)}    # N m or N\n"
            + "".join(f"      {name}: {_exact_list(getattr(friction, name) * np.ones(model.nv))}\n"
                      for name in DIRECTION_AND_LOAD if np.any(getattr(friction, name)))
            + (f"      torque_scale: {_exact_list(gains)}    # N m or N per unit of the command\n" if gains is not None
               else "") + f"    friction:\n      smoothing: {_exact(friction.smoothing)}    # rad/s or m/s\n")


def actuation_text(model: RobotModel, friction: Friction) -> str:
    """Drives (`actuation_file`) for the description by `write_urdf`: rotors, and friction near rest above the Coulomb
    friction in `<dynamics>`. Friction by direction and by load is a property of joints, in `parameters_text` only: the
    load of a motor with a load share would include the friction in `<dynamics>`.
    """
    _check_joints(model)
    height, velocity = _height(model, friction), friction.stribeck_velocity * np.ones(model.nv)
    lines = [f"# Identified: drives of {model.name}, for parameter actuation_file of nodes flatness and simulator,",
             "# with the description that was written with this file: damping and Coulomb friction are in its",
             "# <dynamics>, and breakaway is what comes on top of them near rest. All numbers are behind the gear.",
             *(("# Friction by direction and by load was found, too: it is in the parameters (rbd identify",
                "# --parameters), friction.asymmetry, .viscous_asymmetry and .load, which node flatness needs",
                "# beside this file. Node simulator has it without actuation_file alone.")
               if any(np.any(getattr(friction, name)) for name in DIRECTION_AND_LOAD) else ()),
             "actuation:"]
    for j, name in enumerate(model.joint_names):
        breakaway = (f", breakaway: {_number(height[j])}, stribeck_velocity: {_number(velocity[j])}, "
                f"smoothing: {_number(friction.smoothing)}") if height[j] > 0.0 else ""
        lines.append(f"  {_quoted(name)}:\n    type: rigid\n    motor: {{rotor_inertia: {_number(model.armature[j])}"
                     f"{breakaway}}}")
    return "\n".join(lines) + "\n"


def ur_friction_text(model: RobotModel, friction: Friction) -> str:
    """YAML that disables a UR's own friction compensation at joints compensated by this model.

    `friction_model_controller` (ur_controllers/FrictionModelController) takes no friction values: its only parameters
    are `tf_prefix` and `check_io_successful_retries`, and its service sets factors from 0 to 1 of the robot's own
    friction model per joint. Raises `RbdError` for other robots.
    """
    _check_joints(model)
    names = [next((name for name in model.joint_names if name.endswith(joint)), "") for joint in UR_JOINTS]
    prefixes = {name[:len(name) - len(joint)] for name, joint in zip(names, UR_JOINTS, strict=True)}
    if not all(names) or len(prefixes) != 1:
        raise RbdError(f"'{model.name}' is not a UR: expected the joints {', '.join(UR_JOINTS)}, all with one prefix; "
                       f"got {', '.join(model.joint_names)}")
    prefix = prefixes.pop()
    indices = [model.joint_names.index(name) for name in names]
    rubbing = (model.damping + model.friction + _height(model, friction))[indices] > 0.0
    scales = {key: np.where(rubbing, 0.0, values) for key, values in UR_SCALES.items()}
    request = ", ".join(f"{key}: {_list(values)}" for key, values in scales.items())
    unchanged = [name for name, known in zip(names, rubbing, strict=True) if not known]
    note = (f"# No friction was found at {', '.join(unchanged)}: there the robot's factors stay at their defaults.\n"
            if unchanged else "")
    return ("# For ur_robot_driver and node feedforward: friction is compensated once, by the identified model.\n"
            "# friction_model_controller takes no friction of yours: it scales, from 0 to 1 per joint, what the robot\n"
            "# compensates itself in direct_torque. While it is active, call its service:\n#\n"
            f"#   ros2 service call /{UR_SERVICE} ur_msgs/srv/SetFrictionModelParameters \\\n"
            f"#     \"{{parameters: {{{request}}}}}\"\n#\n" + note +
            "# The driver's ur_controllers.yaml has these two blocks already.\n"
            "controller_manager:\n  ros__parameters:\n    friction_model_controller:\n"
            "      type: ur_controllers/FrictionModelController\n"
            f"friction_model_controller:\n  ros__parameters:\n    tf_prefix: {_quoted(prefix)}\n"
            "/**/feedforward:\n  ros__parameters:\n    robot_compensates: [gravity]\n")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file; raises `RbdError` on failure."""
    try:
        Path(path).write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise RbdError(f"cannot write '{path}': {error.strerror or error}") from None


def _check_joints(model: RobotModel) -> None:
    for joint in model.joints:
        if joint.nq != 1 or joint.nv != 1:
            raise RbdError(f"joint '{joint.name}' ({joint.type}) has {joint.nv} coordinates: the nodes take joints "
                           "with one")


def _height(model: RobotModel, friction: Friction) -> Array:
    """Friction near rest above the Coulomb friction of the model (nv,)."""
    return np.asarray(friction.breakaway - model.friction)


def _number(value: float | Array) -> str:
    """A number with a decimal point, so that YAML and ROS read a float."""
    text = f"{float(value):.8g}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"
    return text if "." in text else text + ".0"


def _exact(value: float | Array) -> str:
    """A number with all its digits, which YAML and ROS read as a float."""
    text = repr(float(value) + 0.0)
    return text if "." in text or "e" not in text else text.replace("e", ".0e")


def _exact_list(values: Array) -> str:
    return f"[{', '.join(map(_exact, values))}]"


def _list(values: Sequence[str] | Array) -> str:
    return f"[{', '.join(_quoted(x) if isinstance(x, str) else _number(x) for x in values)}]"


def _quoted(text: str) -> str:
    """The text, in quotes unless YAML reads it as a string."""
    plain = text.replace("_", "a").isalnum() and text[:1].isalpha() and text.lower() not in (
        "y", "n", "yes", "no", "on", "off", "true", "false", "null")
    return text if plain else "'" + text.replace("'", "''") + "'"
