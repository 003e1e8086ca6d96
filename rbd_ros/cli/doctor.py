"""`rbd doctor ROBOT`: contents of a robot description, and its problems, by name and with the fix."""
from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
import textwrap
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..core.compiled.entry import EXTENSION
from ..core.compiled.kernel import COMPILED
from ..core.dynamics.mass_matrix import mass_matrix
from ..core.errors import RbdError, RbdWarning
from ..core.model.assembly import Description
from ..core.model.checks.conditioning import MOST_COORDINATES, condition_numbers, conditioning
from ..core.model.checks.diagnosis import SEVERITIES, Finding, joint_findings, moving_links, structure_findings
from ..core.model.checks.plausibility import link_findings
from ..core.model.files.urdf import describe
from ..core.model.files.urdf_parts import line as line_of
from ..core.model.files.xml_tree import Element, parse_xml, read_text
from ..core.model.inertia import Array
from ..core.model.joints import has_ends, is_driven, is_length
from ..core.model.robot_model import RobotModel
from ..runtime.controller_file import controller_findings, load_controllers
from ..runtime.cosimulation.gazebo_description import refusals
from . import collision_pairs
from .files.robot import add_robot, description_of

WIDTH = 96
SAMPLES = 32
MANY_TURNS, ENDLESS = 40.0, 1e4    # rad: ranges that look like degrees; above the second value, like no limit
SHOWN = 4    # findings of one kind shown in full; others are listed by name


