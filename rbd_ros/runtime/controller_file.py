"""Problems of a ros2_control parameter file for torque control, with their fixes (docs/controllers.md).

Defaults and rules are those of ros2_control and ros2_controllers 4 to 6.
"""
from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import RbdError, unknown_name
from ..core.model.assembly import Description
from ..core.model.checks.diagnosis import Finding
from ..core.model.files.yaml_text import read_yaml
from ..core.model.robot_model import RobotModel
from .damping_gains import felt_inertia, largest_damping
from .parameter_files import flat

Array = NDArray[np.float64]
TRAJECTORY = "joint_trajectory_controller/JointTrajectoryController"
FORWARD = ("forward_command_controller/ForwardCommandController", "effort_controllers/JointGroupEffortController")
DEFAULT_RATE, LEAST_RATE = 100.0, 200.0    # Hz
STEP = 0.05        # rad or m: step of the measured position after an outlier or a stall
Numbers = Mapping[str, Any]


@dataclass(frozen=True)
class ControllerFile:
    """Parameters of the controller manager; type and parameters of each controller by name."""

    manager: Numbers
    types: Mapping[str, str]
    parameters: Mapping[str, Numbers]

    def of(self, name: str, parameter: str, default: Any) -> Any:
        """A controller's parameter; the default if missing or of another type."""
        value = self.parameters.get(name, {}).get(parameter, default)
        if isinstance(default, float):
            return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else default
        return value if isinstance(value, type(default)) else default


def load_controllers(path: str | os.PathLike[str]) -> ControllerFile:
    """Read the parameter file of a controller manager; raises `RbdError` if it declares no controller."""
    root, source = read_yaml(path, "controllers")
    nodes: dict[str, dict[str, Any]] = {}
    for name, parameters in _nodes(root, ""):
        nodes.setdefault(name, {}).update(flat(parameters))
    managers = {name: {key[:-len(".type")]: value for key, value in parameters.items()
                       if key.endswith(".type") and isinstance(value, str) and "/" in value}
                for name, parameters in nodes.items()}
    manager = max(managers, key=lambda name: len(managers[name]), default="")
    if not managers.get(manager):
        raise RbdError(f"{source}: no controller found, expected the parameters of a controller manager with "
                       "'<controller>: {type: <package>/<class>}'")
    return ControllerFile(nodes[manager], managers[manager], {
        name: {**nodes.get("**", {}), **nodes.get(name, {})} for name in managers[manager]})


def _nodes(tree: Any, name: str) -> Iterator[tuple[str, Any]]:
    """(last part of the node's name, parameters) of all nodes in the file."""
    for key, below in tree.items() if isinstance(tree, dict) else ():
        if key == "ros__parameters":
            yield name, below
        else:
            yield from _nodes(below, key.rpartition("/")[2])


def controller_findings(file: ControllerFile, description: Description, model: RobotModel | None,
                        matrices: Array | None) -> list[Finding]:
    """Reasons why these controllers cannot forward torque, or cannot hold the arm.

    model: the robot, None if it cannot be built. matrices: its mass matrices in some poses (n, nv, nv), or None.
    """
    return [*_rate_findings(file), *_joint_findings(file, description), *_fallback_findings(file),
            *(finding for name, kind in file.types.items() if kind == TRAJECTORY
              for finding in _trajectory_findings(file, name, model, matrices)), *_holding_findings(file)]


def _update_rate(file: ControllerFile) -> float | None:
    rate = file.manager.get("update_rate")
    return float(rate) if isinstance(rate, (int, float)) and not isinstance(rate, bool) else None


def _rate_findings(file: ControllerFile) -> Iterator[Finding]:
    rate = _update_rate(file)
    if (rate is None or rate < LEAST_RATE) and not _local_loops(file):
        yield Finding("warning", "update rate", "controller manager", "update_rate is missing, which means 100 Hz"
                      if rate is None else f"update_rate is {rate:g} Hz", "torque needs about 500 Hz: update_rate: 500")


def _joints(file: ControllerFile, name: str) -> list[str]:
    return [joint for joint in file.of(name, "joints", []) if isinstance(joint, str)]


def _drives(file: ControllerFile, name: str) -> set[str]:
    """Interfaces that a controller commands."""
    kind = file.types[name]
    if kind == TRAJECTORY:
        return set(map(str, file.of(name, "command_interfaces", [])))
    return {"effort" if kind == FORWARD[1] else file.of(name, "interface_name", "")} if kind in FORWARD else set()


def _local_loops(file: ControllerFile) -> set[str]:
    """Joints with forwarded position and effort: their motors close a loop, which holds them (docs/mit_mode.md)."""
    joints = {drive: {joint for name, kind in file.types.items() if kind in FORWARD and drive in _drives(file, name)
                      for joint in _joints(file, name)} for drive in ("position", "effort")}
    return joints["position"] & joints["effort"]


