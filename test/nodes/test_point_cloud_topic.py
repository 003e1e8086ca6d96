"""Obstacles of sensor_msgs/PointCloud2 over DDS: around a ball that is seen, and what is wrong leaves it there."""
from __future__ import annotations

import numpy as np
import pytest
from harness import BEST_EFFORT, LATCHED, Peer
from parameters.node_maker import Nodes
from sensor_msgs.msg import PointCloud2, PointField
from std_msgs.msg import String
from support.arm import NAMES
from test_obstacles_topic import REQUEST, from_ball, shaped_arm
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rbd_interfaces import srv
from rbd_interfaces.msg import MotionRequest

VOXEL = 0.02


def cloud(points, frame="base", **fields):
    """As of a camera with colours: 32 bytes per point, NaN where it saw nothing."""
    data = np.zeros((len(points), 8), dtype=np.float32)
    data[:, :3] = points
    message = PointCloud2(height=1, width=len(points), point_step=32, row_step=32 * len(points), data=data.tobytes())
    message.header.frame_id = frame
    message.fields = [PointField(name=name, offset=offset, datatype=7, count=1) for name, offset in (
        ("x", 0), ("y", 4), ("z", 8), ("rgb", 16))]
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def ball(count=4000, missing=1000):
    """The surface of the ball that `from_ball` means."""
    points = np.random.default_rng(0).normal(size=(count, 3))
    points = 0.05 * points / np.linalg.norm(points, axis=1, keepdims=True) + [0.72, 0.0, 0.0]
    return np.concatenate([points, np.full((missing, 3), np.nan)])


class Sender:
    def __init__(self, peer):
        self.peer = peer
        self.publisher = peer.node.create_publisher(PointCloud2, "/camera/points", BEST_EFFORT)
        peer.spin_until(lambda: peer.status == "active" and self.publisher.get_subscription_count(), "active node")

    def send(self, message, done, what):
        """Until the diagnostics say that it is there: best effort may lose one."""
        self.peer.spin_until(lambda: done(self.peer.diagnostics), what, lambda: self.publisher.publish(message))


HOSTILE = {"expected one that is fixed to the root link": {"frame": "camera"}, "no field 'x'": {"fields": []},
           "are not in 160000 bytes of data": {"height": 2}, "1 rows of 8 bytes": {"row_step": 8}}


def test_motions_go_around_what_a_camera_sees(start_node, tmp_path, private_domain):
    pytest.importorskip("coal")
    process = start_node("motion_planner", robot_description_file=shaped_arm(tmp_path), time_limit=60.0,
                         collisions__cloud_topic="/camera/points", collisions__voxel_size=VOXEL)
    with Peer("motion_planner") as peer:
        sender = Sender(peer)

        def nearest():
            return from_ball(peer.call(srv.PlanMotion, "motion_planner/plan_motion", srv.PlanMotion.Request(
                motion=MotionRequest(**REQUEST))))

        assert nearest() < -0.05
        sender.send(cloud(ball()), lambda now: int(now["obstacles"]) > 5, "boxes")
        boxes = peer.diagnostics["obstacles"]
        gap = 0.003    # m, between the random points, at most: of 4000 on the ball
        assert 0.01 - gap <= nearest() < 0.1
        for words, fields in HOSTILE.items():
            sender.send(cloud(ball(), **fields), lambda now, words=words: words in process.output(), words)
        peer.spin_until(lambda: int(peer.diagnostics["rejected_total"]) >= len(HOSTILE), "count")
        assert peer.diagnostics["obstacles"] == boxes and nearest() >= 0.01 - gap
        sender.send(cloud(np.full((10, 3), np.nan)), lambda now: now["obstacles"] == "0", "no boxes")
        assert nearest() < -0.05
        assert process.end() == 0 and "Traceback" not in process.output()


def test_trajectories_through_what_a_camera_sees_are_not_passed_on(start_node, tmp_path, private_domain):
    pytest.importorskip("coal")
    process = start_node("effort_annotator", robot_description_file=shaped_arm(tmp_path), collisions__reject=True,
                         collisions__cloud_topic="/camera/points", collisions__voxel_size=VOXEL)
    with Peer("effort_annotator") as peer:
        sender = Sender(peer)
        trajectories = peer.node.create_publisher(JointTrajectory, "effort_annotator/joint_trajectory_in", 10)
        peer.spin_until(trajectories.get_subscription_count, "subscription")
        trajectory = JointTrajectory(joint_names=NAMES)
        for k, q in enumerate(([-0.5, 0.0], [0.5, 0.0])):
            point = JointTrajectoryPoint(positions=q, velocities=[0.0, 0.0])
            point.time_from_start.sec = k
            trajectory.points.append(point)
        sender.send(cloud(ball()), lambda now: int(now["obstacles"]) > 5, "boxes")
        peer.spin_until(lambda: int(peer.diagnostics["hitting"]) > 0, "a trajectory that hits",
                        lambda: trajectories.publish(trajectory))    # the node may know its publisher later
        peer.spin_until(lambda: "trajectory rejected, not passed on: 'lower' and 'cloud/" in process.output(), "log")
        sender.send(cloud(ball(), height=2), lambda _: "are not in 160000 bytes" in process.output(), "not whole")
        texts = peer.node.create_publisher(String, "effort_annotator/obstacles", LATCHED)
        texts.publish(String(data="#" * 70_000))
        peer.spin_until(lambda: peer.diagnostics["rejected_too_large"] == "1", "a text that is too long")
        assert int(peer.diagnostics["obstacles"]) > 5
        assert process.end() == 0 and "Traceback" not in process.output()


@pytest.mark.parametrize("program", ["motion_planner", "effort_annotator"])
def test_clouds_have_a_limit_of_their_own(program, tmp_path):
    pytest.importorskip("coal")
    with Nodes(program).started({"robot_description_file": shaped_arm(tmp_path),
                                 "collisions.cloud_topic": "points"}) as node:
        assert {each.topic_name: each.most for each in node.subscriptions}["/points"] == 2**25
