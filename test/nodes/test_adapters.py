"""What each output of a torque node puts into its message: fields, order, sizes, and what it needs to be there."""
from __future__ import annotations

import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from harness import NodeProcess, Peer
from rclpy.clock import Clock
from rclpy.serialization import deserialize_message
from stand_in_messages import CONTROL_MSGS, LBR_FRI_IDL, LFC_MSGS, generate
from support import elastic_arm
from support.arm import A_REF, NAMES, Q_REF, V_REF, arm
from support.arm import Q as NEAR_Q, V as NEAR_V
from support.lqr import gain

import rbd_ros as rbd
from rbd_ros.nodes.outputs import ADAPTERS, ADAPTERS_TABLE, make_outputs
from rbd_ros.nodes.outputs.efforts import EffortRateOutput
from rbd_ros.nodes.outputs.motors import MotorEffortOutput, MotorReferenceOutput
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.control.flatness import FlatnessSettings
from rbd_ros.runtime.control.mit import AGREEING
from rbd_ros.runtime.parameters import validate
from rbd_ros.runtime.safety import Command

Q, V, EFFORT = np.array([0.1, 0.2]), np.array([0.3, -0.4]), np.array([5.0, -6.0])


class FakeNode:
    """Catches what would be published, and keeps subscriptions to be called by the test."""

    def __init__(self):
        self.published, self.topics, self.callbacks = {}, {}, {}
        self.controller, self.clock = None, Clock()

    def create_publisher(self, kind, topic, qos, **options):
        self.topics[topic] = kind
        sent = self.published.setdefault(topic, [])
        return SimpleNamespace(publish=lambda message: sent.append(_copy(
            deserialize_message(message, kind) if isinstance(message, bytes) else message)))

    def destroy_publisher(self, publisher):
        pass

    def subscribe(self, kind, topic, callback, qos):
        self.callbacks[topic] = callback

    def get_clock(self):
        return self.clock

    def get_logger(self):
        return SimpleNamespace(info=lambda text: None)

    @property
    def state_timeout(self):
        return self.controller.settings.safety.state_timeout

    def fade_in(self):
        self.controller.safety.restart()


    @property
    def state_age(self):
        return self.controller.state.age(time.monotonic())


def _copy(message):
    """The fields of a message as plain values: outputs fill one message again and again."""
    return {name: _plain(getattr(message, name)) for name in message.get_fields_and_field_types()}


def _plain(value):
    if hasattr(value, "get_fields_and_field_types"):
        return _copy(value)
    if isinstance(value, (str, int, float)):
        return value
    return [_plain(item) for item in value]


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messages")
    sys.path.insert(0, str(folder))
    try:
        generate(folder, "control_msgs", CONTROL_MSGS)
        generate(folder, "lbr_fri_idl", LBR_FRI_IDL)
        generate(folder, "linear_feedback_controller_msgs", LFC_MSGS)
        yield
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.split(".")[0] in (
                "control_msgs", "lbr_fri_idl", "linear_feedback_controller_msgs")]:
            del sys.modules[name]


def make(adapter, model=None, **values):
    """(fake node, the adapter's output)"""
    model = arm() if model is None else model
    values = {"adapters": [adapter]} | {name.replace("__", "."): value for name, value in values.items()}
    ours = {row.name: values.pop(row.name) for row in ADAPTERS_TABLE if row.name in values}
    settings = FeedforwardSettings.from_values(values, model)
    node = FakeNode()
    node.controller = FeedforwardController(model, settings)
    outputs = make_outputs(node, model, settings, validate(ADAPTERS_TABLE, ours))
    assert len(outputs) == 1
    return node, outputs[0]


def publish(adapter, **values):
    """(topic, message) of one publication"""
    node, output = make(adapter, **values)
    output.publish((5, 0), Q, V, Command(EFFORT))
    [topic] = node.topics
    assert len(node.published[topic]) == 1
    return topic, node.published[topic][0]


# ---- what an output sends is in its arguments alone

