"""The motion planner and topic ~/obstacles, over DDS: around what stands there, and nothing else of a stranger's."""
from __future__ import annotations

import numpy as np
import pytest
from harness import LATCHED, Peer
from parameters.node_maker import Nodes
from scipy.interpolate import BPoly
from std_msgs.msg import String
from support.arm import NAMES, arm_to_sphere, shaped_arm_urdf

import rbd_ros as rbd
from rbd_interfaces import srv
from rbd_interfaces.msg import LinkPair, MotionRequest

REQUEST = {"name": NAMES[::-1], "start": [0.4, -0.5], "goal": [-0.3, 0.6], "duration": 2.0}
BALL = "obstacles:\n- {name: ball, shape: sphere, radius: 0.05, frame: [0.72, 0.0, 0.0]}\n"


def from_ball(answer):
    """Smallest distance of a planned motion from `BALL`, by hand, of 20,001 in it."""
    assert answer.success, answer.message
    points = answer.plan.trajectory.points
    t = [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in points]
    values = np.array([(point.positions, point.velocities, point.accelerations) for point in points])
    dense = BPoly.from_derivatives(t, values[..., ::-1])(np.linspace(0.0, REQUEST["duration"], 20_001))
    return arm_to_sphere(dense, (0.72, 0.0), 0.05).min()


def test_motions_go_around_what_is_said_to_stand_there(start_node, tmp_path, private_domain):
    """Distances by hand, 20,000 of each motion; what a stranger sends is no path, and leaves the obstacles there."""
    pytest.importorskip("coal")
    file = tmp_path / "cell.yaml"
    file.write_text(BALL)
    process = start_node("motion_planner", robot_description_file=shaped_arm(tmp_path), collisions__clearance=0.02,
                         time_limit=60.0)
    with Peer("motion_planner") as peer:
        publisher = peer.node.create_publisher(String, "motion_planner/obstacles", LATCHED)
        peer.spin_until(lambda: peer.status == "active" and publisher.get_subscription_count(), "active node")

        def surround(text, **reported):
            publisher.publish(String(data=text))
            peer.spin_until(lambda: all(peer.diagnostics.get(key) == value for key, value in reported.items()),
                            f"{reported}")

        def ask(**fields):
            return peer.call(srv.PlanMotion, "motion_planner/plan_motion", srv.PlanMotion.Request(
                motion=MotionRequest(**REQUEST | fields)))

        def nearest(**fields):
            return from_ball(ask(**fields))

        surround("", obstacles="0")
        assert nearest() < -0.05
        surround(BALL, obstacles="1", collision_pairs="2")
        assert 0.02 - 1e-6 <= nearest() < 0.1
        # of this request alone
        assert 0.04 - 1e-6 <= nearest(clearance=0.04) < 0.1 and nearest() < 0.04
        assert nearest(allowed_pairs=[LinkPair(first="ball", second="lower")]) < -0.05
        for wrong, words in (({"clearance": -1.0}, "clearance"), ({"clearance": float("nan")}, "clearance"),
                             ({"allowed_pairs": [LinkPair(first="ball", second="elbow")]}, "`allowed_pairs`: 'elbow'"),
                             ({"allowed_pairs": [LinkPair()] * 1001}, "1001 entries, expected at most 1000")):
            answer = ask(**wrong)
            assert not answer.success and words in answer.message and not answer.plan.trajectory.points
        # what a stranger sends
        surround(str(file), rejected_total="1")
        surround(f"obstacles:\n- {{name: m, shape: mesh, file: {file}}}", rejected_total="2")
        surround(f"{BALL}#{'x' * 70_000}", rejected_total="3", obstacles="1")
        assert nearest() >= 0.02 - 1e-6
        answer = ask(goal=[0.0, 0.0])
        depth = -arm_to_sphere(np.zeros((1, 2)), (0.72, 0.0), 0.05)[0]
        assert not answer.success and f"goal: 'lower' and 'ball' overlap by {depth:.4g} m" in answer.message
        assert not answer.plan.trajectory.points
        surround("", obstacles="0")
        assert nearest() < -0.05
        # one that starts later hears the last text
        surround(BALL, obstacles="1")
        assert process.end() == 0
        peer.status = ""
        start_node("motion_planner", robot_description_file=shaped_arm(tmp_path), time_limit=60.0)
        peer.spin_until(lambda: peer.status == "active" and peer.diagnostics.get("obstacles") == "1", "obstacles")
        assert nearest() >= 0.01 - 1e-6
    text = process.output()
    assert "collisions are considered: 0 pairs of shapes, at least 0.02 m apart" in text and "Traceback" not in text
    assert "obstacles rejected, the earlier ones stay: obstacles text: expected `obstacles:` and a list, got '/" in text


def shaped_arm(folder):
    path = folder / "arm.urdf"
    path.write_text(shaped_arm_urdf())
    return str(path)


@pytest.mark.parametrize(("use", "words"), [("always", "configuration failed: parameters 'collisions.…': "),
                                            ("auto", "active"), ("never", "active")])
def test_where_there_are_no_shapes(use, words):
    with Nodes("motion_planner").started({"robot_description_file": str(rbd.sample_path("two_link")),
                                          "collisions.use": use}) as node:
        assert node.status.startswith(words)
        topics = {each.topic_name for each in node.subscriptions}
        assert ("/motion_planner/obstacles" in topics) == (use == "auto")
