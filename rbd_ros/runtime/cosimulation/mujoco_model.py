"""URDF → MuJoCo's model of the same robot. The only module that imports MuJoCo.

MuJoCo parses the description and builds the tree itself, to remain an independent reference. Changes by its importer
are corrected:

- shapes are removed: meshes are often missing, and there is no contact;
- links stay bodies (`fusestatic` off), so that wrenches find them by name; `balanceinertia` and `boundmass`, which
  alter inertias, are off. An inertia that MuJoCo rejects (zero, or principal moments violating the triangle
  inequality) is replaced by a valid one for compilation, and restored afterwards;
- `<dynamics>` and rotor inertias come from `model`, where parameters may have changed them;
- limits and friction are constraints in MuJoCo, soft by default: here with a time constant of two steps, the
  stiffest one recommended for its solver.
"""
from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import numpy as np

from ...core.errors import RbdError
from ...core.lie.so3 import exp, from_rpy
from ...core.model.files.xml_tree import parse_xml, read_text
from ...core.model.inertia import Array
from ...core.model.joints import is_driven, is_length
from ...core.model.robot_model import RobotModel

OPTIONS = {"fusestatic": "false", "balanceinertia": "false", "discardvisual": "true", "boundmass": "0",
           "boundinertia": "0", "strippath": "true"}
KEPT = {"link": {"inertial"}, "joint": {"origin", "axis", "parent", "child"}}
IMPEDANCE = (0.99, 0.999, 0.001, 0.5, 2.0)    # of constraints: nearly rigid
LEAST = 1e-10                                 # smallest mass (kg) and moment (kg m²) that MuJoCo compiles


def load_mujoco() -> Any:
    """The module `mujoco`; `RbdError` if it is not installed."""
    try:
        return importlib.import_module("mujoco")
    except ImportError as error:
        raise RbdError(f"MuJoCo cannot be imported ({error}): `pip install mujoco`, or install this package as "
                       "rbd_ros[mujoco]") from None


def mujoco_model(model: RobotModel, description: str, step: float) -> Any:
    """`mujoco.MjModel` of a URDF text or path, with gravity, damping, friction and rotor inertias of `model`.

    Joints locked in `model` are fixed at their locked positions; mimic joints follow by equality constraints.
    step: s.
    """
    mujoco = load_mujoco()
    data, source = read_text(description)
    text, inertias = _stripped(parse_xml(data, source), model)
    try:
        spec = mujoco.MjSpec.from_string(text)
        for mimic in model.mimics:
            equality = spec.add_equality(type=mujoco.mjtEq.mjEQ_JOINT, name1=mimic.name, name2=mimic.source,
                                         objtype=mujoco.mjtObj.mjOBJ_JOINT, solref=[2.0 * step, 1.0],
                                         solimp=IMPEDANCE)
            equality.data[:5] = [mimic.offset, mimic.multiplier, 0.0, 0.0, 0.0]
        compiled = spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise RbdError(f"MuJoCo refuses the robot description: {error}") from None
    _set_inertias(compiled, model, inertias)
    _set_joints(compiled, model, step)
    compiled.opt.gravity[:] = model.gravity
    compiled.opt.timestep = step
    # By default MuJoCo silently resets a diverging simulation.
    compiled.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_AUTORESET
    mujoco.mj_setConst(compiled, mujoco.MjData(compiled))
    return compiled


def _stripped(root: Any, model: RobotModel) -> tuple[str, dict[str, tuple[float, Array, Array]]]:
    """The description without shapes and with valid inertias; the replaced inertias: mass, com, tensor."""
    locked, replaced = _locked(model), {}
    for element in list(root):
        if element.tag not in KEPT:
            root.remove(element)
            continue
        for child in list(element):
            if child.tag not in KEPT[element.tag]:
                element.remove(child)
        name = element.get("name")
        if element.tag == "link" and not _is_fit(model, name):
            inertia = model.description.links[name]
            replaced[name] = (inertia.mass, inertia.com, inertia.matrix)
            _make_fit(element)
        elif element.tag == "joint" and name in locked:
            _fix(element, locked[name])
    ElementTree.SubElement(ElementTree.SubElement(root, "mujoco"), "compiler", OPTIONS)
    return ElementTree.tostring(root, encoding="unicode"), replaced


def _locked(model: RobotModel) -> dict[str, float]:
    """Positions of the locked joints and of their mimic joints."""
    locked = {name: float(np.ravel(value)[0]) for name, value in model.description.locked.items()}
    for joint in model.description.joints:
        if joint.mimic is not None and joint.mimic[0] in locked:
            source, multiplier, offset = joint.mimic
            locked[joint.name] = multiplier * locked[source] + offset
    return locked


