"""Outliers, leaping stamps and trajectories out of reach, over DDS: no effort that is published shows them."""
from __future__ import annotations

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from harness import RELIABLE, NodeProcess, Peer
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd

NAMES, Q = ["shoulder", "elbow"], np.array([0.3, -0.7])
REST = [0.0, 0.0]
PARAMETERS = {"ramp_in": 0.0, "state_timeout": 2.0, "reference_timeout": 0, "feedforward": "gravity",
              "gains__kp": 100.0, "gains__kd": 10.0, "gravity_check": False,
              "feedback__max_age": ".inf", "feedback__min_rate": 0.0}    # however long a machine lets a state wait
FAR = np.array([100.0, 0.0])    # farther than the arm moves while a starved machine answers nothing


@pytest.fixture
def peer(tmp_path, private_domain):
    process = NodeProcess(tmp_path, "feedforward", robot_description_file=str(rbd.sample_path("two_link")),
                          **PARAMETERS)
    try:
        with Peer() as peer:
            peer.gravity = rbd.gravity_effort(rbd.sample("two_link"), Q)
            peer.command = peer.gravity + 100.0 * np.array([0.01, -0.01])
            peer.answer_close_to(peer.command, NAMES, Q, REST,
                                 repeat=lambda: peer.send_reference(NAMES, Q + np.array([0.01, -0.01])))
            yield peer
        assert process.end() == 0 and "Traceback" not in process.output()
    finally:
        process.kill()


def stays(peer, disturb, key):
    """The command is every effort while each 3rd message is a disturbance, until it is counted five times."""
    before, count = int(peer.diagnostics.get(key, 0)), 0
    peer.efforts.clear()

    def send():
        nonlocal count
        count += 1
        if count % 3:
            peer.send_state(NAMES, Q, REST)
        else:
            disturb()

    peer.spin_until(lambda: int(peer.diagnostics.get(key, 0)) >= before + 5, key, send)
    assert len(peer.efforts) > 5
    for effort in peer.efforts:
        np.testing.assert_allclose(effort.effort, peer.command, rtol=0, atol=1e-9)
    assert peer.diagnostics["clock_restarts"] == peer.diagnostics["position_restarts"] == "0"
    assert peer.diagnostics["rejected_stamp_backwards"] == "0"


def ahead(peer, seconds):
    stamp = peer.stamp()
    ns = stamp.sec * 1_000_000_000 + stamp.nanosec + round(seconds * 1e9)
    return Time(sec=ns // 1_000_000_000, nanosec=ns % 1_000_000_000)


DISTURBANCES = {
    "velocity": (lambda peer: peer.send_state(NAMES, Q, [400.0, 0.0]), "rejected_implausible"),
    "position": (lambda peer: peer.send_state(NAMES, Q + 2.0 * FAR, REST), "rejected_implausible"),
    "stamp": (lambda peer: peer.send_state(NAMES, Q, REST, stamp=ahead(peer, 0.9)), "rejected_stamp_leap"),
    "malformed, stamp ahead": (lambda peer: peer.send_state(NAMES, Q, REST, [1.0], stamp=ahead(peer, 5.0)),
                               "rejected_wrong_size"),
    "trajectory": (lambda peer: peer.trajectories.publish(JointTrajectory(joint_names=NAMES, points=[
        JointTrajectoryPoint(positions=list(Q + 0.8)),
        JointTrajectoryPoint(positions=list(Q), time_from_start=Duration(sec=3))])), "rejected_bad_trajectory")}


@pytest.mark.parametrize("disturbance", DISTURBANCES)
def test_the_effort_stays(peer, disturbance):
    disturb, key = DISTURBANCES[disturbance]
    peer.trajectories = peer.node.create_publisher(JointTrajectory, "feedforward/joint_trajectory", RELIABLE)
    peer.spin_until(lambda: peer.trajectories.get_subscription_count() > 0, "subscription")
    goal = np.array([0.02, -0.02])
    near = JointTrajectory(joint_names=NAMES, points=[
        JointTrajectoryPoint(positions=list(Q + goal), time_from_start=Duration(nanosec=20_000_000))])
    peer.command = peer.gravity + 100.0 * goal
    peer.answer_close_to(peer.command, NAMES, Q, REST, repeat=lambda: peer.trajectories.publish(near))
    heard = len(peer.efforts)    # trajectories on their way are over, and period and pace of the states are known
    peer.spin_until(lambda: len(peer.efforts) > heard + 100, "efforts", lambda: peer.send_state(NAMES, Q, REST))
    stays(peer, lambda: disturb(peer), key)


def test_a_robot_that_is_elsewhere(peer):
    """As after the reset of a simulation: gravity there, and the reference of before is forgotten."""
    for _ in range(20):
        peer.answer(NAMES, Q, REST)
    away = Q + FAR
    peer.answer_close_to(rbd.gravity_effort(rbd.sample("two_link"), away), NAMES, away, REST)
    peer.spin_until(lambda: peer.diagnostics.get("position_restarts") == "1", "count",
                    lambda: peer.send_state(NAMES, away, REST))
    assert peer.diagnostics["mode"] == "waiting"
