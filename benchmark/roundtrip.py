"""Round trip joint state → effort between two processes: nodes against a bare rclpy echo, in turns, in one run."""
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Transform
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import (
    JointTrajectory, JointTrajectoryPoint, MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint,
)

import rbd_ros as rbd
from rbd_interfaces.msg import JointEffort, NamedWrench, NamedWrenches
from rbd_ros.nodes.base.rclpy_inside import Waiting

from . import stages
from .timing import table

BLOCK = 50         # messages to one node before it is the other's turn
PERIOD = 2e-3
PATIENCE = 0.05    # s
PATIENCE_OF_MODES = 5.0    # s, less than state_timeout
LOADS = ("idle", "both cores busy" if os.cpu_count() == 2 else "all cores busy")


class Node(NamedTuple):
    """A module, its parameters, what it is sent beside joint states, and variables of its environment."""

    module: str
    parameters: Mapping[str, str] = MappingProxyType({})
    further: tuple[str, ...] = ()
    environment: Mapping[str, str] = MappingProxyType({})


def _full(environment: dict[str, str] | None = None, **parameters: str) -> Node:
    return Node("rbd_ros.nodes.feedforward", {"feedforward": "full", **parameters}, ("trajectory",), environment or {})


ECHO = Node("benchmark.echo_node")
NODES: dict[str, Node] = {
    "echo": ECHO,
    "direct_echo": Node("benchmark.direct_echo_node"),
    "gravity": Node("rbd_ros.nodes.feedforward", {"feedforward": "gravity"}),
    "full": _full(),
    "full_executor": _full(control_loop="executor"),
    "computed_torque": Node("rbd_ros.nodes.feedforward", {
        "feedforward": "computed_torque", "gains.kp": "100.0", "gains.kd": "20.0", "wrench_timeout": "0.0"},
        ("trajectory", "wrenches")),
    "cartesian": Node("rbd_ros.nodes.cartesian", {}, ("poses",)),
    "elastic": Node("rbd_ros.nodes.flatness", {"actuation_file": "{actuation}"}, ("trajectory", "motors")),
}
OPTIONS: dict[str, Node] = {
    "echo": ECHO,
    "full": _full(),
    "contacts": _full(**{"contact.reaction": "stop", "contact.threshold": "[1.0e9]"}),
    "active_wait": _full(active_wait="0.0005"),
    "thread_priority": _full(thread_priority="80"),
    "cpu_affinity": _full(cpu_affinity="[1.0]"),
    "lock_memory": _full(lock_memory="true"),
    "udp_only": _full({"FASTDDS_BUILTIN_TRANSPORTS": "UDPv4"}),
    "asynchronous": _full({"RMW_FASTRTPS_PUBLICATION_MODE": "ASYNCHRONOUS"}),
}