def _is_fit(model: RobotModel, link: str) -> bool:
    inertia = model.description.links[link]
    moments = np.linalg.eigvalsh(inertia.matrix)
    return bool(inertia.mass > LEAST and moments[0] > LEAST and moments[0] + moments[1] > moments[2])


def _make_fit(link: Any) -> None:
    for old in link.findall("inertial"):
        link.remove(old)
    inertial = ElementTree.SubElement(link, "inertial")
    ElementTree.SubElement(inertial, "mass", {"value": "1"})
    ElementTree.SubElement(inertial, "inertia", {"ixx": "1", "iyy": "1", "izz": "1", "ixy": "0", "ixz": "0",
                                                 "iyz": "0"})


def _fix(joint: Any, position: float) -> None:
    """Replace a joint by a fixed one with the pose at `position`."""
    kind, origin = joint.get("type"), joint.find("origin")
    if origin is None:
        origin = ElementTree.SubElement(joint, "origin")
    R, x = from_rpy(_numbers(origin, "rpy")), _numbers(origin, "xyz")
    axis = _numbers(joint.find("axis"), "xyz", (1.0, 0.0, 0.0))
    axis = axis / np.linalg.norm(axis)
    if is_length(kind):
        x = x + R @ (position * axis)
    elif is_driven(kind):
        R = R @ exp(position * axis)
    elif kind != "fixed":
        raise RbdError(f"joint '{joint.get('name')}' is {kind}, which cannot be locked for MuJoCo")
    joint.set("type", "fixed")
    origin.set("xyz", " ".join(map(repr, x.tolist())))
    origin.set("rpy", " ".join(map(repr, _to_rpy(R))))


def _to_rpy(R: Array) -> tuple[float, float, float]:
    """Roll, pitch and yaw with R = Rz(yaw) Ry(pitch) Rx(roll); yaw is 0 at the singularity."""
    across = math.hypot(R[2, 1], R[2, 2])
    pitch = math.atan2(-R[2, 0], across)
    if across < 1e-9:
        return math.atan2(-R[1, 2], R[1, 1]), pitch, 0.0
    return math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0])


def _numbers(element: Any, name: str, default: tuple[float, ...] = (0.0, 0.0, 0.0)) -> Array:
    text = element.get(name) if element is not None else None
    return np.array(text.split(), dtype=float) if text else np.array(default)


def _set_inertias(made: Any, model: RobotModel, replaced: Mapping[str, tuple[float, Array, Array]]) -> None:
    """Restore the replaced inertias, and apply the mass scale of `model` to all."""
    mujoco = load_mujoco()
    for link, inertia in model.description.links.items():
        body = mujoco.mj_name2id(made, mujoco.mjtObj.mjOBJ_BODY, link)
        if body <= 0:    # the world, which does not move
            continue
        if link in replaced:
            moments, axes = np.linalg.eigh(inertia.matrix)
            axes[:, 2] *= np.sign(np.linalg.det(axes))
            made.body_ipos[body], made.body_inertia[body] = inertia.com, moments
            mujoco.mju_mat2Quat(made.body_iquat[body], axes.reshape(9))
        elif made.body_mass[body] > 0.0:
            made.body_inertia[body] *= inertia.mass / made.body_mass[body]
        made.body_mass[body] = inertia.mass


def _set_joints(made: Any, model: RobotModel, step: float) -> None:
    for joint in model.joints:
        entry = made.joint(joint.name)
        index, dof = entry.id, entry.dofadr[0]
        made.dof_armature[dof] = model.armature[joint.idx_v]
        made.dof_damping[dof] = model.damping[joint.idx_v]
        made.dof_frictionloss[dof] = model.friction[joint.idx_v]
        low, high = model.position_lower[joint.idx_q], model.position_upper[joint.idx_q]
        made.jnt_limited[index] = np.isfinite(low) or np.isfinite(high)
        made.jnt_range[index] = max(low, -1e6), min(high, 1e6)
        made.jnt_solref[index] = made.dof_solref[dof] = 2.0 * step, 1.0
        made.jnt_solimp[index] = made.dof_solimp[dof] = IMPEDANCE
    rotors = {spec.name: spec.rotor_inertia for spec in model.description.joints}
    for mimic in model.mimics:    # their friction is included in the source joint's, their rotors are not
        dof = made.joint(mimic.name).dofadr[0]
        made.dof_damping[dof] = made.dof_frictionloss[dof] = 0.0
        made.dof_armature[dof] = float(np.ravel(rotors[mimic.name])[0])
