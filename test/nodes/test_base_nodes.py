"""Nodes on a base that is mounted at an angle (topic tf_static) or moves (odometry), as processes and in this one."""
from __future__ import annotations

import math
import signal
import sys
import types
from types import SimpleNamespace

import numpy as np
import pytest
from harness import RELIABLE, NodeProcess, Peer
from parameters.node_maker import Nodes
from service_messages import Client
from support.arm import TILT

import rbd_ros as rbd
from rbd_ros.core.lie.so3 import from_rpy, to_quaternion

NAMES, Q = ["shoulder", "elbow"], np.array([0.3, -0.7])
URDF = str(rbd.sample_path("two_link"))
FIVE_BAR = str(rbd.sample_path("five_bar"))
MODEL = rbd.load_urdf(URDF)
ROOT = MODEL.body_names[0]
TILTED = rbd.gravity_effort(MODEL.with_(gravity=from_rpy(TILT).T @ [0.0, 0.0, -9.81]), Q)


def transform(parent, child, rpy):
    """A geometry_msgs/TransformStamped, one of tf2_msgs/TFMessage."""
    from geometry_msgs.msg import TransformStamped
    made = TransformStamped(child_frame_id=child)
    made.header.frame_id = parent
    r = made.transform.rotation
    r.x, r.y, r.z, r.w = map(float, to_quaternion(from_rpy(rpy)))
    return made


@pytest.fixture
def tf2_msgs(monkeypatch):
    """A package that may be missing: its message has one field, and subscriptions are kept instead of made."""
    package = types.ModuleType("tf2_msgs.msg")
    package.TFMessage = type("TFMessage", (), {})
    monkeypatch.setitem(sys.modules, "tf2_msgs", types.ModuleType("tf2_msgs"))
    monkeypatch.setitem(sys.modules, "tf2_msgs.msg", package)
    from rbd_ros.nodes.base.model_node import ModelNode
    listen, kept = ModelNode.listen, {}

    def listens(node, kind, topic, callback, *arguments, **options):
        if kind is not package.TFMessage:
            return listen(node, kind, topic, callback, *arguments, **options)
        kept[topic] = callback
        return None

    monkeypatch.setattr(ModelNode, "listen", listens)
    return lambda *transforms: kept["/tf_static"](SimpleNamespace(transforms=transforms))


@pytest.mark.parametrize("program", ["feedforward", "flatness", "simulator", "dynamics_server", "effort_annotator"])
def test_the_configuration_waits_for_the_mounting(program, tf2_msgs, private_domain):
    values = {"robot_description_file": URDF, "mounting.frame": "world"}
    with Nodes(program).started(values) as node:
        assert node.model is None and node.status == "waiting for the transform of the mounting"
        tf2_msgs(transform("table", ROOT, [0.0, 0.0, 0.5]))
        assert node.model is None and "begins at 'table', which has no parent" in node.status
        tf2_msgs(transform("world", "table", TILT))
        assert node.active
        expected = (from_rpy(TILT) @ from_rpy([0.0, 0.0, 0.5])).T @ [0.0, 0.0, -9.81]
        np.testing.assert_allclose(node.model.gravity, expected, atol=1e-12)
        tf2_msgs(transform("world", "table", [0.0, 0.0, 0.0]))    # for the next configuration
        np.testing.assert_allclose(node.model.gravity, expected, atol=1e-12)
        node.trigger_deactivate()
        node.trigger_cleanup()
        node.trigger_configure()
        np.testing.assert_allclose(node.model.gravity, [0.0, 0.0, -9.81], atol=1e-12)


def test_a_mounting_that_cannot_be_is_refused(tf2_msgs, private_domain):
    for more, words in (({"mounting.rpy": [0.1, 0.0, 0.0]}, "both set"), ({"odometry": "odom"}, "both set")):
        with Nodes("feedforward").started({"robot_description_file": URDF, "mounting.frame": "world", **more}) as node:
            tf2_msgs(transform("world", ROOT, TILT))
            assert node.model is None and words in node.status
    with Nodes("dynamics_server").started({"robot_description_file": URDF, "mounting.frame": "world",
                                           "root": "floating"}) as node:
        tf2_msgs(transform("world", ROOT, TILT))
        assert node.model is None and "does not move" in node.status


