"""Fault injection over DDS, continued: motor states, smooth trajectories, what is not finite; on both loops, and with
drives that have a steady cycle.
"""
from __future__ import annotations

import itertools
from contextlib import contextmanager

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from harness import RELIABLE, ROOT, NodeProcess, Peer
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd
from rbd_ros.core.compiled.kernel import COMPILED

URDF = rbd.sample_path("two_link")
NAMES, MOTORS = ["shoulder", "elbow"], ["shoulder", "elbow", "elbow/stiffness"]
SERIES = "actuation:\n" + "".join(f"  {name}: {{type: series_elastic, stiffness: 900.0, max_deflection: 0.2, "
                                  "motor: {rotor_inertia: 0.3}}\n" for name in NAMES)
Q, Z, KP = np.array([0.3, -0.5]), np.array([0.31, -0.48, 320.0]), np.array([10.0, 5.0, 0.0])
REFERENCE = np.random.default_rng(5).normal(size=(5, 2))
# long timeouts, so that a busy machine that lets this process wait does not look like a fault
PATIENT = {"ramp_in": 0.0, "ramp_out": 0.0, "state_timeout": 3.0, "safe_output__hold": 1.0, "reference_timeout": 0.0,
           "gravity_check": False, "feedback__max_age": ".inf", "feedback__min_rate": 0.0}


class Arm(Peer):
    """Sends states of joints and motors, and a reference, while it spins."""

    def __init__(self, process: NodeProcess, actuation: rbd.Actuation) -> None:
        super().__init__("flatness")
        self.process = process
        self.names, self.z = MOTORS[:actuation.nm], Z[:actuation.nm]
        self.motor_efforts: list[JointState] = []
        self.node.create_subscription(JointState, "flatness/motor_effort", self.motor_efforts.append, RELIABLE)
        self.motors = self.node.create_publisher(JointState, "motor_states", RELIABLE)
        self.trajectories = self.node.create_publisher(JointTrajectory, "flatness/joint_trajectory", RELIABLE)
        self.motor_stamps = itertools.count(2_000_000_000, 1_000_000)
        self.silent = False    # of its motors
        motors = rbd.motor_reference(actuation, *REFERENCE[:3], rbd.link_efforts(actuation, *REFERENCE))
        self.command = motors.effort + KP[:actuation.nm] * (motors.position - self.z)
        g = rbd.gravity_effort(actuation.model, Q)
        self.holding = np.array([g[0], g[1], 0.5 * (g[1] / 300.0) ** 2])[:actuation.nm]

    def motor_state(self, off: float = 0.0) -> JointState:
        message = JointState(name=self.names, position=(self.z + off).tolist(), velocity=[0.0] * len(self.names))
        seconds, rest = divmod(next(self.motor_stamps), 10**9)
        message.header.stamp = Time(sec=seconds, nanosec=rest)
        return message

    def until(self, wanted, what, disturb=lambda: None):
        self.motor_efforts.clear()
        self.spin_until(lambda: self.motor_efforts and np.allclose(
            self.motor_efforts[-1].effort, wanted, rtol=0.0, atol=1e-9), what, lambda: self.tick(disturb))

    def counted(self, key, disturb):
        """Until there are three more of this kind; all motor efforts are the command meanwhile."""
        before = int(self.diagnostics.get(key, 0))
        self.motor_efforts.clear()
        self.spin_until(lambda: int(self.diagnostics.get(key, 0)) >= before + 3, key, lambda: self.tick(disturb))
        for message in self.motor_efforts:
            np.testing.assert_allclose(message.effort, self.command, rtol=0.0, atol=1e-9)

    def tick(self, disturb=lambda: None):
        if not self.silent:
            self.motors.publish(self.motor_state())
        disturb()
        self.send_state(NAMES, Q, [0.0, 0.0])
        self.send_reference(NAMES, *REFERENCE)


@contextmanager
def begun(folder, drives, **parameters):
    file = ROOT / "config" / "sea_example.actuation.yaml"
    if drives == "series":
        file = folder / "series.yaml"
        file.write_text(SERIES)
    actuation = rbd.load_actuation(file, rbd.load_urdf(URDF))
    process = NodeProcess(folder, "flatness", robot_description_file=str(URDF), actuation_file=str(file),
                          motor_gains__kp=KP[:actuation.nm].tolist(), **PATIENT, **parameters)
    try:
        with Arm(process, actuation) as arm:
            yield arm
            assert (int(arm.diagnostics["steady_cycles"]) > 0) == (drives == "series" and COMPILED)
            assert process.end() == 0 and "Traceback" not in process.output()
    finally:
        process.kill()


