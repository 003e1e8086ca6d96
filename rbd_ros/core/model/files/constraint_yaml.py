"""Constraints from YAML, beside a URDF that has no words for loops.

    constraints:
      - {name: closure, type: loop, predecessor: left_tip, successor: right_tip, axes: revolute,
         predecessor_frame: {xyz: [0, 0, 0], rpy: [1.5708, 0, 0]}, successor_frame: {rpy: [1.5708, 0, 0]}}
      - {name: gear, type: coupling, terms: {motor: 1.0, output: [-50.0, 0.1]}, constant: 0.0}
      - {name: foot, type: contact, link: left_foot, kind: surface, frame: {xyz: [0, 0, -0.1]}, world: {xyz: [0, 0, 0]}}
      - {name: roll, type: rolling, spin: false, first: {link: plate, surface: plane, frame: {xyz: [0, 0, 0.01]}},
         second: {link: ball, surface: sphere, radius: 0.02}}
"""
from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ...errors import RbdError, shown, unknown_name
from ..constraints import Constraint, ConstraintSet, FixedContact, JointCoupling, LoopClosure
from ..surfaces.contacts import RollingContact, SlidingContact
from ..surfaces.surface import Cylinder, Ellipsoid, Plane, Sphere, Surface, Torus
from ..robot_model import RobotModel
from .yaml_text import read_yaml

_TYPES: dict[str, tuple[type, tuple[str, ...], tuple[str, ...]]] = {    # class, required and optional keys
    "loop": (LoopClosure, ("predecessor", "successor"), ("axes", "predecessor_frame", "successor_frame")),
    "coupling": (JointCoupling, ("terms",), ("constant",)),
    "contact": (FixedContact, ("link",), ("frame", "kind", "world")),
    "rolling": (RollingContact, ("first", "second"), ("spin",)), "sliding": (SlidingContact, ("first", "second"), ())}
_SURFACES: dict[str, tuple[type[Surface], tuple[str, ...]]] = {    # class and keys beside link, frame and inside
    "plane": (Plane, ()), "sphere": (Sphere, ("radius",)), "cylinder": (Cylinder, ("radius",)),
    "ellipsoid": (Ellipsoid, ("semi_axes",)), "torus": (Torus, ("major_radius", "minor_radius"))}
_FRAMES = ("predecessor_frame", "successor_frame", "frame", "world")


def load_constraints(path_or_text: str | os.PathLike[str], model: RobotModel) -> ConstraintSet:
    """The constraints of a YAML file or text, looked up in the model: the format is that of the example above.

    Frames are `{xyz, rpy}` (m, rad), each zero where left out; axes a list of rx, ry, rz, x, y, z or a joint's name.
    Raises `RbdError` naming the entry and what is wrong with it, with the valid links, joints, axes or keys.
    """
    tree, source = read_yaml(path_or_text, "constraints")
    if not isinstance(tree, Mapping) or not isinstance(tree.get("constraints"), list):
        raise RbdError(f"{source}: expected the key 'constraints' with a list")
    for key in tree:
        if key != "constraints":
            raise _with(source, unknown_name("key", key, ["constraints"]))
    found = []
    for index, entry in enumerate(tree["constraints"]):
        name = entry.get("name") if isinstance(entry, Mapping) else None
        where = f"{source}: constraint {index}" + (f" ('{name}')" if name else "")
        if not isinstance(entry, Mapping):
            raise RbdError(f"{where}: expected keys and values, got {shown(entry)}")
        try:
            found.append(_constraint(entry))
        except RbdError as error:
            raise _with(where, error) from None
    try:
        constraints = ConstraintSet(found)
        constraints.bound(model)
    except RbdError as error:
        raise _with(source, error) from None
    return constraints


def _with(where: str, error: RbdError) -> RbdError:
    return RbdError(f"{where}: {error}")


def _constraint(entry: Mapping[Any, Any]) -> Constraint:
    kind = entry.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise unknown_name("type", kind, _TYPES)
    made, required, optional = _TYPES[kind]
    options: dict[str, Any] = {}
    for key, value in entry.items():
        if key == "type":
            continue
        if key not in ("name", *required, *optional):
            raise unknown_name("key", key, ["name", "type", *required, *optional])
        if key in ("first", "second"):
            options[key] = _surface(key, value)
            continue
        if _has_truth(value) and key != "spin":
            raise RbdError(f"{key}: expected a value other than true or false, got {shown(value)}")
        options[key] = _frame(key, value) if key in _FRAMES else value
        if key in ("name", "predecessor", "successor", "link", "kind") and not isinstance(value, str):
            raise RbdError(f"{key}: expected a name, got {shown(value)}")
        if key == "axes" and not isinstance(value, str) and not (
                isinstance(value, list) and all(isinstance(axis, str) for axis in value)):
            raise RbdError(f"axes: expected a list of names or a joint's name, got {shown(value)}")
    missing = [key for key in required if key not in options]
    if missing:
        raise RbdError(f"a {kind} needs {', '.join(missing)}")
    constraint: Constraint = made(**options)
    return constraint


def _surface(which: str, entry: Any) -> Surface:
    """A surface of a contact."""
    if not isinstance(entry, Mapping):
        raise RbdError(f"{which}: expected {{link: …, surface: …}}, got {shown(entry)}")
    kind = entry.get("surface")
    if not isinstance(kind, str) or kind not in _SURFACES:
        raise unknown_name("surface", kind, _SURFACES, which)
    made, sizes = _SURFACES[kind]
    keys = ("link", *sizes, "frame", *(("inside",) if sizes else ()))
    options: dict[str, Any] = {}
    for key, value in entry.items():
        if key == "surface":
            continue
        if key not in keys:
            raise unknown_name("key", key, ["surface", *keys], which)
        if _has_truth(value) and key != "inside":
            raise RbdError(f"{which}: {key}: expected a value other than true or false, got {shown(value)}")
        options[key] = _frame(f"{which}: frame", value) if key == "frame" else value
    missing = [key for key in ("link", *sizes) if key not in options]
    if missing:
        raise RbdError(f"{which}: a {kind} needs {', '.join(missing)}")
    return made(**options)


def _has_truth(value: Any) -> bool:
    """Whether true or false stands anywhere in a value, which would count as 1 or 0."""
    if isinstance(value, Mapping):
        value = list(value.values())
    return isinstance(value, bool) or (isinstance(value, list) and any(map(_has_truth, value)))


def _frame(key: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise RbdError(f"{key}: expected {{xyz: […], rpy: […]}}, got {shown(value)}")
    for part in value:
        if part not in ("xyz", "rpy"):
            raise unknown_name(f"key of {key}", part, ("xyz", "rpy"))
    return value.get("xyz", [0.0, 0.0, 0.0]), value.get("rpy", [0.0, 0.0, 0.0])
