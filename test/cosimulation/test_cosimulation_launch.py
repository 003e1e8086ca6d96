"""The launch files of co-simulation: their nodes become active, work together, and end cleanly."""
from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

import numpy as np
import pytest

GOAL = [0.5, 0.8, 0.0, -1.2, 0.0, 0.6, 0.0]
GZ_SIM = """
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo
from launch.substitutions import LaunchConfiguration


def generate_launch_description():
    args = LaunchConfiguration("gz_args")
    return LaunchDescription([DeclareLaunchArgument("gz_args"), LogInfo(msg=["GAZEBO ", args])])
"""
STAYS = """#!/bin/sh
trap 'exit 0' INT TERM
echo "ARGUMENTS of $(basename "$0"): $*"
while :; do sleep 0.1; done
"""
LAB = """<sdf version="1.10"><world name="lab"><gravity>0 0 -1.62</gravity>
<physics name="a"><max_step_size>0.002</max_step_size></physics></world></sdf>"""
ENDS = """#!/bin/sh
echo "ARGUMENTS of $(basename "$0"): $*"
"""


@pytest.mark.parametrize(("plant", "mode"), [
    ("simulator", "lockstep"), ("mujoco_plant", "lockstep"), ("simulator", "real_time"), ("mujoco_plant", "real_time")])
def test_simulation_moves_the_arm_where_it_is_told(launch, plant, mode):
    from sensor_msgs.msg import JointState
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    from rbd_interfaces.msg import JointEffort

    if plant == "mujoco_plant":
        pytest.importorskip("mujoco", reason="MuJoCo is not installed: scripts/setup --peers")
    started = launch("simulation.launch.py", f"plant:={plant}", f"mode:={mode}", "mass_scale:=1.02")
    states: list[JointState] = []
    started.node.create_subscription(JointState, "/joint_states", lambda message: states.__setitem__(
        slice(1), [message]), 1)
    trajectories = started.node.create_publisher(JointTrajectory, "/feedforward/joint_trajectory", 1)
    started.wait_for_active(f"/{plant}", "/feedforward", "/residual", *(["/lockstep"] if mode == "lockstep" else []))
    efforts = started.listen(JointEffort, "/feedforward/effort")
    started.wait_for("state and subscription", lambda: states and trajectories.get_subscription_count())
    started.wait_for("torque", lambda: efforts)    # before a joint state comes to feedforward, it refuses motions
    # one way for the torque: past node lockstep, or through it
    assert started.node.count_publishers(f"/{plant}/commands") == 1
    point = JointTrajectoryPoint(positions=GOAL)
    point.time_from_start.sec = 2
    trajectories.publish(JointTrajectory(joint_names=[f"joint_{i}" for i in range(1, 8)], points=[point]))
    started.wait_for("arm at its goal", lambda: np.allclose(states[0].position, GOAL, atol=0.02) and np.allclose(
        states[0].velocity, 0.0, atol=0.02))
    started.reports.clear()
    started.wait_for("residuals", lambda: "/residual" in started.reports)
    report = {item.key: item.value for item in started.reports["/residual"].values}
    assert int(report["residuals"]) > 1000
    if mode == "lockstep":
        started.wait_for("diagnostics of lockstep", lambda: "/lockstep" in started.reports)
        turns = {item.key: item.value for item in started.reports["/lockstep"].values}
        assert int(turns["cycles"]) > 1000 and turns["late_commands"] == turns["refused"] == "0"
    started.end()


@pytest.fixture
def gazebo(tmp_path, monkeypatch):
    """Packages that have the executables of ros_gz and ros2_control, which say what they were called with."""
    prefix = tmp_path / "prefix"
    index = prefix / "share" / "ament_index" / "resource_index" / "packages"
    index.mkdir(parents=True)
    executables = {"ros_gz_sim": {"create": ENDS}, "controller_manager": {"spawner": ENDS},
                   "ros_gz_bridge": {"parameter_bridge": STAYS},
                   "robot_state_publisher": {"robot_state_publisher": STAYS}}
    for package, scripts in executables.items():
        (index / package).touch()
        folder = prefix / "lib" / package
        folder.mkdir(parents=True)
        (prefix / "share" / package / "launch").mkdir(parents=True)
        for name, text in scripts.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
    (prefix / "share" / "ros_gz_sim" / "launch" / "gz_sim.launch.py").write_text(GZ_SIM)
    (prefix / "lab.sdf").write_text(LAB)
    (prefix / "gz").write_text(ENDS)
    (prefix / "gz").chmod(0o755)
    monkeypatch.setenv("PATH", f"{prefix}:{os.environ['PATH']}")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{prefix}:{os.environ.get('AMENT_PREFIX_PATH', '')}")
    return prefix


@pytest.mark.parametrize(("interface", "mode"), [
    ("ros2_control", "real_time"), ("bridge", "real_time"), ("ros2_control", "lockstep"), ("bridge", "lockstep")])
