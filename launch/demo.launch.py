"""Starts the simulated iiwa sample and node feedforward, connected as on a real robot.

    ros2 launch rbd_ros demo.launch.py feedforward:=gravity mass_scale:=1.05

Send a reference on /feedforward/reference or a trajectory on /feedforward/joint_trajectory.
"""
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from rbd_ros import sample, sample_path
from rbd_ros.cli import demo_motion

MODEL = sample("iiwa")
SCENARIO = demo_motion.scenario(MODEL, demo_motion.published_motion(), duration=10.0)
ROBOT = {"robot_description_file": str(sample_path("iiwa")), "rotor_inertia": SCENARIO.rotors.tolist()}
GAINS = {"gains.kp": SCENARIO.kp.tolist(), "gains.kd": SCENARIO.kd.tolist()}


def arg_feedforward():
    return DeclareLaunchArgument(
        "feedforward", default_value="full", choices=["none", "gravity", "full"],
        description="Model torque that is added to the feedback: none, gravity, inverse dynamics of the reference.")


def arg_mass_scale():
    return DeclareLaunchArgument("mass_scale", default_value="1.0",
                                 description="The simulated robot is this much heavier than its description.")


def config(name):
    return PathJoinSubstitution([FindPackageShare("rbd_ros"), "config", name])


def number(name):
    return ParameterValue(LaunchConfiguration(name), value_type=float)


def node_simulator():
    return Node(package="rbd_ros", executable="simulator", name="simulator", output="screen",
                parameters=[config("simulator.yaml"), ROBOT, {"mass_scale": number("mass_scale")}])


def node_feedforward():
    return Node(package="rbd_ros", executable="feedforward", name="feedforward", output="screen",
                parameters=[config("feedforward.yaml"), ROBOT, GAINS, {
                    "feedforward": LaunchConfiguration("feedforward"),
                    "adapters": ["forward_command"], "forward_command.controller": "simulator"}])


def generate_launch_description():
    return LaunchDescription([arg_feedforward(), arg_mass_scale(), node_simulator(), node_feedforward()])