def test_time_derivatives_are_those_of_the_command():
    node = FakeNode()
    output = EffortRateOutput(node, FlatnessSettings.from_values({}, arm()))
    output.publish((5, 0), Q, V, Command(EFFORT, np.array([[1.0, 2.0], [3.0, 4.0]])))
    output.publish((5, 0), Q, V, Command(EFFORT))
    known, unknown = node.published["~/effort"]
    assert known["derivatives_valid"] and known["effort"] == unknown["effort"] == list(EFFORT)
    assert known["effort_rate"] == [1.0, 2.0] and known["effort_acceleration"] == [3.0, 4.0]
    assert not (unknown["derivatives_valid"] or unknown["effort_rate"] or unknown["effort_acceleration"])


def test_motors_are_those_of_the_command():
    made, node = elastic_arm.controller(mode="feed_forward"), FakeNode()
    outputs = [kind(node, made.settings) for kind in (MotorReferenceOutput, MotorEffortOutput)]
    motors, effort = elastic_arm.expected(made), np.array([1.0, 2.0, 3.0])
    for command in (Command(EFFORT, None, effort, motors), Command(EFFORT, None, -effort)):    # and a safe output
        for output in outputs:
            output.publish((5, 0), Q, V, command)
    [reference] = node.published["~/motor_reference"]
    assert reference["motor_position"] == list(motors.position[:2])
    assert reference["stiffness_motor_position"][1] == motors.position[2]
    assert [each["effort"] for each in node.published["~/motor_effort"]] == [list(effort), list(-effort)]
    assert [each["data"] for each in node.published["~/motor_commands"]] == [list(effort), list(-effort)]


# ---- adapters

def test_jtc():
    topic, message = publish("jtc")
    assert topic == "joint_trajectory_controller/joint_trajectory"
    assert message["header"]["stamp"] == {"sec": 0, "nanosec": 0} and message["joint_names"] == NAMES
    [point] = message["points"]
    assert point == {"positions": list(Q), "velocities": list(V), "accelerations": [], "effort": list(EFFORT),
                     "time_from_start": {"sec": 0, "nanosec": 0}}


def test_jtc_parameters():
    topic, message = publish("jtc", jtc__controller="arm", jtc__joints=["elbow"], jtc__time_from_start=0.0025,
                             jtc__velocities=False)
    assert topic == "arm/joint_trajectory" and message["joint_names"] == ["elbow"]
    [point] = message["points"]
    assert point == {"positions": [0.2], "velocities": [], "accelerations": [], "effort": [-6.0],
                     "time_from_start": {"sec": 0, "nanosec": 2_500_000}}


def test_multi_dof(stand_ins):
    topic, message = publish("multi_dof")
    assert topic == "pid_controller/reference"
    assert message == {"dof_names": NAMES, "values": list(EFFORT), "values_dot": []}
    topic, message = publish("multi_dof", multi_dof__controller="torque_loop", multi_dof__joints=["elbow", "shoulder"])
    assert topic == "torque_loop/reference"
    assert message["dof_names"] == ["elbow", "shoulder"] and message["values"] == [-6.0, 5.0]


def test_joint_command(stand_ins):
    topic, message = publish("joint_command")
    assert topic == "robot_joint_commands/effort" and message["interface_name"] == "effort"
    assert message["joint_names"] == NAMES and message["values"] == list(EFFORT)
    assert abs(message["header"]["stamp"]["sec"] - time.time()) < 60.0    # now: a repeated safe output is fresh
    topic, message = publish("joint_command", joint_command__topic="sim/effort", joint_command__joints=["elbow"])
    assert topic == "sim/effort" and message["joint_names"] == ["elbow"] and message["values"] == [-6.0]


def mit(**values):
    """{topic: numbers} of one publication to motors that close a loop"""
    values = {"mit__kp": [20.0, 10.0], "mit__kd": [2.0, 1.0], **values}
    node, output = make("mit", **values)
    node.controller.state.received = time.monotonic()
    begin(output, Q)
    return {topic: sent[0]["data"] for topic, sent in node.published.items()}


