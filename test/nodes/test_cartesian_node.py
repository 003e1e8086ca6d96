"""The Cartesian node as users have it: a process of its own, reached over DDS."""
from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import yaml
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import PoseStamped, Transform, TwistStamped, WrenchStamped
from harness import RELIABLE, Peer
from std_msgs.msg import Bool
from std_srvs.srv import SetBool
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

import rbd_ros as rbd
from rbd_ros.cli.main import main
from rbd_ros.core.lie.so3 import to_quaternion

NAMES, Q, STILL = ["shoulder", "elbow"], np.array([0.3, -0.7]), np.zeros(2)
STIFFNESS, FORWARD = 300.0, np.array([0.04, 0.0, 0.03])    # N/m, m
QUICK = {"ramp_in": 0.0, "ramp_out": 0.0, "state_timeout": 10.0, "feedback__max_age": ".inf", "feedback__min_rate": 0.0,
         "target__bandwidth": 50.0, "target__speed": 10.0}


@pytest.fixture
def peer(private_domain):
    with Peer("cartesian") as peer:
        peer._stamps = itertools.count(1_000_000_000_000, 10_000_000)    # 10 ms: the target moves in their time
        yield peer


def goal(position, quaternion, frame=""):
    message = PoseStamped()
    message.header.frame_id = frame
    pose = message.pose
    for part, names, values in ((pose.position, "xyz", position), (pose.orientation, "xyzw", quaternion)):
        for name, value in zip(names, values, strict=True):
            setattr(part, name, float(value))
    return message


def test_a_goal_moves_the_link_and_a_malformed_one_does_not(start_node, peer):
    process = start_node("cartesian", "--params-file", "config/cartesian.yaml",
                         robot_description_file=str(rbd.sample_path("two_link")), **QUICK)
    model = rbd.sample("two_link")
    link = model.body_names[-1]
    pose = rbd.forward_kinematics(model, Q)[-1]
    place, quaternion = pose[:3, 3], to_quaternion(pose[:3, :3])
    gravity = rbd.gravity_effort(model, Q)
    pulled = gravity + STIFFNESS * rbd.jacobian(model, Q, link, "aligned")[3:].T @ FORWARD
    publisher = peer.node.create_publisher(PoseStamped, "cartesian/target_pose", RELIABLE)
    twists = peer.node.create_publisher(TwistStamped, "cartesian/target_twist", 1)
    trajectories = peer.node.create_publisher(MultiDOFJointTrajectory, "cartesian/target_trajectory", RELIABLE)
    peer.spin_until(lambda: publisher.get_subscription_count() > 0, "subscription")

    def becomes(expected):
        peer.answer_close_to(expected, NAMES, Q, STILL, tolerance=1e-5)

    def counts(*names):
        return [int(peer.diagnostics.get(name, 0)) for name in names]

    becomes(gravity)    # held where it is
    publisher.publish(goal(place + FORWARD, quaternion))
    becomes(pulled)     # the arm does not move, the target does
    bad = {"rejected_non_finite": goal([math.nan, 0.0, 0.0], quaternion), "rejected_not_unit": goal(place, [0.0] * 4),
           "rejected_frame": goal(place, quaternion, "nowhere"),
           "rejected_implausible": goal(place + 30.0 * FORWARD, quaternion)}
    peer.spin_until(lambda: all(counts(*bad)), "rejections", lambda: [publisher.publish(each) for each in bad.values()])
    assert counts("goals") == [1] and "input rejected: goal pose" in process.output()
    becomes(pulled)
    publisher.publish(goal([0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], link))
    becomes(gravity)    # to where the link is
    twist = TwistStamped()
    twist.header.frame_id, twist.twist.linear.z = link, 0.1
    peer.spin_until(lambda: counts("twists")[0] and float(peer.diagnostics["position_error_mm"]) > 1.0, "led target",
                    lambda: (twists.publish(twist), peer.send_state(NAMES, Q, STILL)))
    peer.spin_until(lambda: float(peer.diagnostics["position_error_mm"]) < 1e-3, "way back", lambda: (
        publisher.publish(goal([0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], link)), peer.send_state(NAMES, Q, STILL)))
    becomes(gravity)    # a twist may have come after the first goal
    trajectory = MultiDOFJointTrajectory(joint_names=[link])
    trajectory.header.frame_id = link
    trajectory.points.append(MultiDOFJointTrajectoryPoint(transforms=[Transform()], time_from_start=Duration(sec=1)))
    translation = trajectory.points[0].transforms[0].translation
    translation.x, translation.y, translation.z = (pose[:3, :3].T @ FORWARD).tolist()
    trajectories.publish(trajectory)
    becomes(pulled)
    trajectory.joint_names = ["elbow"]
    peer.spin_until(lambda: counts("trajectories") == [1] and all(counts("rejected_unknown_body")), "refusal",
                    lambda: trajectories.publish(trajectory))
    publisher.publish(goal([0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], link))
    becomes(gravity)
    button = peer.node.create_publisher(Bool, "cartesian/emergency_stop", RELIABLE)
    publisher.publish(goal(place + FORWARD, quaternion))
    becomes(pulled)
    peer.spin_until(lambda: peer.diagnostics.get("mode") == "stopped", "stop",
                    lambda: (button.publish(Bool(data=True)), peer.send_state(NAMES, Q, STILL)))
    becomes(gravity)
    peer.spin_until(lambda: counts("goals_dropped") == [0] and all(counts("rejected_bad_trajectory")),
                    "refusal of goals", lambda: publisher.publish(goal(place, quaternion)))
    assert process.end() == 0 and "Traceback" not in process.output()


