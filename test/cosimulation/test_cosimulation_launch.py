"""The launch files of co-simulation: their nodes become active, work together, and end cleanly."""
from __future__ import annotations

import importlib.util
import os
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
ENDS = """#!/bin/sh
echo "ARGUMENTS of $(basename "$0"): $*"
"""


@pytest.mark.parametrize(("plant", "mode"), [
    ("simulator", "lockstep"), ("mujoco_plant", "lockstep"), ("simulator", "real_time"), ("mujoco_plant", "real_time")])
def test_simulation_moves_the_arm_where_it_is_told(launch, plant, mode):
    from sensor_msgs.msg import JointState
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    if plant == "mujoco_plant":
        pytest.importorskip("mujoco", reason="MuJoCo is not installed: scripts/setup --peers")
    started = launch("simulation.launch.py", f"plant:={plant}", f"mode:={mode}", "mass_scale:=1.02")
    states: list[JointState] = []
    started.node.create_subscription(JointState, "/joint_states", lambda message: states.__setitem__(
        slice(1), [message]), 1)
    trajectories = started.node.create_publisher(JointTrajectory, "/feedforward/joint_trajectory", 1)
    started.wait_for_active(f"/{plant}", "/feedforward", "/residual", *(["/lockstep"] if mode == "lockstep" else []))
    started.wait_for("state and subscription", lambda: states and trajectories.get_subscription_count())
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
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{prefix}:{os.environ.get('AMENT_PREFIX_PATH', '')}")
    return prefix


@pytest.mark.parametrize(("interface", "mode"), [
    ("ros2_control", "real_time"), ("bridge", "real_time"), ("ros2_control", "lockstep"), ("bridge", "lockstep")])
def test_gazebo_gets_what_it_needs(gazebo, launch, interface, mode):
    if mode == "lockstep" and importlib.util.find_spec("ros_gz_interfaces") is None:
        pytest.skip("ros_gz_interfaces is not importable: it comes with ros_gz")
    from rcl_interfaces.srv import GetParameters

    started = launch("gazebo.launch.py", f"interface:={interface}", f"mode:={mode}", "world:=lab", "steps:=5")
    passing = mode == "lockstep" or interface == "bridge"
    started.wait_for_active("/feedforward", "/residual", *(["/lockstep"] if passing else []))

    def parameters(node, *names):
        answer = started.call(GetParameters, f"/{node}/get_parameters", GetParameters.Request(names=list(names)))
        return [(value.string_value, list(value.string_array_value), value.integer_value) for value in answer.values]

    (_, adapters, _), = parameters("feedforward", "adapters")
    assert ("forward_command" in adapters) == (not passing)
    assert parameters("residual", "effort_source")[0][0] == "effort"
    if passing:
        stepper, model, controller, joints, steps = parameters("lockstep", "stepper", "bridge_model", "controller",
                                                               "joints", "steps")
        assert stepper[0] == ("gazebo" if mode == "lockstep" else "none") and steps[2] == 5
        assert (model[0], controller[0]) == (("iiwa", "") if interface == "bridge" else ("", "effort_controller"))
        assert joints[1] == [f"joint_{i}" for i in range(1, 8)]
    output = started.end()
    said = {line.split("ARGUMENTS of ")[1].split(":")[0]: line for line in output.splitlines() if "ARGUMENTS" in line}
    assert ("GAZEBO -r empty.sdf" in output) == (mode == "real_time") and "empty.sdf" in output
    assert "/world/lab/control@ros_gz_interfaces/srv/ControlWorld" in said["parameter_bridge"]
    assert ("/clock@rosgraph_msgs" in said["parameter_bridge"]) == (interface == "ros2_control")
    assert "-name iiwa -world lab" in said["create"]
    assert ("spawner" in said) == (interface == "ros2_control")
    if interface == "ros2_control":
        assert "joint_state_broadcaster effort_controller --param-file" in said["spawner"]
        assert Path(said["spawner"].split("--param-file ")[1].split()[0]).is_file()
