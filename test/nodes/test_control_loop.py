"""The control loop of a torque node over DDS: own wait set and bytes, an executor, active waiting; what goes wrong."""
from __future__ import annotations

import pytest
import rclpy
from harness import NodeProcess, Peer
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from support.arm import NAMES
from test_faults_of_motors import begun

import rbd_ros as rbd

Q = [0.3, -0.5]
GRAVITY = rbd.gravity_effort(rbd.load_urdf(rbd.sample_path("two_link")), Q)
QUIET = {"feedforward": "gravity", "ramp_in": 0.0, "ramp_out": 0.0, "state_timeout": 10.0}


@pytest.fixture
def started(tmp_path, private_domain):
    """Starts a node with parameters: (peer, process)."""
    running = []

    def start(**parameters):
        process = NodeProcess(tmp_path, "feedforward", robot_description_file=str(rbd.sample_path("two_link")),
                              **{**QUIET, **parameters})
        peer = Peer("feedforward")
        running.append((peer, process))
        return peer, process

    yield start
    for peer, process in running:
        peer.__exit__(None, None, None)
        process.kill()


@pytest.mark.parametrize("parameters", [{"control_loop": "direct"}, {"control_loop": "executor"},
                                        {"active_wait": 0.005}], ids=str)
def test_every_loop_gives_the_same_answer_and_ends(started, parameters):
    peer, process = started(**parameters)
    peer.answer_close_to(GRAVITY, NAMES, Q)
    for _ in range(3):    # without a thread meanwhile
        for step in (Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP, Transition.TRANSITION_CONFIGURE,
                     Transition.TRANSITION_ACTIVATE):
            assert peer.call(ChangeState, "feedforward/change_state",
                             ChangeState.Request(transition=Transition(id=step))).success
        peer.answer_close_to(GRAVITY, NAMES, Q)
    assert process.end() == 0
    assert "Traceback" not in process.output()


def test_bytes_that_are_no_joint_state_are_counted_and_named(started):
    peer, process = started()
    peer.answer_close_to(GRAVITY, NAMES, Q)
    state = JointState(name=NAMES, position=Q, velocity=[0.0, 0.0])
    good = bytes(serialize_message(state))
    for data in (good[:40], good[:-20], good[:4], b"\x00\x07" + good[2:9]):
        before = int(peer.diagnostics.get("rejected_malformed", 0))    # without a joint's name: one a second counts
        peer.spin_until(lambda before=before: int(peer.diagnostics.get("rejected_malformed", 0)) > before, "its count",
                        repeat=lambda data=data: peer._states.publish(data))
    assert "not a sensor_msgs/JointState" in process.output()
    peer.answer_close_to(GRAVITY, NAMES, Q)


def test_a_driver_with_another_layout_is_understood(started):
    """Order, further joints, a frame, efforts: all that makes the bytes others, in turns."""
    peer, _ = started()
    peer.answer_close_to(GRAVITY, NAMES, Q)
    peer.answer_close_to(GRAVITY, NAMES[::-1], Q[::-1])
    peer.answer_close_to(GRAVITY, ["gripper", *NAMES], [1.0, *Q])
    peer.answer_close_to(GRAVITY, NAMES, Q, [0.0, 0.0])
    peer.answer_close_to(GRAVITY, NAMES, Q)


def test_time_that_is_waited_actively_is_reported(started):
    peer, _ = started(active_wait=0.01, state_rate=100.0)
    peer.answer_close_to(GRAVITY, NAMES, Q)
    peer.spin_until(lambda: float(peer.diagnostics.get("active_wait_s", 0)) > 0.0, "time of active waiting",
                    repeat=lambda: peer.send_state(NAMES, Q, [0.0, 0.0]))


def test_what_the_system_refuses_is_said(started):
    peer, process = started(cpu_affinity=[4095.0])
    peer.answer_close_to(GRAVITY, NAMES, Q)
    peer.spin_until(lambda: "processors 4095: refused" in peer.diagnostics.get("scheduling", ""), "the refusal")
    assert "processors 4095: refused by the system" in process.output()


def test_a_publisher_that_does_not_fit_is_warned_of(started):
    """QoS events of the joint states work without an executor."""
    qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    peer, process = started(**{"qos_overrides./joint_states.subscription.reliability": "reliable"})
    peer.answer_close_to(GRAVITY, NAMES, Q)
    node = rclpy.create_node("driver", context=peer.context)
    publisher = node.create_publisher(JointState, "joint_states", qos)
    try:
        peer.spin_until(lambda: "incompatible QoS" in process.output(), "the warning")
    finally:
        node.destroy_publisher(publisher)
        node.destroy_node()


@pytest.mark.parametrize("parameters", [{"control_loop": "direct"}, {"control_loop": "executor"},
                                        {"active_wait": 0.005}], ids=str)
def test_states_as_bytes_are_answered_by_the_steady_cycle(started, parameters):
    """With the same effort, and nothing of it by objects."""
    peer, process = started(feedforward="full", feedback__min_rate=0.0, feedback__max_age=1e3, **parameters)
    peer.spin_until(lambda: peer.diagnostics.get("mode") == "running", "motion",
                    lambda: (peer.send_reference(NAMES, Q), peer.send_state(NAMES, Q, [0.0, 0.0])))
    before = int(peer.diagnostics["steady_cycles"])
    bytes_are_read = parameters.get("control_loop") != "executor"
    peer.spin_until(lambda: int(peer.diagnostics["steady_cycles"]) > before or not bytes_are_read, "steady cycles",
                    lambda: peer.answer_close_to(GRAVITY, NAMES, Q, [0.0, 0.0]))
    assert (int(peer.diagnostics["steady_cycles"]) > 0) == bytes_are_read
    assert process.end() == 0
    assert "Traceback" not in process.output()


@pytest.mark.thorough
def test_elastic_joints_by_an_executor(tmp_path, private_domain):
    with begun(tmp_path, "variable", control_loop="executor") as arm:
        arm.until(arm.command, "following")
        arm.counted("rejected_malformed", lambda: arm.motors.publish(b"\x00\x01\x00\x00" + b"\xff" * 40))
