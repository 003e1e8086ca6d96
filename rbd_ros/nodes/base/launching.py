"""Common parts of launch files: shared arguments, and node factories."""
from __future__ import annotations

from typing import Any

from launch.actions import DeclareLaunchArgument
from launch.conditions import IfCondition
from launch.substitutions import Command, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from ... import sample_path

BOOLEAN = ["true", "false"]
SHARED: dict[str, dict[str, Any]] = {
    "namespace": {
        "default_value": "", "description": "Namespace of the node and its topics."},
    "joint_states": {
        "default_value": "joint_states", "description": "Topic of the robot's joint states."},
    "robot_description": {
        "default_value": "robot_description", "description": "Topic of the robot description (URDF)."},
    "robot_description_file": {
        "default_value": str(sample_path("iiwa")), "description": "URDF file of the arm."},
    "autostart": {
        "default_value": "true", "choices": BOOLEAN,
        "description": "Configure and activate the node as soon as there is a robot description (true), or leave that "
                       "to a lifecycle manager (false)."},
    "use_sim_time": {
        "default_value": "false", "choices": BOOLEAN,
        "description": "Take the time from /clock, as in a simulation."},
    "rviz": {
        "default_value": "false", "choices": BOOLEAN,
        "description": "Also start RViz (package rviz2) with the robot, the measured effort and, where the output "
                       "adapter joint_state is on, the commanded one: true or false."},
    "security": {
        "default_value": "false", "choices": BOOLEAN,
        "description": "Start the node in an SROS2 enclave, and refuse to start where its keys are missing (rbd "
                       "secure makes them)."},
    "keystore": {
        "default_value": "",
        "description": "Folder of the keys, for security:=true. Empty: as ROS_SECURITY_KEYSTORE says."},
    "enclave": {
        "default_value": "/rbd_ros",
        "description": "The node's enclave is its name below this one, for security:=true."},
    "mass_scale": {
        "default_value": "1.0",
        "description": "Mass of the simulated robot over that of its model, 0.001 to 1000."},
    "feedforward": {
        "default_value": "full", "choices": ["none", "gravity", "full", "computed_torque", "lqr"],
        "description": "Model torque that is added to the feedback: none; gravity of the measured position; inverse "
                       "dynamics of the reference (full); inverse dynamics of the measured state with the feedback as "
                       "acceleration (computed_torque; its gains are in 1/s^2 and 1/s, so give a params_file); full "
                       "with gains by weights (lqr)."},
}


def declare(*names: str) -> list[DeclareLaunchArgument]:
    """Declarations of the named shared arguments."""
    return [DeclareLaunchArgument(name, **SHARED[name]) for name in names]


def config(name: str) -> PathJoinSubstitution:
    """Path of a file in this package's folder config."""
    return PathJoinSubstitution([FindPackageShare("rbd_ros"), "config", name])


def typed(name: str, kind: type) -> dict[str, ParameterValue]:
    """A parameter from the argument of the same name."""
    return {name: ParameterValue(LaunchConfiguration(name), value_type=kind)}


def topic(name: str) -> tuple[str, LaunchConfiguration]:
    """Remapping of this topic to the value of the launch argument of the same name."""
    return name, LaunchConfiguration(name)


def node_rviz(wanted: Any, frame: Any, joint_states: Any = "joint_states",
              robot_description: Any = "robot_description", **parameters: Any) -> Node:
    """RViz on these topics, if `wanted`; frame: the fixed frame."""
    return Node(package="rviz2", executable="rviz2", name="rviz2", output="log",
                parameters=[parameters] if parameters else None,
                arguments=["-d", config("rbd_ros.rviz"), "-f", frame],
                remappings=[("/joint_states", joint_states), ("/robot_description", robot_description)],
                condition=IfCondition(wanted))


def node_state_publisher(wanted: Any, description_file: Any, **parameters: Any) -> Node:
    """robot_state_publisher of a simulated robot, for RViz, if `wanted`."""
    description = ParameterValue(Command(["xacro ", description_file]), value_type=str)
    return Node(package="robot_state_publisher", executable="robot_state_publisher", name="robot_state_publisher",
                output="log", parameters=[{"robot_description": description, **parameters}],
                condition=IfCondition(wanted))


def secured(context: Any, node: str, security: str, keystore: str, enclave: str) -> dict[str, Any]:
    """Arguments of `Node` for security, from the launch arguments of these names: enclave, and enforced keys."""
    value = {name: LaunchConfiguration(name).perform(context) for name in (security, keystore, enclave)}
    if value[security] != "true":
        return {}
    environment = {"ROS_SECURITY_ENABLE": "true", "ROS_SECURITY_STRATEGY": "Enforce"}
    if value[keystore]:
        environment["ROS_SECURITY_KEYSTORE"] = value[keystore]
    return {"ros_arguments": ["--enclave", f"{value[enclave].rstrip('/')}/{node}"], "additional_env": environment}
