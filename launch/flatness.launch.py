"""Starts node flatness for a robot whose driver, controllers and robot_state_publisher already run.

    ros2 launch rbd_ros flatness.launch.py params_file:=my_arm.yaml joint_states:=arm/joint_states
"""
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription


def arg_params_file():
    return DeclareLaunchArgument(
        "params_file", description="YAML file of the node's parameters; config/flatness.yaml lists all of them.",
        default_value=PathJoinSubstitution([FindPackageShare("rbd_ros"), "config", "flatness.yaml"]))


def arg_namespace():
    return DeclareLaunchArgument("namespace", default_value="", description="Namespace of the node and its topics.")


def arg_joint_states():
    return DeclareLaunchArgument("joint_states", default_value="joint_states",
                                 description="Topic of the robot's joint states.")


def arg_robot_description():
    return DeclareLaunchArgument("robot_description", default_value="robot_description",
                                 description="Topic of the robot description (URDF).")


def arg_actuation_file():
    return DeclareLaunchArgument(
        "actuation_file", default_value="",
        description="YAML file of the drives of elastic joints, such as config/sea_example.actuation.yaml. Empty: the "
                    "one that params_file names; without any, the joints are rigid.")


def arg_motor_states():
    return DeclareLaunchArgument("motor_states", default_value="motor_states",
                                 description="Topic of the motors' states (sensor_msgs/JointState, behind the gears), "
                                             "needed for elastic joints.")


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


def nodes(context):
    """The node; parameter actuation_file counts only where the argument is given."""
    given = LaunchConfiguration("actuation_file").perform(context)
    return [node_flatness([{"actuation_file": given}] if given else [])]


def node_flatness(more):
    return Node(
        package="rbd_ros", executable="flatness", name="flatness", namespace=LaunchConfiguration("namespace"),
        output="screen", parameters=[LaunchConfiguration("params_file"), *more, flag("autostart"),
                                     flag("use_sim_time")],
        remappings=[("joint_states", LaunchConfiguration("joint_states")),
                    ("motor_states", LaunchConfiguration("motor_states")),
                    ("robot_description", LaunchConfiguration("robot_description"))])


def generate_launch_description():
    return LaunchDescription([
        arg_params_file(), arg_namespace(), arg_joint_states(), arg_robot_description(), arg_actuation_file(),
        arg_motor_states(), arg_autostart(), arg_use_sim_time(), OpaqueFunction(function=nodes)])
