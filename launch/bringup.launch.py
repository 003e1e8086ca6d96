"""Starts node feedforward for a robot whose driver, controllers and robot_state_publisher already run.

    ros2 launch rbd_ros bringup.launch.py params_file:=my_arm.yaml controller:=effort_controller
"""
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription


def arg_params_file():
    return DeclareLaunchArgument(
        "params_file", description="YAML file of the node's parameters; config/feedforward.yaml lists all of them.",
        default_value=PathJoinSubstitution([FindPackageShare("rbd_ros"), "config", "feedforward.yaml"]))


def arg_namespace():
    return DeclareLaunchArgument("namespace", default_value="", description="Namespace of the node and its topics.")


def arg_joint_states():
    return DeclareLaunchArgument("joint_states", default_value="joint_states",
                                 description="Topic of the robot's joint states.")


def arg_robot_description():
    return DeclareLaunchArgument("robot_description", default_value="robot_description",
                                 description="Topic of the robot description (URDF).")


def arg_controller():
    return DeclareLaunchArgument(
        "controller", default_value="",
        description="Controller (forward_command_controller with effort) that gets the torque on "
                    "<controller>/commands. Empty: the outputs that params_file names under adapters. ~/effort is "
                    "published in any case.")


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
    """Parameters for argument `controller`, none without: then params_file alone names the outputs."""
    controller = LaunchConfiguration("controller").perform(context)
    return [{"adapters": ["forward_command"], "forward_command.controller": controller}] if controller else []


def node_feedforward(context):
    return [Node(
        package="rbd_ros", executable="feedforward", name="feedforward", namespace=LaunchConfiguration("namespace"),
        output="screen",
        parameters=[LaunchConfiguration("params_file"), flag("autostart"), flag("use_sim_time"), *output(context)],
        remappings=[("joint_states", LaunchConfiguration("joint_states")),
                    ("robot_description", LaunchConfiguration("robot_description"))])]


def generate_launch_description():
    return LaunchDescription([
        arg_params_file(), arg_namespace(), arg_joint_states(), arg_robot_description(), arg_controller(),
        arg_autostart(), arg_use_sim_time(), OpaqueFunction(function=node_feedforward)])
