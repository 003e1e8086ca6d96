"""A loop that is too slow, over DDS: the safe output, counted and named; and back (docs/safety.md)."""
from __future__ import annotations

import time

import numpy as np
from builtin_interfaces.msg import Time
from harness import NodeProcess, Peer

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
