"""The feed-forward node as users have it: a process of its own, reached over DDS."""
from __future__ import annotations

import math
import time

import numpy as np
import pytest
from elbow import A_REF, NAMES, Q_REF, URDF, V_REF, Q, V, follow, full, start_elbow
from harness import RELIABLE, Peer
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray
from std_srvs.srv import Trigger
from support.lqr import gain
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd
from rbd_interfaces.msg import NamedWrench, NamedWrenches

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


def test_effort_is_inverse_dynamics_of_the_reference(start, peer, model):
    process = start()
    effort = follow(peer, full(model))
    assert effort.name == NAMES and not effort.derivatives_valid and not effort.effort_rate
    # order, additional joints and missing velocities of the state do not matter to pure feed-forward
    peer.answer_close_to(full(model), ["elbow", "gripper", "shoulder"], [Q[1], 9.9, Q[0]], [V[1], math.nan, V[0]])
    peer.answer_close_to(full(model), NAMES, Q)
    # nor does the order of the reference
    peer.answer_close_to(full(model), NAMES, Q, V, repeat=lambda: peer.send_reference(
        NAMES[::-1], Q_REF[::-1], V_REF[::-1], A_REF[::-1]))
    assert process.end() == 0


def test_iiwa_sample(start, peer):
    iiwa = rbd.sample("iiwa")
    rng = np.random.default_rng(4)
    q, v, a = iiwa.random_configuration(rng), rng.normal(size=7), rng.normal(size=7)
    start(robot_description_file=str(rbd.sample_path("iiwa")))
    names = list(iiwa.joint_names)
    expected = np.clip(rbd.inverse_dynamics(iiwa, q, v, a) + iiwa.damping * v + iiwa.friction * np.tanh(v / 0.01),
                       -iiwa.effort_limit, iiwa.effort_limit)
    peer.answer_close_to(expected, names, q, v, repeat=lambda: peer.send_reference(names, q, v, a))


def test_gains_and_terms_change_while_running(start, peer, model):
    start()
    follow(peer, full(model))
    assert peer.set_parameter("gains.kp", [100.0, 50.0]).successful
    assert peer.set_parameter("gains.kd", 3).successful
    follow(peer, full(model, np.array([100.0, 50.0]), 3.0))
    assert peer.set_parameter("feedforward", "gravity").successful
    pd = np.array([100.0, 50.0]) * (Q_REF - Q) + 3.0 * (V_REF - V)
    follow(peer, rbd.gravity_effort(model, Q) + pd)
    assert peer.set_parameter("feedforward", "none").successful
    follow(peer, pd)
    assert peer.set_parameter("feedforward", "computed_torque").successful
    assert peer.set_parameter("friction.damping", False).successful
    assert peer.set_parameter("friction.coulomb", False).successful
    follow(peer, rbd.inverse_dynamics(model, Q, V, A_REF + pd))
    for name, value in (("lqr.position", 100.0), ("lqr.velocity", 2.0), ("lqr.effort", 0.5), ("feedforward", "lqr")):
        assert peer.set_parameter(name, value).successful
    smooth = model.with_(damping=0.0)
    regulator = gain(smooth, Q_REF, V_REF, A_REF, 100.0, 2.0, 0.5) @ np.concatenate([Q - Q_REF, V - V_REF])
    follow(peer, rbd.inverse_dynamics(smooth, Q_REF, V_REF, A_REF) + regulator)


def test_parameters_override_the_configuration_file(start, peer, model):
    start("--params-file", "config/feedforward.yaml", gains__kp=[100.0, 50.0], gains__kd=3, friction__coulomb=False)
    coulomb = model.friction * np.tanh(V_REF / 0.01)
    follow(peer, full(model, np.array([100.0, 50.0]), 3.0) - coulomb)


def test_refused_parameters_say_why(start, peer, model):
    start()
    follow(peer, full(model))
    for name, value, reason in [("gains.kp", [1.0, 2.0, 3.0], "3 numbers, expected 1 or 2"),
                                ("gains.kp", -1.0, "from 0"), ("gains.kd", "soft", "expected a number"),
                                ("feedforward", "magic", "'computed_torque'"), ("state_timeout", 0.0, "from 0.001"),
                                ("joints", ["elbow"], "read-only")]:
        result = peer.set_parameter(name, value)
        assert not result.successful and reason in result.reason.replace("read only", "read-only"), result
    follow(peer, full(model))


