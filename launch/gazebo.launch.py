"""Starts an arm in Gazebo with node feedforward; needs ros_gz, and gz_ros2_control for interface:=ros2_control.

    ros2 launch rbd_ros gazebo.launch.py robot_description_file:=/path/my_arm.urdf params_file:=/path/my_arm.yaml
    ros2 launch rbd_ros gazebo.launch.py interface:=bridge mode:=lockstep bridge_file:=/path/my_bridge.yaml

The URDF contains what config/gazebo.urdf.xacro shows. docs/cosimulation.md tells the delays.
"""
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.conditions import IfCondition
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import EqualsSubstitution, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from rbd_ros import load_urdf, sample_path

SIM_TIME = {"use_sim_time": True}


def arg_robot_description_file():
    return DeclareLaunchArgument("robot_description_file", default_value=str(sample_path("iiwa")),
                                 description="URDF file of the arm, with the plugins of the chosen interface.")


def arg_params_file():
    return DeclareLaunchArgument(
        "params_file", default_value=PathJoinSubstitution([FindPackageShare("rbd_ros"), "config", "feedforward.yaml"]),
        description="YAML file of the parameters of node feedforward, such as gains; config/feedforward.yaml lists "
                    "all of them.")


def arg_interface():
    return DeclareLaunchArgument(
        "interface", default_value="ros2_control", choices=["ros2_control", "bridge"],
        description="How torque gets into Gazebo: through controllers in gz_ros2_control (ros2_control), or through "
                    "topics of ros_gz_bridge (bridge).")


def arg_mode():
    return DeclareLaunchArgument(
        "mode", default_value="real_time", choices=["real_time", "lockstep"],
        description="Time passes by itself (real_time), or Gazebo starts paused and takes turns with the controller "
                    "(lockstep).")


def arg_controller():
    return DeclareLaunchArgument(
        "controller", default_value="effort_controller",
        description="Controller (forward_command_controller with effort) that gets the torque on <controller>/commands "
                    "with interface ros2_control.")


def arg_controllers_file():
    return DeclareLaunchArgument(
        "controllers_file",
        default_value=PathJoinSubstitution([FindPackageShare("rbd_ros"), "config", "gazebo_controllers.yaml"]),
        description="YAML file of the parameters of the controllers, with interface ros2_control.")


def arg_bridge_file():
    return DeclareLaunchArgument(
        "bridge_file",
        default_value=PathJoinSubstitution([FindPackageShare("rbd_ros"), "config", "gazebo_bridge.yaml"]),
        description="YAML file of the topics of ros_gz_bridge, with interface bridge; the default one is for model "
                    "iiwa in world default.")


def arg_world_file():
    return DeclareLaunchArgument("world_file", default_value="empty.sdf",
                                 description="SDF file of the world that Gazebo loads.")


def arg_world():
    return DeclareLaunchArgument("world", default_value="default", description="Name of the world in world_file.")


def arg_model():
    return DeclareLaunchArgument("model", default_value="iiwa", description="Name that the arm gets in the world.")


def arg_steps():
    return DeclareLaunchArgument("steps", default_value="2",
                                 description="Physics steps between two commands, with mode lockstep.")


def arg_step():
    return DeclareLaunchArgument("step", default_value="0.001",
                                 description="Length of a physics step in world_file, s; it is 0.001 in empty.sdf.")


def value(name, kind=str):
    return ParameterValue(LaunchConfiguration(name), value_type=kind)


def has_interface(name):
    return IfCondition(EqualsSubstitution(LaunchConfiguration("interface"), name))


def launch_gazebo(context):
    running = "" if LaunchConfiguration("mode").perform(context) == "lockstep" else "-r "
    world = LaunchConfiguration("world_file").perform(context)
    file = PathJoinSubstitution([FindPackageShare("ros_gz_sim"), "launch", "gz_sim.launch.py"])
    return [IncludeLaunchDescription(PythonLaunchDescriptionSource(file),
                                     launch_arguments=[("gz_args", f"{running}{world}")])]


