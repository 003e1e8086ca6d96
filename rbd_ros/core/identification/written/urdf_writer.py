"""Rewriting of a URDF: only changed elements are replaced, all other bytes are kept.

Elements are located by the parser's byte positions, so comments, order, spaces and vendor tags are preserved.
"""
from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from xml.parsers import expat

import numpy as np

from ...errors import RbdError
from ...model.files.rotors import INERTIA, RATIO
from ...model.files.xml_tree import parse_xml, read_text
from ...model.inertia import Inertia
from ...model.joints import JointSpec
from ...model.robot_model import RobotModel

DIGITS = 10
OTHER_TEXT = re.compile(rb"<\?xml[^>]*encoding=[\"'](?!utf-8|us-ascii)", re.IGNORECASE)


@dataclass
class _Place:
    """An element in the text: bytes from start to end, the end of its start tag, its path and attributes."""

    path: tuple[str, ...]
    attributes: dict[str, str]
    start: int
    head: int = 0
    end: int = 0
    children: list[_Place] = field(default_factory=list)

    def child(self, tag: str) -> _Place | None:
        return next((child for child in self.children if child.path[-1] == tag), None)


def rewritten(source: str | os.PathLike[str], old: RobotModel, new: RobotModel) -> str:
    """The description `source` with the differences between two of its models: inertials, damping, friction, rotors."""
    content, name = read_text(source)
    parse_xml(content, name)    # raises for invalid XML
    data = content.encode("utf-8") if isinstance(content, str) else content
    if not data.lstrip(b"\xef\xbb\xbf").lstrip().startswith(b"<") or re.match(OTHER_TEXT, data.lstrip()):
        raise RbdError(f"{name}: expected UTF-8 text")
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    data = data.lstrip()
    root = _places(data)
    edits: list[tuple[int, int, str]] = []
    links = {place.attributes.get("name", ""): place for place in root.children if place.path[-1] == "link"}
    for link, inertia in new.description.links.items():
        if _differs(inertia, old.description.links[link]):
            if link not in links:
                raise RbdError(f"{name} has no link '{link}': is it the description of this model?")
            edits.append(_inertial(data, links[link], inertia))
    joints = {place.attributes.get("name", ""): place for place in root.children if place.path[-1] == "joint"}
    before = {spec.name: spec for spec in old.description.joints}
    added: list[str] = []
    for spec in new.description.joints:
        was = before[spec.name]
        if spec.name not in joints:
            raise RbdError(f"{name} has no joint '{spec.name}': is it the description of this model?")
        if not (np.array_equal(spec.damping, was.damping) and np.array_equal(spec.friction, was.friction)):
            edits.append(_dynamics(data, joints[spec.name], _one(spec, "damping"), _one(spec, "friction")))
        if not np.array_equal(spec.rotor_inertia, was.rotor_inertia):
            edits += _rotor(data, root, spec.name, _one(spec, "rotor_inertia"), added)
    if added:
        if not any(key.startswith("xmlns:drake") for key in root.attributes):
            position = root.start + len(b"<robot")
            edits.append((position, position, ' xmlns:drake="https://drake.mit.edu/"'))
        position = data.rindex(b"<", 0, root.end)
        edits.append((position, position, "".join(added)))
    for start, end, text in sorted(edits, reverse=True):
        data = data[:start] + text.encode("utf-8") + data[end:]
    return data.decode("utf-8")


def _one(spec: JointSpec, name: str) -> float:
    values = np.ravel(getattr(spec, name))
    if np.ptp(values):
        raise RbdError(f"joint '{spec.name}' has {name} {values.tolist()}, and a URDF has one number for it")
    return float(values[0])


def _differs(a: Inertia, b: Inertia) -> bool:
    return a.mass != b.mass or not np.array_equal(a.com, b.com) or not np.array_equal(a.matrix, b.matrix)


def _places(data: bytes) -> _Place:
    """The root element, with positions of all elements."""
    parser = expat.ParserCreate()
    open_: list[_Place] = []
    roots: list[_Place] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        offset = parser.CurrentByteIndex
        place = _Place((*(open_[-1].path if open_ else ()), tag), attributes, offset, _end_of_tag(data, offset))
        (open_[-1].children if open_ else roots).append(place)
        open_.append(place)

    def end(tag: str) -> None:
        place = open_.pop()
        offset = parser.CurrentByteIndex    # of `</tag>`, or of the tag itself for `<tag/>`
        place.end = place.head if data[place.head - 2:place.head] == b"/>" else data.index(b">", offset) + 1

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.Parse(data, True)
    return roots[0]


