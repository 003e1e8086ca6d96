"""Gains that the rate cannot carry are warned of: at configuration, or as soon as the rate is measured."""
from __future__ import annotations

import pytest
from harness import NodeProcess, Peer

import rbd_ros as rbd

NAMES, Q = ["shoulder", "elbow"], [0.3, -0.7]
WORDS = "'gains.kd' is too high for"


@pytest.mark.parametrize("node", ["feedforward", "flatness"])
def test_at_configuration(tmp_path, private_domain, node):
    process = NodeProcess(tmp_path, node, robot_description_file=str(rbd.sample_path("two_link")), state_rate=500.0,
                          gains__kp=100.0, gains__kd=[1.0, 60.0])
    try:
        with Peer(node) as peer:
            peer.spin_until(lambda: "active: torque follows" in process.output(), "activation")    # no refusal
            assert f"{WORDS} 500 Hz" in process.output() and "elbow: 60, at most" in process.output()
            assert process.output().count(WORDS) == 1
            assert peer.set_parameter("gains.kd", [1.0, 70.0]).successful
            peer.spin_until(lambda: "elbow: 70, at most" in process.output(), "warning of changed gains")
        assert process.end() == 0
    finally:
        process.kill()


def test_with_the_measured_rate(tmp_path, private_domain):
    process = NodeProcess(tmp_path, "feedforward", robot_description_file=str(rbd.sample_path("two_link")),
                          gains__kp=100.0, gains__kd=[1.0, 60.0])
    try:
        with Peer() as peer:
            peer.spin_until(lambda: "active: torque follows" in process.output(), "activation")
            assert WORDS not in process.output()
            peer.spin_until(lambda: WORDS in process.output(), "warning", lambda: peer.send_state(NAMES, Q, [0.0, 0.0]))
            heard = [peer.diagnostics]

            def judged_again():    # with each of the next diagnostics, as often as the first time
                if peer.diagnostics is not heard[-1]:
                    heard.append(peer.diagnostics)
                return len(heard) > 3

            peer.spin_until(judged_again, "diagnostics", lambda: peer.send_state(NAMES, Q, [0.0, 0.0]))
            assert process.output().count(WORDS) == 1
        assert process.end() == 0
    finally:
        process.kill()
