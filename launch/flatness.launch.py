"""Starts node flatness for a robot whose driver, controllers and robot_state_publisher already run.

    ros2 launch rbd_ros flatness.launch.py params_file:=my_arm.yaml joint_states:=arm/joint_states
"""
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchDescription
from rbd_ros.nodes.base.launching import config, declare, secured, topic, typed


def arg_params_file():
    return DeclareLaunchArgument(
        "params_file", description="YAML file of the node's parameters; config/flatness.yaml lists all of them.",
        default_value=config("flatness.yaml"))


def arg_actuation_file():
    return DeclareLaunchArgument(
        "actuation_file", default_value="",
        description="YAML file of the drives of elastic joints, such as config/sea_example.actuation.yaml. Empty: the "
                    "one that params_file names; without any, the joints are rigid.")


def arg_motor_states():
    return DeclareLaunchArgument("motor_states", default_value="motor_states",
                                 description="Topic of the motor states (sensor_msgs/JointState, behind the gears), "
                                             "needed for elastic joints.")


def nodes(context):
    """The node; the launch argument actuation_file overrides the parameter if given."""
    given = LaunchConfiguration("actuation_file").perform(context)
    return [node_flatness([{"actuation_file": given}] if given else [], secured(
        context, "flatness", "security", "keystore", "enclave"))]


def node_flatness(more, secure):
    return Node(
        package="rbd_ros", executable="flatness", name="flatness", namespace=LaunchConfiguration("namespace"),
        output="screen", parameters=[LaunchConfiguration("params_file"), *more, typed("autostart", bool),
                                     typed("use_sim_time", bool)],
        remappings=[topic("joint_states"), topic("motor_states"), topic("robot_description")],
        **secure)


def generate_launch_description():
    return LaunchDescription([
        arg_params_file(), *declare("namespace", "joint_states", "robot_description"), arg_actuation_file(),
        arg_motor_states(), *declare("autostart", "use_sim_time", "security", "keystore", "enclave"),
        OpaqueFunction(function=nodes)])
