"""Node `flatness` at 1 kHz: joint states and a long trajectory in, torque with two derivatives out, misses counted."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd
from rbd_interfaces.msg import JointEffort
from rbd_ros.cli.demo_motion import published_motion

from .timing import table

PERIOD = 1e-3
SPACING = 0.05    # s between the waypoints


def _trajectory(model: rbd.RobotModel, seconds: float) -> JointTrajectory:
    """The published motion of the iiwa, by positions only."""
    motion, message = published_motion(), JointTrajectory(joint_names=list(model.joint_names))
    for t in np.arange(0.0, seconds + SPACING, SPACING):
        point = JointTrajectoryPoint(positions=motion.position(t).tolist())
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(round(t * 1e9), 1_000_000_000)
        message.points.append(point)
    return message


class Robot:
    """Publishes the states of a robot that follows exactly, and hears the efforts."""

    def __init__(self, model: rbd.RobotModel) -> None:
        self.node = rclpy.create_node("robot")
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        newest = QoSProfile(depth=1)
        self.states = self.node.create_publisher(JointState, "joint_states", newest)
        self.trajectories = self.node.create_publisher(JointTrajectory, "flatness/joint_trajectory", newest)
        self.node.create_subscription(JointEffort, "flatness/effort", self.on_effort, QoSProfile(depth=100))
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self.on_report, QoSProfile(depth=10))
        self.message = JointState(name=list(model.joint_names))
        self.report: dict[str, str] = {}
        self.answers: list[tuple[int, bool]] = []
        self.latency: list[float] = []
        self.moved = 0.0    # s since the motion began, which goes on from one `follow` to the next

    def on_effort(self, message: JointEffort) -> None:
        stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
        self.latency.append((time.time_ns() - stamp) * 1e-9)
        self.answers.append((stamp, message.derivatives_valid))

    def on_report(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self.report = {item.key: item.value for item in status.values}

    def send(self, q: Any, v: Any) -> None:
        stamp = self.message.header.stamp
        stamp.sec, stamp.nanosec = divmod(time.time_ns(), 1_000_000_000)
        self.message.position, self.message.velocity = q.tolist(), v.tolist()
        self.states.publish(self.message)

    def follow(self, seconds: float) -> int:
        """Send states at 1 kHz; returns how many."""
        motion, origin, begin, count = published_motion(), self.moved, time.perf_counter(), 0
        due = begin
        while (now := time.perf_counter()) - begin < seconds:
            self.moved = origin + now - begin    # where it is by now: a pause of this process is no pause of the robot
            self.send(motion.position(self.moved), motion.velocity(self.moved))
            count += 1
            due = max(due + PERIOD, now)
            while (left := due - time.perf_counter()) > 0.0:
                self.executor.spin_once(timeout_sec=left)
            if count % 10_000 == 0:
                missed = self.report.get("deadline_misses", "?")
                print(f"  {count} states, {now - begin:.0f} of {seconds:.0f} s: {missed} deadlines missed", flush=True)
        return count


def run(seconds: float = 60.0) -> dict[str, Any]:
    """Print what the node reports and what its peer sees; returns it."""
    environment = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DOMAIN_ID": "96", **os.environ}
    os.environ.update(environment)
    model = rbd.sample("iiwa")
    print(f"\nNode flatness, 7 joints, 1 kHz for {seconds:.0f} s", flush=True)
    process = subprocess.Popen([
        sys.executable, "-m", "rbd_ros.nodes.flatness", "--ros-args", "-p", "state_rate:=1000.0", "-p", "ramp_in:=0.0",
        "-p", "effort_limits.maximum:=1000000.0", "-p", f"robot_description_file:={rbd.sample_path('iiwa')}"],
        env=environment, stderr=subprocess.DEVNULL)
    rclpy.init()
    try:
        robot = Robot(model)
        deadline = time.monotonic() + 120.0
        while not robot.answers or robot.trajectories.get_subscription_count() == 0:
            robot.send(published_motion().position(0.0), np.zeros(model.nv))
            robot.executor.spin_once(timeout_sec=0.01)
            if time.monotonic() > deadline:
                raise SystemExit("node flatness does not answer")
        robot.trajectories.publish(_trajectory(model, seconds + 2.0))
        robot.follow(0.5)
        robot.answers.clear()
        robot.latency.clear()
        begin = dict(robot.report)
        sent = robot.follow(seconds - 1.0)
        robot.follow(1.5)    # the last report comes within a second
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
        rclpy.try_shutdown()
    missed = int(robot.report["deadline_misses"]) - int(begin.get("deadline_misses", 0))
    valid = sum(held for _, held in robot.answers[:sent]) / max(len(robot.answers[:sent]), 1)
    found = {"sent": sent, "cycles": int(robot.report["cycles"]), "deadline_misses": missed,
             "rate_hz": float(robot.report["rate_hz"]), "latency_p50_us": float(robot.report["latency_p50_us"]),
             "latency_p99_us": float(robot.report["latency_p99_us"]), "derivatives_valid": valid,
             "round_trip_p99_us": 1e6 * float(np.percentile(robot.latency, 99))}
    table("What the node and its peer measured", ["quantity", "value"],
          [[name, f"{value:.6g}"] for name, value in found.items()])
    return found
