"""Allowed parts and attributes of URDF links and joints, and their checks."""
from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from xml.etree import ElementTree

from ...errors import RbdError

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
INFINITE = re.compile(r"[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
LARGEST = 1e12    # of any length, mass, inertia, …: the limit of useful precision in sums with squares
PARTS: dict[str, tuple[str, ...]] = {
    "link": ("inertial",), "joint": ("origin", "axis", "parent", "child", "limit", "dynamics", "mimic")}
KNOWN = {"robot": ("material", "transmission", "gazebo", "ros2_control", "sensor"),
         "link": ("visual", "collision", "origin", "contact", "sensor", "material"),
         "joint": ("safety_controller", "calibration", "hardwareInterface", "material"),
         "inertial": ()}


@dataclass(frozen=True)
class Attribute:
    """count: number of numbers, 0 for a name."""

    name: str
    count: int = 1
    required: bool = True
    infinite: bool = False


ATTRIBUTES = {
    "origin": (Attribute("xyz", 3, False), Attribute("rpy", 3, False)),
    "axis": (Attribute("xyz", 3),),
    "parent": (Attribute("link", 0),),
    "child": (Attribute("link", 0),),
    "limit": (Attribute("effort", infinite=True), Attribute("velocity", infinite=True),
              Attribute("lower", required=False, infinite=True), Attribute("upper", required=False, infinite=True)),
    "dynamics": (Attribute("damping", required=False), Attribute("friction", required=False)),
    "mimic": (Attribute("joint", 0), Attribute("multiplier", required=False), Attribute("offset", required=False)),
    "mass": (Attribute("value"),),
    "inertia": tuple(Attribute(name) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")),
}


def line(element: ElementTree.Element) -> int | str:
    """Line at which an element starts: a number, or `12 of 'arm.xacro'` for elements from xacro."""
    return getattr(element, "line", 0)


def misspelt(name: str, valid: Collection[str], where: str, notes: list[str]) -> None:
    """Append a note if an ignored name is similar to one of `valid`, the known and absent names."""
    kind = where.split()[0]
    near = get_close_matches(name.lower(), valid, n=1, cutoff=0.75)
    if near and name not in KNOWN.get(kind, ()):
        notes.append(f"{where}: '{name}' is not read; did you mean '{near[0]}'?")


def parts(element: ElementTree.Element, what: str, source: str, notes: list[str]) -> list[ElementTree.Element]:
    """The children of a link or joint for dynamics; `RbdError` for duplicates and for a joint without its links."""
    by_tag: dict[str, ElementTree.Element] = {}
    absent = {part for part in PARTS[element.tag] if element.find(part) is None}
    for child in element:
        if child.tag not in PARTS[element.tag]:
            misspelt(child.tag, absent, what, notes)
        elif child.tag in by_tag:
            raise RbdError(f"{source}, line {line(child)}: {what} has a second <{child.tag}>, the first is on line "
                           f"{line(by_tag[child.tag])}; which one counts?")
        else:
            by_tag[child.tag] = child
    for required in ("parent", "child"):
        if element.tag == "joint" and required not in by_tag:
            raise RbdError(f"{source}, line {line(element)}: {what} has no <{required} link=\"…\"/>")
    return list(by_tag.values())


def checked_part(part: ElementTree.Element, what: str, source: str, notes: list[str]) -> ElementTree.Element:
    """A copy with the known attributes, checked; `RbdError` for missing and invalid ones."""
    new = ElementTree.Element(part.tag)
    if part.tag == "inertial":
        seen: set[str] = set()
        for child in part:
            if child.tag not in ("origin", "mass", "inertia"):
                absent = {name for name in ("origin", "mass", "inertia") if part.find(name) is None}
                misspelt(child.tag, absent, f"{what} inertial", notes)
                continue
            if child.tag in seen:
                raise RbdError(f"{source}, line {line(child)}: {what}: inertial has a second <{child.tag}>; "
                               "which one counts?")
            seen.add(child.tag)
            new.append(checked_part(child, f"{what}: inertial", source, notes))
        if "mass" not in seen:
            raise RbdError(f"{source}, line {line(part)}: {what}: <inertial> has no <mass value=\"…\"/>")
        return new
    for attribute in ATTRIBUTES[part.tag]:
        text = part.get(attribute.name)
        where = f"{source}, line {line(part)}: {what}: {part.tag}"
        if text is None or not text.strip():
            if attribute.required or text is not None:
                kind = "a name" if attribute.count == 0 else f"{attribute.count} number{'s' * (attribute.count > 1)}"
                raise RbdError(f"{where} {'has no' if text is None else 'has an empty'} {attribute.name}, "
                               f"expected {kind}")
            continue
        if attribute.count:
            _check_numbers(text, attribute, where)
        new.set(attribute.name, text)
    valid = {attribute.name for attribute in ATTRIBUTES[part.tag]}
    for name in sorted(set(part.keys()) - valid):
        misspelt(name, valid - set(part.keys()), f"{what} {part.tag}", notes)
    return new


def _check_numbers(text: str, attribute: Attribute, where: str) -> None:
    words = text.split()
    expected = f"expected {attribute.count} finite number{'s' * (attribute.count > 1)}"
    shown = text if len(text) <= 60 else f"{text[:60]}…"
    if len(words) != attribute.count:
        raise RbdError(f"{where} {attribute.name} is \"{shown}\", {expected}")
    for word in words:
        if attribute.infinite and INFINITE.fullmatch(word):
            continue
        if not NUMBER.fullmatch(word):
            hint = " (is this an unexpanded xacro file?)" if "${" in word else ""
            raise RbdError(f"{where} {attribute.name} is \"{shown}\": '{word[:40]}' is not a finite number, "
                           f"{expected}{hint}")
        if not abs(float(word)) <= LARGEST and not attribute.infinite:
            raise RbdError(f"{where} {attribute.name} is \"{shown}\": {word[:40]} is beyond ±{LARGEST:g}, "
                           "is the unit right?")