class Probe:
    """Sends joint states to one node and waits for its effort, at as little cost as rclpy allows."""

    def __init__(self, node: Any, name: str, model: rbd.RobotModel, further: tuple[str, ...]) -> None:
        self.name, self.further, self.model = name, further, model
        self.samples: dict[str, list[float]] = {load: [] for load in LOADS}
        self.lost = 0
        newest = QoSProfile(depth=1)
        self.publisher = node.create_publisher(JointState, f"{name}/joint_states", newest)
        self.motors = node.create_publisher(JointState, f"{name}/motor_states", newest)
        self.trajectories = node.create_publisher(JointTrajectory, f"{name}/joint_trajectory", newest)
        self.poses = node.create_publisher(MultiDOFJointTrajectory, f"{name}/target_trajectory", newest)
        self.wrenches = node.create_publisher(NamedWrenches, f"{name}/external_wrenches", newest)
        self.efforts = node.create_subscription(JointEffort, f"{name}/effort", lambda message: None, newest)
        self.waiting = Waiting(node.context, [self.efforts])
        self.waiting.__enter__()
        self.message = JointState(name=list(model.joint_names))
        self.message.position, self.message.velocity = [0.1] * model.nv, [0.0] * model.nv

    def exchange(self) -> float | None:
        """Seconds from publishing to the answer with the same stamp; None if there is none."""
        stamp = self.message.header.stamp
        stamp.sec, stamp.nanosec = divmod(time.time_ns(), 1_000_000_000)
        if "motors" in self.further:
            self.motors.publish(self.message)
        start = time.perf_counter()
        self.publisher.publish(self.message)
        while (left := start + PATIENCE - time.perf_counter()) > 0.0:
            self.waiting.wait(left)
            taken = self.waiting.take(self.efforts)
            if taken is not None and taken[0].header.stamp == stamp:
                return time.perf_counter() - start
        return None

    def meet(self) -> None:
        """Wait for the node."""
        deadline = time.monotonic() + 180.0
        topics = {"trajectory": self.trajectories, "poses": self.poses}
        while self.exchange() is None or not all(
                topic.get_subscription_count() for kind, topic in topics.items() if kind in self.further):
            if time.monotonic() > deadline:
                raise SystemExit(f"node {self.name} does not answer")

    def begin(self) -> None:
        """Let the node begin to work: a trajectory that runs for an hour, and a wrench."""
        messages: list[tuple[Any, Any]] = []
        if "trajectory" in self.further:
            message = JointTrajectory(joint_names=list(self.model.joint_names))
            for at, q in ((0, 0.1), (3600, 0.2)):
                message.points.append(JointTrajectoryPoint(positions=[q] * self.model.nv))
                message.points[-1].time_from_start.sec = at
            messages.append((self.trajectories, message))
        if "poses" in self.further:    # 0.1 m along its own axis, from where the link is
            link = self.model.body_names[-1]
            poses = MultiDOFJointTrajectory(joint_names=[link])
            poses.header.frame_id = link
            poses.points.append(MultiDOFJointTrajectoryPoint(transforms=[Transform()]))
            poses.points[0].transforms[0].translation.z = -0.1
            poses.points[0].time_from_start.sec = 3600
            messages.append((self.poses, poses))
        if "wrenches" in self.further:
            wrench = NamedWrench(body=self.model.body_names[-1])
            messages.append((self.wrenches, NamedWrenches(wrenches=[wrench])))
        for publisher, message in messages:
            publisher.publish(message)
        self.block(None)

    def block(self, load: str | None) -> None:
        for _ in range(BLOCK):
            spent = self.exchange()
            if load is not None:
                if spent is None:
                    self.lost += 1
                else:
                    self.samples[load].append(spent)
            time.sleep(max(0.0, PERIOD - (spent or 0.0)))


