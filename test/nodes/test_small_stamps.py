"""Stamps and timeouts at their ends, over DDS: what a torque node makes of them, and that it goes on afterwards."""
from __future__ import annotations

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from harness import RELIABLE, NodeProcess, Peer
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd

NAMES = ["shoulder", "elbow"]
Q, REFERENCE, GOAL = np.array([0.3, -0.7]), np.array([0.35, -0.6]), np.array([0.32, -0.62])
KP = 20.0
# Rest at the reference, wherever that comes from: gravity and the PD of its position.
PARAMETERS = {"feedforward": "gravity", "gains__kp": KP, "gains__kd": 0.0, "ramp_in": 0.0, "reference_timeout": 0.0,
              "state_timeout": 5.0, "gravity_check": False, "safe_output__damping": 0.0, "feedback__max_age": ".inf"}
ZERO = Time()


class Robot(Peer):
    """A peer whose joint states have stamps, or none."""

    def __init__(self) -> None:
        super().__init__()
        self.gravity = rbd.gravity_effort(rbd.sample("two_link"), Q)
        self.trajectories = self.node.create_publisher(JointTrajectory, "feedforward/joint_trajectory", RELIABLE)
        self.stamped = True

    def until(self, position, what, repeat=None):
        """Until the torque is that of this reference; None: the safe effort."""
        expected = self.gravity + (0.0 if position is None else KP * (position - Q))
        self.efforts.clear()

        def tick():
            if repeat is not None:
                repeat()
            self.send_state(NAMES, Q, [0.0, 0.0], stamp=None if self.stamped else ZERO)

        self.spin_until(lambda: self.efforts and np.allclose(self.efforts[-1].effort, expected, rtol=0, atol=1e-9),
                        f"{what}: {expected}", tick)

    def refer(self, position, stamp=None):
        return lambda: self.send_reference(NAMES, position, stamp=stamp)

    def send_trajectory(self, goal, after=0.0, stamp=None):
        """To the goal within 0.1 s, beginning `after` s after the last state."""
        ns = 0 if stamp is not None else self.last_ns() + round(after * 1e9)
        message = JointTrajectory(joint_names=NAMES, points=[JointTrajectoryPoint(
            positions=list(goal), velocities=[0.0, 0.0], time_from_start=Duration(nanosec=100_000_000))])
        message.header.stamp = Time(sec=ns // 1_000_000_000, nanosec=ns % 1_000_000_000)
        self.spin_until(lambda: self.trajectories.get_subscription_count() > 0, "subscription")
        self.trajectories.publish(message)

    def last_ns(self):
        stamp = self.efforts[-1].header.stamp
        return stamp.sec * 1_000_000_000 + stamp.nanosec


@pytest.fixture
def robot(tmp_path, private_domain):
    process = NodeProcess(tmp_path, "feedforward", robot_description_file=str(rbd.sample_path("two_link")),
                          effort_limits__rate="[.inf, 50.0]", **PARAMETERS)
    try:
        with Robot() as robot:
            yield robot
        assert "Traceback" not in process.output()
    finally:
        process.kill()


def test_a_far_stamp_does_not_lock_out_a_stream_that_never_times_out(robot):
    """`reference_timeout` 0: what comes after it counts all the same."""
    robot.until(REFERENCE, "following", robot.refer(REFERENCE, Time(sec=1000)))
    robot.until(GOAL, "the far future", robot.refer(GOAL, Time(sec=2_000_000_000)))
    robot.until(REFERENCE, "the present", robot.refer(REFERENCE, Time(sec=1001)))
    robot.until(REFERENCE, "and it stays there")


def test_states_without_stamps_have_trajectories_that_begin_at_once(robot):
    robot.stamped = False
    robot.until(REFERENCE, "following", robot.refer(REFERENCE))
    robot.send_trajectory(GOAL, stamp=ZERO)
    robot.until(GOAL, "the goal")
    robot.efforts.clear()
    robot.until(GOAL, "one more answer")
    robot.last_ns = lambda: 10**18    # and one with a stamp is refused
    robot.send_trajectory(REFERENCE)
    robot.spin_until(lambda: int(robot.diagnostics.get("rejected_bad_trajectory", 0)) == 1, "rejection",
                     lambda: robot.send_state(NAMES, Q, [0.0, 0.0], stamp=ZERO))
    robot.until(GOAL, "where it was")


def test_a_trajectory_that_begins_later_lets_the_stream_run_until_then(robot):
    robot.until(REFERENCE, "following", robot.refer(REFERENCE))
    begin = robot.last_ns() + 200_000_000    # 200 states
    robot.send_trajectory(GOAL, 0.2)
    moved = REFERENCE + np.array([0.004, -0.002])
    robot.until(moved, "the stream goes on", robot.refer(moved))
    assert robot.last_ns() < begin
    robot.until(GOAL, "the trajectory, at its time")
    assert robot.last_ns() >= begin + 90_000_000


def test_no_rate_limit_for_one_joint_and_one_for_the_other(robot):
    """inf · 0 s is no number: states that come at once, one after another."""
    robot.until(REFERENCE, "following", robot.refer(REFERENCE))
    robot.efforts.clear()
    for _ in range(30):
        robot.send_state(NAMES, Q, [0.0, 0.0])
    robot.until(GOAL, "the other", robot.refer(GOAL))
    assert all(math.isfinite(number) for message in robot.efforts for number in message.effort)
    assert robot.diagnostics.get("non_finite_command", "0") == "0"