def test_malformed_inputs_are_counted_and_never_used(start, peer, model):
    process = start(feedback__max_age=".inf", feedback__min_rate=0.0)    # slow as the machine may be
    follow(peer, full(model))
    old = peer.stamp()
    peer.answer(NAMES, Q, V)

    def send_malformed():
        peer.send_state(NAMES, Q, V)    # so that the state stays fresh, however long this takes
        peer.send_state(NAMES, [0.1])
        peer.send_state(NAMES, [])
        peer.send_state(NAMES, Q, [1.0])
        peer.send_state(NAMES, Q, V, [1.0, 2.0, 3.0])
        peer.send_state(NAMES, [math.nan, 0.1], V)
        peer.send_state(NAMES, [math.inf, -math.inf], V)
        peer.send_state(["shoulder"], [0.1])
        peer.send_state(["shoulder", "shoulder", "elbow"], [0.1, 0.2, 0.3])
        peer.send_state(NAMES, Q, V, stamp=old)
        peer.send_state([], [])
        peer.send_state(["gripper"], [1.0])
        peer.send_reference(NAMES, [0.1])
        peer.send_reference(NAMES, [math.nan, 0.0])
        peer.send_reference(NAMES, Q_REF, [math.inf, 0.0])
        peer.send_reference(["shoulder", "wrist"], Q_REF)
        peer.send_reference([], [])
        peer.send_reference(["shoulder"], [0.0])

    kinds = ["wrong_size", "non_finite", "unknown_joint", "missing_joint", "duplicate_joint", "stamp_backwards"]
    peer.spin_until(lambda: all(int(peer.diagnostics.get(f"rejected_{kind}", 0)) for kind in kinds),
                    f"rejection of every kind {kinds}", send_malformed)
    assert process.process.poll() is None
    peer.answer_close_to(full(model), NAMES, Q, V)    # of the last valid reference
    assert all(np.isfinite(effort.effort).all() for effort in peer.efforts)
    assert "input rejected" in process.output()


def test_stale_state_gives_gravity_then_the_fallback(start, peer, model):
    start(state_timeout=0.3, safe_output__hold=2.0, safe_output__fallback_ramp=0.2, safe_output__fallback=[1.5, -0.5])
    follow(peer, full(model))
    gravity = rbd.gravity_effort(model, Q)
    peer.efforts.clear()
    peer.spin_until(lambda: any(np.allclose(e.effort, gravity, atol=1e-9) for e in peer.efforts), "gravity effort")
    peer.spin_until(lambda: any(np.allclose(e.effort, [1.5, -0.5]) for e in peer.efforts), "fallback effort")
    peer.efforts.clear()
    peer.spin_until(lambda: len(peer.efforts) > 3, "repetition of the fallback")
    assert all(np.allclose(e.effort, [1.5, -0.5]) for e in peer.efforts)
    follow(peer, full(model))    # states again: control again


def test_robot_that_compensates_gravity_gets_zero(start, peer, model):
    """It compensates its gravity where the reference has it, as the feed-forward does; stopped, it needs none."""
    start(robot_compensates=["gravity"], state_timeout=0.3)
    follow(peer, full(model) - rbd.gravity_effort(model, Q_REF))
    peer.efforts.clear()
    peer.spin_until(lambda: any(not np.any(effort.effort) for effort in peer.efforts), "zero effort")


