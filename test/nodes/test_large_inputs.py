"""Messages that are too large, over DDS: refused unread, on every input, while torque and emergency stop go on."""
from __future__ import annotations

import numpy as np
import pytest
from harness import LATCHED, RELIABLE, NodeProcess, Peer
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd
from rbd_interfaces.msg import JointReference, NamedWrench, NamedWrenches

NAMES, Q = ["shoulder", "elbow"], np.array([0.3, -0.7])
GRAVITY = rbd.gravity_effort(rbd.sample("two_link"), Q)
PARAMETERS = {"robot_description_file": str(rbd.sample_path("two_link")), "ramp_in": 0.0, "ramp_out": 0.0,
              "state_timeout": 10.0, "feedforward": "none", "gains__kp": 20.0, "reference_timeout": 0}
INPUTS = {"joint_states": (JointState, RELIABLE), "robot_description": (String, LATCHED),
          **{f"feedforward/{name}": (kind, RELIABLE) for name, kind in (
              ("reference", JointReference), ("joint_trajectory", JointTrajectory),
              ("external_wrenches", NamedWrenches))}}


@pytest.fixture
def started(tmp_path, private_domain):
    process = NodeProcess(tmp_path, "feedforward", **PARAMETERS)
    try:
        with Peer() as peer:
            yield process, peer
        assert process.end() == 0
        assert "Traceback" not in process.output()
    finally:
        process.kill()


def publisher(peer, topic):
    kind, qos = INPUTS[topic]
    made = peer.node.create_publisher(kind, topic, qos)
    peer.spin_until(lambda: made.get_subscription_count() > 0, f"subscription to {topic}")
    return made


def follows(peer):
    peer.answer_close_to([2.0, 2.0], NAMES, Q, [0.0, 0.0], repeat=lambda: peer.send_reference(NAMES, Q + 0.1))


def test_every_input_refuses_what_is_too_large(started):
    process, peer = started
    follows(peer)
    count = 0
    for topic in INPUTS:
        large = publisher(peer, topic)
        data = b"\0\1\0\0" + bytes(5_000_000)
        words = f"message of {len(data)} bytes on /{topic}, at most"
        peer.spin_until(lambda words=words: words in process.output(), words, lambda large=large, data=data: (
            large.publish(data), peer.send_state(NAMES, Q, [0.0, 0.0])))
        peer.spin_until(lambda before=count: int(peer.diagnostics.get("rejected_too_large", 0)) > before, "count",
                        lambda: peer.send_state(NAMES, Q, [0.0, 0.0]))
        count = int(peer.diagnostics["rejected_too_large"])
        peer.node.destroy_publisher(large)
        peer.answer_close_to([2.0, 2.0], NAMES, Q, [0.0, 0.0])


def test_an_emergency_stop_behind_large_messages(started):
    _, peer = started
    follows(peer)
    button = peer.node.create_publisher(Bool, "feedforward/emergency_stop", RELIABLE)
    peer.spin_until(lambda: button.get_subscription_count() > 1, "subscriptions")
    made = [publisher(peer, topic) for topic in INPUTS]
    for each in made:
        each.publish(b"\0\1\0\0" + bytes(5_000_000))
    button.publish(Bool(data=True))
    peer.answer_close_to(GRAVITY, NAMES, Q, [0.0, 0.0])


def test_a_trajectory_with_too_many_points(started):
    process, peer = started
    follows(peer)
    sender = publisher(peer, "feedforward/joint_trajectory")

    def send(count):
        points = [JointTrajectoryPoint(positions=list(Q)) for _ in range(count)]
        for k, point in enumerate(points):
            point.time_from_start.sec, point.time_from_start.nanosec = divmod((k + 1) * 10_000_000, 10**9)
        sender.publish(bytes(serialize_message(JointTrajectory(joint_names=NAMES, points=points))))

    words = "message of 10001 points on /feedforward/joint_trajectory, at most 10000"
    peer.spin_until(lambda: words in process.output(), words, lambda: send(10_001))
    peer.answer_close_to([2.0, 2.0], NAMES, Q, [0.0, 0.0])
    peer.spin_until(lambda: peer.answer(NAMES, Q, [0.0, 0.0]).effort[0] < 1.999, "effort along the trajectory",
                    lambda: send(10_000))


def test_joint_states_of_others(started):
    """Ever other names: nothing of it is said, and the robot's own states are answered."""
    process, peer = started
    follows(peer)
    sender, number = publisher(peer, "joint_states"), iter(range(10**9))

    def other():
        name = f"other_{next(number)}_"
        sender.publish(JointState(name=[f"{name}{i}" for i in range(500)], position=[0.0] * 500))

    for _ in range(20):
        other()
        peer.answer_close_to([2.0, 2.0], NAMES, Q, [0.0, 0.0], repeat=other)
    assert "input rejected" not in process.output()


def test_an_absurd_wrench(tmp_path, private_domain):
    """Named and counted, on any body; what was accepted before acts."""
    process = NodeProcess(tmp_path, "feedforward", **(PARAMETERS | {"feedforward": "computed_torque",
                                                                    "wrench_timeout": 0}))
    try:
        with Peer() as peer:
            peer.answer(NAMES, Q, [0.0, 0.0])
            sender = publisher(peer, "feedforward/external_wrenches")
            model = rbd.sample("two_link")
            body = model.body_names[-1]

            def send(force):
                message = NamedWrench(body=body)
                message.wrench.force.x = force
                sender.publish(NamedWrenches(wrenches=[message]))

            wrench = {body: np.array([0.0, 0.0, 0.0, 5.0, 0.0, 0.0])}
            pushed = rbd.inverse_dynamics(model, Q, [0.0, 0.0], [0.0, 0.0], wrench)

            def both():
                peer.send_reference(NAMES, Q)
                send(5.0)

            peer.answer_close_to(pushed, NAMES, Q, [0.0, 0.0], repeat=both)
            words = f"external force of 1e+09 N on body '{body}', at most 500"
            peer.spin_until(lambda: words in process.output(), words, lambda: send(1e9))
            peer.answer_close_to(pushed, NAMES, Q, [0.0, 0.0])
            peer.spin_until(lambda: int(peer.diagnostics.get("rejected_excessive_wrench", 0)) > 0, "count",
                            lambda: peer.send_state(NAMES, Q, [0.0, 0.0]))
        assert process.end() == 0
    finally:
        process.kill()
