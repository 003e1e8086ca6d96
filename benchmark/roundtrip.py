"""Round trip joint state → effort between two processes: node `feedforward` against a bare rclpy echo, in turns."""
from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

import rbd_ros as rbd
from rbd_interfaces.msg import JointEffort

from .timing import table

BLOCK = 200    # messages to one node before it is the other's turn
PERIOD = 2e-3


class Probe:
    """Sends joint states to one node and waits for its effort."""

    def __init__(self, node: Any, executor: Any, name: str, model: rbd.RobotModel) -> None:
        self.executor = executor
        self.answered = 0
        self.samples: list[float] = []
        self.lost = 0
        self.publisher = node.create_publisher(JointState, f"{name}/joint_states", QoSProfile(depth=1))
        node.create_subscription(JointEffort, f"{name}/effort", self.on_effort, QoSProfile(depth=1))
        self.message = JointState(name=list(model.joint_names))
        self.message.position = [0.1] * model.nv
        self.message.velocity = [0.2] * model.nv
        self.stamp = 0

    def on_effort(self, message: JointEffort) -> None:
        self.answered = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec

    def exchange(self) -> float | None:
        """Seconds from publishing to the answer with the same stamp; None if there is none within 50 ms."""
        self.stamp = time.time_ns()
        self.message.header.stamp.sec, self.message.header.stamp.nanosec = divmod(self.stamp, 1_000_000_000)
        start = time.perf_counter()
        self.publisher.publish(self.message)
        while self.answered != self.stamp:
            self.executor.spin_once(timeout_sec=0.01)
            if time.perf_counter() - start > 0.05:
                return None
        return time.perf_counter() - start

    def block(self, record: bool) -> None:
        for _ in range(BLOCK):
            spent = self.exchange()
            if spent is None:
                self.lost += record
            else:
                if record:
                    self.samples.append(spent)
                time.sleep(max(0.0, PERIOD - spent))


def _quantile(samples: list[float], q: float) -> float:
    return sorted(samples)[min(len(samples) - 1, int(q * len(samples)))]


def run(seconds: float = 10.0) -> dict[str, Any]:
    """Print p50 and p99 of both and the ratio, and the node's memory; returns them."""
    environment = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DOMAIN_ID": "97", **os.environ}
    os.environ.update(environment)
    model = rbd.sample("iiwa")
    echo = subprocess.Popen([sys.executable, "-m", "benchmark.echo_node", "--ros-args",
                             "-r", "joint_states:=echo/joint_states"], env=environment)
    node = subprocess.Popen([sys.executable, "-m", "rbd_ros.nodes.feedforward", "--ros-args",
                             "-r", "joint_states:=feedforward/joint_states", "-p", "feedforward:=gravity",
                             "-p", f"robot_description_file:={rbd.sample_path('iiwa')}"],
                            env=environment, stderr=subprocess.DEVNULL)
    rclpy.init()
    try:
        own = rclpy.create_node("probe")
        executor = SingleThreadedExecutor()
        executor.add_node(own)
        probes = {name: Probe(own, executor, name, model) for name in ("echo", "feedforward")}
        deadline = time.monotonic() + 120.0
        for name, probe in probes.items():
            while probe.exchange() is None:
                if time.monotonic() > deadline:
                    raise SystemExit(f"node {name} does not answer")
        for probe in probes.values():
            probe.block(record=False)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for probe in probes.values():
                probe.block(record=True)
        memory = _resident(node.pid)
    finally:
        for process in (echo, node):
            process.send_signal(signal.SIGINT)
        for process in (echo, node):
            process.wait(timeout=20)
        rclpy.try_shutdown()
    rows, found = [], {}
    for name, probe in probes.items():
        p50, p99 = (1e6 * _quantile(probe.samples, q) for q in (0.5, 0.99))
        found[name] = {"p50_us": p50, "p99_us": p99, "lost": probe.lost}
        rows.append([name, f"{p50:.0f}", f"{p99:.0f}", str(len(probe.samples)), str(probe.lost)])
    ratio = statistics.median(probes["feedforward"].samples) / statistics.median(probes["echo"].samples)
    table("Round trip between processes, 7 joints (µs)", ["node", "p50", "p99", "messages", "lost"], rows)
    print(f"  ratio of medians {ratio:.2f}; memory of the node {memory:.0f} MB")
    return {**found, "ratio": ratio, "node_memory_mb": memory}


def _resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")
