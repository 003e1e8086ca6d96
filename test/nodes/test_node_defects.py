"""What happens to a torque node in which the program itself is wrong."""
from __future__ import annotations

import numpy as np
import pytest
from harness import NodeProcess, Peer
from std_srvs.srv import Trigger

import rbd_ros as rbd

NAMES, Q = ["shoulder", "elbow"], np.array([0.3, -0.7])
# Loaded at the start of the process: laws and inputs fail for references beyond 1 and 2 rad, sensors always.
BROKEN = """
import os
import sys
sys.path.insert(0, os.getcwd())
from rbd_ros.runtime.control import feedforward
from rbd_ros.runtime.steady import steady_cycle

answer = steady_cycle.SteadyCycle.answer
Controller = feedforward.FeedforwardController
command, on_reference = Controller.command, Controller.on_reference

def broken_command(self, now, laws):
    reference = self.reference.sample(now, self.state.stamp_ns)
    if reference is not None and reference.q[0] > 1.0:
        raise KeyError("a defect of the law")
    return command(self, now, laws)

def broken_answer(self, *message):
    followed = self._controller.reference.followed
    if followed is not None and followed.q[0] > 1.0:
        raise KeyError("a defect of the law")
    return answer(self, *message)

def broken_input(self, now, stamp, names, position, *others):
    if position[0] > 2.0:
        raise KeyError("a defect of the input")
    return on_reference(self, now, stamp, names, position, *others)

def broken_sensor(self, now):
    raise KeyError("a defect of the sensor")

Controller.command, Controller.on_reference, Controller.sensed = broken_command, broken_input, broken_sensor
steady_cycle.SteadyCycle.answer = broken_answer
"""


@pytest.mark.usefixtures("each_control_loop")
def test_defects_stop_the_robot_and_not_the_process(tmp_path, private_domain):
    (tmp_path / "sitecustomize.py").write_text(BROKEN)
    process = NodeProcess(tmp_path, "feedforward", python_path=tmp_path, ramp_in=0.0, state_timeout=10.0,
                          robot_description_file=str(rbd.sample_path("two_link")), gains__kp=20.0, reference_timeout=0)
    gravity = rbd.gravity_effort(rbd.sample("two_link"), Q)
    try:
        with Peer() as peer:
            for wrong, words in ((1.5, "a defect of the law"), (2.5, "a defect of the input")):
                peer.spin_until(lambda: peer.diagnostics.get("mode") == "running", "motion",
                                lambda: (peer.send_reference(NAMES, Q), peer.send_state(NAMES, Q, [0.0, 0.0])))
                peer.spin_until(lambda: peer.diagnostics["mode"] == "stopped", "stop", lambda q=(wrong, 0.0): (
                    peer.send_reference(NAMES, q), peer.send_state(NAMES, Q, [0.0, 0.0])))
                for _ in range(5):
                    np.testing.assert_allclose(peer.answer(NAMES, Q, [0.0, 0.0]).effort, gravity, rtol=0, atol=1e-9)
                assert "stopped by a defect" in process.output() and words in process.output()
                peer.send_reference(NAMES, Q)
                assert peer.call(Trigger, "feedforward/reset", Trigger.Request()).success
        assert process.end() == 0
    finally:
        process.kill()


UNPREPARED = """
from rbd_ros.runtime.steady import steady_cycle

def broken_prepare(self, *message):
    if self._controller.safety.mode == "running":
        raise KeyError("a defect of the preparation")

steady_cycle.SteadyCycle.prepare = broken_prepare
"""


def test_a_steady_cycle_that_cannot_be_prepared_is_left_out_after_the_reset(tmp_path, private_domain):
    """The ordinary way has no defect."""
    (tmp_path / "sitecustomize.py").write_text(UNPREPARED)
    process = NodeProcess(tmp_path, "feedforward", python_path=tmp_path, ramp_in=0.0, state_timeout=10.0,
                          robot_description_file=str(rbd.sample_path("two_link")), gains__kp=20.0, reference_timeout=0)

    def move():
        peer.send_reference(NAMES, Q)
        peer.send_state(NAMES, Q, [0.0, 0.0])

    try:
        with Peer() as peer:
            peer.spin_until(lambda: peer.diagnostics.get("mode") in ("running", "stopped"), "motion", move)
            if peer.diagnostics["mode"] == "stopped":    # states as objects know no steady cycle
                assert "a defect of the preparation" in process.output()
                assert peer.call(Trigger, "feedforward/reset", Trigger.Request()).success
                peer.spin_until(lambda: peer.diagnostics["mode"] == "running", "motion after the reset", move)
            for _ in range(5):
                peer.answer(NAMES, Q, [0.0, 0.0])
            assert process.output().count("stopped by a defect") <= 1
        assert process.end() == 0
    finally:
        process.kill()


def test_a_sensor_that_fails_takes_no_torque_off_the_robot(tmp_path, private_domain):
    (tmp_path / "sitecustomize.py").write_text(BROKEN)
    process = NodeProcess(tmp_path, "feedforward", python_path=tmp_path, ramp_in=0.0, state_timeout=10.0,
                          robot_description_file=str(rbd.sample_path("two_link")), gains__kp=20.0, reference_timeout=0,
                          wrench_joints=["elbow"], feedback__max_age=".inf", feedback__min_rate=0.0)
    try:
        with Peer() as peer:
            peer.spin_until(lambda: peer.diagnostics.get("mode") == "running", "motion",
                            lambda: (peer.send_reference(NAMES, Q + 0.1), peer.send_state(NAMES, Q, [0.0, 0.0])))
            for _ in range(5):
                wanted = rbd.gravity_effort(rbd.sample("two_link"), Q + 0.1) + 20.0 * 0.1
                np.testing.assert_allclose(peer.answer(NAMES, Q, [0.0, 0.0]).effort, wanted, rtol=0, atol=1e-9)
            assert peer.diagnostics["mode"] == "running" and int(peer.diagnostics["cycles"]) > 0
            assert "a defect of the sensor" in process.output()
            assert "stopped by a defect" not in process.output()
        assert process.end() == 0
    finally:
        process.kill()
