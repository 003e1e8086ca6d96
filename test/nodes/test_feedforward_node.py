"""The feed-forward node as users have it: a process of its own, reached over DDS."""
from __future__ import annotations

import itertools
import math
import signal

import numpy as np
import pytest
from harness import LATCHED, RELIABLE, NodeProcess, Peer
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd
from rbd_interfaces.msg import NamedWrench, NamedWrenches

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")

URDF = """<robot name="elbow">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
    <inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0.15 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="{shoulder}" velocity="3"/><dynamics damping="0.5" friction="0.2"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.4 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="50" velocity="3"/></joint>
</robot>"""
NAMES = ["shoulder", "elbow"]
PATIENT = {"ramp_in": 0.0, "ramp_out": 0.0, "state_timeout": 10.0, "reference_timeout": 0}
Q, V = np.array([0.3, -0.7]), np.array([0.4, 0.2])
Q_REF, V_REF, A_REF = np.array([0.35, -0.6]), np.array([0.5, 0.1]), np.array([1.0, -2.0])


@pytest.fixture(scope="module")
def model():
    return rbd.load_urdf(URDF.format(shoulder=100))


@pytest.fixture
def start(tmp_path):
    """Start feed-forward nodes; kill what a failed test leaves behind."""
    started, number = [], itertools.count()

    def launch(*arguments, shoulder=100, **parameters):
        folder = tmp_path / str(next(number))
        folder.mkdir()
        (folder / "robot.urdf").write_text(URDF.format(shoulder=shoulder))
        parameters.setdefault("robot_description_file", str(folder / "robot.urdf"))
        started.append(NodeProcess(folder, "feedforward", arguments, **(PATIENT | parameters)))
        return started[-1]

    yield launch
    for process in started:
        process.kill()


@pytest.fixture
def peer(private_domain):
    with Peer() as peer:
        yield peer


def full(model, kp=0.0, kd=0.0):
    """Effort that the node must answer to Q, V for the reference Q_REF, V_REF, A_REF."""
    feedforward = rbd.inverse_dynamics(model, Q_REF, V_REF, A_REF)
    friction = model.damping * V_REF + model.friction * np.tanh(V_REF / 0.01)
    return feedforward + friction + kp * (Q_REF - Q) + kd * (V_REF - V)


def follow(peer, expected, **options):
    return peer.answer_close_to(expected, NAMES, Q, V, repeat=lambda: peer.send_reference(NAMES, Q_REF, V_REF, A_REF),
                                **options)


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
    process = start()
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
    start(state_timeout=0.3, safe_output__hold=0.2, safe_output__fallback_ramp=0.2, safe_output__fallback=[1.5, -0.5])
    follow(peer, full(model))
    gravity = rbd.gravity_effort(model, Q)
    peer.efforts.clear()
    peer.spin_until(lambda: any(np.allclose(e.effort, gravity, atol=1e-9) for e in peer.efforts), "gravity effort")
    peer.spin_until(lambda: any(np.allclose(e.effort, [1.5, -0.5]) for e in peer.efforts), "fallback effort")
    peer.efforts.clear()
    peer.spin_until(lambda: len(peer.efforts) > 3, "repetition of the fallback")
    assert all(np.allclose(e.effort, [1.5, -0.5]) for e in peer.efforts)
    follow(peer, full(model))    # states again: control again


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_leaves_a_safe_effort_and_exit_code_0(start, peer, model, number):
    process = start(ramp_out=0.05, state_timeout=0.1)
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


def test_robot_that_compensates_gravity_gets_zero(start, peer, model):
    start(robot_compensates=["gravity"], state_timeout=0.3)
    follow(peer, full(model) - rbd.gravity_effort(model, Q))
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
    assert list(trajectories[-1].points[0].positions) == list(Q) and trajectories[-1].header.stamp.sec == 0
    assert states[-1].name == NAMES and list(states[-1].position) == list(Q) and list(states[-1].velocity) == list(V)


def test_trajectory_is_interpolated_at_the_stamps_of_the_states(start, peer, model):
    start(friction__damping=False, friction__coulomb=False)
    publisher = peer.node.create_publisher(JointTrajectory, "feedforward/joint_trajectory", RELIABLE)
    message = JointTrajectory(joint_names=NAMES, points=[
        JointTrajectoryPoint(positions=[0.0, 0.0], velocities=[0.0, 0.0], accelerations=[0.0, 0.0]),
        JointTrajectoryPoint(positions=[1.0, 0.5], velocities=[0.0, 0.0], accelerations=[0.0, 0.0])])
    message.points[1].time_from_start.sec = 2
    peer.spin_until(lambda: publisher.get_subscription_count() > 0, "subscription")
    peer.answer(NAMES, Q, V)
    message.header.stamp = peer.stamp()
    start_s = message.header.stamp.sec + message.header.stamp.nanosec * 1e-9
    publisher.publish(message)

    def follows():
        effort = peer.answer(NAMES, Q, V)
        s = (effort.header.stamp.sec + effort.header.stamp.nanosec * 1e-9 - start_s) / 2.0
        reach = np.array([1.0, 0.5])
        q, v, a = (reach * (10 * s**3 - 15 * s**4 + 6 * s**5), reach * (30 * s**2 - 60 * s**3 + 30 * s**4) / 2.0,
                   reach * (60 * s - 180 * s**2 + 120 * s**3) / 4.0)
        return 0.0 < s < 1.0 and np.allclose(effort.effort, rbd.inverse_dynamics(model, q, v, a), atol=1e-6)

    peer.spin_until(follows, "effort along the trajectory")


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
    peer.answer_close_to(rbd.gravity_effort(model, Q), NAMES, Q, V, repeat=lambda: publisher.publish(Bool(data=True)))
    publisher.publish(Bool(data=False))
    peer.send_reference(NAMES, Q_REF, V_REF, A_REF)
    peer.answer_close_to(rbd.gravity_effort(model, Q), NAMES, Q, V)
    assert peer.call(Trigger, "feedforward/reset", Trigger.Request()).success
    follow(peer, full(model))


def change_state(peer, transition):
    request = ChangeState.Request(transition=Transition(id=transition))
    return peer.call(ChangeState, "feedforward/change_state", request).success


def test_life_cycle_by_services(start, peer, model):
    process = start(autostart=False, ramp_out=0.05, state_timeout=0.2)
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