def begin(output, q):
    """Send once, when the first joint states agree."""
    for ns in range(AGREEING):
        output.publish((5, ns), q, V, Command(EFFORT))


def test_mit():
    assert mit() == {f"forward_{name}_controller/commands": numbers for name, numbers in (
        ("position", list(Q)), ("velocity", list(V)), ("effort", list(EFFORT)), ("kp", [20.0, 10.0]),
        ("kd", [2.0, 1.0]))}


def test_mit_parameters():
    assert mit(mit__controller="arm/mit", mit__interfaces=["effort", "velocity", "position"],
               mit__joints=["elbow", "shoulder"]) == {
        "arm/mit_effort/commands": [-6.0, 5.0], "arm/mit_velocity/commands": list(V[::-1]),
        "arm/mit_position/commands": list(Q[::-1])}
    assert mit(mit__topic_per="joint", mit__controller="{}/mit", mit__torque_scale=[1.25, 2.0]) == {
        "shoulder/mit/commands": [0.1, 0.3, 4.0, 16.0, 1.6], "elbow/mit/commands": [0.2, -0.4, -3.0, 5.0, 0.5]}
    for values, words in (({"mit__kp": 0.0}, "'mit.kp' above 0.*shoulder, elbow"),
                          ({"mit__interfaces": ["position", "kp"]}, "'mit.interfaces' is position, kp: expected"),
                          ({"mit__interfaces": ["position", "velocity", "effort", "effort"]}, "once each")):
        with pytest.raises(rbd.RbdError, match=words):
            mit(**values)


def test_mit_starts_anew_when_the_node_is_activated():
    node, output = make("mit", mit__kp=10.0, mit__position_change=0.02)
    node.controller.state.received = time.monotonic()
    sent = node.published["forward_position_controller/commands"]
    begin(output, Q)
    for _ in range(2):    # an outlier; and the same state again
        output.publish((6, 0), Q + 1.0, V, Command(EFFORT))
    output.begin()
    begin(output, Q + 1.0)
    np.testing.assert_allclose([each["data"] for each in sent], [Q, Q + 0.02, Q + 0.02, Q + 1.0], rtol=0, atol=1e-12)


def applied(message, q, v):
    """The efforts of linear-feedback-controller for this message."""
    joints = message["initial_state"]["joint_state"]
    rows, columns = (dim["size"] for dim in message["feedback_gain"]["layout"]["dim"])
    gain = np.reshape(message["feedback_gain"]["data"], (rows, columns))
    error = np.concatenate([np.array(joints["position"]) - q, np.array(joints["velocity"]) - v])
    return np.array(message["feedforward"]["data"]) + gain @ error


def test_linear_feedback_is_a_plain_torque_without_a_command(stand_ins):
    topic, message = publish("linear_feedback")
    assert topic == "control" and message["initial_state"]["joint_state"]["name"] == NAMES
    assert not any(message["feedback_gain"]["data"])
    np.testing.assert_array_equal(applied(message, Q + 1.0, V - 1.0), EFFORT)
    assert abs(message["header"]["stamp"]["sec"] - time.time()) < 60.0


def streaming(stand_ins, **values):
    """A message of a node that follows a stream of references, and its answer to the same state."""
    node, output = make("linear_feedback", ramp_in=0.0, feedforward="lqr", lqr__position=[100.0], lqr__velocity=[2.0],
                        lqr__effort=[0.5], friction__coulomb=False, friction__damping=False, **values)
    controller = node.controller
    controller.activate(0.0)
    assert controller.on_reference(1.0, 0, NAMES, Q_REF, V_REF, A_REF)
    command = controller.on_state(1.0, 1, NAMES, NEAR_Q, NEAR_V)
    output.publish((5, 0), NEAR_Q, NEAR_V, command)
    [topic] = node.topics
    return topic, node.published[topic][0]


