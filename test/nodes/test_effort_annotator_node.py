"""The effort annotator as users have it: trajectories in, the same with efforts out, limits in log and diagnostics."""
from __future__ import annotations

import numpy as np
from harness import RELIABLE, NodeProcess, Peer
from support.arm import NAMES, arm
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd

Q = np.array([[0.0, 0.0], [0.4, -0.2], [0.6, 0.3]])
V = np.array([[0.0, 0.0], [0.5, 0.1], [0.0, 0.0]])
A = np.array([[1.0, 0.5], [-0.5, 2.0], [-1.0, 0.0]])

URDF = """<robot name="arm"><link name="base"/>{links}
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="9" velocity="3"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.4 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="50" velocity="3"/></joint></robot>"""
LINK = """<link name="{}"><inertial><origin xyz="0.2 0 0"/><mass value="{}"/>
  <inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>"""


def trajectory(q=Q, v=V, a=A, names=NAMES):
    message = JointTrajectory(joint_names=names)
    message.header.frame_id = "kept"
    for i in range(len(q)):
        point = JointTrajectoryPoint(positions=list(q[i]), velocities=list(v[i]), accelerations=list(a[i]))
        point.time_from_start.nanosec = 300_000_000 * i
        message.points.append(point)
    return message


def test_trajectories_get_efforts(tmp_path, private_domain):
    urdf = tmp_path / "robot.urdf"
    urdf.write_text(URDF.format(links=LINK.format("upper", 2) + LINK.format("lower", 1)))
    model = arm().with_(damping=0.0, friction=0.0)
    expected = rbd.inverse_dynamics(model, Q, V, A)
    assert (np.abs(expected[:, 0]) > 9.0).any()
    received: list[JointTrajectory] = []
    with Peer("effort_annotator") as peer:
        publisher = peer.node.create_publisher(JointTrajectory, "effort_annotator/joint_trajectory_in", RELIABLE)
        peer.node.create_subscription(JointTrajectory, "effort_annotator/joint_trajectory", received.append, RELIABLE)
        process = NodeProcess(tmp_path, "effort_annotator", ["--params-file", "config/effort_annotator.yaml"],
                              robot_description_file=str(urdf))

        def annotated(message):
            received.clear()
            publisher.publish(message)
            peer.spin_until(lambda: received, "annotated trajectory")
            return received[-1], np.array([point.effort for point in received[-1].points])

        try:
            peer.spin_until(lambda: "active" in peer.status and publisher.get_subscription_count(), "active node")
            answer, efforts = annotated(trajectory())
            np.testing.assert_allclose(efforts, np.clip(expected, -9.0, [9.0, 50.0]), atol=1e-9)
            original = trajectory()
            for point, given in zip(answer.points, original.points, strict=True):
                point.effort = given.effort
            assert answer == original    # nothing else is changed
            assert peer.set_parameter("clip", False).successful
            np.testing.assert_allclose(annotated(trajectory())[1], expected, atol=1e-9)
            received.clear()
            publisher.publish(trajectory(Q * np.nan))
            publisher.publish(trajectory(names=["shoulder", "wrist"]))
            publisher.publish(JointTrajectory(joint_names=NAMES))
            np.testing.assert_allclose(annotated(trajectory(v=[[]] * 3, a=[[]] * 3))[1].shape, (3, 2))
            peer.spin_until(lambda: peer.diagnostics.get("trajectories") == "3", "diagnostics")
            assert len(received) == 1 and peer.diagnostics["rejected_total"] == "3"
            assert int(peer.diagnostics["points_over_effort_limit"]) >= 2
            assert "of joint 'shoulder', limit" in peer.diagnostics["last_excess"]
            assert "trajectory beyond limits, efforts are clipped: point 0: effort" in process.output()
            assert "trajectory rejected, not passed on" in process.output()
            assert process.end() == 0 and "Traceback" not in process.output()
        finally:
            process.kill()


def test_trajectories_are_timed_anew(tmp_path, private_domain):
    """With `retime` the controller gets other points of the same path, whose efforts need no clipping."""
    urdf = tmp_path / "robot.urdf"
    urdf.write_text(URDF.format(links=LINK.format("upper", 2) + LINK.format("lower", 1)).replace(
        'effort="9"', 'effort="14"'))
    model = rbd.load_urdf(urdf)
    s = np.linspace(0.0, 1.0, 7)
    q, v, a = (np.outer(x, [1.0, 0.5]) for x in (
        10 * s**3 - 15 * s**4 + 6 * s**5, (30 * s**2 - 60 * s**3 + 30 * s**4) / 1.8,
        (60 * s - 180 * s**2 + 120 * s**3) / 1.8**2))
    fast = trajectory(q, 4.0 * v, 16.0 * a)
    for i, point in enumerate(fast.points):
        point.time_from_start.nanosec = 75_000_000 * i
    received: list[JointTrajectory] = []
    with Peer("effort_annotator") as peer:
        publisher = peer.node.create_publisher(JointTrajectory, "effort_annotator/joint_trajectory_in", RELIABLE)
        peer.node.create_subscription(JointTrajectory, "effort_annotator/joint_trajectory", received.append, RELIABLE)
        process = NodeProcess(tmp_path, "effort_annotator", robot_description_file=str(urdf), retime="if_needed")
        try:
            peer.spin_until(lambda: "active" in peer.status and publisher.get_subscription_count(), "active node")
            publisher.publish(fast)
            peer.spin_until(lambda: received, "retimed trajectory")
            answer = received[0]
            assert answer.header.frame_id == "kept" and list(answer.joint_names) == NAMES
            found = {field: np.array([getattr(point, field) for point in answer.points]) for field in (
                "positions", "velocities", "accelerations", "effort")}
            assert len(answer.points) > 40
            np.testing.assert_allclose(found["positions"][[0, -1]], q[[0, -1]], atol=1e-9)
            expected = rbd.inverse_dynamics(model, *(found[field] for field in (
                "positions", "velocities", "accelerations")))
            np.testing.assert_allclose(found["effort"], expected, atol=1e-9)
            assert np.all(np.abs(expected) <= [14.0, 50.0]) and np.abs(expected[:, 0]).max() > 12.0
            received.clear()
            publisher.publish(trajectory(v=[[]] * 3, a=[[]] * 3))    # its path has corners
            peer.spin_until(lambda: received, "trajectory as it came")
            assert len(received[0].points) == 3
            peer.spin_until(lambda: peer.diagnostics.get("not_retimed") == "1", "diagnostics")
            assert peer.diagnostics["retimed"] == "1" and "not timed anew: its points have no vel" in process.output()
            assert process.end() == 0 and "Traceback" not in process.output()
        finally:
            process.kill()
