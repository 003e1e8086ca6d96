"""An empty trajectory in motion, over DDS, with every shipped configuration: the arm comes to rest where it was."""
from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import yaml
from harness import RELIABLE, ROOT, NodeProcess, Peer
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd
from rbd_ros.runtime.rehearsal import rehearse

pytest.importorskip("pinocchio", reason="arms are those of example-robot-data: scripts/setup --peers")
PATIENT = {"wait_for_command": 5.0, "real_time_factor": 1.0}    # a busy machine slows down both sides alike
CALM = {"state_timeout": 5.0, "feedback.max_age": float("inf"), "feedback.min_rate": 0.0}


WITHOUT = {    # files of config/ that make no torque: nothing of theirs can be stopped by an empty trajectory
    "generic_annotator": "node effort_annotator rejects it, its controller holds (test_effort_annotator_node.py)",
    "dynamics_server": "services", "effort_annotator": "as generic_annotator", "motion_planner": "plans motions",
    "lockstep": "passes on the torque of node feedforward", "residual": "compares",
    "observer": "listens", "mujoco_plant": "a robot",
    "simulator": "a robot", "gazebo_controllers": "of the controller manager",
    "sea_example.actuation": "drives, here with flatness", "feedforward": "the defaults, without gains",
    "float_check": "takes no trajectories: test_float_check.py",
    "cartesian": "takes poses, no trajectories: test_cartesian_node.py"}
DRIVES = ROOT / "config" / "sea_example.actuation.yaml"
STIFF = {"motor_gains.kp": [600.0, 250.0, 3e-4], "motor_gains.kd": [25.0, 8.0, 1e-5], "state_rate": 250.0}


def section(file, node):
    """Parameters of this node in a shipped file."""
    tree = yaml.safe_load((ROOT / "config" / f"{file}.yaml").read_text())
    return {key: value for name in ("/**", node)
            for key, value in tree.get(name, {}).get("ros__parameters", {}).items()}


def simulated(file, **feedforward):
    """The iiwa in node simulator, with what the launch file adds to the file: of Gazebo only the arm is another."""
    robot = {key: value for key, value in section(file, "simulator").items() if not key.startswith(("gains", "feed"))}
    given = {"adapters": ["forward_command"], "forward_command.controller": "simulator", **section(file, "feedforward")}
    return Path(rbd.sample_path("iiwa")).read_text(), {**robot, "mass_scale": 1.05}, {**given, **feedforward}


def configuration(name):
    """Description, parameters of simulator and of the node with the torque."""
    if name == "demo":    # and the rate limit that once lost the arm
        return simulated(name, **{"effort_limits.rate": [500.0]})
    if name in ("simulation", "gazebo"):
        return simulated(name)
    if name == "flatness":
        elastic = {"actuation_file": str(DRIVES)}
        return (Path(rbd.sample_path("two_link")).read_text(),
                {**elastic, "publish_rate": 250.0, "initial_position": [0.3, -0.5], "mass_scale": 1.05},
                {**section(name, name), **elastic, **STIFF})
    found = rehearse(ROOT / "config" / f"{name}.yaml")
    return found.description, {**found.robot, "mass_scale": 1.05}, {**found.given, **found.replaced}


NAMES = ("demo", "simulation", "gazebo", "flatness", "ur", "franka", "iiwa_lbr", "openarm", "big_yam", "z1",
         "generic_effort", "generic_jtc", "generic_mit")


def test_every_configuration_with_torque_is_stopped():
    assert {path.stem for path in (ROOT / "config").glob("*.yaml")} == {*NAMES, *WITHOUT}
    annotator = section("generic_annotator", "feedforward")
    assert "adapters" not in annotator and not any(key.startswith("gains") for key in annotator)


@pytest.mark.parametrize("name", NAMES)
def test_the_arm_rests_where_it_was_stopped(tmp_path, name):
    description, simulator, torque = configuration(name)
    node = "flatness" if name == "flatness" else "feedforward"
    urdf = tmp_path / "robot.urdf"
    urdf.write_text(description)
    processes = []
    try:
        for each, values in (("simulator", {**simulator, **PATIENT}), (node, {**torque, **CALM})):
            file = tmp_path / f"{each}.yaml"
            file.write_text(yaml.safe_dump({"/**": {"ros__parameters": {
                **values, "robot_description_file": str(urdf)}}}))
            processes.append(NodeProcess(tmp_path, each, ["--params-file", str(file), *(
                ["-r", "simulator/effort_commands:=flatness/motor_effort"] if node == "flatness" else [])]))
        with Peer(node) as peer:
            states = []
            peer.node.create_subscription(JointState, "joint_states", states.append, RELIABLE)
            peer.spin_until(lambda: states and float(peer.diagnostics.get("cycles", 0)) > 100, "answered states")
            publisher = peer.node.create_publisher(JointTrajectory, f"{node}/joint_trajectory", RELIABLE)
            peer.spin_until(lambda: publisher.get_subscription_count() == 1, "the node listens")
            start = states[-1]
            there = [q + (0.4 if abs(q) < 0.1 else -0.4 * np.sign(q)) for q in start.position]
            places, begun = itertools.cycle((there, start.position)), [-np.inf]

            def move():    # to and fro: this process may have stood still meanwhile
                if seconds(states[-1]) > begun[-1] + 4.0:
                    moving = JointTrajectoryPoint(positions=next(places), velocities=[0.0] * len(start.name),
                                                  accelerations=[0.0] * len(start.name))
                    moving.time_from_start.sec = 2
                    publisher.publish(JointTrajectory(joint_names=start.name, points=[moving]))
                    begun.append(seconds(states[-1]))

            peer.spin_until(lambda: np.abs(states[-1].velocity).max() > 0.2 and seconds(states[-1]) > begun[-1] + 1.0,
                            "motion", repeat=move)
            publisher.publish(JointTrajectory(joint_names=start.name))
            place, stopped = np.array(states[-1].position), seconds(states[-1])
            peer.spin_until(lambda: seconds(states[-1]) > stopped + 3.0, "time")
            fastest = max(np.abs(each.velocity).max() for each in states if seconds(each) > stopped)
            assert np.abs(states[-1].position - place).max() < 0.1 + 0.1 * fastest
            assert np.abs(states[-1].velocity).max() < 0.15 and fastest < 1.5
    finally:
        for process in processes:
            process.kill()


def seconds(state):
    return state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec

