"""An emergency stop over DDS that no timing can lose."""
from __future__ import annotations

import signal
import time

import numpy as np
import pytest
from harness import BEST_EFFORT, LATCHED, RELIABLE, NodeProcess, Peer
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.event_handler import PublisherEventCallbacks
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

import rbd_ros as rbd
from rbd_ros.nodes.base.seldom import BURST

NAMES, Q = ["shoulder", "elbow"], np.array([0.3, -0.7])
PARAMETERS = {"robot_description_file": str(rbd.sample_path("two_link")), "ramp_in": 0.0, "ramp_out": 0.0,
              "state_timeout": 10.0, "feedforward": "gravity"}


def mode_becomes(peer, mode):
    peer.spin_until(lambda: peer.diagnostics.get("mode") == mode, f"mode {mode}", lambda: peer.send_state(NAMES, Q))


def reset(peer):
    return peer.call(Trigger, "feedforward/reset", Trigger.Request()).success


def test_a_stop_that_is_released_at_once(tmp_path, private_domain):
    """Both messages are there before the node looks."""
    process = NodeProcess(tmp_path, "feedforward", **PARAMETERS)
    try:
        with Peer() as peer:
            button = peer.node.create_publisher(Bool, "feedforward/emergency_stop", RELIABLE)
            mode_becomes(peer, "running")
            for pressed in range(1, 11):
                button.publish(Bool(data=True))
                button.publish(Bool(data=False))
                peer.spin_until(lambda count=pressed: process.output().count("emergency stop: publishing") == count,
                                f"stop number {pressed}", patience=10.0)
                assert reset(peer)
            mode_becomes(peer, "running")
            assert process.output().count("emergency stop: released") == 10
        assert process.end() == 0
    finally:
        process.kill()


def test_stops_and_resets_without_end_do_not_fill_the_log(tmp_path, private_domain):
    process = NodeProcess(tmp_path, "feedforward", **PARAMETERS)
    try:
        with Peer() as peer:
            button = peer.node.create_publisher(Bool, "feedforward/emergency_stop", RELIABLE)
            mode_becomes(peer, "running")
            begin = time.monotonic()
            for _ in range(100):
                button.publish(Bool(data=True))
                peer.spin_until(lambda: reset(peer), "stop and reset")
            for line in ("emergency stop: publishing", "emergency stop: released"):
                assert BURST <= process.output().count(line) <= BURST + 1 + (time.monotonic() - begin)
        assert process.end() == 0
    finally:
        process.kill()


def test_a_latched_stop_from_before_the_node_began(tmp_path, private_domain):
    with Peer() as peer:
        button = peer.node.create_publisher(Bool, "feedforward/emergency_stop", LATCHED)
        button.publish(Bool(data=True))
        process = NodeProcess(tmp_path, "feedforward", **PARAMETERS)
        try:
            mode_becomes(peer, "stopped")
            assert reset(peer)
            mode_becomes(peer, "running")
            assert process.end() == 0
        finally:
            process.kill()


def test_other_publishers_have_nothing_to_warn_of(tmp_path, private_domain):
    """The one that latches is heard by a subscription which a publisher that does not would call incompatible."""
    process = NodeProcess(tmp_path, "feedforward", **PARAMETERS)
    try:
        with Peer() as peer:
            warned = []
            events = PublisherEventCallbacks(incompatible_qos=warned.append)
            button = peer.node.create_publisher(Bool, "feedforward/emergency_stop", RELIABLE, event_callbacks=events)
            mode_becomes(peer, "running")
            button.publish(Bool(data=True))
            mode_becomes(peer, "stopped")
            peer.diagnostics.clear()
            mode_becomes(peer, "stopped")    # a second later
            assert not warned
        assert process.end() == 0
    finally:
        process.kill()


def test_a_publisher_that_is_not_reliable(tmp_path, private_domain):
    """As small computers and wireless buttons are."""
    process = NodeProcess(tmp_path, "feedforward", **PARAMETERS)
    try:
        with Peer() as peer:
            button = peer.node.create_publisher(Bool, "feedforward/emergency_stop", BEST_EFFORT)
            mode_becomes(peer, "running")
            peer.spin_until(lambda: "emergency stop: publishing" in process.output(), "stop",
                            lambda: button.publish(Bool(data=True)))
            mode_becomes(peer, "stopped")
        assert process.end() == 0
    finally:
        process.kill()


def test_a_stop_while_the_node_is_not_configured(tmp_path, private_domain):
    process = NodeProcess(tmp_path, "feedforward", **PARAMETERS, autostart=False)
    try:
        with Peer() as peer:
            button = peer.node.create_publisher(Bool, "feedforward/emergency_stop", RELIABLE)
            peer.spin_until(lambda: "it holds after activation" in process.output(), "notice of the stop",
                            lambda: button.publish(Bool(data=True)))
            for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
                assert peer.call(ChangeState, "feedforward/change_state", ChangeState.Request(
                    transition=Transition(id=transition))).success
            mode_becomes(peer, "stopped")
            assert reset(peer)
            mode_becomes(peer, "running")
        assert process.end() == 0
    finally:
        process.kill()


@pytest.mark.parametrize("latched", [False, True])
@pytest.mark.parametrize("leave", ["deactivate", "interrupt"])
def test_a_stop_while_the_robot_is_ramped_out(tmp_path, private_domain, leave, latched):
    """It ends a ramp of a minute with the safe effort at once, and no torque above the present one on the way. As the
    robot stands still, the node is then ready.
    """
    gravity = rbd.gravity_effort(rbd.sample("two_link"), Q)
    away = np.array([0.05, 0.1])
    command = gravity + 20.0 * away
    process = NodeProcess(tmp_path, "feedforward", **PARAMETERS | {"ramp_out": 60.0, "gains__kp": 20.0,
                                                                  "reference_timeout": 0})
    try:
        with Peer() as peer:
            button = None if latched else peer.node.create_publisher(Bool, "feedforward/emergency_stop", RELIABLE)
            peer.answer_close_to(command, NAMES, Q, repeat=lambda: peer.send_reference(NAMES, Q + away))
            if leave == "deactivate":
                client = peer.node.create_client(ChangeState, "feedforward/change_state")
                peer.spin_until(client.service_is_ready, "service")
                client.call_async(ChangeState.Request(transition=Transition(id=Transition.TRANSITION_DEACTIVATE)))
            else:
                process.process.send_signal(signal.SIGINT)
            peer.spin_until(lambda: not np.allclose(peer.efforts[-1].effort, command, rtol=0, atol=1e-6), "ramp",
                            lambda: peer.send_state(NAMES, Q))
            peer.efforts.clear()
            if button is None:
                button = peer.node.create_publisher(Bool, "feedforward/emergency_stop", LATCHED)
            button.publish(Bool(data=True))
            peer.spin_until(lambda: peer.efforts and np.allclose(peer.efforts[-1].effort, gravity, rtol=0, atol=1e-9),
                            "safe effort", lambda: peer.send_state(NAMES, Q), patience=10.0)
            share = np.array([effort.effort - gravity for effort in peer.efforts]) @ (command - gravity)
            assert (np.diff(share) <= 1e-9).all()
            if leave == "deactivate":
                assert peer.call(ChangeState, "feedforward/change_state", ChangeState.Request(
                    transition=Transition(id=Transition.TRANSITION_ACTIVATE))).success
                mode_becomes(peer, "stopped")
        assert process.end() == 0
        assert process.output().count("emergency stop: publishing") == 1
    finally:
        process.kill()
