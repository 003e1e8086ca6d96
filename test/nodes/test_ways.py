"""Ways between torques over DDS: ramps, fades and limits lead through nothing that one odd state says.

Most states that the nodes get here are outliers in velocity. The efforts that answer the good ones between them must
be as if the outliers had never been: between the command and the safe effort of that cycle (docs/safety.md).
"""
from __future__ import annotations

import itertools
import signal
from functools import partial

import numpy as np
import pytest
from harness import RELIABLE, ROOT, Peer
from sensor_msgs.msg import JointState

import rbd_ros as rbd
from rbd_interfaces.msg import ElasticJointReference, JointEffort

NAMES, MOTORS = ["shoulder", "elbow"], ["shoulder", "elbow", "elbow/stiffness"]
Q, REFERENCE = np.array([0.3, -0.7]), np.array([0.35, -0.6])
KP, ODD = 20.0, np.array([30.0, -40.0])    # gain; velocities that no joint has
URDF = rbd.sample_path("two_link")
FILE = ROOT / "config" / "sea_example.actuation.yaml"
GRAVITY = rbd.gravity_effort(rbd.sample("two_link"), Q)
COMMAND = GRAVITY + KP * (REFERENCE - Q)
ROUND = 1e-9
COMMON = {"robot_description_file": str(URDF), "gravity_check": False, "reference_timeout": 0, "state_timeout": 1.0,
          "feedback.max_age": ".inf", "feedback.min_rate": 0.0,    # however long a machine lets a state wait
          "plausible_velocity": ".inf"}    # outliers that pass are what these tests are about


@pytest.fixture
def start(start_node):
    common = {name.replace(".", "__"): value for name, value in COMMON.items()}
    return partial(start_node, **common)


class Robot(Peer):
    """Sends four outliers to two good states, and keeps the efforts that answer good ones."""

    def __init__(self, target="feedforward"):
        super().__init__(target)
        self.good: set[tuple[int, int]] = set()
        self.turn, self.outliers = itertools.count(), False
        self.answers: list[np.ndarray] = []
        self.motor_answers: list[np.ndarray] = []
        self.references: list[ElasticJointReference] = []
        self.motors = self.node.create_publisher(JointState, "motor_states", RELIABLE)
        self.node.create_subscription(JointEffort, f"{target}/effort", partial(self._keep, self.answers), RELIABLE)
        self.node.create_subscription(JointState, f"{target}/motor_effort", partial(self._keep, self.motor_answers),
                                      RELIABLE)
        self.node.create_subscription(ElasticJointReference, f"{target}/motor_reference", self.references.append,
                                      RELIABLE)

    def _keep(self, where, message):
        if (message.header.stamp.sec, message.header.stamp.nanosec) in self.good:
            where.append(np.array(message.effort))

    def tick(self):
        turn = next(self.turn)
        odd = self.outliers and turn % 6 < 4
        v = ODD if odd else np.zeros(2)
        elastic = self.target == "flatness"
        if elastic:    # never equal to the last ones to the bit: in motion that is a driver that repeats itself
            self.motors.publish(JointState(name=MOTORS, position=[*(Q + 2e-13 * (turn % 7)), 300.0],
                                           velocity=[*v, 0.0]))
        stamp = self.send_state(NAMES, Q, v)
        # states of motors may come after those of joints: the second good one is the first that meets a good one
        if not odd and not (elastic and turn % 6 == 4):
            self.good.add((stamp.sec, stamp.nanosec))

    def spin_until(self, condition, what, repeat=None, patience=30.0):
        def tick():
            if repeat is not None:
                repeat()
            self.tick()
        return super().spin_until(condition, what, tick, patience)

    def settle(self, expected):
        self.spin_until(lambda: self.efforts and np.allclose(self.efforts[-1].effort, expected, rtol=0, atol=1e-9),
                        f"effort {expected}", lambda: self.send_reference(NAMES, REFERENCE, [0.0, 0.0]))


def between(values, first, second):
    low, high = np.minimum(first, second) - ROUND, np.maximum(first, second) + ROUND
    return [value for value in values if not ((low <= value) & (value <= high)).all()]


def test_the_way_out_of_an_arm(start, private_domain):
    process = start("feedforward", feedforward="gravity", gains__kp=KP, ramp_in=0.0, ramp_out=4.0,
                    safe_output__damping=5.0)
    with Robot() as robot:
        robot.settle(COMMAND)
        robot.outliers, robot.answers[:] = True, []
        robot.spin_until(lambda: len(robot.answers) > 3, "answers")
        robot.answers.clear()
        process.process.send_signal(signal.SIGINT)
        robot.spin_until(lambda: process.process.poll() is not None, "end")
        assert process.end() == 0
        assert len(robot.answers) > 3
        assert between(robot.answers, COMMAND, GRAVITY) == []


