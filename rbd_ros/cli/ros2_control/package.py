"""The files of a controller package: `templates/` with the names and numbers of one arm, and its C source."""
from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from ...core.derivatives.variable_inertias import node_of
from ...core.dynamics.friction import joint_friction
from ...core.errors import RbdError
from ...core.identification.written.node_files import controller_text
from ...core.model.joints import is_endless
from ...core.model.robot_model import RobotModel
from ...core.motion.velocity_limits import velocity_limits
from ...core.specialize.c_source import c_files, escaped, identifier
from ...core.specialize.model_inputs import lumped
from ...runtime.parameters import Table
from ...runtime.robot import check_model
from .parameters import parameters_of, parameters_text

TEMPLATES = Path(__file__).parent / "templates"
FUNCTIONS = ("inverse_dynamics", "gravity_effort", "mass_matrix")
MARK = re.compile(r"@([A-Z0-9_]+)@")


def package_files(model: RobotModel, name: str = "", package: str = "") -> dict[str, str]:
    """Path in the package → text. name: prefix of the arm's C functions, by default the model's name; package: name of
    the package, by default `<name>_effort_controller`. Raises `RbdError` for robots other than arms of single joints.
    """
    check_model(model)
    if model.mimics:
        raise RbdError(f"--ros2-control: joint '{model.mimics[0].name}' mimics another one, which the controller does "
                       "not support: --lock the joint that it mimics")
    arm = identifier(model, name)
    package = package or f"{arm.lower().strip('_') or 'arm'}_effort_controller"
    if not re.fullmatch(r"[a-z][a-z0-9_]*", package):
        raise RbdError(f"--package: expected a name of lower case letters, digits and underscores, got '{package}'")
    model = lumped(model)
    bare, table = model.with_(armature=0.0), parameters_of(model)
    marks = _marks(model, arm, package, table)
    files = {target(path, arm): filled(path.read_text(encoding="utf-8"), marks, path.name)
             for path in sorted(TEMPLATES.rglob("*.in"))}
    code = c_files(bare, FUNCTIONS, arm, inertias=[joint.child for joint in model.joints], gravity=True)
    files |= {f"arm/{file}": code[file] for file in (f"{arm}.c", f"{arm}.h")}
    return files | {"src/parameters.yaml": parameters_text(table, package),
                    f"config/{arm}_dynamics.yaml": controller_text(model, joint_friction(model))}


def target(path: Path, arm: str) -> str:
    """Path in the package of a template."""
    return path.relative_to(TEMPLATES).as_posix().removesuffix(".in").replace("ARM", arm)


def filled(text: str, marks: Mapping[str, str], what: str) -> str:
    """The text with `@NAME@` replaced; raises `RbdError` for unknown names."""
    def value(found: re.Match[str]) -> str:
        if found[1] not in marks:
            raise RbdError(f"template {what}: unknown name @{found[1]}@")
        return marks[found[1]]

    return MARK.sub(value, text)


def _marks(model: RobotModel, arm: str, package: str, table: Table) -> dict[str, str]:
    moving = [joint.child for joint in model.joints]    # the link behind each joint
    nodes, poses = zip(*(node_of(model, link) for link in moving), strict=True)
    links = []
    for body in model.body_names:
        node, T = node_of(model, body)
        joint = nodes.index(node) if node in nodes else -1
        if joint >= 0:
            T = np.linalg.inv(poses[joint]) @ T
        T = np.where(np.abs(T - np.round(T)) < 1e-15, np.round(T) + 0.0, T)
        links.append(f'  {{"{escaped(body)}", {joint}, {{{_numbers(T[:3, :3].ravel())}}}, {{{_numbers(T[:3, 3])}}}}}')
    inertias = model.inertial_parameters.reshape(-1, 10)[[model.body_index(link) for link in moving]]
    joints = [escaped(name) for name in model.joint_names]
    return {
        "ARM": arm, "ARM_UPPER": arm.upper(), "PACKAGE": package, "ROBOT": escaped(model.name).replace("*/", ""),
        "ROBOT_XML": _xml(model.name),
        "LINK_COUNT": str(len(model.body_names)), "LINKS": ",\n".join(links),
        "ENDLESS": ", ".join("true" if is_endless(joint.type) else "false" for joint in model.joints),
        "VELOCITY_LIMIT": _numbers(velocity_limits(model)), "EFFORT_LIMIT": _numbers(model.effort_limit),
        "INERTIAS": ",\n  ".join(_numbers(row) for row in inertias), "ROTOR_INERTIA": _numbers(model.armature),
        "DAMPING": _numbers(model.damping), "COULOMB": _numbers(model.friction),
        "GRAVITY": _numbers(model.description.gravity),
        "JOINT_NAMES": ", ".join(f'"{name}"' for name in joints),
        "JOINTS_XML": "\n".join(map(_joint_xml, model.joint_names)),
        "COMMAND_JOINTS": ", ".join(f'"torque/{name}"' for name in joints),
        "PARAMETERS": "\n".join(f'  visit("{row.name}", p.{row.name});' for row in table),
        "JOINT_LIST": ", ".join(f"`{name}`" for name in joints),
    }


def _joint_xml(name: str) -> str:
    return (f'      <joint name="{_xml(name)}">\n        <command_interface name="effort"/>\n'
            '        <state_interface name="position"><param name="initial_value">0.0</param></state_interface>\n'
            '        <state_interface name="velocity"><param name="initial_value">0.0</param></state_interface>\n'
            '        <state_interface name="effort"/>\n      </joint>')


def _xml(text: str) -> str:
    return escape(text, {'"': "&quot;"})


def _numbers(values: Any) -> str:
    return ", ".join("INF" if np.isinf(x) else repr(float(x)) for x in np.ravel(values))
