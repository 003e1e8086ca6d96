"""Starts node observer beside a robot whose robot_state_publisher and driver run.

    ros2 launch rbd_ros observer.launch.py params_file:=my_arm.yaml

What the world does to the arm is on ~/external_effort, ~/external_wrench, ~/contact and ~/payload.
"""
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchDescription
from rbd_ros.nodes.base.launching import config, declare, secured, topic, typed


def arg_params_file():
    return DeclareLaunchArgument(
        "params_file",
        description="YAML file of the node's parameters; config/observer.yaml lists all of them.",
        default_value=config("observer.yaml"))


def node_observer(context):
    return [Node(
        package="rbd_ros", executable="observer", name="observer", namespace=LaunchConfiguration("namespace"),
        output="screen",
        parameters=[LaunchConfiguration("params_file"), typed("autostart", bool), typed("use_sim_time", bool)],
        remappings=[topic("robot_description"), topic("joint_states")],
        **secured(context, "observer", "security", "keystore", "enclave"))]


def generate_launch_description():
    return LaunchDescription([
        arg_params_file(), *declare("namespace", "robot_description", "joint_states"),
        *declare("autostart", "use_sim_time", "security", "keystore", "enclave"),
        OpaqueFunction(function=node_observer)])
