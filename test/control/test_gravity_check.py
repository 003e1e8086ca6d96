"""Who compensates gravity: what the measured effort at rest says about it, before and while torque is sent."""
from __future__ import annotations

import numpy as np
import pytest
from support.arm import NAMES, Q, arm

import rbd_ros as rbd
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.safety.gravity_check import compare_gravity

MS = 1_000_000
G = rbd.gravity_effort(arm(), Q)
REST = np.zeros(2)


@pytest.mark.parametrize(("factor", "compensates", "acting", "kind", "words"), [
    (0.0, False, False, "unloaded", ["brakes", "robot_compensates' to [gravity]", "twice"]),
    (0.0, True, False, "unloaded", ["sinks", "nobody compensates gravity", "take gravity out"]),
    (1.0, False, False, "held", ["before this node sends any", "robot_compensates' to [gravity]", "twice"]),
    (1.0, True, False, "agrees", ["agrees", "robot adds by itself"]),
    (2.0, False, False, "double", ["compensated twice already", "another controller"]),
    (2.0, True, False, "double", ["compensated twice already", "tool"]),
    (0.0, False, True, "missing", ["does not reach the joints", "compensated twice", "to [gravity]"]),
    (0.0, True, True, "missing", ["nobody compensates gravity", "take gravity out"]),
    (1.0, False, True, "agrees", ["agrees", "this node sends"]),
    (1.0, True, True, "agrees", ["agrees", "robot adds by itself"]),
    (2.0, False, True, "double", ["compensated twice, by the robot and by this node", "to [gravity]"]),
    (2.0, True, True, "double", ["compensated twice, by the robot and by another controller"]),
    (-1.0, False, True, "sign", ["opposite sign", "upside down"]),
    (-1.0, True, False, "sign", ["opposite sign"]),
    (0.5, False, True, "mismatch", ["no multiple"]),
    (3.0, True, True, "mismatch", ["no multiple", "motor currents"]),
])
def test_cases(factor, compensates, acting, kind, words):
    rng = np.random.default_rng(1)
    for noise in (0.0, 0.1):
        measured = factor * G + noise * np.linalg.norm(G) * rng.uniform(-1, 1, 2)
        verdict = compare_gravity(NAMES, measured, G, compensates, acting)
        assert verdict.kind == kind and verdict.agrees == (kind in ("agrees", "held", "unloaded"))
        for word in words:
            assert word in verdict.text, verdict.text
        assert "at joint 'shoulder'" in verdict.text or "at joint 'elbow'" in verdict.text


def test_swapped_joints_are_a_mismatch():
    verdict = compare_gravity(NAMES, G[::-1], G, False, True)
    assert verdict.kind == "mismatch" and "order of joints" in verdict.text


def test_no_verdict_where_gravity_loads_no_joint():
    verdict = compare_gravity(NAMES, np.array([0.2, -0.1]), np.array([0.1, 0.1]), False, True)
    assert verdict.kind == "unknown" and verdict.agrees


def make(**values):
    values = {"feedforward": "gravity", "ramp_in": 0.0} | values
    made = FeedforwardController(arm(), FeedforwardSettings.from_values(values, arm()))
    made.activate(0.0)
    return made


def test_judged_before_and_again_while_torque_acts():
    made = make()
    assert made.compare_gravity(0.0) is None    # nothing measured yet
    made.on_state(0.1, MS, NAMES, Q, REST, G)
    assert made.compare_gravity(0.1).kind == "held"
    made.on_state(0.2, 2 * MS, NAMES, Q, REST, 2 * G)
    assert made.compare_gravity(0.2) is None    # not yet: the torque has to take effect
    made.on_state(0.7, 3 * MS, NAMES, Q, REST, 2 * G)
    assert made.compare_gravity(0.7).kind == "double"
    made.on_state(2.0, 4 * MS, NAMES, Q, REST, 2 * G)
    assert made.compare_gravity(2.0) is None    # said once
    made.activate(3.0)
    assert made.compare_gravity(3.0) is None    # what was measured before does not count
    made.on_state(3.1, 5 * MS, NAMES, Q, REST, 0 * G)
    assert made.compare_gravity(3.1).kind == "unloaded"


def test_not_judged_in_motion_nor_while_more_than_gravity_is_sent():
    made = make()
    made.on_state(0.1, MS, NAMES, Q, [0.0, 0.1], G)
    assert made.compare_gravity(0.1) is None
    made.on_state(0.2, 2 * MS, NAMES, Q, REST, [np.nan, 0.0])
    assert made.compare_gravity(0.2) is None
    made.on_state(0.3, 3 * MS, NAMES, Q, REST, G)
    assert made.compare_gravity(0.3).kind == "held"
    pushing = FeedforwardSettings.from_values({"feedforward": "gravity", "gains.kp": 100.0, "ramp_in": 0.0}, made.model)
    made.apply(pushing)
    made.on_reference(1.0, 0, NAMES, Q + 0.5)
    made.on_state(1.0, 4 * MS, NAMES, Q, REST, G)
    assert made.compare_gravity(1.0) is None
    made.on_reference(2.0, 0, NAMES, Q)
    made.on_state(2.0, 5 * MS, NAMES, Q, REST, G)
    assert made.compare_gravity(2.0).kind == "agrees"


def test_what_the_robot_compensates_decides():
    for compensates, kind in ((["gravity"], "agrees"), ([], "held")):
        made = make(robot_compensates=compensates)
        made.on_state(0.1, MS, NAMES, Q, REST, G)
        assert made.compare_gravity(0.1).kind == kind


def test_switched_off():
    made = make(gravity_check=False)
    made.on_state(0.1, MS, NAMES, Q, REST, G)
    assert made.compare_gravity(0.1) is None


def test_efforts_that_are_no_efforts_are_not_judged():
    """The largest float, as some drivers say for unknown, was an overflow, and that an emergency stop."""
    made = make()
    made.on_state(0.1, MS, NAMES, Q, REST, [1.7e308, -1.7e308])
    assert made.compare_gravity(0.1) is None


def test_a_pose_beyond_numbers_is_not_judged(monkeypatch):
    """It is no defect of the node: `compare_gravity` runs in the callback of the joint states."""
    def beyond(model, q):
        raise rbd.RbdError("beyond numbers")

    made = FeedforwardController(arm(), FeedforwardSettings.from_values({}, arm()))
    made.activate(0.0)
    made.on_state(1.0, MS, NAMES, Q, REST, G)
    monkeypatch.setattr("rbd_ros.runtime.control.torque_controller.gravity_effort", beyond)
    assert made.compare_gravity(1.0) is None
    monkeypatch.undo()
    assert made.compare_gravity(1.0).kind == "held"
