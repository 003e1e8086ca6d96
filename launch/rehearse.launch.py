"""Starts the unchanged configuration of a real arm with a simulated arm that behaves like that robot.

    ros2 launch rbd_ros rehearse.launch.py robot:=ur
    ros2 launch rbd_ros rehearse.launch.py robot:=franka params_file:=/path/my_franka.yaml urdf:=/path/my_fr3.urdf

The log lists replacements of parts that only the real robot has. Brakes hold the arm until the node commands it; then
the node holds its pose. Command motions as in demo.launch.py, with the joints of the configuration.
"""
from pathlib import Path

from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchDescription
from rbd_ros.nodes.base.launching import config, declare, node_rviz, typed
from rbd_ros.runtime.rehearsal import rehearse


def arg_robot():
    return DeclareLaunchArgument(
        "robot", default_value="ur",
        choices=["ur", "franka", "iiwa_lbr", "openarm", "big_yam", "z1", "generic_effort", "generic_jtc",
                 "generic_annotator", "generic_mit"],
        description="Whose configuration, config/<robot>.yaml: ur, franka, iiwa_lbr, openarm, big_yam, z1, or "
                    "generic_effort, generic_jtc, generic_annotator, generic_mit for an arm that compensates nothing.")


def arg_params_file():
    return DeclareLaunchArgument(
        "params_file", default_value="",
        description="Your own file instead; the robot then does what the one of argument robot does. Empty: the file "
                    "that comes with the package.")


def arg_urdf():
    return DeclareLaunchArgument(
        "urdf", default_value="",
        description="URDF of your arm, with the joints of the configuration. Empty: a sample, most of which are in the "
                    "Python package example-robot-data.")


def nodes(context):
    """Both nodes, preceding log messages, and RViz."""
    value = {name: LaunchConfiguration(name).perform(context) for name in ("robot", "params_file", "urdf")}
    shipped = Path(config(f"{value['robot']}.yaml").perform(context))
    file = Path(value["params_file"] or shipped)
    plan = rehearse(file, value["urdf"] or None, shipped)
    described = {"robot_description": plan.description}
    return [
        *(LogInfo(msg=f"rehearsal of {file.name}: {note}") for note in plan.notes),
        Node(package="rbd_ros", executable="simulator", name="simulator", output="screen",
             parameters=[config("simulator.yaml"), plan.robot, described, typed("mass_scale", float),
                         {"wait_for_command": 0.2, "command_timeout": 0.5}]),    # slowed down alike by a busy machine
        Node(package="rbd_ros", executable="feedforward", name="feedforward", output="screen",
             parameters=[config("feedforward.yaml"), str(file), plan.replaced | described,
                         {"feedback.max_age": float("inf"), "state_timeout": 0.5}]),    # so no answer is too old
        Node(package="robot_state_publisher", executable="robot_state_publisher", name="robot_state_publisher",
             output="log", parameters=[described], condition=IfCondition(LaunchConfiguration("rviz"))),
        node_rviz(LaunchConfiguration("rviz"), plan.model.body_names[0])]


def generate_launch_description():
    return LaunchDescription([arg_robot(), arg_params_file(), arg_urdf(), *declare("mass_scale", "rviz"),
                              OpaqueFunction(function=nodes)])