def test_an_arm_is_guided_and_what_was_taught_becomes_a_trajectory(start_node, peer, tmp_path):
    arm, taught, motion = rbd.sample_path("two_link"), tmp_path / "new" / "taught.npz", tmp_path / "motion.yaml"
    process = start_node("cartesian", robot_description_file=str(arm), teach__file=str(taught), **QUICK)
    gravity = rbd.gravity_effort(rbd.sample("two_link"), Q)
    peer.answer_close_to(gravity, NAMES, Q, STILL, tolerance=1e-5)

    def ask(service, on):
        return peer.call(SetBool, f"cartesian/{service}", SetBool.Request(data=on))

    assert "~/guide" in ask("teach", True).message and "nothing was taught" in ask("teach", False).message
    assert ask("guide", True).success and ask("teach", True).success
    way = Q + np.linspace(0.0, 0.5, 150)[:, None]
    for q in (*[Q] * 40, *way):
        peer.answer(NAMES, q, STILL)
    peer.answer_close_to(rbd.gravity_effort(rbd.sample("two_link"), way[-1]), NAMES, way[-1], STILL, tolerance=1e-5)
    answer = ask("teach", False)
    assert answer.success and str(taught) in answer.message and ask("guide", False).success
    assert process.end() == 0 and "Traceback" not in process.output()

    assert main(["retrace", str(arm), str(taught), "-o", str(motion)]) == 0
    points = yaml.safe_load(motion.read_text())["points"]
    np.testing.assert_allclose(points[0]["positions"], Q, atol=0.01)
    np.testing.assert_allclose(points[-1]["positions"], way[-1], atol=0.01)


def pushing(z, frame=""):
    message = WrenchStamped()
    message.header.frame_id, message.wrench.force.z = frame, float(z)
    return message


def test_a_wrench_is_exerted_and_corrected_by_what_is_measured(start_node, peer):
    process = start_node("cartesian", "--params-file", "config/cartesian.yaml", force__topic="sensed",
                         robot_description_file=str(rbd.sample_path("two_link")), force__integral=20.0,
                         force__bandwidth=100.0, force__max_age=10.0, **QUICK)
    model = rbd.sample("two_link")
    gravity, up = rbd.gravity_effort(model, Q), rbd.jacobian(model, Q, model.body_names[-1], "aligned")[5]
    wanted, sensed = (peer.node.create_publisher(WrenchStamped, topic, RELIABLE)
                      for topic in ("cartesian/target_wrench", "sensed"))
    peer.spin_until(lambda: wanted.get_subscription_count() and sensed.get_subscription_count(), "subscriptions")
    peer.answer_close_to(gravity, NAMES, Q, STILL, tolerance=1e-5)
    wanted.publish(pushing(8.0))
    peer.answer_close_to(gravity + 8.0 * up, NAMES, Q, STILL, tolerance=1e-4)
    sensed.publish(pushing(-3.0))    # what acts on the link: it presses with 3 N
    peer.answer_close_to(gravity + 1.3 * 8.0 * up, NAMES, Q, STILL, tolerance=1e-4)
    sensed.publish(pushing(-20.0))
    peer.answer_close_to(gravity + 0.7 * 8.0 * up, NAMES, Q, STILL, tolerance=1e-4)
    peer.spin_until(lambda: int(peer.diagnostics.get("rejected_excessive_wrench", 0)) > 0, "rejection",
                    lambda: wanted.publish(pushing(80.0)))
    wanted.publish(pushing(0.0))
    peer.answer_close_to(gravity, NAMES, Q, STILL, tolerance=1e-4)
    assert process.end() == 0 and "Traceback" not in process.output()
