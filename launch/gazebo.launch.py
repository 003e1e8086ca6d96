"""Starts an arm in Gazebo with node feedforward; needs ros_gz, and gz_ros2_control for interface:=ros2_control.

    ros2 launch rbd_ros gazebo.launch.py
    ros2 launch rbd_ros gazebo.launch.py robot_description_file:=/path/my_arm.urdf params_file:=/path/my_arm.yaml
    ros2 launch rbd_ros gazebo.launch.py interface:=bridge mode:=lockstep headless:=true

Any URDF works: what Gazebo needs is added, as by `rbd gazebo`. docs/cosimulation.md describes the delays.
"""
import shutil
import tempfile
from pathlib import Path

from launch.actions import (
    DeclareLaunchArgument, EmitEvent, ExecuteProcess, IncludeLaunchDescription, LogInfo, OpaqueFunction,
    RegisterEventHandler, TimerAction,
)
from launch.event_handlers import OnProcessExit, OnShutdown
from launch.events import Shutdown
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription
from rbd_ros import RbdError, sample_path
from rbd_ros.nodes.base.launching import config, typed
from rbd_ros.runtime.cosimulation.gazebo_files import write_files
from rbd_ros.runtime.cosimulation.gazebo_world import read_world

BRIDGE = "gazebo_bridge"
SIM_TIME = {"use_sim_time": True}
PATIENCE = 60.0    # s until a warning that the arm has not been spawned


def arg_robot_description_file():
    return DeclareLaunchArgument("robot_description_file", default_value=str(sample_path("iiwa")),
                                 description="URDF file of the arm; plugins for Gazebo are added to a copy.")


def arg_params_file():
    return DeclareLaunchArgument(
        "params_file", default_value=config("gazebo.yaml"),
        description="YAML file of parameters of nodes feedforward and residual, such as gains, all under /**.")


def arg_interface():
    return DeclareLaunchArgument(
        "interface", default_value="ros2_control", choices=["ros2_control", "bridge"],
        description="How torque gets into Gazebo: through controllers in gz_ros2_control (ros2_control), or through "
                    "topics of ros_gz_bridge (bridge).")


def arg_mode():
    return DeclareLaunchArgument(
        "mode", default_value="real_time", choices=["real_time", "lockstep"],
        description="Gazebo runs freely (real_time), or starts paused and takes turns with the controller (lockstep).")


def arg_controller():
    return DeclareLaunchArgument(
        "controller", default_value="effort_controller",
        description="Controller (forward_command_controller with effort) that gets the torque on <controller>/commands "
                    "with interface ros2_control.")


def arg_world_file():
    return DeclareLaunchArgument(
        "world_file", default_value=config("gazebo_world.sdf"),
        description="SDF file of the world that Gazebo loads: a path, or the name of one of Gazebo's own, such as "
                    "empty.sdf. World name, step and gravity are taken from it.")


def arg_model():
    return DeclareLaunchArgument("model", default_value="",
                                 description="Name of the arm in the world; empty: the robot's own.")


def arg_headless():
    return DeclareLaunchArgument("headless", default_value="false", choices=["true", "false"],
                                 description="Start Gazebo without a window.")


def arg_steps():
    return DeclareLaunchArgument("steps", default_value="2",
                                 description="Physics steps between two commands in mode lockstep.")


def start(context):
    """All processes; impossible arguments are rejected before the first one starts."""
    given = {name: LaunchConfiguration(name).perform(context) for name in (
        "robot_description_file", "interface", "mode", "controller", "world_file", "model", "headless", "steps")}
    folder = Path(tempfile.mkdtemp(prefix="rbd_gazebo_"))
    try:
        world = read_world(given["world_file"])
        files = write_files(given["robot_description_file"], folder, given["interface"], world=world.name,
                            model=given["model"], step=world.step, controller=given["controller"],
                            states=given["mode"] == "lockstep")
    except RbdError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise RuntimeError(f"gazebo.launch.py: {error}") from None
    create = node_create(files, world)
    remove = OnShutdown(on_shutdown=lambda event, context: shutil.rmtree(folder, ignore_errors=True))
    return [*(LogInfo(msg=f"for Gazebo: {note}") for note in files.notes), RegisterEventHandler(remove),
            gazebo(given, world), node_robot_state_publisher(files), node_bridge(files, world), create,
            *after(create, given, files, world)]


def gazebo(given, world):
    file = PathJoinSubstitution([FindPackageShare("ros_gz_sim"), "launch", "gz_sim.launch.py"])
    options = ("-s " if given["headless"] == "true" else "") + ("-r " if running(given) else "")
    return IncludeLaunchDescription(PythonLaunchDescriptionSource(file),
                                    launch_arguments=[("gz_args", f"{options}{world.path}")])


def running(given):
    """Whether Gazebo runs from the start: if controllers hold the joints until torque comes."""
    return given["mode"] == "real_time" and given["interface"] == "ros2_control"


def node_create(files, world):
    return Node(package="ros_gz_sim", executable="create", output="screen", arguments=[
        "-file", str(files.description), "-name", files.model, "-world", world.name])