def _end_of_tag(data: bytes, start: int) -> int:
    """Offset behind the `>` of the tag that starts at `at`, ignoring quoted ones."""
    quote = 0
    for i in range(start, len(data)):
        c = data[i]
        if quote:
            quote = 0 if c == quote else quote
        elif c in b"\"'":
            quote = c
        elif c == ord(">"):
            return i + 1
    return len(data)


def _indent(data: bytes, offset: int) -> str:
    line = data[data.rfind(b"\n", 0, offset) + 1:offset]
    return line.decode("utf-8") if not line.strip() else ""


def _number(x: float) -> str:
    return f"{x:.{DIGITS}g}" if x else "0"


def _inertial(data: bytes, link: _Place, inertia: Inertia) -> tuple[int, int, str]:
    """The edit that sets a link's inertial, in axes of the link."""
    old = link.child("inertial")
    margin = _indent(data, old.start if old else link.start)
    outer = margin if old else margin + "  "
    inner = outer + "  "
    com, I = (" ".join(_number(float(x)) for x in inertia.com), inertia.matrix)
    entries = " ".join(f'{name}="{_number(float(I[i, j]))}"' for name, i, j in (
        ("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2)))
    text = (f'<inertial>\n{inner}<origin xyz="{com}" rpy="0 0 0"/>\n{inner}<mass value="{_number(inertia.mass)}"/>\n'
            f'{inner}<inertia {entries}/>\n{outer}</inertial>')
    return (old.start, old.end, text) if old else _inside(data, link, text)


def _inside(data: bytes, place: _Place, text: str) -> tuple[int, int, str]:
    """The edit that inserts the text as first content of an element."""
    margin = _indent(data, place.start)
    if place.end == place.head:    # <link …/>
        tag = place.path[-1]
        return place.head - 2, place.head, f">\n{margin}  {text}\n{margin}</{tag}>"
    return place.head, place.head, f"\n{margin}  {text}"


def _dynamics(data: bytes, joint: _Place, damping: float, friction: float) -> tuple[int, int, str]:
    old = joint.child("dynamics")
    attributes = {} if old is None else {key: value for key, value in old.attributes.items()
                                   if key not in ("damping", "friction")}
    further = "".join(f' {key}="{_escaped(value)}"' for key, value in attributes.items())
    text = f'<dynamics damping="{_number(damping)}" friction="{_number(friction)}"{further}/>'
    return (old.start, old.end, text) if old else _inside(data, joint, text)


def _escaped(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def _rotor(data: bytes, root: _Place, joint: str, reflected: float, added: list[str]) -> list[tuple[int, int, str]]:
    """Edits of the rotor inertia in the joint's transmissions: the first actuator gets all of it, further ones 0;
    without an actuator, a transmission is added.
    """
    edits: list[tuple[int, int, str]] = []
    remaining = reflected
    for transmission in (place for place in root.children if place.path[-1] == "transmission"):
        names = [place.attributes.get("name") for place in transmission.children if place.path[-1] == "joint"]
        for actuator in (place for place in transmission.children if place.path[-1] == "actuator"):
            ratio, place = actuator.child(RATIO), actuator.child(INERTIA)
            if names != [joint] or place is None:
                continue
            r = abs(float(ratio.attributes.get("value", "1"))) if ratio else 1.0
            value, remaining = (remaining / r**2, 0.0) if r > 0.0 else (0.0, remaining)
            edits.append((place.start, place.end, f'<{INERTIA} value="{_number(value)}"/>'))
    if edits and not remaining:
        return edits
    added.append(f'  <transmission name="{_escaped(joint)}_rotor">\n    <joint name="{_escaped(joint)}"/>\n'
                 f'    <actuator name="{_escaped(joint)}_rotor">\n      <{INERTIA} value="{_number(remaining)}"/>\n'
                 f'      <{RATIO} value="1"/>\n    </actuator>\n  </transmission>\n')
    return edits
