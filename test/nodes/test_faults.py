"""Fault injection over DDS: what a torque node publishes when its inputs fail, and how it comes back (docs/safety.md).

One process serves all tests; each leaves it following again, until the last one ends it. Whatever the fault, every
effort that the node publishes must be finite and within its limits.
"""
from __future__ import annotations

import itertools
import math
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from harness import PATIENCE, RELIABLE, NodeProcess, Peer, driver_of
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

import rbd_ros as rbd
from rbd_interfaces.msg import JointEffort, NamedWrench, NamedWrenches

NAMES = ["shoulder", "elbow"]
Q, REFERENCE = np.array([0.3, -0.7]), np.array([0.35, -0.6])
KP, LIMIT, FALLBACK = 20.0, 12.0, np.array([0.25, -0.125])
# The first two are long, so that a busy machine that lets this process wait does not look like a fault.
PARAMETERS = {"state_timeout": 3.0, "safe_output__hold": 1.0, "safe_output__fallback_ramp": 0.15,
              "safe_output__fallback": list(FALLBACK), "ramp_in": 0.1, "ramp_out": 0.1, "reference_timeout": 0,
              "feedforward": "gravity", "gains__kp": KP, "gains__kd": 0.0, "effort_limits__maximum": LIMIT,
              "safe_output__damping": 0.0, "gravity_check": False,
              "feedback__max_age": ".inf", "feedback__min_rate": 0.0}    # nor does it here


class Robot(Peer):
    """A peer that sends joint states while it spins, unless `silent`, and checks every effort that it hears."""

    def __init__(self) -> None:
        super().__init__()
        self.model = rbd.sample("two_link")
        self.gravity = rbd.gravity_effort(self.model, Q)
        self.command = self.gravity + KP * (REFERENCE - Q)
        self.silent, self.measured = False, ()
        self.heard, self.wrong = 0, []
        self.node.create_subscription(JointEffort, "feedforward/effort", self._check, RELIABLE)
        self.stops = self.node.create_publisher(Bool, "feedforward/emergency_stop", RELIABLE)

    def _check(self, message):
        self.heard += 1
        effort = np.array(message.effort)
        if not (effort.shape == (2,) and np.isfinite(effort).all() and np.abs(effort).max() <= LIMIT):
            self.wrong.append(effort)

    def spin_until(self, condition, what, repeat=None, patience=PATIENCE):
        def tick():
            if repeat is not None:
                repeat()
            if not self.silent:
                self.send_state(NAMES, Q, [0.0, 0.0], self.measured)
        return super().spin_until(condition, what, tick, patience)

    def until(self, expected, what, repeat=None):
        """Wait until this effort is the last one of those published from now on."""
        self.efforts.clear()
        self.spin_until(lambda: self.efforts and np.allclose(self.efforts[-1].effort, expected, rtol=0, atol=1e-9),
                        f"{what}: effort {np.round(expected, 4)}", repeat)

    def stays(self, expected, repeat=None, count=20):
        """All of the next efforts are this one."""
        self.efforts.clear()
        self.spin_until(lambda: len(self.efforts) >= count, f"{count} efforts", repeat)
        for message in self.efforts:
            np.testing.assert_allclose(message.effort, expected, rtol=0, atol=1e-9)

    def follow(self):
        self.until(self.command, "following", lambda: self.send_reference(NAMES, REFERENCE))

    def counts(self, *keys):
        return [int(self.diagnostics.get(key, 0)) for key in keys]

    def change(self, *transitions):
        return all([self.call(ChangeState, "feedforward/change_state", ChangeState.Request(
            transition=Transition(id=transition))).success for transition in transitions])


@pytest.fixture(scope="module")
def shared(tmp_path_factory, private_domain):
    process = NodeProcess(tmp_path_factory.mktemp("faults"), "feedforward",
                          robot_description_file=str(rbd.sample_path("two_link")), **PARAMETERS)
    try:
        with Robot() as robot:
            robot.process = process
            yield robot
    finally:
        process.kill()


@pytest.fixture
def robot(shared):
    """The robot, whose node follows before and after; nothing wrong may have been published meanwhile."""
    shared.follow()
    shared.heard = 0
    yield shared
    if shared.process.process.poll() is None:
        shared.silent = False
        shared.change(Transition.TRANSITION_ACTIVATE)    # where a failed test left it inactive; refused elsewhere
        shared.follow()
    assert shared.heard > 0 and not shared.wrong
    assert "Traceback" not in shared.process.output()


def long_enough(robot, name):
    """Give this time a second, so that some messages are sent within it though the machine lets both processes wait."""
    assert robot.set_parameter(name, 1.0).successful


