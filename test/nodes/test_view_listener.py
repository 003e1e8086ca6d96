"""`rbd view --live` and a running node: what it sees, that it stops it, and that it says when it is gone."""

import time

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from harness import NodeProcess, Peer
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd
from rbd_ros.core.errors import RbdError
from rbd_ros.nodes.watching import view_listener
from rbd_ros.nodes.watching.view_listener import ViewListener
from rbd_ros.runtime.inputs.robot_description import LONGEST
from rbd_ros.runtime.observed_robot import LOST, ObservedRobot

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
NAMES, Q = ["shoulder", "elbow"], [0.3, -0.7]


def test_a_node_is_seen_stopped_reset_and_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(view_listener, "PATIENCE", 60.0)
    model = rbd.sample("two_link")
    process = NodeProcess(tmp_path, "feedforward", robot_description_file=rbd.sample_path("two_link"))
    listener = ViewListener("/feedforward")
    robot, said = ObservedRobot(model, "/feedforward", model.neutral()), []
    try:
        with Peer() as peer:
            def seen():
                peer.send_state(NAMES, Q, [0.0, 0.0], [1.5, 0.5])
                listener.poll(robot)
                return robot.at(time.monotonic())

            def until(condition, what):
                peer.spin_until(lambda: condition(seen()), what)

            until(lambda now: now.mode == "waiting" and not now.lost and not now.silent and now.rate_hz > 0.0, "report")
            until(lambda now: (now.commanded == now.commanded).all(), "commanded torque")
            now = seen()
            assert now.q.tolist() == Q and now.measured.tolist() == [1.5, 0.5] and now.latency_us[0] > 0.0
            assert "nobody" not in listener.emergency_stop()
            until(lambda now: now.mode == "stopped", "stop")
            listener.reset(said.append)
            until(lambda now: now.mode == "waiting" and said, "reset")
            assert said == ["released, ramping in while active"]
            before = time.monotonic()
            until(lambda now: now.mode == "waiting" and time.monotonic() - before > 1.0, "no stop from before")
            assert process.end() == 0
            until(lambda now: bool(now.silent), "loss of the node")
            now = seen()
            assert not now.lost and now.mode == "" and not (now.commanded == now.commanded).any()
            listener.reset(said.append)
            assert said[-1] == "there is no service /feedforward/reset"
            assert "nobody listens" in listener.emergency_stop()
        while not robot.at(time.monotonic()).lost:
            listener.poll(robot)
    finally:
        process.kill()
        listener.close()


def test_a_stop_is_heard_by_a_node_that_starts_later(tmp_path):
    listener = ViewListener("/feedforward")
    listener.emergency_stop()
    process = NodeProcess(tmp_path, "feedforward", robot_description_file=rbd.sample_path("two_link"))
    robot = ObservedRobot(rbd.sample("two_link"), "/feedforward", rbd.sample("two_link").neutral())
    try:
        with Peer() as peer:
            def mode():
                listener.poll(robot)
                return robot.at(time.monotonic()).mode

            peer.spin_until(lambda: mode() == "stopped", "stop", lambda: peer.send_state(NAMES, Q, [0.0, 0.0]))
    finally:
        process.kill()
        listener.close()


def test_what_a_node_is_to_follow_is_seen():
    """A streamed reference, then a trajectory: where the ghost is."""
    model = rbd.sample("two_link")
    listener = ViewListener("/feedforward")
    robot = ObservedRobot(model, "/feedforward", model.neutral())
    try:
        with Peer() as peer:
            publisher = peer.node.create_publisher(JointTrajectory, "feedforward/joint_trajectory", 1)
            point = JointTrajectoryPoint(positions=[-0.6, 0.4], time_from_start=Duration(nanosec=100_000_000))

            def seen(expected):
                peer.send_state(NAMES, Q)
                robot.on_report(time.monotonic(), "/feedforward", "active", {"mode": "running"})
                listener.poll(robot)
                reference = robot.at(time.monotonic()).reference
                return reference is not None and np.allclose(reference, expected)

            peer.spin_until(lambda: seen([0.35, -0.65]), "reference", lambda: peer.send_reference(NAMES, [0.35, -0.65]))
            peer.spin_until(lambda: publisher.get_subscription_count() > 0, "subscription")
            publisher.publish(JointTrajectory(joint_names=NAMES[::-1], points=[point]))
            peer.spin_until(lambda: seen([0.4, -0.6]), "trajectory")
    finally:
        listener.close()


