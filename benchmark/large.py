"""Large messages on every input of a running node `feedforward`: is there torque, and is an emergency stop heard?

An iiwa at 500 Hz. Per kind and size of message, sent once, or five times in a row: the longest time between two
efforts, and the time from the publication of an emergency stop right behind until the effort is the safe one. Promised:
`state_timeout` + 20 ms (70 ms), and 50 ms.
"""
from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd
from rbd_interfaces.msg import JointEffort, JointReference, NamedWrench, NamedWrenches
from rbd_ros.nodes.base.rclpy_inside import Waiting

from .roundtrip import LOADS, Node, _load, _started
from .timing import table

NAME, PERIOD, Q = "large", 2e-3, 0.1
NEWEST, MANY = QoSProfile(depth=1), QoSProfile(depth=10)
LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
HUGE = 16_000_000
PATIENCE = 120.0
NODE = Node("rbd_ros.nodes.feedforward", {"feedforward": "none", "gains.kp": "10.0", "reference_timeout": "0.0",
                                          "state_timeout": "0.05"})
Sample = tuple[float, float]    # when an effort came, and its second number


def drive(pipe: Any) -> None:
    """A process of its own: joint states out, efforts in; answers what came since the last word with each word."""
    rclpy.init()
    node = rclpy.create_node("driver")
    publisher = node.create_publisher(JointState, f"{NAME}/joint_states", NEWEST)
    stops = node.create_publisher(Bool, f"{NAME}/emergency_stop", MANY)
    efforts = node.create_subscription(JointEffort, f"{NAME}/effort", lambda message: None, MANY)
    names = list(rbd.sample("iiwa").joint_names)
    message = JointState(name=names, position=[Q] * len(names), velocity=[0.0] * len(names))
    found: list[Sample] = []
    due = time.monotonic()
    with Waiting(node.context, [efforts]) as waiting:
        while True:
            now = time.monotonic()
            if now >= due:
                stamp = message.header.stamp
                stamp.sec, stamp.nanosec = divmod(time.time_ns(), 1_000_000_000)
                publisher.publish(message)
                due = max(due + PERIOD, now - 5 * PERIOD)
            waiting.wait(max(due - time.monotonic(), 0.0))
            while (taken := waiting.take(efforts)) is not None:
                found.append((time.monotonic(), taken[0].effort[1]))
            if pipe.poll():
                what = pipe.recv()
                if what == "end":
                    return
                if what == "stop":    # not from the participant that has just sent megabytes
                    stops.publish(Bool(data=True))
                    continue
                pipe.send(found)
                found = []


def trajectory(names: list[str], count: int) -> bytes:
    """Valid: stays where the robot is."""
    points = []
    for k in range(count):
        point = JointTrajectoryPoint(positions=[Q] * len(names), velocities=[0.0] * len(names))
        point.time_from_start.sec, point.time_from_start.nanosec = divmod((k + 1) * 10_000_000, 1_000_000_000)
        points.append(point)
    return bytes(serialize_message(JointTrajectory(joint_names=names, points=points)))


def messages(model: rbd.RobotModel) -> Iterator[tuple[str, type, str, bytes, int]]:
    """What, kind, topic, bytes, how many."""
    names = list(model.joint_names)
    yield "nothing", JointReference, f"{NAME}/reference", b"", 0
    for count in (1000, 10_000, 100_000):
        yield f"trajectory, {count} points", JointTrajectory, f"{NAME}/joint_trajectory", trajectory(names, count), 1
    for count in (1000, 100_000):
        yield (f"joint state, {count} foreign names", JointState, f"{NAME}/joint_states",
               bytes(serialize_message(JointState(name=[f"other_{i}" for i in range(count)]))), 5)
    yield ("100000 wrenches", NamedWrenches, f"{NAME}/external_wrenches",
           bytes(serialize_message(NamedWrenches(wrenches=[NamedWrench(body="link_7")] * 100_000))), 1)
    for what, kind, topic in (
            ("trajectory", JointTrajectory, f"{NAME}/joint_trajectory"),
            ("joint state", JointState, f"{NAME}/joint_states"),
            ("wrenches", NamedWrenches, f"{NAME}/external_wrenches"),
            ("reference", JointReference, f"{NAME}/reference"),
            ("robot description", String, f"{NAME}/robot_description")):
        yield f"{what}, 16 MB", kind, topic, b"\0\1\0\0" + bytes(HUGE), 5


