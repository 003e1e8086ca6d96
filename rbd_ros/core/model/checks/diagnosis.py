"""Findings on a robot description, each with severity, subject and fix.

This file checks joints and structure, `plausibility` links, `conditioning` the mass matrix.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...errors import RbdError
from ..assembly import Description, depth_first
from ..joints import JointSpec, has_ends, is_driven, is_endless, is_loose, primitives
from ..mimics import resolve_mimics

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """severity: one of `SEVERITIES`; topic: the kind of finding; line: of the subject in the file, or `12 of
    'arm.xacro'`, None if unknown.
    """

    severity: str
    topic: str
    subject: str
    message: str
    fix: str
    line: int | str | None = None


def moving_links(description: Description) -> list[str]:
    """Names of links that move, in tree order; `RbdError` if the joints form no tree."""
    root, order = depth_first(description)
    moving = {root: description.root == "floating"}
    for joint in order:
        moving[joint.child] = moving[joint.parent] or (joint.type != "fixed" and joint.name not in description.locked)
    return [name for name, moves in moving.items() if moves]


def extent(description: Description) -> float:
    """Largest length (m) of a chain from the root to a link, summed over distances between joint origins."""
    root, order = depth_first(description)
    reach = {root: 0.0}
    for joint in order:
        reach[joint.child] = reach[joint.parent] + float(np.linalg.norm(joint.position))
    return max(reach.values())


def joint_findings(description: Description) -> list[Finding]:
    """Findings on limits, axes and types of each joint, and on mimic joints."""
    findings = [finding for joint in description.joints for finding in _joint(joint)]
    return findings + mimic_findings(description)


def _number(value: object, default: float) -> float:
    return default if value is None else float(np.ravel(value)[0])    # type: ignore[call-overload]


def _joint(joint: JointSpec) -> Iterator[Finding]:
    name, kind = joint.name, joint.type
    if is_loose(kind):
        nq, nv = (sum(getattr(step, name) for step in primitives(joint)) for name in ("nq", "nv"))
        size = f"{nv} velocity and {nq} position" if nq != nv else str(nv)
        yield Finding("note", f"{kind} joint", name, f"adds {size} coordinates; nothing drives it",
                      "lock it (`locked`) if it stands for a fixed base")
    if not is_driven(kind):
        return
    bounded = has_ends(kind)
    length = float(np.linalg.norm(joint.axis))
    if length < 1e-9:
        yield Finding("error", "zero axis", name, f"axis {joint.axis} has length zero", "give it a direction")
    elif abs(length - 1.0) > 1e-3:
        yield Finding("warning", "axis not of length one", name, f"axis {' '.join(f'{x:g}' for x in joint.axis)} has "
                      f"length {length:.4g}; normalised here; other tools may scale with it", "write a unit vector")
    if joint.effort is None or joint.velocity is None:
        yield Finding("warning" if bounded else "note", "no limits", name,
                      "<limit> is missing: no bound on " + ("position, " if bounded else "") + "velocity or effort",
                      "add <limit lower upper velocity effort/> from the data sheet")
        return
    lower, upper = _number(joint.lower, -np.inf), _number(joint.upper, np.inf)
    effort, velocity = _number(joint.effort, np.inf), _number(joint.velocity, np.inf)
    if lower > upper:
        yield Finding("error", "lower limit above upper", name, f"lower {lower:g} > upper {upper:g}", "swap them")
    elif lower == upper and bounded:
        yield Finding("warning", "no range", name, f"lower = upper = {lower:g}: the joint cannot move",
                      "set both (they default to 0), or make the joint fixed")
    for quantity, value in (("effort", effort), ("velocity", velocity)):
        if value == 0.0:
            yield Finding("warning", f"{quantity} limit 0", name, f"{quantity} limit is 0: saturated to zero",
                          f"set limit {quantity} from the data sheet, or override it")
        elif value < 0.0:
            yield Finding("error", "negative limit", name, f"{quantity} limit is {value:g}", "limits are magnitudes")
        elif np.isinf(value):
            yield Finding("note", "infinite limit", name, f"{quantity} limit is infinite: never saturated",
                          f"set limit {quantity} from the data sheet")
    for quantity, value in (("damping", _number(joint.damping, 0.0)), ("friction", _number(joint.friction, 0.0))):
        if value < 0.0:
            yield Finding("error", "negative dissipation", name, f"{quantity} is {value:g}: it would drive the joint",
                          f"{quantity} must not be negative")


def mimic_findings(description: Description) -> list[Finding]:
    """Findings on mimic joints that leave their limits while their source is within its own."""
    specs = {joint.name: joint for joint in description.joints}
    try:
        mimics = resolve_mimics(depth_first(description)[1])
    except RbdError:
        return []    # reported by the model builder
    findings = []
    for mimic in mimics.values():
        source, follower = specs[mimic.source], specs[mimic.name]
        if mimic.multiplier == 0.0:
            findings.append(Finding("warning", "mimic multiplier 0", mimic.name, f"does not follow '{mimic.source}': "
                                    f"it stays at {mimic.offset:g}", "set the multiplier, or make the joint fixed"))
            continue
        if is_endless(source.type) or is_endless(follower.type) or source.lower is None or (
                follower.lower is None):
            continue
        ends = sorted(mimic.multiplier * _number(end, 0.0) + mimic.offset for end in (source.lower, source.upper))
        lower, upper = _number(follower.lower, 0.0), _number(follower.upper, 0.0)
        slack = 0.02 * max(ends[1] - ends[0], 1e-3)
        if ends[0] < lower - slack or ends[1] > upper + slack:
            findings.append(Finding("warning", "mimic limits disagree", mimic.name,
                                    f"'{mimic.source}' moves it over [{ends[0]:.4g}, {ends[1]:.4g}], its own limits "
                                    f"are [{lower:.4g}, {upper:.4g}]",
                                    "narrow the source's limits, or widen the follower's"))
    return findings


def structure_findings(description: Description) -> list[Finding]:
    """Findings on mass without influence on the dynamics, and on moving bodies without mass."""
    moving = set(moving_links(description))
    links = description.links
    findings = []
    fixed = {name: inertia.mass for name, inertia in links.items() if name not in moving and inertia.mass > 0.0}
    if fixed and moving:
        findings.append(Finding("note", "mass on the fixed base", ", ".join(fixed),
                                f"{sum(fixed.values()):.4g} kg do not move and do not enter the dynamics",
                                "nothing to do for a robot bolted down; --root floating for one that is not"))
    carried: dict[str, bool] = {}    # moving joint → whether its body, fixed children included, has mass
    _, order = depth_first(description)
    body: dict[str, str] = {}
    for joint in order:
        body[joint.child] = body.get(joint.parent, "") if joint.type == "fixed" else joint.name
        key = body[joint.child]
        if key:
            carried[key] = carried.get(key, False) or not links[joint.child].is_zero
    empty = [name for name, has_mass in carried.items() if not has_mass]
    if empty:
        without = ", ".join(link for link, joint in body.items() if joint in empty)
        findings.append(Finding("note", "massless bodies", ", ".join(empty),
                                f"the links right behind these joints have no inertia: {without}",
                                "fine for parts of a composed joint, and for frames; else add <inertial>"))
    return findings
