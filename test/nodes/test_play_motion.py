"""examples/play_motion.py sends what `rbd excite` wrote, if the arm is at its first point."""
from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from harness import RELIABLE, ROOT, Peer
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from rbd_ros.core.motion.periodic_motion import PeriodicMotion

NAMES = ("shoulder", "elbow")


@pytest.mark.parametrize("off", [0.0, 0.1])
def test_a_long_motion_is_sent_from_its_first_point(off, tmp_path, private_domain):
    path = tmp_path / "motion.yaml"
    motion = PeriodicMotion(np.array([[0.4, -0.2], [0.1, 0.2], [0.0, 0.0]]), 30.0, 1)
    motion.write_trajectory(path, NAMES, 100.0)
    first = motion(0.0).q.tolist()
    assert path.stat().st_size > 2**17    # longer than an argument of a command
    with Peer() as peer:
        heard: list[JointTrajectory] = []
        peer.node.create_subscription(JointTrajectory, "arm_controller/joint_trajectory", heard.append, RELIABLE)
        states = peer.node.create_publisher(JointState, "joint_states", RELIABLE)
        state = JointState(name=["gripper", *NAMES[::-1]], position=[0.0, first[1], first[0] + off])
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.getenv("PYTHONPATH", "")])}
        with subprocess.Popen([sys.executable, "examples/play_motion.py", str(path), "arm_controller/joint_trajectory"],
                              cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment) as process:
            try:
                peer.spin_until(lambda: process.poll() is not None, "end", repeat=lambda: states.publish(state))
                said, errors = process.communicate()
            finally:
                process.kill()
        if off:
            assert process.returncode and not heard
            assert f"shoulder is at {first[0] + off:.3f}, the motion begins at {first[0]:.3f}: move there" in errors
            return
        assert process.returncode == 0 and said.startswith("sent: 3001 points, 30 s"), errors
        peer.spin_until(lambda: heard, "trajectory")
        (message,) = heard
        assert tuple(message.joint_names) == NAMES and len(message.points) == 3001
        np.testing.assert_allclose(message.points[0].positions, first, atol=1e-6)
        last = message.points[-1].time_from_start
        assert (last.sec, last.nanosec) == (30, 0) and len(message.points[9].accelerations) == 2
