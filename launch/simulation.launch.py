"""Starts a simulated arm and node feedforward, in real time or in lockstep, and compares the arm with its model.

    ros2 launch rbd_ros simulation.launch.py plant:=mujoco_plant mode:=lockstep
    ros2 launch rbd_ros simulation.launch.py robot_description_file:=/path/my_arm.urdf params_file:=/path/my_arm.yaml

In lockstep the arm stands still until the controller answers; `ros2 topic echo /residual/residual` shows the torque
that the model does not explain. Command motions as in demo.launch.py.
"""
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import EqualsSubstitution, LaunchConfiguration, PythonExpression
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from launch import LaunchDescription
from rbd_ros.nodes.base.launching import config, declare, node_rviz, node_state_publisher, typed


def arg_params_file():
    return DeclareLaunchArgument(
        "params_file", default_value=config("simulation.yaml"),
        description="YAML file of parameters of the nodes, such as gains and rotor inertias, all under /**; the "
                    "default file is for the iiwa.")


def arg_plant():
    return DeclareLaunchArgument(
        "plant", default_value="simulator", choices=["simulator", "mujoco_plant"],
        description="Node that simulates the arm: simulator, which needs nothing else, or mujoco_plant, which needs "
                    "MuJoCo (pip package mujoco).")


def arg_mode():
    return DeclareLaunchArgument(
        "mode", default_value="real_time", choices=["real_time", "lockstep"],
        description="The simulation runs freely (real_time), or plant and controller take turns, with the same result "
                    "every time (lockstep).")


def arg_steps():
    return DeclareLaunchArgument(
        "steps", default_value="2",
        description="Integration steps of 1 ms between two joint states, that is, between two commands.")


def arg_residual():
    return DeclareLaunchArgument(
        "residual", default_value="true", choices=["true", "false"],
        description="Also start node residual, which compares the simulated arm with the model, on /residual/residual.")


def in_lockstep():
    return EqualsSubstitution(LaunchConfiguration("mode"), "lockstep")


def is_plant(name):
    return IfCondition(EqualsSubstitution(LaunchConfiguration("plant"), name))


def publish_rate():
    """Rate of joint states, Hz: one per `steps` steps of 1 ms, each answered by the controller."""
    return ParameterValue(PythonExpression(["1000.0 / ", LaunchConfiguration("steps")]), value_type=float)


def common():
    return [LaunchConfiguration("params_file"), typed("robot_description_file", str)]


def plant_parameters():
    return [*common(), typed("mass_scale", float), {
        "paused": ParameterValue(in_lockstep(), value_type=bool), "publish_clock": True,
        "step": 0.001, "publish_rate": publish_rate()}]


def node_simulator():
    return Node(package="rbd_ros", executable="simulator", name="simulator", output="screen",
                parameters=[config("simulator.yaml"), *plant_parameters()], condition=is_plant("simulator"))


def node_mujoco_plant():
    return Node(package="rbd_ros", executable="mujoco_plant", name="mujoco_plant", output="screen",
                parameters=[config("mujoco_plant.yaml"), *plant_parameters()], condition=is_plant("mujoco_plant"))


def node_feedforward(context):
    return [Node(package="rbd_ros", executable="feedforward", name="feedforward", output="screen", parameters=[
        config("feedforward.yaml"), *common(), typed("feedforward", str), taking_turns(context)])]


def taking_turns(context):
    """Parameters for lockstep, in which node lockstep forwards the efforts: long timeouts, and no ramps."""
    if LaunchConfiguration("mode").perform(context) == "real_time":
        return {"adapters": ["forward_command"],
                "forward_command.controller": ParameterValue(LaunchConfiguration("plant"), value_type=str)}
    return {"adapters": [""], "state_timeout": 10.0, "feedback.max_age": float("inf"), "ramp_in": 0.0, "ramp_out": 0.0,
            "qos_overrides./joint_states.subscription.reliability": "reliable",
            "qos_overrides./joint_states.subscription.depth": 10}


def node_lockstep():
    return Node(package="rbd_ros", executable="lockstep", name="lockstep", output="screen",
                condition=IfCondition(in_lockstep()), parameters=[
                    config("lockstep.yaml"), typed("plant", str), typed("steps", int),
                    {"controller": ParameterValue(LaunchConfiguration("plant"), value_type=str)}])


def node_residual():
    return Node(package="rbd_ros", executable="residual", name="residual", output="screen",
                parameters=[config("residual.yaml"), *common()],
                condition=IfCondition(LaunchConfiguration("residual")))


def arg_rviz_frame():
    return DeclareLaunchArgument(
        "rviz_frame", default_value="link_0",
        description="Link of the arm that stands still in RViz; link_0 is the root of the iiwa.")


def generate_launch_description():
    rviz = LaunchConfiguration("rviz")
    return LaunchDescription([
        *declare("robot_description_file"), arg_params_file(), arg_plant(), arg_mode(), arg_steps(),
        *declare("mass_scale", "feedforward", "rviz"), arg_rviz_frame(), arg_residual(), node_simulator(),
        node_mujoco_plant(), OpaqueFunction(function=node_feedforward), node_lockstep(), node_residual(),
        node_state_publisher(rviz, LaunchConfiguration("robot_description_file"), use_sim_time=True),
        node_rviz(rviz, LaunchConfiguration("rviz_frame"), use_sim_time=True)])
