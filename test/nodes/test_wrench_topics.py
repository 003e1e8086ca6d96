"""Force-torque sensors as topics, over DDS."""
from __future__ import annotations

import numpy as np
from geometry_msgs.msg import WrenchStamped
from harness import RELIABLE, Peer

import rbd_ros as rbd
from rbd_interfaces.srv import Step

URDF = rbd.sample_path("two_link")
NAMES = ["shoulder", "elbow"]
Q0 = [0.4, -0.6]


def numbers(message):
    return np.array([getattr(part, axis) for part in (message.wrench.torque, message.wrench.force) for axis in "xyz"])


def heard(peer, topic):
    found = []
    peer.node.create_subscription(WrenchStamped, topic, found.append, RELIABLE)
    return found


def test_a_simulated_sensor(start_node):
    start_node("simulator", robot_description_file=str(URDF), paused=True, initial_position=Q0, step=1e-5,
               publish_rate=1000.0, wrench_joints=["elbow", "tip_joint"], timeout_action="zero")
    model = rbd.load_urdf(URDF)
    with Peer("simulator") as peer:
        elbow, tip = heard(peer, "simulator/wrench/elbow"), heard(peer, "simulator/wrench/tip_joint")
        peer.spin_until(lambda: peer.node.count_publishers("simulator/wrench/tip_joint"), "sensors")
        peer.spin_until(lambda: peer.diagnostics, "the simulator")
        answers = []

        def step():
            answers.append(peer.call(Step, "simulator/step", Step.Request(steps=100)))
            assert answers[-1].success

        peer.spin_until(lambda: elbow and tip, "wrenches", repeat=step)
        a = rbd.forward_dynamics(model, Q0, np.zeros(2), np.zeros(2))
        expected = -rbd.joint_wrenches(model, Q0, np.zeros(2), a)
        for found, link in ((elbow[0], model.joint("elbow").child), (tip[0], "tip")):
            assert found.header.frame_id == link and found.header.stamp in [answer.time for answer in answers]
            np.testing.assert_allclose(numbers(found), expected[model.body_index(link)], rtol=0.02, atol=0.05)


def test_what_a_sensor_should_show(start_node, private_domain):
    start_node("feedforward", robot_description_file=str(URDF), wrench_joints=["elbow"], gravity_check=False,
               state_timeout=5.0, feedback__max_age=1000.0, reference_timeout=0.0, ramp_in=0.0)
    model, v, a = rbd.load_urdf(URDF), np.array([0.3, -0.2]), np.array([1.0, 2.0])
    link = model.joint("elbow").child
    with Peer() as peer:
        found = heard(peer, "feedforward/wrench/elbow")
        expected = -rbd.joint_wrenches(model, Q0, v, a)[model.body_index(link)]

        def shown():
            peer.send_reference(NAMES, Q0, v, a)
            peer.send_state(NAMES, Q0, v)

        message = peer.spin_until(lambda: next((each for each in reversed(found) if np.allclose(
            numbers(each), expected, rtol=1e-9, atol=1e-9)), None), "the wrench", repeat=shown)
        assert message.header.frame_id == link and message.header.stamp.sec > 0