def test_the_target_of_a_link_is_seen_and_goals_reach_the_node(tmp_path):
    model = rbd.sample("two_link")
    process = NodeProcess(tmp_path, "cartesian", robot_description_file=rbd.sample_path("two_link"))
    listener, pose = ViewListener("/cartesian"), rbd.forward_kinematics(model, Q)[-1]
    robot = ObservedRobot(model, "/cartesian", model.neutral())
    goal = pose.copy()
    goal[0, 3] += 0.03
    try:
        with Peer("cartesian") as peer:
            def target():
                peer.send_state(NAMES, Q, [0.0, 0.0])
                listener.poll(robot)
                return robot.at(time.monotonic()).target

            def sees(expected):
                return (found := target()) is not None and np.allclose(found, expected, atol=1e-3)

            peer.spin_until(lambda: sees(pose), "target")
            peer.spin_until(lambda: sees(goal), "target at the goal", lambda: listener.go_to(goal))
    finally:
        process.kill()
        listener.close()
    assert robot.at(time.monotonic() + LOST + 1.0).target is None


@pytest.mark.parametrize("node", ["feedforward", "/", "/a b", "/feedforward/"])
def test_names_that_are_none_are_said(node):
    with pytest.raises(RbdError, match="--node"):
        ViewListener(node)


def test_a_missing_description_is_said():
    listener = ViewListener("/feedforward")
    try:
        with pytest.raises(RbdError, match="no robot description on /robot_description"):
            listener.description(patience=0.1)
    finally:
        listener.close()


@pytest.mark.parametrize("content", ["path", "xacro arguments", "package://arm/arm.urdf.xacro", "", "  ", "too long"])
def test_only_xml_comes_in_as_a_description(tmp_path, content):
    """Who may publish does not choose files: a xacro file, once expanded, runs Python."""
    file = tmp_path / "arm.urdf.xacro"
    file.write_text('<robot name="r"><link name="base"/></robot>')
    data = {"path": str(file), "xacro arguments": f"{file} a:=<b>", "too long": f"<robot>{' ' * LONGEST}</robot>"}
    listener = ViewListener("/feedforward")
    try:
        with Peer() as peer:
            publisher = peer.node.create_publisher(String, "/robot_description", LATCHED)
            publisher.publish(String(data=data.get(content, content)))
            with pytest.raises(RbdError, match="at most" if content == "too long" else "is no XML"):
                listener.description(patience=5.0)
            text = rbd.sample_path("two_link").read_text()
            publisher.publish(String(data="\ufeff\n" + text))
            assert listener.description(patience=60.0).endswith(text)
    finally:
        listener.close()


def test_large_messages_are_left_out():
    listener, model = ViewListener("/feedforward"), rbd.sample("two_link")
    robot = ObservedRobot(model, "/feedforward", model.neutral())
    try:
        with Peer() as peer:
            def seen(extra=()):
                peer.send_state([*NAMES, *extra], [*Q, *(0.0 for _ in extra)])
                listener.poll(robot)
                return robot.at(time.monotonic()).q

            peer.spin_until(lambda: seen() is not None, "state")
            listener._states.most = 64
            taken = robot._state_at
            for _ in range(50):
                seen(["x" * 100])
            assert robot._state_at == taken
    finally:
        listener.close()
