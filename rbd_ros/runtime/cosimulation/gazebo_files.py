"""Files for an arm in Gazebo: description, topics of ros_gz_bridge, controllers."""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from ...core.errors import RbdError
from ...core.model.files.urdf import describe
from ...core.model.files.xml_tree import parse_xml, read_text
from .gazebo_description import driven_joints, gazebo_description

INTERFACES = ("ros2_control", "bridge")


@dataclasses.dataclass(frozen=True)
class Files:
    """Paths of the written files, joints in the order of the controller, and changes of the description."""

    model: str
    joints: tuple[str, ...]
    description: Path
    bridge: Path
    controllers: Path
    notes: tuple[str, ...]


def write_files(source: str | Path, folder: Path, interface: str, *, world: str, model: str = "",
                step: float = 0.001, controller: str = "effort_controller", states: bool = False) -> Files:
    """Write <model>.urdf, <model>_bridge.yaml and <model>_controllers.yaml of a URDF file into `folder`.

    interface: one of `INTERFACES`; world: name of the world; model: name of the arm in it, empty: as in the file;
    step: of the physics, s; states: with ros2_control, Gazebo itself publishes /joint_states (with bridge it always
    does), and joint_state_broadcaster publishes /joint_state_broadcaster/joint_states: the broadcaster's stamps are of
    the last /clock received by the controller manager, and it drops states in quick succession. Raises `RbdError` if
    Gazebo cannot simulate the arm.
    """
    text, shown = read_text(source)
    description, _ = describe(parse_xml(text, shown), shown)
    model = model or description.name
    joints = driven_joints(description)
    if not model or set(model) & set("/ \t\n'\""):
        raise RbdError(f"'{model}' is not a valid name for a model: topic names contain it")
    paths = [folder.absolute() / f"{model}{end}" for end in (".urdf", "_bridge.yaml", "_controllers.yaml")]
    if paths[0] == Path(source).absolute():
        raise RbdError(f"{shown} would be overwritten: choose another folder")
    urdf, notes = gazebo_description(text, shown, interface, controllers=str(paths[2]), states=states)
    if not joints:
        raise RbdError(f"{shown} has no joint that moves")
    folder.mkdir(parents=True, exist_ok=True)
    paths[0].write_text(urdf, encoding="utf-8")
    paths[1].write_text(yaml.safe_dump(bridge_entries(world, model, joints, interface, states), sort_keys=False))
    paths[2].write_text(yaml.safe_dump(controllers(joints, controller, step, states), sort_keys=False))
    return Files(model, tuple(joints), paths[0], paths[1], paths[2], tuple(notes))


def bridge_entries(world: str, model: str, joints: Sequence[str], interface: str, states: bool = False) -> list[
        dict[str, str]]:
    """Entries for ros_gz_bridge: the clock; without gz_ros2_control also joint states and one force per joint."""
    def entry(ros: str, gz: str, kind: str, gz_kind: str, direction: str = "GZ_TO_ROS") -> dict[str, str]:
        return {"ros_topic_name": ros, "gz_topic_name": gz, "ros_type_name": kind, "gz_type_name": gz_kind,
                "direction": direction}

    entries = [entry("/clock", "/clock", "rosgraph_msgs/msg/Clock", "gz.msgs.Clock")]
    if states or interface == "bridge":
        entries.append(entry("/joint_states", f"/world/{world}/model/{model}/joint_state",
                             "sensor_msgs/msg/JointState", "gz.msgs.Model"))
    if interface == "bridge":
        forces = [f"/model/{model}/joint/{name}/cmd_force" for name in joints]
        entries += [entry(topic, topic, "std_msgs/msg/Float64", "gz.msgs.Double", "ROS_TO_GZ") for topic in forces]
    return entries


def controllers(joints: Sequence[str], controller: str, step: float, states: bool = False) -> dict[str, Any]:
    """Parameters of the controller manager in Gazebo, at the rate of the physics; see docs/cosimulation.md."""
    return {
        "controller_manager": {"ros__parameters": {
            "update_rate": round(1.0 / step), "use_sim_time": True,
            "joint_state_broadcaster": {"type": "joint_state_broadcaster/JointStateBroadcaster"},
            controller: {"type": "forward_command_controller/ForwardCommandController"}}},
        "joint_state_broadcaster": {"ros__parameters": {"use_sim_time": True, "use_local_topics": states}},
        controller: {"ros__parameters": {"joints": list(joints), "interface_name": "effort", "use_sim_time": True}}}