def test_joint_states_stop(robot):
    """Held gravity, ramp to the fallback, that for ever; with states again the node ramps in."""
    robot.stays(robot.command)    # so that the node knows the period
    robot.silent = True
    robot.efforts.clear()
    robot.spin_until(lambda: robot.efforts and np.allclose(robot.efforts[-1].effort, FALLBACK), "fallback")
    efforts = np.array([message.effort for message in robot.efforts])
    held = np.isclose(efforts, robot.gravity, rtol=0, atol=1e-9).all(axis=1)
    assert held.any()    # the safe output of the last pose comes first
    way = (efforts[np.argmax(held):] - robot.gravity) @ (FALLBACK - robot.gravity)
    assert (np.diff(way) >= -1e-9).all()    # and then nothing but the way to the fallback
    robot.stays(FALLBACK)
    output = robot.process.output
    robot.spin_until(lambda: "s: publishing 'safe_output.fallback'" in output(), "log that says what is published now")
    assert "s: publishing the safe effort" in output()
    assert "joint state late by more than two periods" in robot.process.output()


def test_publisher_of_the_states_is_killed(robot):
    robot.silent = True
    driver = subprocess.Popen([sys.executable, "-c", driver_of(0.01, dict(zip(NAMES, Q.tolist(), strict=True)))])
    try:
        robot.follow()    # with the driver's states
    finally:
        driver.kill()
        driver.wait()
    robot.until(FALLBACK, "fallback")


def test_malformed_states_and_references(robot):
    """Each is counted by kind; the effort stays that of the last valid ones."""
    kinds = ["wrong_size", "non_finite", "unknown_joint", "missing_joint", "duplicate_joint", "stamp_backwards",
             "unknown_body"]
    keys = [f"rejected_{kind}" for kind in kinds]
    wrenches = robot.node.create_publisher(NamedWrenches, "feedforward/external_wrenches", RELIABLE)
    before = robot.counts(*keys)

    malformed = itertools.cycle([    # one at a time, as the subscriptions keep only the last message
        lambda: robot.send_state(NAMES, Q, [0.0, 0.0], stamp=Time(sec=1)),
        lambda: robot.send_state(NAMES, [math.nan, 0.1], [0.0, 0.0]),
        lambda: robot.send_state(NAMES, [math.inf, 0.1]),
        lambda: robot.send_state(NAMES, [0.1]),
        lambda: robot.send_state(NAMES, [0.1, 0.2, 0.3], [0.0] * 3),
        lambda: robot.send_state(NAMES, Q, [0.0]),
        lambda: robot.send_state(["shoulder"], [0.1]),
        lambda: robot.send_state(["shoulder", "shoulder", "elbow"], [0.1, 0.2, 0.3]),
        lambda: robot.send_state(["gripper"], [0.1]),
        lambda: robot.send_state([], []),
        lambda: robot.send_reference(NAMES, [math.nan, 0.0]),
        lambda: robot.send_reference(NAMES, [0.1]),
        lambda: robot.send_reference(NAMES, REFERENCE, [math.inf, 0.0]),
        lambda: robot.send_reference(["shoulder", "wrist"], REFERENCE),
        lambda: wrenches.publish(NamedWrenches(wrenches=[NamedWrench(body="tool")]))])

    def send():    # the next one, alone, and a valid state 20 ms later
        robot.silent = not robot.silent
        if robot.silent:
            next(malformed)()

    robot.spin_until(lambda: all(now > old for now, old in zip(robot.counts(*keys), before, strict=True)),
                     "rejection of every kind", send)
    robot.stays(robot.command, send)


def test_enormous_values(robot):
    """Finite, but no torque of this arm: limited, or the safe output where none can be computed."""
    robot.until([LIMIT, -LIMIT], "limits", lambda: robot.send_reference(NAMES, [1e140, -1e140]))
    robot.efforts.clear()
    robot.spin_until(lambda: len(robot.efforts) > 20, "efforts",
                     lambda: robot.send_state(NAMES, [1e12, -1e12], [1e120, -1e120], [1e120, 1e120]))


def test_clock_is_reset(robot):
    """Simulated time starts again: rejected while the old states are fresh, then gravity until there is a reference."""
    [before] = robot.counts("clock_restarts")
    robot._stamps = iter(range(1_000_000, 10**15, 1_000_000))
    robot.until(robot.gravity, "safe output")
    robot.stays(robot.gravity)
    robot.spin_until(lambda: robot.counts("clock_restarts") > [before] and robot.diagnostics["mode"] == "waiting",
                     "count of the restart")


def test_emergency_stop(robot):
    """Latched, whatever comes: releasing the button, new references, a new configuration and activation."""
    robot.until(robot.gravity, "safe output", lambda: robot.stops.publish(Bool(data=True)))
    robot.stays(robot.gravity, lambda: (robot.stops.publish(Bool(data=False)),
                                        robot.send_reference(NAMES, REFERENCE)))
    assert robot.change(Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP,
                        Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE)
    robot.stays(robot.gravity, lambda: robot.send_reference(NAMES, REFERENCE))
    assert robot.call(Trigger, "feedforward/reset", Trigger.Request()).success
    robot.follow()
    assert not robot.call(Trigger, "feedforward/reset", Trigger.Request()).success    # nothing to reset


def test_emergency_stop_while_inactive(robot):
    assert robot.change(Transition.TRANSITION_DEACTIVATE)
    robot.spin_until(lambda: "it holds after activation" in robot.process.output(), "notice of the stop",
                     lambda: robot.stops.publish(Bool(data=True)))
    assert robot.change(Transition.TRANSITION_ACTIVATE)
    robot.stays(robot.gravity, lambda: robot.send_reference(NAMES, REFERENCE))
    assert robot.call(Trigger, "feedforward/reset", Trigger.Request()).success