def test_linear_feedback_parameters(stand_ins):
    """By `hold`, reference and feed-forward are those of its middle; the gain is that of the answered state."""
    K = gain(arm().with_(damping=0.0), Q_REF, V_REF, A_REF, 100.0, 2.0, 0.5)
    for hold in (0.0, 0.02, 0.1):
        topic, message = streaming(stand_ins, linear_feedback__hold=hold)
        assert topic == "control"
        h = 0.5 * hold
        later = Q_REF + h * V_REF + 0.5 * h * h * A_REF, V_REF + h * A_REF, A_REF
        for q, v in ((NEAR_Q, NEAR_V), (NEAR_Q + 0.1, NEAR_V - 0.3)):
            expected = rbd.inverse_dynamics(arm(), *later) + K @ np.concatenate([q - later[0], v - later[1]])
            np.testing.assert_allclose(applied(message, q, v), expected, rtol=0, atol=1e-6)
    topic, turned = streaming(stand_ins, linear_feedback__topic="loop", linear_feedback__joints=NAMES[::-1],
                              linear_feedback__hold=0.1)
    assert topic == "loop" and turned["initial_state"]["joint_state"]["name"] == NAMES[::-1]
    np.testing.assert_allclose(applied(turned, Q[::-1] + 0.1, V[::-1]), applied(message, Q + 0.1, V)[::-1], atol=1e-9)


def test_linear_feedback_is_for_robots_and_nodes_that_it_fits(stand_ins):
    with pytest.raises(rbd.RbdError, match=r"state of all joints.*expected shoulder, elbow, got elbow"):
        make("linear_feedback", linear_feedback__joints=["elbow"])
    settings = FlatnessSettings.from_values({}, arm())
    with pytest.raises(rbd.RbdError, match="has the feedback of node feedforward"):
        make_outputs(FakeNode(), arm(), settings, validate(ADAPTERS_TABLE, {"adapters": ["linear_feedback"]}))
    with pytest.raises(rbd.RbdError, match="has the feedback of node feedforward"):
        make("linear_feedback", odometry="odom")


@pytest.fixture
def lbr(stand_ins, monkeypatch):
    """An iiwa's node and output; `.say(session_state, measured)` and `.send()`, in one instant."""
    from lbr_fri_idl.msg import LBRState
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    model = rbd.sample("iiwa")
    node, output = make("lbr", model, lbr__joints=list(model.joint_names), ramp_in=0.0)

    def say(session_state, measured=0.5):
        node.callbacks["state"](LBRState(session_state=session_state, measured_joint_position=np.full(7, measured)))

    def send():
        output.publish((0, 0), np.arange(7.0), np.zeros(7), Command(np.arange(10.0, 17.0)))
        return node.published["command/torque"]

    return SimpleNamespace(node=node, model=model, say=say, send=send, controller=node.controller)


def test_lbr_only_while_commanding_active(lbr):
    assert lbr.send() == []
    for state in (0, 1, 2, 3, -1):
        lbr.say(state)
        assert lbr.send() == []
    lbr.say(4)
    assert lbr.send() == [{"joint_position": [0.5] * 7, "torque": list(np.arange(10.0, 17.0))}]
    lbr.say(3)
    assert len(lbr.send()) == 1


def test_lbr_measured_position_while_fresh_else_the_joint_state(lbr, monkeypatch):
    lbr.say(4, 0.25)
    assert lbr.send()[-1]["joint_position"] == [0.25] * 7
    lbr.say(4, np.nan)    # nothing measured: the last one
    assert lbr.send()[-1]["joint_position"] == [0.25] * 7
    later = time.monotonic() + 0.06
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert lbr.send()[-1]["joint_position"] == list(np.arange(7.0))


def test_lbr_ramps_in_when_the_session_becomes_active(lbr):
    q, zero = lbr.model.neutral(), np.zeros(7)
    lbr.controller.activate(0.0)
    lbr.controller.on_reference(0.0, 0, lbr.model.joint_names, q)
    lbr.controller.on_state(0.0, 1, lbr.model.joint_names, q, zero)
    assert lbr.controller.safety.mode == "running"
    lbr.say(4)
    assert lbr.controller.safety.mode == "waiting"
    lbr.controller.on_state(0.001, 2, lbr.model.joint_names, q, zero)
    assert lbr.controller.safety.mode == "running"
    lbr.say(4)    # still active: no ramp
    assert lbr.controller.safety.mode == "running"


