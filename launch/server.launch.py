"""Starts node dynamics_server for a robot whose robot_state_publisher (and driver, for its state) already run.

    ros2 launch rbd_ros server.launch.py params_file:=my_arm.yaml constraints_file:=my_arm.constraints.yaml
"""
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription


def arg_params_file():
    return DeclareLaunchArgument(
        "params_file", description="YAML file of the node's parameters; config/dynamics_server.yaml lists all of them.",
        default_value=PathJoinSubstitution([FindPackageShare("rbd_ros"), "config", "dynamics_server.yaml"]))


def arg_namespace():
    return DeclareLaunchArgument("namespace", default_value="", description="Namespace of the node and its services.")


def arg_joint_states():
    return DeclareLaunchArgument("joint_states", default_value="joint_states",
                                 description="Topic of the robot's joint states.")


def arg_robot_description():
    return DeclareLaunchArgument("robot_description", default_value="robot_description",
                                 description="Topic of the robot description (URDF).")


def arg_constraints_file():
    return DeclareLaunchArgument(
        "constraints_file", default_value="",
        description="YAML file of closed loops, couplings and contacts, or a sample's name. Empty: the one that "
                    "params_file names, if any.")


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


def constraints(context):
    """Parameters for argument `constraints_file`, none without: then params_file alone names it."""
    file = LaunchConfiguration("constraints_file").perform(context)
    return [{"constraints_file": file}] if file else []


def node_dynamics_server(context):
    return [Node(
        package="rbd_ros", executable="dynamics_server", name="dynamics_server",
        namespace=LaunchConfiguration("namespace"), output="screen",
        parameters=[LaunchConfiguration("params_file"), flag("autostart"), flag("use_sim_time"), *constraints(context)],
        remappings=[("joint_states", LaunchConfiguration("joint_states")),
                    ("robot_description", LaunchConfiguration("robot_description"))])]


def generate_launch_description():
    return LaunchDescription([
        arg_params_file(), arg_namespace(), arg_joint_states(), arg_robot_description(), arg_constraints_file(),
        arg_autostart(), arg_use_sim_time(), OpaqueFunction(function=node_dynamics_server)])
