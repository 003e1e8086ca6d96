"""Constraints and contacts from YAML: URDF has no elements for them.

    constraints:
      - {name: closure, type: loop, predecessor: left_tip, successor: right_tip, axes: revolute,
         predecessor_frame: {xyz: [0, 0, 0], rpy: [1.5708, 0, 0]}, successor_frame: {rpy: [1.5708, 0, 0]}}
      - {name: gear, type: coupling, terms: {motor: 1.0, output: [-50.0, 0.1]}, constant: 0.0}
      - {name: foot, type: contact, link: left_foot, kind: surface, frame: {xyz: [0, 0, -0.1]}, world: {xyz: [0, 0, 0]}}
      - {name: roll, type: rolling, spin: false, first: {link: plate, surface: plane, frame: {xyz: [0, 0, 0.01]}},
         second: {link: ball, surface: sphere, radius: 0.02}}
    contacts:                       # for the simulator; surface: collision takes the URDF's <collision> shapes
      - {name: floor, type: unilateral, friction: 0.4, restitution: 0.2, first: {link: world, surface: plane},
         second: {link: foot, surface: collision}}
      - {name: pad, type: compliant, stiffness: 1.0e5, dissipation: 0.2, exponent: 1.5, friction: 0.4,
         slip_speed: 0.01, first: {link: table, surface: collision, face: z}, second: {link: foot, surface: point}}
"""
from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from ...errors import RbdError, shown, unknown_name
from ..constraints import ConstraintSet, FixedContact, JointCoupling, LoopClosure
from ..robot_model import RobotModel
from ..surfaces.compliant import CompliantContact
from ..surfaces.contacts import RollingContact, SlidingContact
from ..surfaces.unilateral import UnilateralContact
from .surface_yaml import frame, has_truth, surface
from .yaml_text import read_yaml

_TYPES: dict[str, tuple[type, tuple[str, ...], tuple[str, ...]]] = {    # class, required and optional keys
    "loop": (LoopClosure, ("predecessor", "successor"), ("axes", "predecessor_frame", "successor_frame")),
    "coupling": (JointCoupling, ("terms",), ("constant",)),
    "contact": (FixedContact, ("link",), ("frame", "kind", "world")),
    "rolling": (RollingContact, ("first", "second"), ("spin",)), "sliding": (SlidingContact, ("first", "second"), ())}
_CONTACTS: dict[str, tuple[type, tuple[str, ...], tuple[str, ...]]] = {
    "unilateral": (UnilateralContact, ("first", "second"), ("friction", "restitution")),
    "compliant": (CompliantContact, ("first", "second", "stiffness", "dissipation"),
                  ("exponent", "friction", "slip_speed"))}
_SECTIONS = {"constraints": _TYPES, "contacts": _CONTACTS}
_FRAMES = ("predecessor_frame", "successor_frame", "frame", "world")


def load_constraints(path_or_text: str | os.PathLike[str], model: RobotModel) -> ConstraintSet:
    """The constraints of a YAML file or text, for `model`; format as in the example of this module's docstring.

    Frames are `{xyz, rpy}` (m, rad), zero by default; axes a list of rx, ry, rz, x, y, z or a joint's name. Contacts of
    the simulator (`contacts`) are checked but not returned: see `load_contacts`. Raises `RbdError` naming the entry
    and the error, with the valid links, joints, axes or keys.

        >>> model = rbd.sample("five_bar")
        >>> rbd.load_constraints(rbd.sample_path("five_bar").with_suffix(".constraints.yaml"), model).names
        ('closure',)
    """
    return _load(path_or_text, model)[0]


def load_contacts(path_or_text: str | os.PathLike[str],
                  model: RobotModel) -> tuple[UnilateralContact | CompliantContact, ...]:
    """Unilateral and compliant contacts of a YAML file or text, for `Simulator(model, contacts=…)`: its key `contacts`,
    as in `load_constraints`.

        >>> point = "{type: unilateral, first: {link: base, surface: plane}, second: {link: ball, surface: point}}"
        >>> len(rbd.load_contacts(f"contacts: [{point}]", rbd.sample("ball_on_plate")))
        1
    """
    return _load(path_or_text, model)[1]