def test_lbr_parameters(stand_ins, monkeypatch):
    model = rbd.sample("iiwa")
    order = list(model.joint_names[::-1])
    node, output = make("lbr", model, lbr__joints=order, lbr__command_topic="c", lbr__state_topic="s")
    from lbr_fri_idl.msg import LBRState
    node.callbacks["s"](LBRState(session_state=4))
    output.publish((0, 0), np.arange(7.0), np.zeros(7), Command(np.arange(7.0)))
    assert node.published["c"][0]["torque"] == list(np.arange(7.0)[::-1])
    later = time.monotonic() + 0.06
    monkeypatch.setattr(time, "monotonic", lambda: later)
    output.publish((0, 0), np.arange(7.0), np.zeros(7), Command(np.arange(7.0)))
    assert node.published["c"][1]["joint_position"] == list(np.arange(7.0)[::-1])
    with pytest.raises(rbd.RbdError, match=r"7 joints.*has 2: shoulder, elbow"):
        make("lbr")


@pytest.mark.parametrize("adapter", [name for name in ADAPTERS if any(
    row.name == f"{name}.joints" for row in ADAPTERS_TABLE)])
def test_unknown_and_repeated_joints_are_refused_with_the_parameter(stand_ins, adapter):
    model = rbd.sample("iiwa")
    names = list(model.joint_names)
    parameter = f"{adapter}__joints"
    with pytest.raises(rbd.RbdError, match=rf"'{adapter}\.joints'.*wrist"):
        make(adapter, model, **{parameter: [*names[:6], "wrist"]})
    with pytest.raises(rbd.RbdError, match=rf"'{adapter}\.joints' names a joint twice"):
        make(adapter, model, **{parameter: [*names[:6], names[0]]})


def test_sizes_cannot_change():
    """The buffers of a message are as long as its names: an array of another length cannot get into them."""
    _, output = make("jtc")
    with pytest.raises((ValueError, IndexError)):
        output.publish((0, 0), Q, V, Command(EFFORT[:1]))


def without(package, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)    # import fails, whatever is installed


@pytest.mark.parametrize(("adapter", "package"), [("multi_dof", "control_msgs"), ("joint_command", "control_msgs"),
                                                  ("linear_feedback", "linear_feedback_controller_msgs"),
                                                  ("lbr", "lbr_fri_idl")])
def test_missing_package_is_named(adapter, package, monkeypatch):
    without(package, monkeypatch)
    with pytest.raises(rbd.RbdError, match=rf"adapter '{adapter}'.*no package '{package}'"):
        make(adapter, rbd.sample("iiwa"))


def test_message_that_an_old_package_lacks_is_named(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    generate(tmp_path, "control_msgs", {"MultiDOFCommand": CONTROL_MSGS["MultiDOFCommand"]})
    make("multi_dof")
    with pytest.raises(rbd.RbdError, match=r"JointCommand, which the installed 'control_msgs' .* install a newer one"):
        make("joint_command")
    for name in [name for name in sys.modules if name.split(".")[0] == "control_msgs"]:
        del sys.modules[name]


def test_without_the_selected_package_the_node_is_not_configured(tmp_path, private_domain):
    (tmp_path / "control_msgs.py").write_text("raise ImportError\n")
    with Peer() as peer:
        process = NodeProcess(tmp_path, "feedforward", robot_description_file=rbd.sample_path("two_link"),
                              adapters=list(ADAPTERS), **{"mit.kp": 50.0}, python_path=tmp_path)
        try:
            peer.spin_until(lambda: "configuration failed" in peer.status, "refusal")
            assert "no package 'control_msgs'" in peer.status
            assert process.end() == 0
        finally:
            process.kill()
