"""Starts node motion_planner for a robot whose robot_state_publisher (and driver, for its state) already run.

    ros2 launch rbd_ros planner.launch.py params_file:=my_arm.yaml
"""
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchDescription
from rbd_ros.nodes.base.launching import config, declare, secured, topic, typed


def arg_params_file():
    return DeclareLaunchArgument(
        "params_file", description="YAML file of the node's parameters; config/motion_planner.yaml lists all of them.",
        default_value=config("motion_planner.yaml"))


def node_motion_planner(context):
    return [Node(
        package="rbd_ros", executable="motion_planner", name="motion_planner",
        namespace=LaunchConfiguration("namespace"), output="screen",
        remappings=[topic("joint_states"), topic("robot_description")],
        parameters=[LaunchConfiguration("params_file"), typed("autostart", bool), typed("use_sim_time", bool)],
        **secured(context, "motion_planner", "security", "keystore", "enclave"))]


def generate_launch_description():
    return LaunchDescription([
        arg_params_file(), *declare("namespace", "joint_states", "robot_description"),
        *declare("autostart", "use_sim_time", "security", "keystore", "enclave"),
        OpaqueFunction(function=node_motion_planner)])
