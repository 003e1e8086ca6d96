"""Starts node effort_annotator before the joint_trajectory_controller of a robot whose robot_state_publisher runs.

    ros2 launch rbd_ros annotator.launch.py params_file:=my_arm.yaml controller:=/effort_trajectory_controller

Trajectories that go to ~/joint_trajectory_in, or to the topic of argument `trajectories`, reach the controller with
the effort of every point. With `action_controller`, so do the goals of action ~/follow_joint_trajectory (MoveIt).
"""
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchDescription
from rbd_ros.nodes.base.launching import config, declare, secured, topic, typed


def arg_params_file():
    return DeclareLaunchArgument(
        "params_file",
        description="YAML file of the node's parameters; config/effort_annotator.yaml lists all of them.",
        default_value=config("effort_annotator.yaml"))


def arg_trajectories():
    return DeclareLaunchArgument("trajectories", default_value="~/joint_trajectory_in",
                                 description="Topic of the trajectories to fill with efforts; ~ is the node's name.")


def arg_controller():
    return DeclareLaunchArgument(
        "controller", default_value="",
        description="Controller (joint_trajectory_controller with effort) that gets the result on "
                    "<controller>/joint_trajectory. Empty: it is published on ~/joint_trajectory.")


def arg_action_controller():
    return DeclareLaunchArgument(
        "action_controller", default_value="",
        description="Controller whose action <controller>/follow_joint_trajectory gets the goals of the node's own. "
                    "Empty: as the file of parameters says.")


def action(context):
    """Parameters for argument `action_controller`, none without."""
    controller = LaunchConfiguration("action_controller").perform(context)
    return [{"action.controller": controller}] if controller else []


def output(context):
    """Remapping for argument `controller`, none without."""
    controller = LaunchConfiguration("controller").perform(context)
    return [("~/joint_trajectory", f"{controller}/joint_trajectory")] if controller else []


def node_effort_annotator(context):
    return [Node(
        package="rbd_ros", executable="effort_annotator", name="effort_annotator",
        namespace=LaunchConfiguration("namespace"), output="screen",
        parameters=[LaunchConfiguration("params_file"), typed("autostart", bool), typed("use_sim_time", bool),
                    *action(context)],
        remappings=[topic("robot_description"),
                    ("~/joint_trajectory_in", LaunchConfiguration("trajectories")), *output(context)],
        **secured(context, "effort_annotator", "security", "keystore", "enclave"))]


def generate_launch_description():
    return LaunchDescription([
        arg_params_file(), *declare("namespace", "robot_description"), arg_trajectories(), arg_controller(),
        arg_action_controller(), *declare("autostart", "use_sim_time", "security", "keystore", "enclave"),
        OpaqueFunction(function=node_effort_annotator)])
