"""Drivers that return one state in motion for ever, with new stamps: arms in the loop of the nodes' own callbacks."""
from __future__ import annotations

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from silent_node import SilentNode
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd

pytestmark = [pytest.mark.closed_loop, pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")]
MODEL = rbd.sample("iiwa").with_(armature=0.3)
NAMES, START = list(MODEL.joint_names), np.linspace(0.2, 0.8, 7)
H = 1e-3    # s
FRICTION = np.array([4.0, 4.0, 3.0, 3.0, 2.0, 1.5, 1.0])    # N m, of geared joints, which the model does not know
DAMPING = np.array([6.0, 6.0, 4.0, 4.0, 2.0, 1.0, 1.0])     # N m s
FAST = 0.3    # rad/s: the arm moves
VALUES = {"gains.kp": [400.0], "gains.kd": [40.0]}


class Loop:
    """A node and a simulated arm 5 % heavier than its model. driver: makes of a state the one that is sent."""

    def __init__(self, kind, values, monkeypatch):
        self.node = SilentNode(kind, MODEL, values, monkeypatch)
        self.arm = rbd.Simulator(MODEL.with_scaled_masses(1.05).with_(friction=FRICTION, damping=DAMPING), q=START)
        self.node.activate()
        self.driver = lambda q, v: (q, v)
        self.fastest = 0.0

    def go(self, seconds):
        for _ in range(round(seconds / H)):
            self.node.now += H
            self.node.state(round(self.node.now * 1e9), NAMES, *self.driver(self.arm.q.copy(), self.arm.v.copy()))
            self.node.watch()
            self.arm.step(self.node.published[-1][0].effort)
            self.fastest = max(self.fastest, float(np.abs(self.arm.v).max()))
        return self

    def move(self, goal, duration):
        message, seconds = JointTrajectory(joint_names=NAMES), int(duration)
        message.points = [JointTrajectoryPoint(
            positions=[float(x) for x in goal], velocities=[0.0] * 7, accelerations=[0.0] * 7,
            time_from_start=Duration(sec=seconds, nanosec=round((duration - seconds) * 1e9)))]
        self.node.trajectory(message)
        return self

    def freeze(self):
        frozen = self.arm.q.copy(), self.arm.v.copy()
        assert np.abs(frozen[1]).max() > FAST
        self.driver = lambda q, v: frozen
        self.fastest = 0.0
        return frozen


@pytest.mark.parametrize("kind", ["feedforward", "flatness"])
def test_an_arm_whose_driver_freezes_in_motion_comes_to_rest(kind, monkeypatch):
    """The reference goes on for another second: its acceleration would be fed forward, against frozen feedback: 12
    rad/s. It takes 0.02 rad to be noticed, and `state_timeout` until the arm is carried, as without states.
    """
    loop = Loop(kind, VALUES, monkeypatch).go(0.7).move(START - 0.5, 1.5).go(0.5)
    place, velocity = loop.freeze()
    modes = [loop.go(H).node.controller.safety.mode for _ in range(500)]
    late = modes.index("stale")
    assert late <= 1e3 * 0.02 / np.abs(velocity).max() + 60 and set(modes[late:]) == {"stale"}
    counts = loop.node.controller.rejections.counts
    assert counts["repeated"] == counts.total() > 450
    assert loop.fastest < 3.5 and np.abs(loop.arm.q - place).max() < 0.8
    loop.driver = lambda q, v: (q, v)    # it measures again
    loop.go(3.0)
    assert loop.fastest < 3.5 and np.abs(loop.arm.v).max() < 0.01
    assert loop.node.controller.safety.mode == "running"    # it has gone on to its goal
    assert np.abs(loop.arm.q - START + 0.5).max() < 0.1