@pytest.mark.parametrize(("package", "values"), [("tf2_msgs", {"mounting.frame": "world"}),
                                                 ("nav_msgs", {"odometry": "odom"})])
def test_a_missing_package_is_named(package, values, monkeypatch, private_domain):
    monkeypatch.setitem(sys.modules, f"{package}.msg", None)    # cannot be imported
    with Nodes("feedforward").started({"robot_description_file": URDF, **values}) as node:
        assert node.model is None
        assert f"there is no package '{package}' here: install it" in node.status and next(iter(values)) in node.status


# ---- odometry over DDS

class Base(Peer):
    """Sends joint states and odometry of a base that stands tilted."""

    def __init__(self, target="feedforward"):
        super().__init__(target)
        from nav_msgs.msg import Odometry
        self.kind, self.silent = Odometry, False
        self.odometry = self.node.create_publisher(Odometry, "odom", RELIABLE)

    def message(self, rpy=TILT, child=ROOT, world="odom", twist=(0.0,) * 6, stamp=None):
        made = self.kind(child_frame_id=child)
        made.header.frame_id = world
        made.header.stamp = self.stamp() if stamp is None else stamp
        pose, moves = made.pose.pose, made.twist.twist
        pose.position.x, pose.position.y, pose.position.z = 1.0, 2.0, 3.0
        o = pose.orientation
        o.x, o.y, o.z, o.w = map(float, to_quaternion(from_rpy(rpy)))
        moves.angular.x, moves.angular.y, moves.angular.z, moves.linear.x, moves.linear.y, moves.linear.z = twist
        return made

    def tick(self, **changes):
        if not self.silent:
            self.odometry.publish(self.message(**changes))

    def until(self, expected, what, **changes):
        def step():
            self.tick(**changes)
            self.send_state(NAMES, Q, [0.0, 0.0])
        self.efforts.clear()
        self.spin_until(lambda: self.efforts and np.allclose(self.efforts[-1].effort, expected, rtol=0, atol=1e-9),
                        what, step)


def test_torque_on_a_base_that_moves(tmp_path, private_domain):
    pytest.importorskip("nav_msgs.msg", reason="nav_msgs is not installed: no odometry")
    process = NodeProcess(tmp_path, "feedforward", robot_description_file=URDF, odometry="odom", feedforward="gravity",
                          odometry_timeout=1.0, state_timeout=2.0, ramp_in=0.1, ramp_out=0.1, gains__kp=20.0,
                          reference_timeout=0, gravity_check=False, feedback__max_age=".inf", feedback__min_rate=0.0,
                          safe_output__damping=0.0)
    try:
        with Base() as base:
            base.spin_until(lambda: int(base.diagnostics.get("rejected_no_odometry", 0)) > 0, "refused state",
                            lambda: base.send_state(NAMES, Q, [0.0, 0.0]))
            assert not base.efforts and "which way gravity points is not known" in base.status
            base.until(TILTED, "safe effort of the tilted arm")
            command = TILTED + 20.0 * np.array([0.05, 0.1])

            def refer():
                base.send_reference(NAMES, Q + np.array([0.05, 0.1]))

            base.spin_until(lambda: base.efforts and np.allclose(base.efforts[-1].effort, command, atol=1e-9),
                            "command", lambda: (refer(), base.tick(), base.send_state(NAMES, Q, [0.0, 0.0])))
            for kind, changes in (("frame", {"child": "wheel"}), ("frame", {"world": "map"}),
                                  ("implausible", {"rpy": np.add(TILT, [3.0, 0.0, 0.0])}),
                                  ("non_finite", {"twist": (math.nan,) * 6})):
                before = int(base.diagnostics.get(f"rejected_{kind}", 0))
                base.spin_until(
                    lambda: int(base.diagnostics.get(f"rejected_{kind}", 0)) > before, f"count of {kind}",  # noqa: B023
                    lambda: (base.odometry.publish(base.message(**changes)), base.tick(),  # noqa: B023
                             base.send_state(NAMES, Q, [0.0, 0.0])))
            base.until(command, "command in spite of bad odometry")
            base.silent = True
            base.until(TILTED, "safe effort without odometry")
            base.spin_until(lambda: "odometry is" in base.status and base.diagnostics["mode"] == "waiting", "notice",
                            lambda: base.send_state(NAMES, Q, [0.0, 0.0]))
            assert float(base.diagnostics["odometry_age"]) > 1.0 and base.diagnostics["steady_cycles"] == "0"
            base.silent = False
            base.spin_until(lambda: base.efforts and np.allclose(base.efforts[-1].effort, command, atol=1e-9),
                            "command again", lambda: (refer(), base.tick(), base.send_state(NAMES, Q, [0.0, 0.0])))
            assert process.end() == 0 and "Traceback" not in process.output()
    finally:
        process.kill()