def _joint_findings(file: ControllerFile, description: Description) -> Iterator[Finding]:
    valid = [joint.name for joint in description.joints if joint.type != "fixed"]
    for name, kind in file.types.items():
        if kind != TRAJECTORY and kind not in FORWARD:
            continue
        joints = _joints(file, name)
        if not joints:
            yield Finding("error", "no joints", name, "'joints' is missing or empty", "list the joints by name")
        for joint in joints:
            if joint not in valid:
                yield Finding("error", "unknown joint", name, str(unknown_name("joint", joint, valid)),
                              "use the names of the robot description")


def _fallback_findings(file: ControllerFile) -> Iterator[Finding]:
    for name in file.types:
        if file.of(name, "fallback_controllers", []) and not file.manager.get(f"{name}.fallback_controllers"):
            yield Finding("warning", "fallback_controllers", name, "it stands in the controller's own parameters, "
                          "where the manager reads it only if the controller is loaded with `spawner -p`",
                          "write it in the manager's parameters, beside the controller's type")


def _trajectory_findings(file: ControllerFile, name: str, model: RobotModel | None, matrices: Array | None
                         ) -> Iterator[Finding]:
    if "effort" not in _drives(file, name):
        return
    timeout = file.of(name, "cmd_timeout", 0.0)
    if timeout > 0.0:
        yield Finding("error", "cmd_timeout", name, f"cmd_timeout {timeout:g}: the effort becomes 0 so many seconds "
                      "after the last point, and the arm sags by gravity / p, or falls", "cmd_timeout: 0.0")
    final = "allow_nonzero_velocity_at_trajectory_end"
    if not file.of(name, final, False):
        yield Finding("note", "final velocity", name, f"{final} is not true: it rejects what adapter `jtc` sends while "
                      "the arm moves", f"{final}: true behind adapter `jtc`; not needed behind effort_annotator")
    if _drives(file, name) != {"effort"}:    # the hardware closes the loop
        return
    joints = _joints(file, name)
    p, d = (np.array([file.of(name, f"gains.{joint}.{gain}", 0.0) for joint in joints]) for gain in "pd")
    for values, gain, severity, message in (
            (p, "p", "error", "nothing holds the arm when no torque comes"),
            (np.where(p > 0.0, d, 1.0), "d", "warning", "nothing damps the arm when no torque comes")):
        none = [joint for joint, value in zip(joints, values, strict=True) if not value > 0.0]
        if none:
            yield Finding(severity, f"no gain {gain}", name, f"{gain} is missing or 0 for {', '.join(none)}: {message}",
                          f"set gains.<joint>.{gain}; config/controllers/ has examples")
    if model is not None:
        yield from _high_gains(file, name, model, matrices, dict(zip(joints, zip(p, d, strict=True), strict=True)))


def _high_gains(file: ControllerFile, name: str, model: RobotModel, matrices: Array | None,
                gains: Mapping[str, tuple[float, float]]) -> Iterator[Finding]:
    rate = _update_rate(file) or DEFAULT_RATE
    p, d = (np.array([gains.get(joint, (0.0, 0.0))[i] for joint in model.velocity_names]) for i in (0, 1))
    if matrices is not None and (least := felt_inertia(matrices)) is not None:
        largest = largest_damping(least, rate)
        for joint, damping, inertia, allowed, rotor in zip(model.velocity_names, d, least, largest, model.armature,
                                                           strict=True):
            if damping > allowed:
                needed = inertia * damping / allowed
                severity, rotors = ("warning", "") if rotor > 0.0 else ("note", " without the rotor")
                yield Finding(severity, "high gains", f"{name} {joint}", f"d {damping:g} oscillates at {rate:g} Hz if "
                              f"the inertia is less than {needed:.2g} kg m² (kg); the description has {inertia:.2g}"
                              + rotors,
                              "lower d (and p), raise update_rate, or give the rotor inertia to the description "
                              "(drake:rotor_inertia)")
    if file.manager.get("enforce_command_limits") is True:
        return
    for joint, gain, limit in zip(model.velocity_names, p, model.effort_limit, strict=True):
        if 0.0 < limit < STEP * gain and math.isfinite(limit):
            yield Finding("warning", "position steps", f"{name} {joint}", f"p {gain:g}: a measured position that is "
                          f"{STEP:g} rad (m) off asks for {STEP * gain:.3g} N m (N), limit {limit:g}; version 4 sends "
                          "it to the hardware", "lower p, or set enforce_command_limits: true for the manager")


def _holding_findings(file: ControllerFile) -> Iterator[Finding]:
    def holds(name: str, joints: set[str]) -> bool:
        drives = _drives(file, name)
        return file.types[name] == TRAJECTORY and joints <= set(_joints(file, name)) and (
            "position" in drives or (drives == {"effort"} and all(
                file.of(name, f"gains.{joint}.p", 0.0) > 0.0 for joint in joints)))

    for name, kind in file.types.items():
        if kind in FORWARD and "effort" in _drives(file, name) and not any(
                holds(other, set(_joints(file, name))) for other in file.types) and not (
                set(_joints(file, name)) <= _local_loops(file)):
            yield Finding("warning", "nothing holds the arm", name, "it keeps the last torque for ever when none "
                          "comes, and no other controller of this file can hold the arm", "add a "
                          "joint_trajectory_controller with gains or position interface, as in config/controllers/"
                          "generic_effort.yaml, or rely on the robot's own control and brakes")