def after(create, given, files, world):
    """Actions after the arm was spawned, or shutdown on failure.

    A paused Gazebo makes one step before the controller starts: a stamp of zero means no stamp to it. Then, with
    ros2_control, the controllers come, as soon as there is a clock. With bridge in real time, time runs as soon as
    there is torque for the last joint, because nothing else holds the arm.
    """
    spawned = []
    control = [*nodes_control(given, files, world), node_residual(given, files, world)]
    if given["interface"] == "ros2_control":
        awaited, then = ("/clock", "rosgraph_msgs/msg/Clock"), [node_spawner(given, files)]
    else:
        awaited = f"/model/{files.model}/joint/{files.joints[-1]}/cmd_force", "std_msgs/msg/Float64"
        then = [] if given["mode"] == "lockstep" else [world_control(world, "pause: false")]
    # a daemon would outlive the launch
    first = ExecuteProcess(cmd=["ros2", "topic", "echo", "--no-daemon", "--once", *awaited])
    step = world_control(world, "pause: true, multi_step: 1")
    control += [first] if then else []

    def on_exit(event, context):
        spawned.append(event.returncode)
        if event.returncode:
            return [LogInfo(msg=f"gazebo.launch.py: Gazebo did not take {files.description}"),
                    EmitEvent(event=Shutdown(reason="the arm is not in Gazebo"))]
        return control if running(given) else [step]

    def late(context):
        return [] if spawned else [LogInfo(
            msg=f"gazebo.launch.py: no answer from /world/{world.name}/create after {PATIENCE:g} s: does Gazebo run?")]

    return [RegisterEventHandler(OnProcessExit(target_action=create, on_exit=on_exit)),
            RegisterEventHandler(OnProcessExit(target_action=step, on_exit=control)),
            RegisterEventHandler(OnProcessExit(
                target_action=first, on_exit=lambda event, context: [] if event.returncode else then)),
            TimerAction(period=PATIENCE, actions=[OpaqueFunction(function=late)])]


def world_control(world, request):
    return ExecuteProcess(output="screen", cmd=[
        "gz", "service", "-s", f"/world/{world.name}/control", "--reqtype", "gz.msgs.WorldControl", "--reptype",
        "gz.msgs.Boolean", "--timeout", "10000", "--req", request])


def node_robot_state_publisher(files):
    description = {"robot_description": ParameterValue(files.description.read_text(), value_type=str)}
    return Node(package="robot_state_publisher", executable="robot_state_publisher", output="screen",
                parameters=[description, SIM_TIME])


def node_spawner(given, files):
    # As a group: states come when the torque acts, not before.
    return Node(package="controller_manager", executable="spawner", output="screen", parameters=[SIM_TIME], arguments=[
        given["controller"], "joint_state_broadcaster", "--activate-as-group", "--param-file", str(files.controllers),
        "--controller-manager-timeout", "60", "--switch-timeout", "60"])


def node_bridge(files, world):
    """Bridge of clock and services; without gz_ros2_control also joint states and forces."""
    return Node(package="ros_gz_bridge", executable="parameter_bridge", name=BRIDGE, output="screen",
                arguments=[f"/world/{world.name}/control@ros_gz_interfaces/srv/ControlWorld"],
                parameters=[{"config_file": str(files.bridge)}, SIM_TIME])


def nodes_control(given, files, world):
    """Node feedforward, and node lockstep if it forwards the efforts, with or without steps."""
    lockstep, bridge = given["mode"] == "lockstep", given["interface"] == "bridge"
    outputs = {"adapters": [""]} if lockstep or bridge else {
        "adapters": ["forward_command"], "forward_command.controller": given["controller"]}
    patient = {"state_timeout": 10.0, "feedback.max_age": float("inf"), "ramp_in": 0.0, "ramp_out": 0.0,
               "qos_overrides./joint_states.subscription.reliability": "reliable",
               "qos_overrides./joint_states.subscription.depth": 10}
    # Gazebo measures no effort: gravity_check would compare with zero.
    nodes = [Node(package="rbd_ros", executable="feedforward", name="feedforward", output="screen", parameters=[
        config("feedforward.yaml"), *common(files, world), outputs, {"gravity_check": False}, SIM_TIME,
        *([patient] if lockstep else [])])]
    if lockstep or bridge:
        target = {"controller": "", "bridge_model": files.model, "receivers": [BRIDGE]} if bridge else {
            "controller": given["controller"], "receivers": [given["controller"].split("/")[-1]],
            "activity_topic": "/joint_state_broadcaster/joint_states"}
        nodes.append(Node(package="rbd_ros", executable="lockstep", name="lockstep", output="screen", parameters=[
            config("lockstep.yaml"), target, SIM_TIME,
            {"stepper": "gazebo" if lockstep else "none", "joints": list(files.joints), "world": world.name,
             **typed("steps", int), "step": world.step, "settle": 0.01}]))
    return nodes


def common(files, world):
    return [LaunchConfiguration("params_file"),
            {"robot_description_file": str(files.description), "gravity": list(world.gravity)}]


def node_residual(given, files, world):
    # Gazebo does not measure effort: it is taken from the commands, those that were passed on.
    passing = given["mode"] == "lockstep" or given["interface"] == "bridge"
    source = {"effort_source": "effort", **({"effort_topic": "lockstep/effort"} if passing else {})}
    if (given["interface"], given["mode"]) == ("ros2_control", "lockstep"):    # it writes before the step after next
        source["effort_delay"] = world.step
    return Node(package="rbd_ros", executable="residual", name="residual", output="screen", parameters=[
        config("residual.yaml"), *common(files, world), source, SIM_TIME])


def generate_launch_description():
    return LaunchDescription([
        arg_robot_description_file(), arg_params_file(), arg_interface(), arg_mode(), arg_controller(),
        arg_world_file(), arg_model(), arg_headless(), arg_steps(), OpaqueFunction(function=start)])
