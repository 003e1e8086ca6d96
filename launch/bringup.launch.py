"""Starts node feedforward for a robot whose driver, controllers and robot_state_publisher already run.

    ros2 launch rbd_ros bringup.launch.py params_file:=my_arm.yaml controller:=effort_controller
"""
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchDescription
from rbd_ros.nodes.base.launching import config, declare, node_rviz, secured, topic, typed


def arg_params_file():
    return DeclareLaunchArgument(
        "params_file", default_value=config("feedforward.yaml"),
        description="YAML file of the node's parameters; config/feedforward.yaml lists all of them.")


def arg_controller():
    return DeclareLaunchArgument(
        "controller", default_value="",
        description="Controller (forward_command_controller with effort) that gets the torque on "
                    "<controller>/commands. Empty: the outputs that params_file names under adapters. ~/effort is "
                    "published in any case.")


def output(context):
    """Parameters for argument `controller`, none without: then params_file alone names the outputs."""
    controller = LaunchConfiguration("controller").perform(context)
    return [{"adapters": ["forward_command"], "forward_command.controller": controller}] if controller else []


def node_feedforward(context):
    return [Node(
        package="rbd_ros", executable="feedforward", name="feedforward", namespace=LaunchConfiguration("namespace"),
        output="screen", remappings=[topic("joint_states"), topic("robot_description")],
        parameters=[LaunchConfiguration("params_file"), typed("autostart", bool), typed("use_sim_time", bool),
                    *output(context)],
        **secured(context, "feedforward", "security", "keystore", "enclave"))]


def arg_rviz_frame():
    return DeclareLaunchArgument(
        "rviz_frame", default_value="base_link",
        description="Link of the arm that stands still in RViz.")


def generate_launch_description():
    rviz = LaunchConfiguration("rviz")
    return LaunchDescription([
        arg_params_file(), *declare("namespace", "joint_states", "robot_description"), arg_controller(),
        *declare("autostart", "use_sim_time", "security", "keystore", "enclave", "rviz"), arg_rviz_frame(),
        OpaqueFunction(function=node_feedforward),
        node_rviz(rviz, *(LaunchConfiguration(name) for name in ("rviz_frame", "joint_states", "robot_description")))])
