"""Links without any shape: rods between joints, a drum for each joint's axis."""
from __future__ import annotations

import numpy as np

from ...core.model.assembly import Description
from ...core.model.checks.diagnosis import extent
from ...core.model.inertia import Array
from ...core.model.joints import JointSpec, aligning_rotation, is_length, unit
from ...core.model.shapes.shapes import Colour, Shape

ROD: Colour = (0.62, 0.66, 0.72, 1.0)
DRUM: Colour = (0.24, 0.36, 0.55, 1.0)
LEAST = 0.3    # m: size of a robot without known lengths


def size_of(description: Description) -> float:
    """Reference length (m) for the sizes of rods and markers."""
    return max(extent(description), LEAST)


def skeleton(description: Description) -> dict[str, tuple[Shape, ...]]:
    """Shapes by link: a rod to each child joint, or to the centre of mass without children, and a drum per joint."""
    thick = 0.018 * size_of(description)
    shapes: dict[str, list[Shape]] = {link: [] for link in description.links}
    below: set[str] = set()
    for joint in description.joints:
        below.add(joint.parent)
        shapes[joint.parent] += _rod(joint.parent, np.asarray(joint.position, dtype=float), thick)
        if joint.type != "fixed":
            shapes[joint.child].append(_drum(joint, 1.7 * thick))
    for link, inertia in description.links.items():
        if link not in below and inertia.mass > 0.0:
            shapes[link] += _rod(link, 2.0 * np.asarray(inertia.com), thick)    # a uniform rod's end
    return {link: tuple(parts) for link, parts in shapes.items()}


def _rod(link: str, end: Array, thick: float) -> list[Shape]:
    length = float(np.linalg.norm(end))
    if length < 2.0 * thick:
        return []
    pose = np.eye(4)
    pose[:3, :3] = aligning_rotation(tuple(end / length))
    pose[:3, 3] = end / 2.0
    return [Shape(link, "cylinder", pose, (thick, length), ROD, source="skeleton")]


def _drum(joint: JointSpec, thick: float) -> Shape:
    pose = np.eye(4)
    if joint.type in ("revolute", "continuous", "prismatic", "helical", "cam"):
        pose[:3, :3] = aligning_rotation(unit(joint.axis, joint.name))
        if is_length(joint.type):
            return Shape(joint.child, "box", pose, (1.6 * thick, 1.6 * thick, 3.0 * thick), DRUM, source="skeleton")
        return Shape(joint.child, "cylinder", pose, (thick, 2.2 * thick), DRUM, source="skeleton")
    return Shape(joint.child, "sphere", pose, (1.2 * thick,), DRUM, source="skeleton")
