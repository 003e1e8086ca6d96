"""An empty trajectory in motion, over DDS, with every shipped configuration: the arm comes to rest where it was."""
from __future__ import annotations

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


def demo():
    """What demo.launch.py starts, and the rate limit that once lost the arm."""
    file = yaml.safe_load((ROOT / "config" / "demo.yaml").read_text())
    both, simulator, feedforward = (file[name]["ros__parameters"] for name in ("/**", "simulator", "feedforward"))
    text = Path(rbd.sample_path("iiwa")).read_text()
    return text, {**both, **simulator, "mass_scale": 1.05}, {**both, **feedforward, "effort_limits.rate": [500.0]}


def configuration(name):
    """Description, parameters of simulator and of feedforward."""
    if name == "demo":
        return demo()
    found = rehearse(ROOT / "config" / f"{name}.yaml")
    return found.description, {**found.robot, "mass_scale": 1.05}, {**found.given, **found.replaced}


@pytest.mark.parametrize("name", ["demo", "ur", "franka", "iiwa_lbr", "generic_effort", "generic_jtc"])
def test_the_arm_rests_where_it_was_stopped(tmp_path, name):
    description, simulator, feedforward = configuration(name)
    urdf = tmp_path / "robot.urdf"
    urdf.write_text(description)
    files = {}
    for node, values in (("simulator", {**simulator, **PATIENT}), ("feedforward", {**feedforward, **CALM})):
        files[node] = tmp_path / f"{node}.yaml"
        files[node].write_text(yaml.safe_dump({"/**": {"ros__parameters": {
            **values, "robot_description_file": str(urdf)}}}))
    processes = [NodeProcess(tmp_path, node, ["--params-file", str(file)]) for node, file in files.items()]
    try:
        with Peer() as peer:
            states = []
            peer.node.create_subscription(JointState, "joint_states", states.append, RELIABLE)
            peer.spin_until(lambda: states and float(peer.diagnostics.get("cycles", 0)) > 100, "answered states")
            publisher = peer.node.create_publisher(JointTrajectory, "feedforward/joint_trajectory", RELIABLE)
            peer.spin_until(lambda: publisher.get_subscription_count() == 1, "the node listens")
            start = states[-1]
            moving = JointTrajectoryPoint(positions=[q + (0.4 if abs(q) < 0.1 else -0.4 * np.sign(q))
                                                     for q in start.position],
                                          velocities=[0.0] * len(start.name), accelerations=[0.0] * len(start.name))
            moving.time_from_start.sec = 2
            publisher.publish(JointTrajectory(joint_names=start.name, points=[moving]))
            begin = seconds(start)
            peer.spin_until(lambda: np.abs(states[-1].velocity).max() > 0.2 and seconds(states[-1]) > begin + 1.0,
                            "motion")
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