@contextlib.contextmanager
def _started(nodes: dict[str, Node], environment: dict[str, str],
             folder: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    description = rbd.sample_path("iiwa")
    actuation = folder / "drives.yaml"
    joints = rbd.sample("iiwa").joint_names
    actuation.write_text("actuation:\n" + "".join(
        f"  {name}: {{type: series_elastic, stiffness: 5000.0, max_deflection: 1.0, motor: {{rotor_inertia: 0.1}}}}\n"
        for name in joints))
    processes = {}
    for name, node in nodes.items():
        arguments = ["-r", f"__node:={name}", "-r", f"joint_states:={name}/joint_states",
                     "-r", f"motor_states:={name}/motor_states",
                     "-r", f"robot_description:={name}/robot_description"]
        if node.module.startswith("rbd_ros"):
            parameters = {"robot_description_file": str(description), "ramp_in": "0.0", "state_rate": "500.0",
                          # it is not always this node's turn: that is no slow loop, which would get the safe effort
                          "state_timeout": "10.0", "feedback.min_rate": "0.0", **node.parameters}
            for key, value in parameters.items():
                arguments += ["-p", f"{key}:={value.format(actuation=actuation)}"]
        processes[name] = subprocess.Popen(
            [sys.executable, "-m", node.module, "--ros-args", *arguments], env={**environment, **node.environment},
            stderr=(folder / f"{name}.log").open("w"))
    try:
        yield processes
    finally:
        for process in processes.values():
            process.send_signal(signal.SIGINT)
        for process in processes.values():
            process.wait(timeout=20)


@contextlib.contextmanager
def _load(load: str) -> Iterator[None]:
    """Every core does something else, too."""
    busy = [] if load == LOADS[0] else [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in busy:
            process.terminate()
            process.wait()


def run(seconds: float = 10.0, options: bool = False) -> dict[str, Any]:
    """Print quantiles and ratios to the bare echo, idle and loaded, memory, and where the time goes; returns them.

    options: of ways to run one node, instead of several nodes.
    """
    nodes = OPTIONS if options else NODES
    environment = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DOMAIN_ID": "97", **os.environ}
    os.environ.update(environment)
    model = rbd.sample("iiwa")
    rclpy.init()
    found: dict[str, Any] = {}
    try:
        with tempfile.TemporaryDirectory() as folder, _started(nodes, environment, Path(folder)) as processes:
            own = rclpy.create_node("probe")
            probes = [Probe(own, name, model, node.further) for name, node in nodes.items()]
            for probe in probes:
                probe.meet()
            for _ in range(20):    # a node may know this publisher later than it is known here
                for probe in probes:
                    probe.begin()
            for load in LOADS:
                with _load(load):
                    end = time.monotonic() + seconds * len(probes)
                    while time.monotonic() < end:
                        for probe in probes:
                            probe.block(load)
                _check(own, [name for name, node in nodes.items() if node.module.startswith("rbd_ros")], load)
            memory = {name: _resident(process.pid) for name, process in processes.items()}
    finally:
        rclpy.try_shutdown()
    for load in LOADS:
        found[load] = _show(load, probes, memory)
    if options:
        return found
    found["stages"] = stages.run(found[LOADS[0]]["full"]["p50_us"], found[LOADS[0]]["direct_echo"]["p50_us"])
    return found


def _check(own: Any, names: Iterable[str], load: str) -> None:
    """Ends unless all these nodes run: what one that waits or is too slow answers is not what is measured."""
    modes = dict.fromkeys(names, "silent")

    def hear(message: DiagnosticArray) -> None:
        for status in message.status:
            name = status.name.removeprefix("/")
            if name in modes:
                modes[name] = next((item.value for item in status.values if item.key == "mode"), "")

    subscription = own.create_subscription(DiagnosticArray, "/diagnostics", hear, 10)
    deadline = time.monotonic() + PATIENCE_OF_MODES
    while set(modes.values()) - {"running"} and time.monotonic() < deadline:
        rclpy.spin_once(own, timeout_sec=0.1)
    own.destroy_subscription(subscription)
    if set(modes.values()) - {"running"}:
        raise SystemExit(f"not all nodes were running ({load}): {modes}")


def _show(load: str, probes: list[Probe], memory: dict[str, float]) -> dict[str, Any]:
    quantiles = {probe.name: 1e6 * np.quantile(probe.samples[load], (0.5, 0.99, 0.999)) for probe in probes}
    echo, rows, found = quantiles["echo"], [], {}
    for probe in probes:
        q = quantiles[probe.name]
        found[probe.name] = {"p50_us": q[0], "p99_us": q[1], "p999_us": q[2], "ratio_p50": q[0] / echo[0],
                             "ratio_p99": q[1] / echo[1], "memory_mb": memory[probe.name]}
        rows.append([probe.name, *(f"{x:.0f}" for x in q), f"{q[0] / echo[0]:.2f}", f"{q[1] / echo[1]:.2f}",
                     str(len(probe.samples[load])), str(probe.lost), f"{memory[probe.name]:.0f}"])
    table(f"Round trip between processes, 7 joints, {load} (µs, ratios to echo)",
          ["node", "p50", "p99", "p99.9", "/ p50", "/ p99", "messages", "lost in all", "MB"], rows)
    return found


def _resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")
