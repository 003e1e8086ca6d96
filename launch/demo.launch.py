"""Starts the simulated iiwa sample and node feedforward, connected as on a real robot.

    ros2 launch rbd_ros demo.launch.py feedforward:=gravity mass_scale:=1.05 rviz:=true

Gravity compensation alone holds the arm until the node receives a reference on /feedforward/reference or a trajectory:

    ros2 topic pub --once /feedforward/joint_trajectory trajectory_msgs/msg/JointTrajectory \\
        "{joint_names: [joint_1, joint_2, joint_3, joint_4, joint_5, joint_6, joint_7], points: [
        {positions: [0.5, 0.8, 0.0, -1.2, 0.0, 0.6, 0.0], time_from_start: {sec: 3}}]}"
"""
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchDescription
from rbd_ros import sample_path
from rbd_ros.nodes.base.launching import config, declare, node_rviz, node_state_publisher, typed

ROBOT = {"robot_description_file": str(sample_path("iiwa"))}


def arg_feedforward():
    return DeclareLaunchArgument(
        "feedforward", default_value="full", choices=["none", "gravity", "full"],
        description="Model torque that is added to the feedback: none; gravity of the measured position; inverse "
                    "dynamics of the reference (full).")


def node_simulator():
    return Node(package="rbd_ros", executable="simulator", name="simulator", output="screen", parameters=[
        config("simulator.yaml"), config("demo.yaml"), ROBOT, typed("mass_scale", float)])


def node_feedforward():
    return Node(package="rbd_ros", executable="feedforward", name="feedforward", output="screen", parameters=[
        config("feedforward.yaml"), config("demo.yaml"), ROBOT, typed("feedforward", str)])


def generate_launch_description():
    rviz = LaunchConfiguration("rviz")
    return LaunchDescription([
        arg_feedforward(), *declare("mass_scale", "rviz"), node_simulator(), node_feedforward(),
        node_state_publisher(rviz, str(sample_path("iiwa"))), node_rviz(rviz, "link_0")])
