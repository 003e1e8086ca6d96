"""What a node says of the others: who should publish and does not, and who does and should not."""
from __future__ import annotations

import numpy as np
import pytest
import rclpy
from harness import LATCHED, RELIABLE, Peer
from std_msgs.msg import Float64MultiArray, String

import rbd_ros as rbd
from rbd_interfaces.msg import JointEffort
from rbd_ros.nodes.base.surroundings import Reminder

NAMES, Q = ["shoulder", "elbow"], np.array([0.3, -0.7])
FILE = str(rbd.sample_path("two_link"))


@pytest.fixture
def peer(private_domain):
    with Peer() as peer:
        yield peer


def test_joint_states_that_never_come(start_node, peer):
    states = peer._states
    peer.node.destroy_publisher(states)
    process = start_node("feedforward", robot_description_file=FILE, feedforward="gravity")
    peer.spin_until(lambda: "nobody publishes on /joint_states" in process.output(), "warning that nobody publishes")
    assert process.output().count("no torque before") == 1
    peer.spin_until(lambda: "input rejected: none of the joints" in process.output(), "rejection of a reference",
                    lambda: peer.send_reference(["hip"], [0.0]))
    peer.status = ""
    peer.spin_until(lambda: "nobody publishes on /joint_states" in peer.status, "what is true of the states")
    peer._states = peer.node.create_publisher(states.msg_type, "joint_states", RELIABLE)
    peer.spin_until(lambda: "nothing arrives" in process.output(), "warning of silence")
    peer.spin_until(lambda: "none of shoulder, elbow" in process.output(), "warning of other joints",
                    lambda: peer.send_state(["left_shoulder", "left_elbow"], Q))
    assert "left_shoulder, left_elbow" in process.output()
    peer.spin_until(lambda: "left_shoulder" in peer.status, "the same in the diagnostics")
    peer.spin_until(lambda: peer.efforts and "left" not in peer.status, "efforts, and no word of it",
                    lambda: peer.send_state(NAMES, Q))


def test_description_that_never_comes(start_node, peer):
    process = start_node("feedforward", robot_description_file="''")
    peer.spin_until(lambda: "still no robot description" in process.output(), "warning")
    assert "nobody publishes on /robot_description" in process.output()
    peer.node.create_publisher(String, "robot_description", LATCHED).publish(
        String(data=rbd.sample_path("two_link").read_text()))
    peer.spin_until(lambda: "active" in peer.status, "activation")


def test_another_publisher_on_a_topic_of_the_torque(start_node, peer):
    process = start_node("feedforward", robot_description_file=FILE, adapters=["forward_command"])
    peer.spin_until(lambda: peer.status.startswith("active"), "activation")
    assert "also published" not in process.output()
    for kind, topic in ((JointEffort, "/feedforward/effort"), (Float64MultiArray, "/effort_controller/commands")):
        other = peer.node.create_publisher(kind, topic, RELIABLE)
        text = f"{topic} is also published by /peer_of_feedforward"
        peer.spin_until(lambda text=text: text in peer.status, "diagnostics")
        assert process.output().count(text) == 1 and peer.level == "WARN"
        peer.node.destroy_publisher(other)
        peer.spin_until(lambda text=text: text not in peer.status, "diagnostics without it")


def test_another_node_of_the_same_name(start_node, peer):
    process = start_node("feedforward", robot_description_file=FILE)
    peer.spin_until(lambda: peer.status.startswith("active"), "activation")
    twin = rclpy.create_node("feedforward", context=peer.context)
    peer.spin_until(lambda: "2 nodes are named /feedforward" in peer.status, "diagnostics")
    assert process.output().count("2 nodes are named /feedforward") == 1
    twin.destroy_node()


def test_reminders_are_rare():
    said = []
    reminder = Reminder(said.append, patience=3.0, again=30.0)
    for now in range(100):
        reminder.tell("" if now < 10 else "short", "long", now)
    assert said == ["short: long"] * 3    # at 13, 43 and 73 s
    reminder.tell("other", "text", 100)
    assert said[3:] == ["other: text"]    # what is new is said at once
    reminder.tell("", "", 101)
    reminder.tell("other", "text", 102)
    assert len(said) == 4    # a new beginning