def _load(path_or_text: str | os.PathLike[str],
          model: RobotModel) -> tuple[ConstraintSet, tuple[UnilateralContact | CompliantContact, ...]]:
    tree, source = read_yaml(path_or_text, "constraints")
    if not isinstance(tree, Mapping) or not any(key in tree for key in _SECTIONS):
        raise RbdError(f"{source}: expected the key 'constraints' with a list, or 'contacts'")
    for key in tree:
        if key not in _SECTIONS:
            raise _with(source, unknown_name("key", key, _SECTIONS))
    constraints, contacts = (_entries(tree.get(section, []), section, source, model) for section in _SECTIONS)
    names = [contact.name for contact in contacts]
    for name in names:
        if names.count(name) > 1:
            raise RbdError(f"{source}: duplicate contact name '{name}'")
    try:
        constraint_set = ConstraintSet(constraints)
        constraint_set.bound(model)
    except RbdError as error:
        raise _with(source, error) from None
    return constraint_set, tuple(contacts)


def _entries(entries: Any, section: str, source: str, model: RobotModel) -> list[Any]:
    """Constraints or contacts of one section."""
    if not isinstance(entries, list):
        raise RbdError(f"{source}: {section}: expected a list, got {shown(entries)}")
    items = []
    for index, entry in enumerate(entries):
        name = entry.get("name") if isinstance(entry, Mapping) else None
        where = f"{source}: {section[:-1]} {index}" + (f" ('{name}')" if name else "")
        if not isinstance(entry, Mapping):
            raise RbdError(f"{where}: expected keys and values, got {shown(entry)}")
        try:
            item = _constraint(entry, section, model)
            if isinstance(item, UnilateralContact | CompliantContact):
                item.contact_record(model, 0)    # raises for unknown links
                item = item if item.name else dataclasses.replace(item, name=f"{entry['type']}_{index}")
            items.append(item)
        except RbdError as error:
            raise _with(where, error) from None
    return items


def _with(where: str, error: RbdError) -> RbdError:
    return RbdError(f"{where}: {error}")


def _constraint(entry: Mapping[Any, Any], section: str, model: RobotModel) -> Any:
    kind, types = entry.get("type"), _SECTIONS[section]
    if not isinstance(kind, str) or kind not in types:
        for other, its in _SECTIONS.items():
            if isinstance(kind, str) and kind in its:
                raise RbdError(f"type '{kind}' belongs under the key '{other}'")
        raise unknown_name("type", kind, types)
    cls, required, optional = types[kind]
    options: dict[str, Any] = {}
    for key, value in entry.items():
        if key == "type":
            continue
        if key not in ("name", *required, *optional):
            raise unknown_name("key", key, ["name", "type", *required, *optional])
        if key in ("first", "second"):
            options[key] = surface(key, value, model)
            continue
        if section == "contacts" and key != "name" and isinstance(value, str):    # YAML reads 1e5 as text
            raise RbdError(f"{key}: expected a number, got the text {shown(value)} (a number is 1.0e+5, not 1e5)")
        if has_truth(value) and key != "spin":
            raise RbdError(f"{key}: expected a value other than true or false, got {shown(value)}")
        options[key] = frame(key, value) if key in _FRAMES else value
        if key in ("name", "predecessor", "successor", "link", "kind") and not isinstance(value, str):
            raise RbdError(f"{key}: expected a name, got {shown(value)}")
        if key == "axes" and not isinstance(value, str) and not (
                isinstance(value, list) and all(isinstance(axis, str) for axis in value)):
            raise RbdError(f"axes: expected a list of names or a joint's name, got {shown(value)}")
    missing = [key for key in required if key not in options]
    if missing:
        raise RbdError(f"a {kind} needs {', '.join(missing)}")
    return cls(**options)
