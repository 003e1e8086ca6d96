"""How the feed-forward node starts and ends: signals, life cycle, robot descriptions, configurations it refuses."""
from __future__ import annotations

import signal

import numpy as np
import pytest
from elbow import NAMES, URDF, Q, V, follow, full, start_elbow
from harness import LATCHED, Peer
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from std_msgs.msg import String

import rbd_ros as rbd

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")


@pytest.fixture(scope="module")
def model():
    return rbd.load_urdf(URDF.format(shoulder=100))


@pytest.fixture
def start(start_node, tmp_path):
    return start_elbow(start_node, tmp_path)


@pytest.fixture
def peer(private_domain):
    with Peer() as peer:
        yield peer


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_leaves_a_safe_effort_and_exit_code_0(start, peer, model, number):
    process = start(ramp_out=0.05, state_timeout=0.1, safe_output__hold=60.0)
    follow(peer, full(model))
    peer.efforts.clear()
    assert process.end(number) == 0
    peer.spin_until(lambda: peer.efforts and np.allclose(peer.efforts[-1].effort, rbd.gravity_effort(model, Q)),
                    "safe effort as the last one")
    assert all(np.isfinite(effort.effort).all() for effort in peer.efforts)
    assert "Traceback" not in process.output()


def test_signal_while_waiting_for_a_description(start, peer):
    process = start(robot_description_file="''")
    peer.spin_until(lambda: "waiting" in peer.status, "diagnostics")
    assert process.end() == 0 and "Traceback" not in process.output()


def change_state(peer, transition):
    request = ChangeState.Request(transition=Transition(id=transition))
    return peer.call(ChangeState, "feedforward/change_state", request).success


def test_life_cycle_by_services(start, peer, model):
    process = start(autostart=False, ramp_out=0.05, state_timeout=0.2, safe_output__hold=60.0)
    for _ in range(2):
        assert change_state(peer, Transition.TRANSITION_CONFIGURE)
        assert change_state(peer, Transition.TRANSITION_ACTIVATE)
        follow(peer, full(model))
        peer.efforts.clear()
        assert change_state(peer, Transition.TRANSITION_DEACTIVATE)
        peer.spin_until(lambda: peer.efforts and np.allclose(peer.efforts[-1].effort, rbd.gravity_effort(model, Q)),
                        "safe effort as the last one")
        assert change_state(peer, Transition.TRANSITION_CLEANUP)
    assert process.end() == 0 and "Traceback" not in process.output()


def test_description_from_the_topic(start, peer, model):
    publisher = peer.node.create_publisher(String, "robot_description", LATCHED)
    publisher.publish(String(data=URDF.format(shoulder=100)))
    start(robot_description_file="''")
    follow(peer, full(model))


def test_only_another_description_is_called_a_new_one(start, peer, model, tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF.format(shoulder=100))
    publisher = peer.node.create_publisher(String, "robot_description", LATCHED)
    publisher.publish(String(data=URDF.format(shoulder=100)))
    process = start(robot_description_file=str(tmp_path / "arm.urdf"))
    follow(peer, full(model))
    publisher.publish(String(data=URDF.format(shoulder=99)))
    peer.spin_until(lambda: "on the topic differs" in process.output(), "warning")
    assert process.output().count("robot description") == 1
    assert process.end() == 0


def test_effort_limit_zero_needs_an_override(start, peer, model):
    refused = start(shoulder=0)
    peer.spin_until(lambda: "configuration failed" in peer.status, "refusal")
    assert "shoulder" in peer.status and "effort_limits.override_zero" in peer.status
    assert refused.end() == 0
    start(shoulder=0, effort_limits__override_zero=1.0)
    expected = full(model)
    follow(peer, [np.clip(expected[0], -1.0, 1.0), expected[1]])


def test_massless_robot_is_refused_by_name(start, peer, tmp_path):
    bad = tmp_path / "bad.urdf"
    bad.write_text(URDF.format(shoulder=100).replace('<mass value="1"/>', '<mass value="0"/>').replace(
        'ixx="0.01" iyy="0.02" izz="0.02"', 'ixx="0" iyy="0" izz="0"'))
    process = start(robot_description_file=str(bad))
    peer.spin_until(lambda: "configuration failed" in peer.status, "refusal")
    assert "elbow" in peer.status and "mass" in peer.status
    assert process.end() == 0


def test_limits_of_the_parameters(start, peer, model):
    start(effort_limits__maximum=[1.0, 0.5])
    follow(peer, np.clip(full(model), [-1.0, -0.5], [1.0, 0.5]))
    peer.spin_until(lambda: int(peer.diagnostics.get("saturated", 0)), "count of saturated efforts",
                    lambda: peer.send_state(NAMES, Q, V))
    assert {"rate_hz", "latency_p50_us", "latency_p99_us", "deadline_misses"} <= set(peer.diagnostics)
