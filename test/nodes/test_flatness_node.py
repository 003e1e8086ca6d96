"""The flatness node as users have it: a process of its own, reached over DDS."""
from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from harness import RELIABLE, Peer
from std_msgs.msg import Bool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd

NAMES = ["shoulder", "elbow"]
Q, V = np.array([0.3, -0.7]), np.array([0.4, 0.2])
MOTION = np.random.default_rng(3).normal(size=(5, 2))
PATIENT = {"ramp_in": 0.0, "ramp_out": 0.0, "state_timeout": 10.0, "reference_timeout": 0}


@pytest.fixture(scope="module")
def model():
    return rbd.load_urdf(rbd.sample_path("two_link"))


@pytest.fixture
def start(start_node):
    return partial(start_node, "flatness", robot_description_file=str(rbd.sample_path("two_link")), **PATIENT)


@pytest.fixture
def peer(private_domain):
    with Peer("flatness") as peer:
        yield peer


def test_effort_and_its_derivatives_over_dds(start, peer, model):
    process = start("--params-file", "config/flatness.yaml")
    expected = rbd.inverse_dynamics_time_derivatives(model, *MOTION)
    effort = peer.answer_close_to(expected[0], NAMES, Q, V, repeat=lambda: peer.send_reference(NAMES, *MOTION))
    assert effort.derivatives_valid and effort.name == NAMES
    np.testing.assert_allclose(effort.effort_rate, expected[1], atol=1e-9)
    np.testing.assert_allclose(effort.effort_acceleration, expected[2], atol=1e-9)
    # joints of the reference in another order
    other = 0.5 * MOTION
    expected = rbd.inverse_dynamics_time_derivatives(model, *other)
    effort = peer.answer_close_to(expected[0], NAMES[::-1], Q[::-1], V[::-1], repeat=lambda: peer.send_reference(
        NAMES[::-1], *other[:, ::-1]))
    np.testing.assert_allclose(effort.effort_acceleration, expected[2], atol=1e-9)
    # without snap there are no derivatives; a snap that is not finite is refused
    expected = rbd.inverse_dynamics(model, *MOTION[:3])
    effort = peer.answer_close_to(expected, NAMES, Q, V, repeat=lambda: peer.send_reference(NAMES, *MOTION[:4]))
    assert not effort.derivatives_valid and not effort.effort_rate and not effort.effort_acceleration
    peer.spin_until(lambda: int(peer.diagnostics.get("rejected_non_finite", 0)), "rejection",
                    lambda: peer.send_reference(NAMES, *MOTION[:4], [math.nan, 0.0]))
    # limits, gains and the emergency stop make them invalid
    assert peer.set_parameter("gains.kp", 0.5).successful
    fed = rbd.inverse_dynamics(model, *MOTION[:3]) + 0.5 * (MOTION[0] - Q)
    peer.answer_close_to(fed, NAMES, Q, V, repeat=lambda: peer.send_reference(NAMES, *MOTION))
    assert peer.set_parameter("effort_limits.maximum", 0.5).successful
    effort = peer.answer_close_to(np.clip(fed, -0.5, 0.5), NAMES, Q, V)
    assert not effort.derivatives_valid
    assert not peer.set_parameter("robot_compensates", ["coriolis"]).successful
    publisher = peer.node.create_publisher(Bool, "flatness/emergency_stop", RELIABLE)
    peer.spin_until(lambda: peer.diagnostics.get("mode") == "stopped", "stop",
                    lambda: (publisher.publish(Bool(data=True)), peer.send_state(NAMES, Q, V)))
    assert not peer.answer(NAMES, Q, V).derivatives_valid
    assert process.end() == 0 and "Traceback" not in process.output()


def test_trajectory_is_interpolated_four_times_differentiable(start, peer, model):
    start()
    publisher = peer.node.create_publisher(JointTrajectory, "flatness/joint_trajectory", RELIABLE)
    reach = np.array([1.0, 0.5])
    message = JointTrajectory(joint_names=NAMES, points=[JointTrajectoryPoint(positions=list(Q)),
                                                         JointTrajectoryPoint(positions=list(Q + reach))])
    message.points[1].time_from_start.sec = 2
    rest_to_rest = np.polynomial.Polynomial([0, 0, 0, 0, 0, 126, -420, 540, -315, 70])

    def agrees(effort, s):
        motion = [reach * rest_to_rest.deriv(k)(s) / 2.0**k if k else Q + reach * rest_to_rest(s) for k in range(5)]
        expected = rbd.inverse_dynamics_time_derivatives(model, *motion)
        return effort.derivatives_valid and np.allclose(
            [effort.effort, effort.effort_rate, effort.effort_acceleration], expected, rtol=0.0, atol=1e-4)

    peer.follow(publisher, message, agrees, NAMES, Q, V)
