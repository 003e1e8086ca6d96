"""Starts node cartesian for a robot whose driver, controllers and robot_state_publisher already run.

    ros2 launch rbd_ros cartesian.launch.py params_file:=my_arm.yaml joint_states:=arm/joint_states
    ros2 topic pub --once /cartesian/target_pose geometry_msgs/msg/PoseStamped \
        "{pose: {position: {x: 0.5, z: 0.4}, orientation: {x: 1.0, w: 0.0}}}"
"""
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchDescription
from rbd_ros.nodes.base.launching import config, declare, secured, topic, typed


def arg_params_file():
    return DeclareLaunchArgument(
        "params_file", description="YAML file of the node's parameters; config/cartesian.yaml lists all of them.",
        default_value=config("cartesian.yaml"))


def node_cartesian(context):
    return [Node(
        package="rbd_ros", executable="cartesian", name="cartesian", namespace=LaunchConfiguration("namespace"),
        output="screen", parameters=[LaunchConfiguration("params_file"), typed("autostart", bool),
                                     typed("use_sim_time", bool)],
        remappings=[topic("joint_states"), topic("robot_description")],
        **secured(context, "cartesian", "security", "keystore", "enclave"))]


def generate_launch_description():
    return LaunchDescription([
        arg_params_file(), *declare("namespace", "joint_states", "robot_description", "autostart", "use_sim_time",
                                    "security", "keystore", "enclave"),
        OpaqueFunction(function=node_cartesian)])