class Trials:
    """Of one node, by one participant; driver: the pipe to `drive`."""

    def __init__(self, driver: Any, model: rbd.RobotModel) -> None:
        self._driver, self._model = driver, model
        self._node = rclpy.create_node("trials")
        gravity = rbd.gravity_effort(model, np.full(model.nv, Q))
        self._half = 0.5 * abs(float(gravity[1]))    # the command is 0, the safe effort is gravity
        self._references = self._node.create_publisher(JointReference, f"{NAME}/reference", NEWEST)
        self._reset = self._node.create_client(Trigger, f"{NAME}/reset")
        self._publishers: dict[str, Any] = {}

    def samples(self) -> list[Sample]:
        """Efforts since the last call."""
        self._driver.send("efforts")
        found: list[Sample] = self._driver.recv()
        return found

    def until(self, condition: Callable[[], bool], what: str, repeat: Callable[[], None]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit(f"no {what}")
            repeat()
            rclpy.spin_once(self._node, timeout_sec=0.05)

    def run(self) -> None:
        """Until the node commands."""
        names = list(self._model.joint_names)
        reference = JointReference(name=names, position=[Q] * len(names))
        self.until(self._reset.service_is_ready, "service ~/reset", lambda: None)
        answer = self._reset.call_async(Trigger.Request())
        self.until(answer.done, "reset", lambda: None)
        self.until(lambda: bool((last := self.samples()) and abs(last[-1][1]) < self._half), "command",
                   lambda: self._references.publish(reference))
        time.sleep(0.3)

    def trial(self, kind: type, topic: str, data: bytes, count: int) -> tuple[float, float]:
        """s between efforts at most, and until the emergency stop acts."""
        if topic not in self._publishers:
            self._publishers[topic] = self._node.create_publisher(kind, topic, LATCHED if kind is String else MANY)
            publisher = self._publishers[topic]
            self.until(lambda: publisher.get_subscription_count() > 0, f"subscription to {topic}", lambda: None)
        self.run()
        self.samples()
        time.sleep(0.2)
        for _ in range(count):
            self._publishers[topic].publish(data)
        stopped = time.monotonic()
        self._driver.send("stop")
        time.sleep(2.0)
        found = self.samples()
        times = np.array([t for t, _ in found])
        safe = [t for t, effort in found if t > stopped and abs(effort) > self._half]
        return float(np.diff(times).max(initial=0.0)), safe[0] - stopped if safe else np.inf


def run(rounds: int = 3) -> dict[str, Any]:
    """Print and return gaps and latencies (ms), the worst of some rounds."""
    environment = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DOMAIN_ID": "97", **os.environ}
    os.environ.update(environment)
    model = rbd.sample("iiwa")
    all_messages = list(messages(model))
    found: dict[str, Any] = {}
    rclpy.init()
    try:
        with tempfile.TemporaryDirectory() as folder, _started({NAME: NODE}, environment, Path(folder)), \
                _driver() as driver:
            trials = Trials(driver, model)
            for load in LOADS:
                with _load(load):
                    worst = {what: 1e3 * np.max([trials.trial(*message) for _ in range(rounds)], axis=0)
                             for what, *message in all_messages}
                found[load] = {what: {"gap_ms": float(gap), "stop_ms": float(stop)}
                               for what, (gap, stop) in worst.items()}
                table(f"Large messages to feedforward, {load} (ms, worst of {rounds})",
                      ["message", "longest gap", "emergency stop"],
                      [[what, f"{gap:.0f}", f"{stop:.0f}"] for what, (gap, stop) in worst.items()])
    finally:
        rclpy.try_shutdown()
    return found


@contextmanager
def _driver() -> Iterator[Any]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=drive, args=(there,), daemon=True)
    process.start()
    try:
        yield here
    finally:
        here.send("end")
        process.join(10.0)
