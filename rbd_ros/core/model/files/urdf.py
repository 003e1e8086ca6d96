"""URDF → model, the only parser of robot descriptions, on top of urdf_parser_py.

Only joints and inertias are read: visuals, collisions, materials, transmissions and vendor tags never prevent loading
(`rotors` reads transmissions). A link without `<inertial>` is massless; children of fixed joints are lumped into their
parent.
"""
from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np

from ...errors import RbdError, shown, unknown_name, warn
from ...lie.so3 import from_rpy
from ..assembly import Description
from ..inertia import Array, Inertia
from ..joints import PARTS as MOVING_PARTS
from ..joints import URDF_TYPES, JointSpec, has_ends, is_driven, reads
from ..robot_model import RobotModel
from .rotors import srdf_rotors, transmission_rotors
from .urdf_parts import PARTS, checked_part, line, misspelt, parts
from .xml_tree import Element, parse_xml, read_text

OTHERS = {"sdf": " (SDF is another format: export URDF)", "mujoco": " (MJCF is another format: export URDF)"}
_LOCK = threading.Lock()    # urdf_parser_py reports through a module-level function


def load_urdf(path_or_xml: str | os.PathLike[str], root: str = "fixed",
              gravity: Sequence[float] | Array = (0.0, 0.0, -9.81),
              locked: Mapping[str, float | Sequence[float]] | None = None,
              mimic: str = "project", rotor_inertia: Mapping[str, float] | None = None,
              srdf: str | os.PathLike[str] | None = None) -> RobotModel:
    """Model of a robot described in URDF, given as a file's path or as the XML text.

    A path `robot.urdf.xacro name:=value …` is expanded with these arguments, as by the command `xacro`;
    `package://name/…` is found in the sourced ROS workspaces.
    root: "fixed", or "floating" (q = [xyz, quaternion xyzw, joints], v = [ω, v, joints], body twist of the root link).
    gravity (3,): m/s², world axes. locked: joints frozen at these positions. mimic: "project" couples mimic joints to
    the joint they follow in every algorithm, "independent" treats them as free. rotor_inertia: per joint, kg m² (kg)
    after the reduction. Joints without an entry take it from `<rotor_params>` of the file or XML text srdf, else from
    `drake:rotor_inertia` and `drake:gear_ratio` in the URDF. Raises `RbdError` naming the error; warns
    (`RbdWarning`) about physically impossible inertias and about ignored names and numbers.

        >>> model = rbd.load_urdf(rbd.sample_path("iiwa"), locked={"joint_7": 0.0})
        >>> model.nv, model.name
        (6, 'iiwa')
    """
    text, source = read_text(path_or_xml)
    description, notes = parse_urdf(text, source)
    joints = {joint.name: joint for joint in description.joints}
    if srdf is not None:
        _set_rotors(joints, srdf_rotors(srdf, joints, notes))
    for note in notes:
        warn(note)
    for label, mapping in (("locked", locked), ("rotor_inertia", rotor_inertia)):
        if not isinstance(mapping, Mapping | None):
            raise RbdError(f"{label}: expected {{joint name: number}}, got {type(mapping).__name__}")
    for name, value in (rotor_inertia or {}).items():
        if name not in joints:
            raise unknown_name("joint in rotor_inertia", name, joints)
        joints[name] = dataclasses.replace(joints[name], rotor_inertia=value)
    return RobotModel.from_description(dataclasses.replace(
        description, joints=tuple(joints.values()), root=root, gravity=gravity,    # type: ignore[arg-type]
        locked=dict(locked or {}), mimic=mimic))


def parse_urdf(text: str | bytes, source: str = "URDF text") -> tuple[Description, list[str]]:
    """Description of URDF text, and notes on probable misspellings and impossible inertias."""
    description, notes = describe(parse_xml(text, source), source)
    return dataclasses.replace(description, urdf=text), notes + [
        f"link '{name}': {problem}" for name, inertia in description.links.items() for problem in inertia.problems()]


def describe(tree: Element, source: str) -> tuple[Description, list[str]]:
    """Description of an element tree, and notes on probable misspellings."""
    notes: list[str] = []
    robot = _parse(_stripped(tree, source, notes), source)
    links: dict[str, Inertia] = {}
    for link in robot.links:
        if link.name in links:
            raise RbdError(f"{source}: duplicate link name '{link.name}'")
        links[link.name] = _inertia(link, source)
    joints: dict[str, JointSpec] = {}
    for joint in robot.joints:
        if joint.name in joints:
            raise RbdError(f"{source}: duplicate joint name '{joint.name}'")
        joints[joint.name] = _joint(joint, source)
    _set_rotors(joints, transmission_rotors(tree, joints, notes))
    return Description(robot.name or "robot", links, tuple(joints.values())), notes


def _set_rotors(joints: dict[str, JointSpec], rotors: Mapping[str, float]) -> None:
    for name, rotor in rotors.items():
        if is_driven(joints[name].type):
            joints[name] = dataclasses.replace(joints[name], rotor_inertia=rotor)


