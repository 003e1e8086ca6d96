"""Gazebo's interpretation of a robot description, and an adapted description with the intended meaning.

The rules are those of sdformat 14 (parser_urdf.cc, Inertial of gz-math 7):

- links at fixed joints become one with their parent, except below a link called `world`;
- a resulting link without mass is omitted, with all links behind it, although `create` reports success;
- the model is rejected if principal moments of an inertia are negative or violate the triangle inequality;
- a link and a joint must not have the same name;
- the root link falls freely unless a joint fixes it to a link called `world`.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np

from ...core.errors import RbdError
from ...core.model.assembly import Description, depth_first
from ...core.model.files.urdf import describe
from ...core.model.files.xml_tree import parse_xml
from ...core.model.inertia import Array, Inertia
from ...core.model.joints import has_ends, is_driven, is_loose

WORLD = "world"
LEAST = 1e-6     # second moment of the mass along an axis, over the sum of all three
BASE, FRAME = (1.0, 1e-2), (1e-3, 1e-6)    # kg, kg m²: inertia of a massless base, and of a massless moving body
PLUGINS = {"gz_ros2_control::GazeboSimROS2ControlPlugin": "gz_ros2_control-system",
           "gz::sim::systems::JointStatePublisher": "gz-sim-joint-state-publisher-system",
           "gz::sim::systems::ApplyJointForce": "gz-sim-apply-joint-force-system"}
CONTROL, STATES, FORCE = PLUGINS


def refusals(description: Description) -> list[tuple[str, str]]:
    """(link, behaviour of Gazebo) for each deviation from the description."""
    root, order = depth_first(description)
    behind: dict[str, list[str]] = {root: [], **{joint.child: [] for joint in order}}
    for joint in reversed(order):
        behind[joint.parent] += [joint.child, *behind[joint.child]]
    deviations = [] if root == WORLD else [(root, "nothing fixes the root link to the world: the robot falls")]
    for name in bodies_without_mass(description):
        subtree = f", with the {len(behind[name])} links behind it" if behind[name] else ""
        deviations.append((name, f"is left out, as it has no mass{subtree}; spawning reports success all the same"))
    deviations += [(name, "the robot is refused: no body can have this inertia (principal moments)")
              for name, inertia in description.links.items() if inertia.mass > 0.0 and not is_valid(inertia)]
    return deviations + [(name, "the robot is refused: a joint has the same name") for name in _ambiguous(description)]


def _ambiguous(description: Description) -> list[str]:
    """Links with the name of a joint."""
    joints = {joint.name for joint in description.joints}
    return [name for name in description.links if name in joints]


def bodies_without_mass(description: Description) -> list[str]:
    """First links of the massless bodies in Gazebo; a body is a set of links connected by fixed joints."""
    root, order = depth_first(description)
    body = {root: root}
    for joint in order:
        body[joint.child] = body[joint.parent] if joint.type == "fixed" and joint.parent != WORLD else joint.child
    heavy = {body[name] for name, inertia in description.links.items() if name in body and inertia.mass > 0.0}
    return [name for name in dict.fromkeys(body.values()) if name not in heavy and name != WORLD]


def is_valid(inertia: Inertia) -> bool:
    """Whether gz-math accepts the inertia, also after printing."""
    moments = np.linalg.eigvalsh(inertia.matrix)
    total = float(moments.sum())
    return bool(moments[0] >= 0.0 and total / 2.0 - moments[2] >= 0.0 and total > 0.0)


def nearest_valid(matrix: Array) -> Array:
    """Valid inertia matrix (3, 3), kg m², with the same axes: second moments of at least `LEAST` times their sum."""
    moments, axes = np.linalg.eigh(matrix)
    second = moments.sum() / 2.0 - moments    # ∫ x² dm along each axis
    second = np.maximum(second, LEAST * max(float(np.abs(second).sum()), 1e-9))
    return np.asarray((axes * (second.sum() - second)) @ axes.T)


def driven_joints(description: Description) -> list[str]:
    """Driven joints (movable, not mimic), in the order of the file's tree."""
    return [joint.name for joint in depth_first(description)[1]
            if is_driven(joint.type) and joint.mimic is None]


def gazebo_description(text: str | bytes, source: str, interface: str, *, controllers: str = "",
                       states: bool = False) -> tuple[str, list[str]]:
    """URDF text that Gazebo interprets as intended, with the plugins of `interface`, and a list of the changes.

    interface: ros2_control (controllers: path of the YAML file for its controller manager) or bridge. states: whether
    Gazebo itself publishes joint states in addition to ros2_control, as it always does with bridge. Plugins for other
    simulators or hardware (`<ros2_control>`) are removed. Raises `RbdError` if no such description exists.
    """
    tree = parse_xml(text, source)
    description, _ = describe(tree, source)
    root, _ = depth_first(description)
    if WORLD in description.links and root != WORLD:
        raise RbdError(f"{source}: link '{WORLD}' is not the root, but Gazebo treats it as the world: rename it")
    _check_joints(description, source)
    notes: list[str] = []
    links = {link.get("name"): link for link in tree.findall("link")}
    for name, inertia in description.links.items():
        if inertia.mass > 0.0 and not is_valid(inertia):
            fit = nearest_valid(inertia.matrix)
            _set_inertial(links[name], inertia.mass, inertia.com, fit)
            share = np.abs(fit - inertia.matrix).max() / np.abs(fit).max()
            notes.append(f"link {name}: inertia changed by {100.0 * share:.2g} % of its largest element, to that of a "
                         "real body")
    fixed = {joint.child for joint in description.joints if joint.type == "fixed"} | {root}
    for name in bodies_without_mass(description):
        mass, moment = BASE if name in fixed else FRAME
        _set_inertial(links[name], mass, np.zeros(3), moment * np.eye(3))
        notes.append(f"link {name}: given {mass:g} kg, as Gazebo leaves out links without mass"
                     + ("" if name in fixed else ", although it moves"))
    if root != WORLD:
        ElementTree.SubElement(tree, "link", {"name": WORLD})
        joint = ElementTree.SubElement(tree, "joint", {"name": _free("world_joint", description), "type": "fixed"})
        ElementTree.SubElement(joint, "parent", {"link": WORLD})
        ElementTree.SubElement(joint, "child", {"link": root})
        notes.append(f"link {root}: fixed to the world")
    for name in _ambiguous(description):
        _rename_link(tree, name, _free(f"{name}_link", description))
        notes.append(f"link {name}: renamed to {_free(f'{name}_link', description)}, because a joint has the same name")
    followers = [joint.name for joint in description.joints if joint.mimic is not None]
    if followers:
        notes.append(f"joints {', '.join(followers)}: are mimic joints, which Gazebo's default engine does not "
                     "support; they move freely")
    published = [*driven_joints(description), *followers] if states or interface == "bridge" else []
    _set_plugins(tree, driven_joints(description), interface, controllers, published)
    return ElementTree.tostring(tree, encoding="unicode"), notes


