"""Rotor inertias of descriptions: Drake's tags in URDF, `<rotor_params>` in SRDF.

URDF itself has no element for them. A rotor of inertia I behind a gear of ratio r adds r² I at the joint.

    <transmission name="…"> <joint name="elbow"/>                                   URDF
      <actuator name="…"> <drake:rotor_inertia value="1e-4"/> <drake:gear_ratio value="100"/> </actuator>
    <rotor_params> <joint name="elbow" mass="1e-4" gear_ratio="100"/> </rotor_params>    SRDF, as Pinocchio reads it

Invalid tags are ignored with a note: they never prevent loading.
"""
from __future__ import annotations

import os
from collections.abc import Collection
from xml.etree import ElementTree

from ...errors import RbdError, unknown_name
from .urdf_parts import LARGEST, NUMBER
from .xml_tree import parse_xml, read_text

LARGEST_RATIO = 1e6
MOST_NOTES = 20    # on unknown names, each of which is compared with all others
INERTIA, RATIO = "drake:rotor_inertia", "drake:gear_ratio"


def transmission_rotors(robot: ElementTree.Element, joints: Collection[str], notes: list[str]) -> dict[str, float]:
    """Reflected rotor inertia per joint, kg m² (kg), from the URDF's transmissions, summed over actuators."""
    rotors: dict[str, float] = {}
    strangers = 0
    for transmission in robot.findall("transmission"):
        names = [joint.get("name", "") for joint in transmission.findall("joint")]
        for actuator in transmission.findall("actuator"):
            inertia, ratio = actuator.find(INERTIA), actuator.find(RATIO)
            if inertia is None:
                continue
            tag = f"transmission '{transmission.get('name', '')}'"
            felt = _reflected(inertia.get("value", ""), "1" if ratio is None else ratio.get("value", ""))
            if len(names) != 1:
                notes.append(f"{tag}: the rotor inertia is not read: there are {len(names)} joints, expected 1")
            elif names[0] not in joints:
                strangers += 1
                if strangers <= MOST_NOTES:
                    notes.append(f"{tag}: the rotor inertia is not read: {unknown_name('joint', names[0], joints)}")
            elif felt is None:
                notes.append(f"{tag}: the rotor inertia of joint '{names[0]}' is not read: {INERTIA} and {RATIO} must "
                             "each have a value that is a number, not negative")
            else:
                rotors[names[0]] = rotors.get(names[0], 0.0) + felt
    if strangers > MOST_NOTES:
        notes.append(f"transmissions: nor are the joints of {strangers - MOST_NOTES} more")
    return rotors


def srdf_rotors(path_or_xml: str | os.PathLike[str], joints: Collection[str], notes: list[str]) -> dict[str, float]:
    """Reflected rotor inertia per joint, kg m² (kg), from `<rotor_params>` of an SRDF (a file's path or XML text)."""
    text, source = read_text(path_or_xml, "SRDF")
    tree = parse_xml(text, source)
    if tree.tag != "robot":
        raise RbdError(f"{source}: the root element is <{tree.tag[:60]}>, expected <robot>")
    rotors: dict[str, float] = {}
    strangers = []
    for joint in tree.iterfind("rotor_params/joint"):
        name, felt = joint.get("name", ""), _reflected(joint.get("mass", ""), joint.get("gear_ratio", ""))
        if name not in joints:
            strangers.append(name)
        elif felt is None:
            notes.append(f"{source}: rotor_params of joint '{name}' are not read: mass and gear_ratio must be numbers, "
                         "not negative")
        else:
            rotors[name] = felt
    if strangers:
        notes.append(f"{source}: rotor_params of joints that the robot does not have: {', '.join(strangers)}")
    return rotors


def _reflected(inertia: str, ratio: str) -> float | None:
    """Reflected inertia r² I; None if either number is invalid."""
    if not (NUMBER.fullmatch(inertia.strip()) and NUMBER.fullmatch(ratio.strip())):
        return None
    I, r = float(inertia), abs(float(ratio))
    return I * r**2 if 0.0 <= I <= LARGEST and r <= LARGEST_RATIO else None