def test_adapters(start, peer, model):
    commands, states, trajectories = [], [], []
    peer.node.create_subscription(Float64MultiArray, "arm/commands", commands.append, RELIABLE)
    peer.node.create_subscription(JointState, "feedforward/effort_commands", states.append, RELIABLE)
    peer.node.create_subscription(JointTrajectory, "jtc/joint_trajectory", trajectories.append, RELIABLE)
    start(adapters=["forward_command", "joint_state", "jtc"], jtc__controller="jtc", forward_command__controller="arm",
          forward_command__joints=["elbow", "shoulder"])
    expected = full(model)
    follow(peer, expected)
    peer.spin_until(lambda: commands and np.allclose(commands[-1].data, expected[::-1], atol=1e-9), "command",
                    lambda: peer.send_state(NAMES, Q, V))
    peer.spin_until(lambda: states and np.allclose(states[-1].effort, expected, atol=1e-9), "joint state",
                    lambda: peer.send_state(NAMES, Q, V))
    peer.spin_until(lambda: trajectories and np.allclose(trajectories[-1].points[0].effort, expected, atol=1e-9),
                    "trajectory", lambda: peer.send_state(NAMES, Q, V))
    np.testing.assert_allclose(trajectories[-1].points[0].positions, Q, rtol=0.0, atol=1e-9)    # of the state, as sent
    assert trajectories[-1].header.stamp.sec == 0
    np.testing.assert_allclose(states[-1].position, Q, rtol=0.0, atol=1e-9)
    assert states[-1].name == NAMES and list(states[-1].velocity) == list(V)


def test_trajectory_is_interpolated_at_the_stamps_of_the_states(start, peer, model):
    start(friction__damping=False, friction__coulomb=False)
    publisher = peer.node.create_publisher(JointTrajectory, "feedforward/joint_trajectory", RELIABLE)
    reach = np.array([1.0, 0.5])
    message = JointTrajectory(joint_names=NAMES, points=[
        JointTrajectoryPoint(positions=list(Q), velocities=[0.0, 0.0], accelerations=[0.0, 0.0]),
        JointTrajectoryPoint(positions=list(Q + reach), velocities=[0.0, 0.0], accelerations=[0.0, 0.0])])
    message.points[1].time_from_start.sec = 2

    def agrees(effort, s):
        q, v, a = (Q + reach * (10 * s**3 - 15 * s**4 + 6 * s**5), reach * (30 * s**2 - 60 * s**3 + 30 * s**4) / 2.0,
                   reach * (60 * s - 180 * s**2 + 120 * s**3) / 4.0)
        return np.allclose(effort.effort, rbd.inverse_dynamics(model, q, v, a), atol=1e-6)

    peer.follow(publisher, message, agrees, NAMES, Q, V)


def test_external_wrenches_enter(start, peer, model):
    start(wrench_timeout=0)
    publisher = peer.node.create_publisher(NamedWrenches, "feedforward/external_wrenches", RELIABLE)
    message = NamedWrenches(wrenches=[NamedWrench(body="lower")])
    message.wrenches[0].wrench.force.z = -7.0
    loaded = rbd.inverse_dynamics(model, Q_REF, V_REF, A_REF, {"lower": np.array([0, 0, 0, 0, 0, -7.0])})
    expected = full(model) + loaded - rbd.inverse_dynamics(model, Q_REF, V_REF, A_REF)
    follow(peer, full(model))
    peer.answer_close_to(expected, NAMES, Q, V, repeat=lambda: publisher.publish(message))
    message.wrenches[0].body = "tool"
    peer.spin_until(lambda: int(peer.diagnostics.get("rejected_unknown_body", 0)), "rejection of an unknown body",
                    lambda: publisher.publish(message))


def test_emergency_stop_latches_until_reset(start, peer, model):
    start(safe_output__damping=0.0)
    publisher = peer.node.create_publisher(Bool, "feedforward/emergency_stop", RELIABLE)
    follow(peer, full(model))
    sent = -math.inf

    def stop():    # seldom: what still waits at the reset stops the arm again
        nonlocal sent
        if time.monotonic() > sent + 1.0:
            sent = time.monotonic()
            publisher.publish(Bool(data=True))

    peer.answer_close_to(rbd.gravity_effort(model, Q), NAMES, Q, V, repeat=stop)
    peer.diagnostics.clear()
    peer.spin_until(lambda: peer.diagnostics.get("mode") == "stopped", "diagnostics of the stop")
    publisher.publish(Bool(data=False))
    peer.send_reference(NAMES, Q_REF, V_REF, A_REF)
    peer.answer_close_to(rbd.gravity_effort(model, Q), NAMES, Q, V)
    assert peer.call(Trigger, "feedforward/reset", Trigger.Request()).success
    follow(peer, full(model))