def test_the_way_out_of_motors(start, private_domain):
    process = start("flatness", actuation_file=str(FILE), mode="feed_forward", ramp_in=0.0, ramp_out=4.0,
                    safe_output__damping=5.0)
    actuation = rbd.load_actuation(FILE, rbd.load_urdf(URDF))
    r = np.zeros((5, 2))
    r[0] = REFERENCE
    command = rbd.motor_reference(actuation, *r[:3], rbd.link_efforts(actuation, *r)).effort
    held = np.array([*GRAVITY, 0.5 * (GRAVITY[1] / 300.0) ** 2])
    with Robot("flatness") as robot:
        robot.spin_until(lambda: robot.motor_answers and np.allclose(robot.motor_answers[-1], command, atol=1e-9),
                         f"motor effort {command}", lambda: robot.send_reference(NAMES, *r))
        robot.outliers = True
        robot.spin_until(lambda: len(robot.motor_answers) > 3, "answers")
        robot.motor_answers.clear()
        process.process.send_signal(signal.SIGINT)
        robot.spin_until(lambda: process.process.poll() is not None, "end")
        assert len(robot.motor_answers) > 3
        assert between(robot.motor_answers, command, held) == []


def test_a_fade_between_gains(start, private_domain):
    start("feedforward", feedforward="gravity", gains__kp=KP, gains__kd=5.0, ramp_in=0.0)
    with Robot() as robot:
        robot.settle(COMMAND)
        assert robot.set_parameter("ramp_in", 0.8).successful
        robot.outliers = True
        assert robot.set_parameter("gains.kd", 0.0).successful
        robot.answers.clear()
        robot.spin_until(lambda: len(robot.answers) > 5, "answers")
        # at rest both gains say the same
        assert between(robot.answers, COMMAND, COMMAND) == []


def test_a_fade_into_a_stream_that_begins_elsewhere(start, private_domain):
    """The law damps, and the stream begins at a velocity: what fades is the reference's part alone."""
    start("feedforward", feedforward="gravity", gains__kp=KP, gains__kd=5.0, ramp_in=0.0)
    away = REFERENCE + np.array([0.2, -0.1])
    with Robot() as robot:
        robot.settle(COMMAND)
        assert robot.set_parameters([("ramp_in", 0.8), ("reference_timeout", 0.05)])[1].successful
        robot.spin_until(lambda: len(robot.answers) > 30, "silence of the stream")
        robot.outliers = True
        robot.answers.clear()
        robot.spin_until(lambda: len(robot.answers) > 8, "answers", lambda: robot.send_reference(
            NAMES, away, [0.0, 0.0]))
        assert between(robot.answers, COMMAND, COMMAND + KP * (away - REFERENCE)) == []


@pytest.mark.parametrize("mode", ["waiting", "stopped"])
def test_higher_limits_are_no_step_while_the_output_is_safe(start, private_domain, mode):
    from std_msgs.msg import Bool

    start("feedforward", feedforward="full", ramp_in=3.0, effort_limits__maximum=0.25)
    with Robot() as robot:
        low = np.clip(GRAVITY, -0.25, 0.25)
        robot.spin_until(lambda: robot.efforts and np.allclose(robot.efforts[-1].effort, low), "safe effort")
        if mode == "stopped":
            stops = robot.node.create_publisher(Bool, "feedforward/emergency_stop", RELIABLE)
            robot.spin_until(lambda: robot.diagnostics.get("mode") == mode, "stop",
                             lambda: stops.publish(Bool(data=True)))
        robot.efforts.clear()
        assert robot.set_parameter("effort_limits.maximum", 1e3).successful
        robot.spin_until(lambda: robot.efforts and np.allclose(robot.efforts[-1].effort, GRAVITY), "all of it")
        share = [(effort.effort[0] - low[0]) / (GRAVITY[0] - low[0]) for effort in robot.efforts]
        assert sum(0.02 < s < 0.98 for s in share) > 10
        assert (np.diff(share) >= -1e-12).all()


@pytest.mark.parametrize("elastic", [False, True])
def test_nothing_that_is_not_finite_is_in_any_field(start, private_domain, elastic):
    more = {"actuation_file": str(FILE), "mode": "feed_forward"} if elastic else {}
    start("flatness", ramp_in=0.0, **more)
    with Robot("flatness") as robot:
        for v in (1e78, 1e100, 1e140, 1e60, 1.0):
            robot.efforts.clear()
            robot.spin_until(lambda: len(robot.efforts) > 5, "efforts", lambda v=v: robot.send_reference(
                NAMES, REFERENCE, [v, v], *np.full((3, 2), v)))
            for effort in robot.efforts:
                fields = [*effort.effort, *effort.effort_rate, *effort.effort_acceleration]
                assert np.isfinite(fields).all(), (v, fields)
            for reference in robot.references:
                for field in ("position", "velocity", "acceleration", "effort"):
                    assert np.isfinite(getattr(reference, f"motor_{field}")).all(), (v, field)
        robot.spin_until(lambda: elastic or robot.efforts[-1].derivatives_valid, "derivatives",
                         lambda: robot.send_reference(NAMES, REFERENCE, [1.0, 1.0], *np.ones((3, 2))))