def _check_joints(description: Description, source: str) -> None:
    for joint in description.joints:
        if is_loose(joint.type):
            raise RbdError(f"{source}: joint '{joint.name}' is {joint.type}; Gazebo is used for arms on a fixed base")
        if has_ends(joint.type) and joint.effort is None:
            raise RbdError(f"{source}: joint '{joint.name}' has no <limit>, and Gazebo refuses such a file")
        if joint.effort is not None and not float(np.ravel(joint.effort)[0]) > 0.0 and joint.type != "fixed":
            raise RbdError(f"{source}: joint '{joint.name}' has an effort limit of 0: it gets no torque in Gazebo")
    for name, inertia in description.links.items():
        if inertia.mass < 0.0:
            raise RbdError(f"{source}: link '{name}' has a mass of {inertia.mass:g} kg")


def _free(name: str, description: Description) -> str:
    used = {joint.name for joint in description.joints} | set(description.links)
    return next(text for text in (name + "_" * count for count in range(len(used) + 1)) if text not in used)


def _rename_link(tree: Any, old: str, new: str) -> None:
    for element, key in [(tree, "link"), *((joint, key) for joint in tree.findall("joint") for key in (
            "parent", "child"))]:
        for child in element.findall(key):
            attribute = "name" if key == "link" else "link"
            if child.get(attribute) == old:
                child.set(attribute, new)


def _set_inertial(link: Any, mass: float, com: Array, matrix: Array) -> None:
    """Set the inertial element: moments about the centre of mass, in link axes."""
    for old in link.findall("inertial"):
        link.remove(old)
    inertial = ElementTree.SubElement(link, "inertial")
    ElementTree.SubElement(inertial, "origin", {"xyz": " ".join(map(repr, com.tolist())), "rpy": "0 0 0"})
    ElementTree.SubElement(inertial, "mass", {"value": repr(float(mass))})
    ElementTree.SubElement(inertial, "inertia", {
        f"i{'xyz'[i]}{'xyz'[k]}": repr(float(matrix[i, k])) for i in range(3) for k in range(i, 3)})


def _set_plugins(tree: Any, joints: Sequence[str], interface: str, controllers: str, told: Sequence[str]) -> None:
    """Set the plugins of `interface` as the only ones for torque or states. told: joints whose states Gazebo publishes.
    """
    for element in [*tree.findall("ros2_control"), *tree.findall("gazebo")]:
        plugins = [plugin for plugin in element.findall("plugin")
                   if plugin.get("name") in PLUGINS or "ros_control" in (plugin.get("filename") or "")]
        for plugin in plugins:
            element.remove(plugin)
        if element.tag == "ros2_control" or (plugins and not len(element)):
            tree.remove(element)
    gazebo = ElementTree.SubElement(tree, "gazebo")
    if told:    # without names, the joint to the world would be published, too
        _names(_plugin(gazebo, STATES), told)
    if interface == "bridge":
        for name in joints:
            _names(_plugin(gazebo, FORCE), [name])
        return
    plugin = _plugin(gazebo, CONTROL)
    ElementTree.SubElement(plugin, "parameters").text = controllers
    ElementTree.SubElement(plugin, "hold_joints").text = "true"
    control = ElementTree.SubElement(tree, "ros2_control", {"name": "gazebo", "type": "system"})
    hardware = ElementTree.SubElement(control, "hardware")
    ElementTree.SubElement(hardware, "plugin").text = "gz_ros2_control/GazeboSimSystem"
    for name in joints:
        joint = ElementTree.SubElement(control, "joint", {"name": name})
        ElementTree.SubElement(joint, "command_interface", {"name": "effort"})
        for kind in ("position", "velocity", "effort"):
            state = ElementTree.SubElement(joint, "state_interface", {"name": kind})
            if kind == "position":
                ElementTree.SubElement(state, "param", {"name": "initial_value"}).text = "0.0"


def _plugin(parent: Any, name: str) -> Any:
    return ElementTree.SubElement(parent, "plugin", {"filename": PLUGINS[name], "name": name})


def _names(plugin: Any, joints: Sequence[str]) -> None:
    for name in joints:
        ElementTree.SubElement(plugin, "joint_name").text = name