def test_deactivation(robot):
    """Ramps to the safe effort, leaves it behind, and is then silent."""
    long_enough(robot, "ramp_out")
    assert robot.set_parameter("safe_output.hold_position", 0.0).successful    # else near it to what held the robot
    robot.follow()
    robot.efforts.clear()
    robot.diagnostics.clear()
    assert robot.change(Transition.TRANSITION_DEACTIVATE)
    robot.spin_until(lambda: robot.diagnostics.get("mode") == "inactive", "end of the ramp")
    way = np.array([message.effort for message in robot.efforts])
    np.testing.assert_allclose(way[-1], robot.gravity, rtol=0, atol=1e-9)
    full = robot.command - robot.gravity
    share = (way - robot.gravity) @ full / (full @ full)
    assert ((share > 0.05) & (share < 0.95)).any()    # a ramp, not a step
    robot.diagnostics.clear()    # the last efforts may arrive after the first diagnostics that say inactive
    robot.spin_until(lambda: robot.diagnostics.get("mode") == "inactive", "diagnostics")
    robot.efforts.clear()
    robot.diagnostics.clear()
    robot.spin_until(lambda: robot.diagnostics.get("mode") == "inactive", "diagnostics",
                     lambda: robot.send_reference(NAMES, REFERENCE))
    assert not robot.efforts
    assert robot.change(Transition.TRANSITION_ACTIVATE)
    assert robot.set_parameter("safe_output.hold_position", 0.1).successful


def test_impossible_transitions(robot):
    """Refused, and the torque goes on."""
    for transition in (Transition.TRANSITION_ACTIVATE, Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_CLEANUP,
                       99):
        assert not robot.change(transition)
        robot.stays(robot.command)
    assert "is not possible now" in robot.process.output()


def test_parameters_set_to_nonsense(robot):
    for name, value in [("gains.kp", -1.0), ("gains.kp", math.nan), ("gains.kp", [1.0, 2.0, 3.0]), ("gains.kd", "soft"),
                        ("state_timeout", 0.0), ("effort_limits.maximum", math.nan), ("effort_limits.rate", 0.0),
                        ("payload.mass", -1.0), ("payload.body", "nothing"), ("feedforward", "magic"),
                        ("safe_output.fallback", [math.nan]), ("robot_compensates", ["everything"]),
                        ("adapters", ["lbr"])]:
        result = robot.set_parameter(name, value)
        assert not result.successful and result.reason, (name, value)
    robot.stays(robot.command)


def test_payload_changes_while_running(robot):
    com, mass = np.array([0.2, 0.0, 0.0]), 0.5
    for name, value in [("payload.body", "lower"), ("payload.com", list(com)), ("payload.mass", mass)]:
        assert robot.set_parameter(name, value).successful
    rotation = rbd.forward_kinematics(robot.model, Q)[robot.model.body_names.index("lower"), :3, :3]
    weight = rotation.T @ [0.0, 0.0, -9.81 * mass]
    carried = rbd.bias_effort(robot.model, Q, [0.0, 0.0], {"lower": np.concatenate([np.cross(com, weight), weight])})
    assert np.abs(carried - robot.gravity).max() > 0.5
    reference = partial(robot.send_reference, NAMES, REFERENCE)    # forgotten where a busy machine sent no states
    robot.until(carried + robot.command - robot.gravity, "command with the load", reference)
    assert robot.set_parameter("payload.mass", 0.0).successful
    robot.until(robot.command, "command without it", reference)


@pytest.mark.parametrize(("factor", "words"), [(2.0, "compensated twice, by the robot and by this node"),
                                               (0.0, "no gravity torque is measured though this node sends it")])
def test_gravity_compensated_twice_or_not_at_all(robot, factor, words):
    assert robot.set_parameter("gains.kp", 0.0).successful and robot.set_parameter("gravity_check", True).successful
    robot.change(Transition.TRANSITION_DEACTIVATE)
    robot.measured = list(factor * robot.gravity)
    robot.change(Transition.TRANSITION_ACTIVATE)
    robot.spin_until(lambda: words in robot.process.output(), f"log of: {words}")
    robot.measured = ()
    assert robot.set_parameter("gains.kp", KP).successful and robot.set_parameter("gravity_check", False).successful


def test_interrupt(robot):
    """The last test: SIGINT ramps out, publishes the safe effort last, and the process ends with exit code 0."""
    assert robot.set_parameter("safe_output.hold_position", 0.0).successful
    robot.efforts.clear()
    robot.process.process.send_signal(signal.SIGINT)
    robot.spin_until(lambda: robot.process.process.poll() is not None, "end of the process")
    assert robot.process.end() == 0
    robot.spin_until(lambda: robot.efforts and np.allclose(robot.efforts[-1].effort, robot.gravity, rtol=0, atol=1e-9),
                     "safe effort as the last one")