def _stripped(tree: Element, source: str, notes: list[str]) -> ElementTree.Element:
    """A checked copy of links and joints, reduced to the parts for dynamics.

    Unknown names similar to known ones are appended to `notes` as probable misspellings.
    """
    if tree.tag != "robot":
        raise RbdError(f"{source}: the root element is <{tree.tag[:60]}>, expected <robot>{OTHERS.get(tree.tag, '')}")
    out = ElementTree.Element("robot", {"name": tree.get("name") or "robot"})
    for element in tree:
        if element.tag.startswith("xacro:"):
            raise RbdError(f"{source}, line {line(element)}: <{element.tag}> is a xacro command: expand the file first "
                           "(`xacro robot.xacro > robot.urdf`)")
        if element.tag not in PARTS:
            misspelt(element.tag, PARTS, "robot", notes)
            continue
        name = element.get("name")
        if not name or not name.strip():
            raise RbdError(f"{source}, line {line(element)}: a <{element.tag}> has no name")
        label = f"{element.tag} '{name}'"
        attributes = {"name": name}
        if element.tag == "joint":
            attributes["type"] = kind = element.get("type", "")
            if not kind:
                raise RbdError(f"{source}, line {line(element)}: {label} has no type, expected one of "
                               + ", ".join(URDF_TYPES))
            if kind not in URDF_TYPES:
                raise unknown_name("type", kind, URDF_TYPES, f"{source}, line {line(element)}: {label}")
        new = ElementTree.SubElement(out, element.tag, attributes)
        for child in parts(element, label, source, notes):
            if child.tag in MOVING_PARTS and not reads(attributes.get("type", ""), child.tag):
                continue
            new.append(checked_part(child, label, source, notes))
    return out


def _parse(tree: ElementTree.Element, source: str) -> Any:
    """Objects of urdf_parser_py, its warnings about unknown attributes suppressed."""
    try:
        from urdf_parser_py import urdf
        from urdf_parser_py.xml_reflection import core
    except ImportError:
        raise RbdError("reading URDF needs the package urdf_parser_py, which is not installed") from None
    with _LOCK:
        report, core.on_error = core.on_error, lambda message: None
        try:
            return urdf.URDF.from_xml_string(ElementTree.tostring(tree))
        except Exception as error:    # the parser raises bare exceptions, assertion errors, key errors …
            raise RbdError(f"{source}: {_described(error)}") from None
        finally:
            core.on_error = report


def _described(error: Exception) -> str:
    """The parser's message and element, as far as known."""
    cause = getattr(error, "exc", error)
    path = getattr(error, "path", None)
    where = f" at {path}" if path is not None else ""
    return f"invalid value{where}: {cause}" if str(cause) else f"invalid value{where} ({type(cause).__name__})"


def _finite(values: Any, what: str, source: str, count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise RbdError(f"{source}: {what} must be {count} number(s), got {shown(values)}") from None
    if array.shape != (count,) or not np.isfinite(array).all():
        raise RbdError(f"{source}: {what} must be {count} finite number(s), got {shown(values)}")
    return array


def _origin(origin: Any, what: str, source: str) -> tuple[Any, Any]:
    if origin is None:
        return np.eye(3), np.zeros(3)
    xyz = _finite([0, 0, 0] if origin.xyz is None else origin.xyz, f"{what}: origin xyz", source, 3)
    rpy = _finite([0, 0, 0] if origin.rpy is None else origin.rpy, f"{what}: origin rpy", source, 3)
    return (np.eye(3) if not rpy.any() else from_rpy(rpy)), xyz


def _inertia(link: Any, source: str) -> Inertia:
    if link.inertial is None:
        return Inertia.zero()
    label = f"inertial of link '{link.name}'"
    mass = _finite([link.inertial.mass], f"{label}: mass", source, 1)[0]
    I = link.inertial.inertia
    entries = _finite([0.0] * 6 if I is None else [I.ixx, I.ixy, I.ixz, I.iyy, I.iyz, I.izz],
                      f"{label}: inertia", source, 6)
    matrix = np.zeros((3, 3))
    matrix[np.triu_indices(3)] = entries
    matrix = matrix + np.triu(matrix, 1).T
    R, p = _origin(link.inertial.origin, label, source)
    return Inertia(mass, p, _symmetric(R @ matrix @ R.T) if link.inertial.origin is not None else matrix)


def _symmetric(matrix: Any) -> Any:
    return (matrix + matrix.T) / 2


def _joint(joint: Any, source: str) -> JointSpec:
    label = f"joint '{joint.name}'"
    R, p = _origin(joint.origin, label, source)
    axis = (1.0, 0.0, 0.0) if joint.axis is None or not reads(joint.type, "axis") else tuple(
        _finite(joint.axis, f"{label}: axis", source, 3).tolist())
    limits: dict[str, Any] = {}
    if joint.limit is not None and is_driven(joint.type):
        for field in ("velocity", "effort", *(("lower", "upper") if has_ends(joint.type) else ())):
            value = getattr(joint.limit, field)
            if value is not None:
                if np.isnan(value):
                    raise RbdError(f"{source}: {label}: limit {field} is NaN")
                limits[field] = float(value)
    dynamics: dict[str, Any] = {}
    if joint.dynamics is not None and reads(joint.type, "dynamics"):
        for field in ("damping", "friction"):
            value = getattr(joint.dynamics, field)
            dynamics[field] = 0.0 if value is None else float(_finite([value], f"{label}: {field}", source, 1)[0])
    mimic = None
    if joint.mimic is not None and reads(joint.type, "mimic"):
        ratio = 1.0 if joint.mimic.multiplier is None else joint.mimic.multiplier
        offset = 0.0 if joint.mimic.offset is None else joint.mimic.offset
        mimic = (joint.mimic.joint, *(_finite([ratio, offset], f"{label}: mimic", source, 2).tolist()))
    return JointSpec(joint.name, joint.type, joint.parent, joint.child, R, p, axis,
                     mimic=mimic, **limits, **dynamics)    # type: ignore[arg-type]
