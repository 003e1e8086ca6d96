"""A loop that is too slow, over DDS: the safe output, counted and named; and back (docs/safety.md)."""
from __future__ import annotations

import itertools
import signal
import time

import numpy as np
from builtin_interfaces.msg import Time
from harness import RELIABLE, NodeProcess, Peer
from sensor_msgs.msg import JointState

import rbd_ros as rbd

NAMES = ["shoulder", "elbow"]
Q, REFERENCE = np.array([0.3, -0.7]), np.array([0.35, -0.6])
KP = 20.0


def test_a_slow_loop_has_the_safe_output_and_comes_back(tmp_path, private_domain):
    """States come at 50 Hz at most, where 500 are expected, until that is allowed."""
    process = NodeProcess(tmp_path, "feedforward", robot_description_file=str(rbd.sample_path("two_link")),
                          feedforward="gravity", gains__kp=KP, gains__kd=0.0, ramp_in=0.05, state_timeout=1.0,
                          gravity_check=False, state_rate=500.0, feedback__max_age=".inf")
    gravity = rbd.gravity_effort(rbd.sample("two_link"), Q)
    try:
        with Peer() as robot:
            def drive():
                ns = time.time_ns()
                robot.send_reference(NAMES, REFERENCE)
                robot.send_state(NAMES, Q, [0.0, 0.0], stamp=Time(sec=ns // 10**9, nanosec=ns % 10**9))

            def until(effort, what):
                robot.efforts.clear()
                robot.spin_until(lambda: len(robot.efforts) > 60 and np.allclose(
                    robot.efforts[-1].effort, effort, rtol=0, atol=1e-9), what, drive)

            until(gravity, "the safe effort")
            robot.spin_until(lambda: robot.diagnostics.get("slow_loops") == "1", "count", drive)
            assert robot.diagnostics["mode"] == "waiting" and robot.level != "OK"
            assert "slower than 125 Hz" in robot.status and "slower than 125 Hz" in process.output()
            assert robot.set_parameter("feedback.min_rate", 0.0).successful
            until(gravity + KP * (REFERENCE - Q), "the command")
            robot.spin_until(lambda: robot.diagnostics.get("mode") == "running", "mode", drive)
            assert "slower" not in robot.status
    finally:
        process.kill()


def test_a_node_that_runs_in_bursts_keeps_the_arm(tmp_path, private_domain):
    """Stopped for 40 ms of 60, beside a simulated arm: its answers are prompt, but their torque is held for long."""
    urdf = str(rbd.sample_path("two_link"))
    plant = NodeProcess(tmp_path, "simulator", robot_description_file=urdf, initial_position=list(Q), mass_scale=1.05,
                        command_timeout=0.0, friction__damping=[2.0, 1.0])
    process = NodeProcess(tmp_path, "feedforward", ["-p", "gains.kp:=[80.0, 10.0]", "-p", "gains.kd:=[4.0, 0.5]"],
                          robot_description_file=urdf, adapters=["forward_command"], state_rate=500.0,
                          forward_command__controller="simulator", ramp_in=0.05, state_timeout=0.5, gravity_check=False)
    states, turn = [], itertools.count()
    try:
        with Peer() as robot:
            robot.node.create_subscription(JointState, "joint_states", states.append, RELIABLE)

            def refer():
                robot.send_reference(NAMES, REFERENCE)

            def starve():
                refer()
                process.process.send_signal(signal.SIGCONT if next(turn) % 3 == 2 else signal.SIGSTOP)

            def still(reason):
                robot.spin_until(lambda: robot.diagnostics.get("mode") == "running" and len(states) > 500
                                 and np.abs(np.array(states[-1].position) - REFERENCE).max() < 0.05, reason, refer)

            still("the reference reached")
            robot.spin_until(lambda: robot.diagnostics.get("slow_loops", "0") != "0", "slow loop", starve)
            assert robot.diagnostics["mode"] == "waiting" and "slower than 125 Hz" in robot.status
            states.clear()
            robot.spin_until(lambda: len(states) > 500, "states", starve)
            assert np.abs([state.velocity for state in states]).max() < 0.5    # let down slowly by what 5 % weigh
            process.process.send_signal(signal.SIGCONT)
            still("the reference reached again")
    finally:
        process.kill()
        plant.kill()
