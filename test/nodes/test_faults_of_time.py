"""Fault injection over DDS, continued: stamps, trajectories, references, limits, states that are answered late.

As in test_faults.py, one process per control loop serves all tests, and follows before and after each of them.
"""
from __future__ import annotations

import itertools
import os
import signal
import time
from functools import partial

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from harness import RELIABLE, NodeProcess, Peer
from lifecycle_msgs.msg import Transition
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from test_faults import KP, NAMES, PARAMETERS, REFERENCE, Q, Robot
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd

KD = 2.0
FAR = np.array([3.0, 0.0])
ENDLESS = rbd.sample_path("two_link").read_text().replace('name="shoulder" type="revolute"',
                                                          'name="shoulder" type="continuous"')


@pytest.fixture(scope="module")
def shared(tmp_path_factory, private_domain):
    folder = tmp_path_factory.mktemp("faults")
    (folder / "endless.urdf").write_text(ENDLESS)
    process = NodeProcess(folder, "feedforward",
                          robot_description_file=folder / "endless.urdf", **(PARAMETERS | {"gains__kd": KD}))
    try:
        with Robot() as robot:
            robot.process = process
            robot.trajectories = robot.node.create_publisher(JointTrajectory, "feedforward/joint_trajectory", RELIABLE)
            robot.spin_until(lambda: robot.trajectories.get_subscription_count() > 0, "subscription")
            yield robot
            assert process.end() == 0
    finally:
        process.kill()


@pytest.fixture
def robot(shared):
    shared.silent = False
    shared.follow()
    shared.heard = 0
    yield shared
    shared.silent = False
    shared.follow()
    assert shared.heard > 0 and not shared.wrong
    assert "Traceback" not in shared.process.output()


def in_turns(robot, disturb):
    """Each second tick a valid state, and in between the disturbance alone."""
    def send():
        robot.silent = not robot.silent
        if robot.silent:
            disturb()
    return send


def counted(robot, key, disturb, what):
    """Until there are three more of this kind, and the effort stays the command meanwhile."""
    [before] = robot.counts(key)
    robot.efforts.clear()
    robot.spin_until(lambda: robot.counts(key)[0] >= before + 3, what, disturb)
    for message in robot.efforts:
        np.testing.assert_allclose(message.effort, robot.command, rtol=0, atol=1e-9)


def trajectory(*points, stamp=None):
    """Points: (s, positions)."""
    message = JointTrajectory(joint_names=NAMES)
    for seconds, positions in points:
        message.points.append(JointTrajectoryPoint(positions=[float(q) for q in positions],
                                                   time_from_start=Duration(nanosec=round(seconds * 1e9))))
    if stamp is not None:
        message.header.stamp = stamp
    return message


