"""What the steady cycle of a node sends: of the state that it answers, and in its order."""
from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from support.arm import NAMES, arm

from rbd_ros.core.compiled.kernel import COMPILED
from rbd_ros.nodes.loop.steady_answers import InTurn, SteadyAnswers
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.loop_rate import Transit
from rbd_ros.runtime.steady.steady_tracking import TrackingCycle
from rbd_ros.runtime.inputs.joint_state_bytes import JointStateReader

pytestmark = pytest.mark.skipif(not COMPILED, reason="there is no steady cycle in plain Python")


@pytest.fixture
def moving(monkeypatch):
    """A node without ROS: (node, send), where `send(k)` is whether the k-th state was answered by the steady cycle."""
    model = arm()
    controller = FeedforwardController(model, FeedforwardSettings.from_values({"ramp_in": 0.0, "feedforward": "gravity",
                                                                               "feedback.min_rate": 0.0}, model))
    sent = []
    node = SimpleNamespace(controller=controller, active=True, sent=sent,
                           publish_for=lambda command, stamp, q, v: sent.append(
                               (command.effort.copy(), stamp, q.copy(), v.copy())),
                           answered=lambda command, received_ns: sent.append(controller.state.q))
    answers = SteadyAnswers(node, TrackingCycle(controller, Transit()))
    reader = JointStateReader(lambda data: deserialize_message(data, JointState))
    controller.activate(0.0)
    clock = [0.0]
    monkeypatch.setattr("rbd_ros.nodes.loop.steady_answers.time", SimpleNamespace(
        monotonic=lambda: clock[0], time_ns=lambda: round(clock[0] * 1e9)))

    def send(k):
        clock[0] = 1.0 + 2e-3 * k
        message = JointState(name=NAMES, position=[1e-3 * k, 2e-3 * k], velocity=[0.5, 1.0])
        message.header.stamp.sec, message.header.stamp.nanosec = 7, 2_000_000 * k
        data = bytes(serialize_message(message))
        if answers.answer(data, {"source_timestamp": 0, "received_timestamp": 0}):
            return True
        fields = reader.read(data)
        controller.on_state(clock[0], fields.stamp_ns, *fields[2:])
        answers.prepare(reader.layout, data)
        return False

    return node, send


def test_outputs_have_position_velocity_and_stamp_of_the_state_that_is_answered(moving):
    node, send = moving
    assert [send(k) for k in range(50)][5:] == [True] * 45
    for k, (effort, stamp, q, v) in enumerate(node.sent[-80::2], 10):
        np.testing.assert_allclose(q, [1e-3 * k, 2e-3 * k], rtol=1e-15)
        np.testing.assert_array_equal(v, [0.5, 1.0])
        assert stamp == (7, 2_000_000 * k) and np.isfinite(effort).all()
    np.testing.assert_array_equal(node.sent[-1], node.sent[-2][2])    # what follows has the same state


def test_what_an_output_raises_leaves_the_controller_at_the_state_that_was_answered(moving):
    """As by the ordinary way, where it was accepted before the output had it."""
    node, send = moving
    for k in range(10):
        send(k)

    def broken(*arguments):
        raise OSError("no publisher")

    node.publish_for = broken
    with pytest.raises(OSError, match="no publisher"):
        send(10)
    assert node.controller.state.q[0] == 1e-3 * 10


def test_an_inactive_node_answers_nothing(moving):
    node, send = moving
    for k in range(10):
        send(k)
    node.active = False
    before = len(node.sent)
    assert not send(10) and len(node.sent) == before


def test_in_turn_the_first_that_answers_does_and_those_before_it_learn():
    class Shortcut:
        def __init__(self, wanted):
            self.wanted, self.learnt = wanted, []

        def answer(self, message, info):
            return message == self.wanted

        def prepare(self, layout_of, message):
            self.learnt.append((layout_of(message), message))

    first, second = Shortcut(b"a"), Shortcut(b"b")
    both = InTurn(first, second)
    assert not both.answer(b"c", {})
    both.prepare(len, b"c")    # the ordinary way had it
    assert both.answer(b"a", {}) and both.answer(b"b", {})
    assert first.learnt == [(1, b"c"), (1, b"b")] and second.learnt == [(1, b"c")]
