"""What the planner answers runs as it is: on `feedforward` and on `flatness`, with the simulated arm, over DDS."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from harness import RELIABLE, Peer
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd
from rbd_interfaces import srv
from rbd_interfaces.msg import MotionRequest
from rbd_ros.nodes.base.rclpy_inside import take

SECOND = 1_000_000_000
IIWA = rbd.sample("iiwa")
NAMES = list(IIWA.joint_names)
START = [0.0, 0.5, 0.0, -1.2, 0.0, 0.8, 0.0]
GOAL = [1.2, -0.3, 0.5, -0.5, 0.6, -0.4, 1.0]
KP, KD = [800.0, 800.0, 400.0, 400.0, 40.0, 40.0, 20.0], [80.0, 80.0, 40.0, 40.0, 3.0, 3.0, 1.5]
ROTORS = [0.5, 0.5, 0.3, 0.3, 0.1, 0.1, 0.05]


@pytest.mark.parametrize("node", ["feedforward", "flatness"])
def test_a_simulated_arm_follows(start_node, private_domain, node):
    arm = {"robot_description_file": str(rbd.sample_path("iiwa")), "rotor_inertia": ROTORS}
    states: list[JointState] = []
    with Peer(node) as peer:
        heard = peer.node.create_subscription(JointState, "joint_states", states.append, 10_000)
        publisher = peer.node.create_publisher(JointTrajectory, f"{node}/joint_trajectory", RELIABLE)
        simulator = start_node("simulator", **arm, initial_position=START, brakes_until=1e12, command_timeout=0.5,
                               wait_for_command=5.0)
        control = start_node(node, **arm, adapters=["joint_state"], joint_state__topic="/simulator/effort_commands",
                             state_timeout=5.0, feedback__max_age=".inf", state_rate=500.0, ramp_in=0.1,
                             gains__kp=KP, gains__kd=KD)
        planner = start_node("motion_planner", **arm, effort_limits__scaling=0.9, time_limit=60.0)
        peer.spin_until(lambda: states and peer.efforts and publisher.get_subscription_count(), "running nodes")
        answers: list[Any] = []

        def planned_from_where_the_arm_is():
            answers[:] = [peer.call(srv.PlanMotion, "motion_planner/plan_motion", srv.PlanMotion.Request(
                motion=MotionRequest(name=NAMES[::-1], goal=GOAL[::-1], duration=1.8, max_acceleration=[10.0] * 7)))]
            return answers[0].success

        # it may not have heard a joint state yet, and the simulation takes the processor from it
        peer.spin_until(planned_from_where_the_arm_is, "plan", patience=180.0)
        trajectory = answers[0].plan.trajectory

        def now():
            return states[-1].header.stamp.sec * SECOND + states[-1].header.stamp.nanosec

        # the arm is held there, and let go of its brakes, before it moves
        publisher.publish(JointTrajectory(joint_names=NAMES, points=[JointTrajectoryPoint(positions=START)]))
        held = now()
        peer.spin_until(lambda: now() > held + SECOND // 2, "the arm to be held")
        while (taken := take(heard)) is not None:    # so that now is now
            states.append(taken[0])
        start = now() + 3 * SECOND
        peer.target = "simulator"
        assert peer.set_parameter("brakes_until", start * 1e-9 - 0.3).successful
        trajectory.header.stamp = Time(sec=start // SECOND, nanosec=start % SECOND)
        publisher.publish(trajectory)
        peer.spin_until(lambda: now() > start + 2 * SECOND, "the end of the motion")
        assert [process.end() for process in (planner, control, simulator)] == [0, 0, 0]
    t = np.array([(s.header.stamp.sec * SECOND + s.header.stamp.nanosec - start) / SECOND for s in states])
    order = [list(states[0].name).index(name) for name in trajectory.joint_names]
    q, effort = (np.array([getattr(s, field) for s in states])[:, order] for field in ("position", "effort"))
    times = np.array([p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in trajectory.points])

    def planned(field):
        values = np.array([getattr(point, field) for point in trajectory.points])
        return np.column_stack([np.interp(t, times, column) for column in values.T])

    moving = (t >= 0.0) & (t <= times[-1])
    assert moving.sum() > 300
    assert np.abs(q - planned("positions"))[moving].max() < 0.01    # rad
    np.testing.assert_allclose(q[-1], GOAL[::-1], atol=0.01)
    limit = IIWA.effort_limit[::-1]
    assert np.all(np.abs(effort[moving]) <= 0.91 * limit)
    assert (np.abs(effort - planned("effort"))[moving] / limit).max() < 0.02