def test_the_way_out_knows_how_the_base_turns(tmp_path, private_domain):
    """A ramp that takes longer than odometry counts: it ends in the safe effort of the base as it is turned then."""
    pytest.importorskip("nav_msgs.msg", reason="nav_msgs is not installed: no odometry")
    process = NodeProcess(tmp_path, "feedforward", robot_description_file=URDF, odometry="odom", feedforward="gravity",
                          odometry_timeout=1.0, state_timeout=2.0, ramp_in=0.0, ramp_out=3.0, gains__kp=20.0,
                          reference_timeout=0, gravity_check=False, feedback__max_age=".inf", feedback__min_rate=0.0,
                          safe_output__damping=0.0, safe_output__hold_position=0.0)    # this robot never moves
    ahead = np.array([0.05, 0.1])
    command = TILTED + 20.0 * ahead
    try:
        with Base() as base:
            def step(rpy=TILT):
                base.tick(rpy=rpy)
                base.send_state(NAMES, Q, [0.0, 0.0])

            base.spin_until(lambda: base.efforts and np.allclose(base.efforts[-1].effort, command, atol=1e-9),
                            "command", lambda: (step(), base.send_reference(NAMES, Q + ahead)))
            base.efforts.clear()
            process.process.send_signal(signal.SIGINT)
            turned = np.add(TILT, [0.015, 0.0, 0.0])
            base.spin_until(lambda: process.process.poll() is not None, "end", lambda: step(turned))
            assert process.end() == 0
            gravity = rbd.gravity_effort(MODEL.with_(gravity=from_rpy(turned).T @ [0.0, 0.0, -9.81]), Q)
            base.spin_until(lambda: np.allclose(base.efforts[-1].effort, gravity, rtol=0, atol=1e-9), "safe effort",
                            patience=5.0)
            way = np.array([message.effort for message in base.efforts]) @ ahead
            assert np.abs(np.diff(way)).max() < 0.5 * (way.max() - way.min()), "a ramp, not a step"
    finally:
        process.kill()


def test_the_present_state_of_the_server_includes_the_base(tmp_path, private_domain):
    pytest.importorskip("nav_msgs.msg", reason="nav_msgs is not installed: no odometry")
    process = NodeProcess(tmp_path, "dynamics_server", robot_description_file=FIVE_BAR, root="floating",
                          odometry="odom", odometry_timeout=1.0, state_timeout=1000.0)
    model = rbd.load_urdf(FIVE_BAR, root="floating")
    names, twist = list(model.joint_names[1:]), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    joints, v = 0.1 * np.arange(5), np.array([*twist, 0.5, -0.5, 0.4, 0.3, 0.2])
    bias = rbd.bias_effort(model, np.array([1.0, 2.0, 3.0, *to_quaternion(from_rpy(TILT)), *joints]), v)

    class Asking(Client, Base):
        pass

    try:
        with Asking("dynamics_server") as client:
            client.wait_until_active()
            answers = []

            def asked():
                answers[:] = [client.ask("inverse")]
                return answers[0].success

            def send():
                client.send_state(names, joints, v[6:])

            client.spin_until(lambda: "no odometry" in (asked() or answers[0].message), "joint state", send)
            client.spin_until(asked, "answer for the present state",
                              lambda: (send(), client.tick(twist=twist, child=model.body_names[0])))
            np.testing.assert_allclose(answers[0].effort, bias, rtol=1e-9, atol=1e-9)
            base = {"base_twist": client.message(twist=twist).twist.twist}
            assert "leave it empty, or list the joints" in client.ask("inverse", {"state": base}).message
            client.spin_until(lambda: not asked() and "'odometry_timeout'" in answers[0].message, "odometry too old",
                              send)
            assert process.end() == 0
    finally:
        process.kill()