def test_gazebo_gets_what_it_needs(gazebo, launch, interface, mode):
    if mode == "lockstep" and importlib.util.find_spec("ros_gz_interfaces") is None:
        pytest.skip("ros_gz_interfaces is not importable: it comes with ros_gz")
    from rcl_interfaces.srv import GetParameters
    from rosgraph_msgs.msg import Clock
    from std_msgs.msg import Float64

    started = launch("gazebo.launch.py", f"interface:={interface}", f"mode:={mode}", "steps:=5", "headless:=true",
                     f"world_file:={gazebo / 'lab.sdf'}")
    passing = mode == "lockstep" or interface == "bridge"
    started.wait_for_active("/feedforward", "/residual", *(["/lockstep"] if passing else []))

    def parameters(node, *names):
        answer = started.call(GetParameters, f"/{node}/get_parameters", GetParameters.Request(names=list(names)))
        return [(value.string_value, list(value.string_array_value), value.integer_value, value.double_value,
                 list(value.double_array_value), value.bool_value) for value in answer.values]

    adapters, check, gravity, kp = parameters("feedforward", "adapters", "gravity_check", "gravity", "gains.kp")
    assert ("forward_command" in adapters[1]) == (not passing)
    assert not check[5] and gravity[4] == [0.0, 0.0, -1.62] and kp[4][0] > 0.0
    source, topic, gravity = parameters("residual", "effort_source", "effort_topic", "gravity")
    assert source[0] == "effort" and gravity[4] == [0.0, 0.0, -1.62]
    assert topic[0] == ("lockstep/effort" if passing else "feedforward/effort")
    if mode == "lockstep":    # no state may be lost
        reliability, depth = parameters("feedforward", *(
            f"qos_overrides./joint_states.subscription.{name}" for name in ("reliability", "depth")))
        assert (reliability[0], depth[2]) == ("reliable", 10)
    if passing:
        stepper, model, controller, joints, steps, step, world, receivers, activity = parameters(
            "lockstep", "stepper", "bridge_model", "controller", "joints", "steps", "step", "world", "receivers",
            "activity_topic")
        bridged = interface == "bridge"
        assert receivers[1] == ["gazebo_bridge" if bridged else "effort_controller"]
        assert activity[0] == ("" if bridged else "/joint_state_broadcaster/joint_states")
        assert stepper[0] == ("gazebo" if mode == "lockstep" else "none") and (steps[2], step[3]) == (5, 0.002)
        assert (model[0], controller[0]) == (("iiwa", "") if interface == "bridge" else ("", "effort_controller"))
        assert joints[1] == [f"joint_{i}" for i in range(1, 8)] and world[0] == "lab"
    if interface == "ros2_control":
        assert "ARGUMENTS of spawner" not in started.output()    # it waits for Gazebo's clock
        clock = started.node.create_publisher(Clock, "/clock", 10)
        started.wait_for("spawner", lambda: "ARGUMENTS of spawner" in started.output(), lambda: clock.publish(Clock()))
    elif mode == "real_time":
        assert "pause: false" not in started.output()    # it waits for torque
        force = started.node.create_publisher(Float64, "/model/iiwa/joint/joint_7/cmd_force", 10)
        started.wait_for("run", lambda: "pause: false" in started.output().split("ARGUMENTS of gz")[-1]
                         and started.output().count("[INFO] [gz-") == 4, lambda: force.publish(Float64()))
    folder = re.search(r"-file (\S+)/iiwa.urdf", started.output())[1]
    assert {file.suffix for file in Path(folder).iterdir()} == {".urdf", ".yaml"}
    output = started.end()
    assert not Path(folder).exists()
    said = {line.split("ARGUMENTS of ")[1].split(":")[0]: line for line in output.splitlines() if "ARGUMENTS" in line}
    runs = (interface, mode) == ("ros2_control", "real_time")    # elsewhere nothing would hold the arm
    assert f"GAZEBO -s {'-r ' if runs else ''}{gazebo / 'lab.sdf'}" in output
    assert "/world/lab/control@ros_gz_interfaces/srv/ControlWorld" in said["parameter_bridge"]
    assert "-name iiwa -world lab" in said["create"] and "link_0: fixed to the world" in output
    assert ("spawner" in said) == (interface == "ros2_control")
    if interface == "ros2_control":    # after the arm, and after the clock
        assert output.index("ARGUMENTS of create") < output.index("ARGUMENTS of spawner")
        assert "effort_controller joint_state_broadcaster --activate-as-group --param-file" in said["spawner"]
        assert f"--param-file {folder}/iiwa_controllers.yaml" in said["spawner"]


@pytest.mark.parametrize(("argument", "message"), [
    ("world_file:=nowhere.sdf", "there is no world file 'nowhere.sdf'"),
    ("robot_description_file:=/nowhere.urdf", "cannot read URDF")])
def test_what_cannot_work_in_gazebo_is_refused_before_anything_starts(gazebo, launch, argument, message):
    started = launch("gazebo.launch.py", argument)
    assert started.process.wait(60.0) == 1
    assert message in started.output() and "process started" not in started.output()