@dataclasses.dataclass(frozen=True)
class Report:
    """All findings of the doctor; model is None if it cannot be built."""

    source: str
    description: Description
    model: RobotModel | None
    matrices: Array | None
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        return all(finding.severity != "error" for finding in self.findings)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd doctor`."""
    add_robot(parser, help="/dev/stdin (the standard input), ")
    parser.add_argument("--root", choices=("fixed", "floating"), default="fixed",
                        help="whether the root link is fixed or floating (default: %(default)s)")
    parser.add_argument("--gazebo", action="store_true", help="also report what Gazebo would leave out or refuse")
    parser.add_argument("--controllers", metavar="FILE", help="also check a parameter file of ros2_control's "
                        "controllers for torque")
    parser.add_argument("--collisions", metavar="FILE", help="also write an SRDF with the pairs of links that need no "
                        "check for collisions: neighbours, and what always or never touches in random configurations")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.epilog = "Exit code: 0 if healthy or with warnings only, 1 with errors or if no robot could be read."


def run(namespace: argparse.Namespace) -> int:
    """Print the report; returns 1 for errors or an unreadable robot, else 0."""
    with contextlib.suppress(AttributeError, ValueError):    # a terminal that is not UTF-8 still gets its report
        sys.stdout.reconfigure(errors="replace")    # type: ignore[union-attr]
    try:
        description = description_of(namespace)
        report = examine(description, namespace.root, namespace.gazebo, namespace.controllers)
        pairs = None if namespace.collisions is None else collision_pairs.sample_pairs(
            description, report.model, namespace.collisions)
    except RbdError as error:
        if namespace.json:
            print(json.dumps({"file": namespace.robot, "healthy": False, "error": str(error), "findings": []},
                             indent=1))
        else:
            print(f"error: {error}", file=sys.stderr)
        return 1
    if namespace.json:
        data = as_json(report) | ({} if pairs is None else {
            "collisions": collision_pairs.as_json(pairs, namespace.collisions)})
        print(json.dumps(data, indent=1, ensure_ascii=False))
    else:
        print(as_text(report) + ("" if pairs is None else "\n" + collision_pairs.as_text(pairs, namespace.collisions)))
    if COMPILED and EXTENSION is None and not namespace.json:
        print("This installation has no extension `_door`, so single calls take some microseconds longer: install a C "
              "compiler and the headers of Python, then rbd_ros again.")
    return 0 if report.healthy else 1


def examine(path: str | Path, root: str = "fixed", gazebo: bool = False, controllers: str | Path | None = None
            ) -> Report:
    """Read and check a file, also for Gazebo if requested; raises `RbdError` if it cannot be read.

    path: as of `load_urdf`; controllers: a parameter file of controllers to be checked for this robot.
    """
    text, source = read_text(path)
    tree = parse_xml(text, source)
    description, misspelt = describe(tree, source)
    description = dataclasses.replace(description, root=root)
    findings = [Finding("warning", "not read", subject, message, "correct it, or remove it")
                for subject, message in (note.split(": ", 1) for note in misspelt)]
    findings += joint_findings(description)
    model: RobotModel | None = None
    for mimic in ("project", "independent"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RbdWarning)
                model = RobotModel.from_description(dataclasses.replace(description, mimic=mimic))
            break
        except RbdError as error:
            if mimic == "project" and not any(f.severity == "error" for f in findings):
                findings.append(Finding("error", "not loadable", description.name, str(error),
                                        "correct the description"))
    matrices = None
    with contextlib.suppress(RbdError):    # no tree: already reported
        findings += structure_findings(description) + link_findings(description)
        findings += [Finding("error", "in Gazebo", *refusal, "`rbd gazebo` writes a description that Gazebo takes")
                     for refusal in (refusals(description) if gazebo else ())]
    if model is not None and model.nv > MOST_COORDINATES:
        findings.append(Finding("note", "mass matrix not checked", description.name, f"{model.nv} degrees of freedom: "
                                f"only models up to {MOST_COORDINATES} are checked",
                                "check parts of the robot separately"))
    elif model is not None and model.nv:
        rng = np.random.default_rng(0)
        q = np.stack([model.neutral(), *(model.random_configuration(rng) for _ in range(SAMPLES))])
        matrices = mass_matrix(model, q)
        findings += conditioning(model, matrices)
    if controllers is not None:
        findings += controller_findings(load_controllers(controllers), description, model, matrices)
    findings += mesh_scales(tree) + ranges_in_degrees(description)
    places = {element.get("name"): line_of(element) for element in reversed(tree) if element.tag in ("link", "joint")}
    findings = [dataclasses.replace(finding, line=places.get(finding.subject.split(", ")[0])) for finding in findings]
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Report(source.strip("'"), description, model, matrices, tuple(findings))


def mesh_scales(tree: Element) -> list[Finding]:
    """Mesh scales other than one: irrelevant for dynamics, but a hint at millimetres."""
    scales = {" ".join(words) for mesh in tree.iter("mesh") if (words := mesh.get("scale", "").split())
              if any(word.lstrip("+-").rstrip("0").rstrip(".") != "1" for word in words)}
    if not scales:
        return []
    shown = "; ".join(sorted(scales)[:4]) + ("; …" if len(scales) > 4 else "")
    return [Finding("note", "scaled meshes", "visuals and collisions", f"mesh scale {shown}: not read by dynamics",
                    "check that the inertias were not exported in the meshes' unit")]


def ranges_in_degrees(description: Description) -> list[Finding]:
    """Revolute joints with ranges of many turns, probably in degrees."""
    return [Finding("warning", "range in degrees?", spec.name,
                    f"range {lower:.3g} … {upper:.3g} rad is {(upper - lower) / (2.0 * np.pi):.0f} turns",
                    "give limits in radians, or make the joint continuous")
            for spec in description.joints if has_ends(spec.type) and not is_length(spec.type)
            and (lower := _one(spec.lower)) is not None and (upper := _one(spec.upper)) is not None
            and MANY_TURNS < upper - lower < ENDLESS]


def joint_rows(report: Report) -> list[dict[str, Any]]:
    """The joint table: one row per moving joint, in the order of the coordinates, mimic joints last."""
    model = report.model
    inertia: dict[str, float] = {}
    if model is not None and report.matrices is not None:
        least = np.einsum("nii->ni", report.matrices).min(axis=0)
        inertia = {joint.name: float(least[joint.idx_v]) for joint in model.joints if joint.nv == 1}
    specs = {spec.name: spec for spec in report.description.joints if spec.type != "fixed"}
    names = [name for name in (model.joint_names if model else specs) if name in specs]
    rows: list[dict[str, Any]] = []
    for name in [*names, *(name for name in specs if name not in names)]:
        spec = specs[name]
        rows.append({"name": name, "type": spec.type, "parent": spec.parent, "child": spec.child,
                     "lower": _one(spec.lower), "upper": _one(spec.upper), "velocity": _one(spec.velocity),
                     "effort": _one(spec.effort), "damping": _one(spec.damping), "friction": _one(spec.friction),
                     "least_inertia": inertia.get(name),
                     "mimic": list(spec.mimic) if spec.mimic else None})
    return rows


def _one(value: object) -> float | None:
    if value is None:
        return None
    number = float(np.ravel(value)[0])    # type: ignore[call-overload]
    return number if np.isfinite(number) else None


def as_json(report: Report) -> dict[str, Any]:
    """The report as data; None for unbounded or unknown values."""
    model = report.model
    condition = None
    if model is not None and report.matrices is not None and np.isfinite(report.matrices).all():
        condition = _one(condition_numbers(model, report.matrices).max())
    return {"file": report.source, "name": report.description.name, "root": report.description.root,
            "healthy": report.healthy, "bodies": list(report.description.links),
            "mass": sum(inertia.mass for inertia in report.description.links.values()),
            "nq": model.nq if model else None, "nv": model.nv if model else None, "condition_number": condition,
            "joints": joint_rows(report), "lacking": lacking(report), "verdict": verdict(report),
            "findings": [dataclasses.asdict(finding) for finding in report.findings]}


def as_text(report: Report) -> str:
    """The report for a terminal."""
    return "\n".join([*_head(report), "", *_table(report), "", *_findings(report.findings), _counts(report.findings),
                      *_wrapped(verdict(report), "")])


def _head(report: Report) -> list[str]:
    data = as_json(report)
    with contextlib.suppress(RbdError):
        moving = len(moving_links(report.description))
        mass = sum(report.description.links[name].mass for name in moving_links(report.description))
        shown = ("" if data["nv"] is None else
                 f", {data['nv']} degree{'s' * (data['nv'] != 1)} of freedom ({report.description.root} root)")
        condition = data["condition_number"]
        return [f"{data['name']}: {len(data['bodies'])} links, {moving} of them move{shown}",
                f"mass {data['mass']:.4g} kg, of which {mass:.4g} kg move"
                + ("" if condition is None else f"; condition number of the mass matrix up to {condition:.1e}")]
    return [f"{data['name']}: {len(data['bodies'])} links"]


def _table(report: Report) -> list[str]:
    rows = joint_rows(report)
    if not rows:
        return ["no moving joints"]
    width = min(max([5, *(len(row["name"]) for row in rows)]), 30)
    head = f"{'joint':{width}} {'type':10} {'range':>17} {'velocity':>8} {'effort':>8} {'damp':>6} {'frict':>6}  "
    lines = [head + "inertia"]
    for row in rows:
        bounds = ("" if not has_ends(row["type"]) else
                  f"{_shown(row['lower'], '-∞')} … {_shown(row['upper'], '∞')}")
        line = (f"{_cut(row['name'], width):{width}} {row['type']:10} {bounds:>17} {_shown(row['velocity'], '–'):>8} "
                f"{_shown(row['effort'], '–'):>8} {_shown(row['damping'] or None, ''):>6} "
                f"{_shown(row['friction'] or None, ''):>6}  {_shown(row['least_inertia'], '')}")
        lines.append(line.rstrip())
        if row["mimic"]:
            source, ratio, offset = row["mimic"]
            lines.append(f"  └ mimics {source}: × {ratio:g}" + (f" {offset:+g}" if offset else ""))
    return [*lines, "(rad, m, s, N m, N; inertia: least M_ii found, kg m² or kg)"]


def _shown(number: float | None, none: str) -> str:
    return none if number is None else f"{number:.3g}"


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else name[:width - 1] + "…"


def _findings(findings: Iterable[Finding]) -> list[str]:
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.topic, finding.fix), []).append(finding)
    lines: list[str] = []
    for (severity, topic, fix), group in groups.items():
        lines.append(f"{severity.upper()}: {topic}" + (f" ({len(group)})" if len(group) > 1 else ""))
        written = group if len(group) <= SHOWN + 1 else group[:SHOWN]
        for finding in written:
            where = f" (line {finding.line})" if finding.line else ""
            lines += _wrapped(f"{_listed(finding.subject.split(', '))}{where}: {finding.message}", "  ")
        if len(group) > len(written):
            lines += _wrapped("also " + _listed([finding.subject for finding in group[len(written):]]), "  ")
        lines += [*_wrapped(f"→ {fix}", "  "), ""]
    return lines


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False)


def lacking(report: Report) -> dict[str, list[str]]:
    """Joints with motors without rotor inertia, and without friction, in the description."""
    driven = [spec for spec in report.description.joints if is_driven(spec.type) and spec.mimic is None
              and spec.name not in report.description.locked]
    return {"rotor_inertia": [spec.name for spec in driven if not np.any(spec.rotor_inertia)],
            "friction": [spec.name for spec in driven if not (np.any(spec.damping) or np.any(spec.friction))]}


def verdict(report: Report) -> str:
    """Expected quality of torque computed from this file, in one line."""
    if not report.healthy:
        return "torque from this file would be wrong: correct the errors above"
    lacks = {field: names for field, names in lacking(report).items() if names}
    doubts = sum(finding.severity == "warning" for finding in report.findings)
    doubtful = f"; look at the {doubts} warning{'s' * (doubts != 1)} above first" * bool(doubts)
    if not lacks:
        return f"torque from this file will be as accurate as its numbers{doubtful}"
    joints = len([spec for spec in report.description.joints if is_driven(spec.type) and spec.mimic is None])
    words = {"rotor_inertia": "rotor inertia (rotor_inertia)", "friction": "friction (<dynamics>)"}
    missing = [words[field] + (f" of {_listed(names)}" if len(names) < joints else "")
               for field, names in lacks.items()]
    return (f"torque from this file will lack {' and '.join(missing)}: `rbd identify` finds them from a recorded motion"
            f"{doubtful}")


def _counts(findings: Iterable[Finding]) -> str:
    severities = [finding.severity for finding in findings]
    counts = [f"{severities.count(s)} {s}{'s' * (severities.count(s) != 1)}" for s in SEVERITIES if s in severities]
    return ", ".join(counts) if counts else "no problems found"