@pytest.fixture(scope="module", params=["variable", "series"])
def shared(request, tmp_path_factory, private_domain):
    with begun(tmp_path_factory.mktemp("motors"), request.param) as arm:
        yield arm


@pytest.fixture
def arm(shared):
    shared.silent = False
    shared.until(shared.command, "following")
    yield shared
    shared.silent = False
    shared.until(shared.command, "following")


def test_bytes_that_are_no_motor_state(arm):
    arm.counted("rejected_malformed", lambda: arm.motors.publish(b"\x00\x01\x00\x00" + b"\xff" * 40))


def test_outliers_of_the_motors(arm):
    """Every second state, each elsewhere: the motors are where they were."""
    off = itertools.cycle([100.0, -100.0])    # far beyond what a starved machine lets pass

    def disturb():
        if arm.silent:
            arm.motors.publish(arm.motor_state(next(off)))
        arm.silent = not arm.silent

    arm.counted("rejected_implausible", disturb)


def test_the_clock_of_the_joints_is_reset(arm):
    """Rejected while the last state of before is fresh. The motors, whose clock goes on, are heard all along."""
    arm._stamps = itertools.count(next(arm._stamps) - 10**12 + 10**9, 1_000_000)
    before = [int(arm.diagnostics.get(key, 0)) for key in ("clock_restarts", "motor_state_missing")]
    arm.spin_until(lambda: int(arm.diagnostics.get("clock_restarts", 0)) > before[0], "count", arm.tick)
    arm.until(arm.command, "the new clock")
    assert int(arm.diagnostics["motor_state_missing"]) == before[1]


def test_the_clock_of_the_motors_is_reset(arm):
    """Rejected while the last state of before is fresh, then heard again."""
    arm.motor_stamps = itertools.count(1_000_000_000, 1_000_000)
    before = int(arm.diagnostics.get("rejected_stamp_backwards", 0))
    arm.spin_until(lambda: int(arm.diagnostics.get("rejected_stamp_backwards", 0)) > before, "rejections", arm.tick)
    arm.until(arm.command, "the new clock")


def test_motor_states_stop(arm):
    arm.silent = True
    arm.until(arm.holding, "what holds the arm")


def test_a_smooth_interpolation_that_swings_out(arm):
    """Long segments beside short ones: a spline through such points leaves the limits."""
    message = JointTrajectory(joint_names=NAMES)
    position = REFERENCE[0]
    for k, seconds in enumerate([1.0, 1.01, 3.0, 3.01, 6.0]):
        position = position + (0.05 if k % 2 else 0.5) * np.array([1.0, -1.0]) * (-1) ** (k // 2)
        message.points.append(JointTrajectoryPoint(
            positions=position.tolist(), time_from_start=Duration(sec=int(seconds), nanosec=round(seconds % 1 * 1e9))))
    arm.counted("rejected_bad_trajectory", lambda: arm.trajectories.publish(message))


def test_before_the_first_state_and_what_no_joint_can(tmp_path, private_domain):
    process = NodeProcess(tmp_path, "feedforward", robot_description_file=str(URDF), feedforward="full", **PATIENT)
    try:
        with Peer() as peer:
            trajectories = peer.node.create_publisher(JointTrajectory, "feedforward/joint_trajectory", RELIABLE)
            message = JointTrajectory(joint_names=NAMES, points=[
                JointTrajectoryPoint(positions=Q.tolist(), time_from_start=Duration(sec=1))])
            peer.spin_until(lambda: int(peer.diagnostics.get("rejected_bad_trajectory", 0)) > 0, "rejection",
                            lambda: trajectories.publish(message))
            assert not peer.efforts
            model = rbd.sample("two_link")
            reference = Q + 0.1
            command = rbd.inverse_dynamics(model, reference, np.zeros(2), np.zeros(2))

            def follow(velocity=0.0):
                peer.send_reference(NAMES, reference, np.full(2, velocity), np.zeros(2))

            peer.answer_close_to(command, NAMES, Q, [0.0, 0.0], repeat=follow)
            rejected = int(peer.diagnostics["rejected_implausible"])
            peer.spin_until(lambda: int(peer.diagnostics["rejected_implausible"]) > rejected, "its count",
                            lambda: (follow(1e149), peer.send_state(NAMES, Q, [0.0, 0.0])))
            peer.answer_close_to(command, NAMES, Q, [0.0, 0.0])
            assert all(np.isfinite(message.effort).all() for message in peer.efforts)
            assert process.end() == 0 and "Traceback" not in process.output()
    finally:
        process.kill()
