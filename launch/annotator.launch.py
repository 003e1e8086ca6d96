"""Starts node effort_annotator before the joint_trajectory_controller of a robot whose robot_state_publisher runs.

    ros2 launch rbd_ros annotator.launch.py params_file:=my_arm.yaml controller:=/effort_trajectory_controller

Trajectories that go to ~/joint_trajectory_in, or to the topic of argument `trajectories`, reach the controller with
the effort of every point.
"""
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription


def arg_params_file():
    return DeclareLaunchArgument(
        "params_file",
        description="YAML file of the node's parameters; config/effort_annotator.yaml lists all of them.",
        default_value=PathJoinSubstitution([FindPackageShare("rbd_ros"), "config", "effort_annotator.yaml"]))


def arg_namespace():
    return DeclareLaunchArgument("namespace", default_value="", description="Namespace of the node and its topics.")


def arg_robot_description():
    return DeclareLaunchArgument("robot_description", default_value="robot_description",
                                 description="Topic of the robot description (URDF).")


def arg_trajectories():
    return DeclareLaunchArgument("trajectories", default_value="~/joint_trajectory_in",
                                 description="Topic of the trajectories that are to get efforts; ~ is the node's name.")


def arg_controller():
    return DeclareLaunchArgument(
        "controller", default_value="",
        description="Controller (joint_trajectory_controller with effort) that gets them then, on "
                    "<controller>/joint_trajectory. Empty: they are published on ~/joint_trajectory.")


def arg_autostart():
    return DeclareLaunchArgument(
        "autostart", default_value="true", choices=["true", "false"],
        description="Configure and activate the node as soon as there is a robot description (true), or leave that to "
                    "a lifecycle manager (false).")


def arg_use_sim_time():
    return DeclareLaunchArgument("use_sim_time", default_value="false", choices=["true", "false"],
                                 description="Take the time from /clock, as in a simulation.")


def flag(name):
    return {name: ParameterValue(LaunchConfiguration(name), value_type=bool)}


def output(context):
    """Remapping for argument `controller`, none without."""
    controller = LaunchConfiguration("controller").perform(context)
    return [("~/joint_trajectory", f"{controller}/joint_trajectory")] if controller else []


def node_effort_annotator(context):
    return [Node(
        package="rbd_ros", executable="effort_annotator", name="effort_annotator",
        namespace=LaunchConfiguration("namespace"), output="screen",
        parameters=[LaunchConfiguration("params_file"), flag("autostart"), flag("use_sim_time")],
        remappings=[("robot_description", LaunchConfiguration("robot_description")),
                    ("~/joint_trajectory_in", LaunchConfiguration("trajectories")), *output(context)])]


def generate_launch_description():
    return LaunchDescription([
        arg_params_file(), arg_namespace(), arg_robot_description(), arg_trajectories(), arg_controller(),
        arg_autostart(), arg_use_sim_time(), OpaqueFunction(function=node_effort_annotator)])
