"""Starts node dynamics_server for a robot whose robot_state_publisher (and driver, for its state) already run.

    ros2 launch rbd_ros server.launch.py params_file:=my_arm.yaml constraints_file:=my_arm.constraints.yaml
"""
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchDescription
from rbd_ros.nodes.base.launching import config, declare, secured, topic, typed


def arg_params_file():
    return DeclareLaunchArgument(
        "params_file", description="YAML file of the node's parameters; config/dynamics_server.yaml lists all of them.",
        default_value=config("dynamics_server.yaml"))


def arg_constraints_file():
    return DeclareLaunchArgument(
        "constraints_file", default_value="",
        description="YAML file of closed loops, couplings and contacts, or a sample's name. Empty: the one that "
                    "params_file names, if any.")


def constraints(context):
    """Parameters for argument `constraints_file`, none without: then params_file alone names it."""
    file = LaunchConfiguration("constraints_file").perform(context)
    return [{"constraints_file": file}] if file else []


def node_dynamics_server(context):
    return [Node(
        package="rbd_ros", executable="dynamics_server", name="dynamics_server",
        namespace=LaunchConfiguration("namespace"), output="screen",
        remappings=[topic("joint_states"), topic("robot_description")],
        parameters=[LaunchConfiguration("params_file"), typed("autostart", bool), typed("use_sim_time", bool),
                    *constraints(context)],
        **secured(context, "dynamics_server", "security", "keystore", "enclave"))]


def generate_launch_description():
    return LaunchDescription([
        arg_params_file(), *declare("namespace", "joint_states", "robot_description"), arg_constraints_file(),
        *declare("autostart", "use_sim_time", "security", "keystore", "enclave"),
        OpaqueFunction(function=node_dynamics_server)])