def earlier(robot):
    """A stamp of half a second ago."""
    now = robot.stamp()
    ns = now.sec * 1_000_000_000 + now.nanosec - 490_000_000
    return Time(sec=ns // 1_000_000_000, nanosec=ns % 1_000_000_000)


# ---- trajectories

UNUSABLE = {
    "between its points": (lambda robot: trajectory((0.02, REFERENCE), (0.03, REFERENCE + 1.0)), "limit"),
    "limits of position": (lambda robot: trajectory((0.02, REFERENCE), (0.9, [0.35, -2.7])), "elbow"),
    "in the past": (lambda robot: trajectory((0.0, REFERENCE), (0.1, REFERENCE), stamp=Time(sec=1)), "past"),
    "not to be caught up with": (lambda robot: trajectory((0.0, REFERENCE), (0.5, REFERENCE + FAR),
                                                          stamp=earlier(robot)), "ago"),
}


@pytest.mark.parametrize("what", UNUSABLE)
def test_trajectories_that_cannot_be_followed(robot, what):
    make, words = UNUSABLE[what]
    before = len(robot.process.output())
    counted(robot, "rejected_bad_trajectory", lambda: robot.trajectories.publish(make(robot)), "rejections")
    robot.spin_until(lambda: words in robot.process.output()[before:], f"log with {words}",
                     lambda: robot.trajectories.publish(make(robot)))


@pytest.mark.parametrize(("row", "words"), [("v", "velocity -50"), ("a", "acceleration 1e+04")])
def test_references_with_rates_that_no_joint_has(robot, row, words):
    before, size = len(robot.process.output()), {"v": -50.0, "a": 1e4}[row]

    def send():
        robot.send_reference(NAMES, REFERENCE, **{"v": [0.0, 0.0], row: [0.0, size]})

    counted(robot, "rejected_implausible", send, "rejections")
    robot.spin_until(lambda: words in robot.process.output()[before:], f"log with {words}", send)    # not of each


def test_what_is_sent_after_the_deactivation(robot):
    """On the way out, and when that is over."""
    assert robot.change(Transition.TRANSITION_DEACTIVATE)
    before = len(robot.process.output())
    robot.spin_until(lambda: "no trajectory is accepted from the deactivation on" in robot.process.output()[before:],
                     "refusal", lambda: robot.trajectories.publish(trajectory((0.5, REFERENCE))))
    assert robot.change(Transition.TRANSITION_ACTIVATE)
    robot.follow()


def test_a_trajectory_that_is_not_finite(robot):
    bad = trajectory((0.5, [REFERENCE[0], np.nan]))
    counted(robot, "rejected_non_finite", lambda: robot.trajectories.publish(bad), "rejections")


def test_a_trajectory_beyond_a_velocity_limit(robot):
    """By less than a factor of two: followed, with a warning."""
    goal = REFERENCE + np.array([0.0, 0.3])    # 15 rad/s, where 10 are allowed
    before = len(robot.process.output())
    robot.spin_until(lambda: "velocity" in robot.process.output()[before:], "warning",
                     lambda: robot.trajectories.publish(trajectory((0.02, REFERENCE), (0.04, goal))))
    robot.until(robot.gravity + KP * (goal - Q), "goal")


def test_a_trajectory_while_states_are_stale(robot):
    robot.silent = True
    robot.spin_until(lambda: robot.diagnostics.get("mode") == "stale", "stale")
    [before] = robot.counts("rejected_bad_trajectory")
    robot.spin_until(lambda: robot.counts("rejected_bad_trajectory")[0] > before, "rejection",
                     lambda: robot.trajectories.publish(trajectory((0.5, REFERENCE))))


# ---- stamps and positions

def test_stamps_are_missing_all_of_a_sudden(robot):
    counted(robot, "rejected_stamp_backwards", in_turns(robot, lambda: robot.send_state(NAMES, Q, stamp=Time())),
            "rejections")


def test_a_clock_that_jumps_ahead(robot):
    """It is believed after some states, and references of the old time are dropped."""
    [before] = robot.counts("clock_restarts")
    robot.stays(robot.command, count=30)    # steps and pace of the stamps are known
    robot._stamps = itertools.count(next(robot._stamps) + 10**12, 1_000_000)
    robot.until(robot.gravity, "safe output")
    robot.spin_until(lambda: robot.counts("clock_restarts")[0] > before, "count of the restart")


def test_a_turn_of_a_continuous_joint_is_nothing(robot):
    turn = [2.0 * np.pi, 0.0]
    for q, reference in ((Q + turn, REFERENCE), (Q, REFERENCE - turn)):
        robot.efforts.clear()
        robot.spin_until(lambda: len(robot.efforts) > 20, "efforts",
                         in_turns(robot, lambda q=q, reference=reference: (
                             robot.send_state(NAMES, q, [0.0, 0.0]), robot.send_reference(NAMES, reference))))
        for message in robot.efforts:
            np.testing.assert_allclose(message.effort, robot.command, rtol=0, atol=1e-9)


def test_a_state_that_is_answered_late(robot):
    """The node is stopped meanwhile, as by a machine that has no time: no feedback in its answer."""
    assert robot.set_parameter("feedback.max_age", 5.0).successful
    robot.follow()
    robot.stays(robot.command, count=100)    # period and pace of the states are known
    [before] = robot.counts("old_states")
    node = robot.process.process.pid

    def stop():
        robot.send_state(NAMES, Q, [0.0, 0.0])
        os.kill(node, signal.SIGSTOP)
        robot.send_state(NAMES, Q, [0.0, 0.0])
        end = time.monotonic() + 0.4
        Peer.spin_until(robot, lambda: time.monotonic() > end, "time")
        os.kill(node, signal.SIGCONT)
        heard, end = len(robot.efforts), time.monotonic() + 1.0    # before the next stop it answers, and reports
        Peer.spin_until(robot, lambda: len(robot.efforts) > heard or time.monotonic() > end, "time")

    robot.efforts.clear()
    robot.spin_until(lambda: robot.counts("old_states")[0] > before, "count", stop)
    assert any(np.allclose(message.effort, robot.gravity, rtol=0, atol=1e-9) for message in robot.efforts)
    assert robot.set_parameter("feedback.max_age", float("inf")).successful


# ---- references and limits

def test_the_reference_stream_stops(robot):
    """The velocity of the last reference acts until `reference_timeout`, then it stands still there."""
    assert robot.set_parameter("reference_timeout", 0.3).successful
    v = np.array([0.5, -0.5])
    robot.until(robot.command + KD * v, "following", lambda: robot.send_reference(NAMES, REFERENCE, v))
    robot.until(robot.command, "standing still")
    assert robot.set_parameter("reference_timeout", 0.0).successful


def test_stamps_of_references_go_backwards(robot):
    references = itertools.cycle([lambda: robot.send_reference(NAMES, REFERENCE, stamp=robot.stamp()),
                                  lambda: robot.send_reference(NAMES, Q, stamp=Time(sec=1))])
    for left in reversed(range(5)):
        robot.until(robot.command, "following", lambda: robot.send_reference(NAMES, REFERENCE, stamp=robot.stamp()))
        try:
            counted(robot, "rejected_stamp_backwards", lambda: next(references)(), "rejections")
            break
        except AssertionError:    # after a pause of the machine the stream begins anew, with any stamp
            if not left:
                raise


def test_lower_limits_act_at_once(robot):
    limit = 0.5 * np.abs(robot.command).max()
    assert robot.set_parameter("effort_limits.maximum", float(limit)).successful
    robot.until(np.clip(robot.command, -limit, limit), "lower limits", partial(robot.send_reference, NAMES, REFERENCE))
    robot.spin_until(lambda: robot.counts("saturated")[0] > 0, "count")
    assert robot.set_parameter("effort_limits.maximum", PARAMETERS["effort_limits__maximum"]).successful


# ---- bytes

def test_bytes_that_are_no_joint_state(robot):
    good = bytes(serialize_message(JointState(name=NAMES, position=list(Q), velocity=[0.0, 0.0])))
    bad = itertools.cycle([good[:40], good[:-20], good[:4], b"\x00\x07" + good[2:9]])
    send = in_turns(robot, lambda: robot._states.publish(next(bad)))
    counted(robot, "rejected_malformed", send, "rejections")
    robot.stays(robot.command, send, count=40)