def node_create():
    return Node(package="ros_gz_sim", executable="create", output="screen", arguments=[
        "-file", LaunchConfiguration("robot_description_file"), "-name", LaunchConfiguration("model"),
        "-world", LaunchConfiguration("world")])


def node_robot_state_publisher(context):
    file = LaunchConfiguration("robot_description_file").perform(context)
    with open(file, encoding="utf-8") as text:
        description = {"robot_description": ParameterValue(text.read(), value_type=str)}
    return [Node(package="robot_state_publisher", executable="robot_state_publisher", output="screen",
                 parameters=[description, SIM_TIME])]


def node_spawner():
    return Node(package="controller_manager", executable="spawner", output="screen",
                condition=has_interface("ros2_control"), arguments=[
                    "joint_state_broadcaster", LaunchConfiguration("controller"), "--param-file",
                    LaunchConfiguration("controllers_file")])


def node_bridge(context):
    """Clock and services always; joint states and forces where there is no gz_ros2_control."""
    world = LaunchConfiguration("world").perform(context)
    services = [f"/world/{world}/control@ros_gz_interfaces/srv/ControlWorld"]
    if LaunchConfiguration("interface").perform(context) == "bridge":
        topics, parameters = [], [{"config_file": LaunchConfiguration("bridge_file")}]
    else:
        topics, parameters = ["/clock@rosgraph_msgs/msg/Clock[gz.msgs.Clock"], []
    return [Node(package="ros_gz_bridge", executable="parameter_bridge", name="gazebo_bridge", output="screen",
                 arguments=[*topics, *services], parameters=parameters)]


def nodes_control(context):
    """Node feedforward, and node lockstep where it passes on the efforts, with or without steps."""
    lockstep = LaunchConfiguration("mode").perform(context) == "lockstep"
    bridge = LaunchConfiguration("interface").perform(context) == "bridge"
    direct = [{"adapters": ["forward_command"], "forward_command.controller": value("controller")}]
    patient = [{"state_timeout": 10.0, "ramp_in": 0.0, "ramp_out": 0.0}]
    file = LaunchConfiguration("robot_description_file").perform(context)
    nodes = [Node(package="rbd_ros", executable="feedforward", name="feedforward", output="screen", parameters=[
        LaunchConfiguration("params_file"), {"robot_description_file": file}, SIM_TIME,
        *(patient if lockstep else []), *([] if lockstep or bridge else direct)])]
    if lockstep or bridge:
        target = {"controller": "", "bridge_model": value("model")} if bridge else {"controller": value("controller")}
        joints = list(load_urdf(file).joint_names)
        nodes.append(Node(package="rbd_ros", executable="lockstep", name="lockstep", output="screen", parameters=[
            PathJoinSubstitution([FindPackageShare("rbd_ros"), "config", "lockstep.yaml"]), target,
            {"stepper": "gazebo" if lockstep else "none", "joints": joints, "world": value("world"),
             "steps": value("steps", int), "step": value("step", float), "settle": 0.002}]))
    return nodes


def node_residual():
    # gz_ros2_control does not measure effort: it is taken from the commands.
    return Node(package="rbd_ros", executable="residual", name="residual", output="screen", parameters=[
        PathJoinSubstitution([FindPackageShare("rbd_ros"), "config", "residual.yaml"]),
        {"robot_description_file": value("robot_description_file"), "effort_source": "effort"}, SIM_TIME])


def generate_launch_description():
    return LaunchDescription([
        arg_robot_description_file(), arg_params_file(), arg_interface(), arg_mode(), arg_controller(),
        arg_controllers_file(), arg_bridge_file(), arg_world_file(), arg_world(), arg_model(), arg_steps(), arg_step(),
        OpaqueFunction(function=launch_gazebo), node_create(), OpaqueFunction(function=node_robot_state_publisher),
        node_spawner(), OpaqueFunction(function=node_bridge), OpaqueFunction(function=nodes_control), node_residual()])
