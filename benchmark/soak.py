"""Soak: node `feedforward` with its observer of contacts, for minutes at 500 Hz. Memory growth, latency by the minute,
what was lost or late.

A process of its own publishes joint states of the iiwa at a fixed rate, with stamps of the wall clock; this one listens
to the efforts and reads the node's memory and threads. Not part of the default run.
"""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile

import rbd_ros as rbd
from rbd_interfaces.msg import JointEffort

from .timing import table

RATE = 500.0
SETTLE = 5.0    # s before the first figures: start-up, discovery
PUBLISHER = """
import signal, sys, time, rclpy, rclpy.signals
from sensor_msgs.msg import JointState
from rbd_interfaces.msg import JointReference
signal.signal(signal.SIGINT, signal.default_int_handler)    # which a shell may have turned off in the background
rclpy.init(signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
node = rclpy.create_node("states")
states = node.create_publisher(JointState, "joint_states", 1)
references = node.create_publisher(JointReference, "feedforward/reference", 1)
names, period = sys.argv[2:], 1.0 / float(sys.argv[1])
state = JointState(name=names, position=[0.1] * len(names), velocity=[0.2] * len(names), effort=[0.0] * len(names))
reference = JointReference(name=names, position=[0.1] * len(names), velocity=[0.2] * len(names),
                           acceleration=[0.3] * len(names))
due, sent = time.perf_counter(), 0
try:
    while True:
        state.header.stamp.sec, state.header.stamp.nanosec = divmod(time.time_ns(), 1_000_000_000)
        states.publish(state)
        sent += 1
        if sent % 5 == 0:    # references at a fifth of the rate
            references.publish(reference)
        due += period
        rest = due - time.perf_counter()
        if rest > 0.0:
            time.sleep(rest)
        else:
            due -= rest    # late: do not catch up in a burst
except KeyboardInterrupt:
    print(sent)
"""


def run(minutes: float = 5.0, rate: float = RATE) -> dict[str, Any]:
    """Print a row per minute (or per tenth, if shorter) and the growth; returns them."""
    environment = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DOMAIN_ID": "96", **os.environ}
    os.environ.update(environment)
    names = rbd.sample("iiwa").joint_names
    node = subprocess.Popen([sys.executable, "-m", "rbd_ros.nodes.feedforward", "--ros-args", "-p", "gains.kp:=100.0",
                             "-p", "gains.kd:=10.0", "-p", "contact.reaction:=stop", "-p", "contact.threshold:=[1.0e9]",
                             "-p", f"robot_description_file:={rbd.sample_path('iiwa')}"],
                            env=environment, stderr=subprocess.DEVNULL)
    driver = subprocess.Popen([sys.executable, "-c", PUBLISHER, str(rate), *names], env=environment,
                              stdout=subprocess.PIPE, text=True)
    rclpy.init()
    try:
        rows = _listen(node.pid, minutes * 60.0)
    finally:
        for process in (driver, node):
            process.send_signal(signal.SIGINT)
        sent = driver.communicate(timeout=20)[0]
        node.wait(timeout=20)
        rclpy.try_shutdown()
    table(f"Soak: feedforward at {rate:g} Hz, 7 joints; latency from the stamp of the state to the effort here (µs)",
          ["minute", "Hz", "p50", "p99", "p99.9", "max", "node p99", "late", "misses", "MB", "threads"],
          [[f"{row['minute']:.1f}", f"{row['rate']:.1f}", *(f"{row[key]:.0f}" for key in ("p50", "p99", "p999", "max")),
            row["node_p99"], row["late"], row["misses"], f"{row['memory']:.1f}", str(row["threads"])] for row in rows])
    growth = _slope([row["minute"] for row in rows], [row["memory"] for row in rows])
    gaps, efforts = sum(row["gaps"] for row in rows), sum(row["count"] for row in rows)
    print(f"  memory growth {60.0 * growth:+.2f} MB/h (fit over {minutes:g} min); efforts {efforts}, gaps of more than "
          f"3 periods {gaps}; states sent from start to end {sent.strip() or '?'} (what waits in a queue of one is "
          f"replaced by the next); exit code {node.returncode}")
    return {"rows": rows, "growth_mb_per_hour": 60.0 * growth, "efforts": efforts, "gaps": gaps,
            "exit_code": node.returncode}


def _listen(pid: int, seconds: float) -> list[dict[str, Any]]:
    own = rclpy.create_node("soak")
    executor = SingleThreadedExecutor()
    executor.add_node(own)
    latency: list[float] = []
    arrivals: list[float] = []
    diagnostics: dict[str, str] = {}

    def on_effort(message: JointEffort) -> None:
        stamp = message.header.stamp
        latency.append(time.time_ns() * 1e-3 - stamp.sec * 1e6 - stamp.nanosec * 1e-3)
        arrivals.append(time.perf_counter())

    def on_diagnostics(message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.endswith("feedforward"):
                diagnostics.update((item.key, item.value) for item in status.values)

    own.create_subscription(JointEffort, "feedforward/effort", on_effort, QoSProfile(depth=100))
    own.create_subscription(DiagnosticArray, "/diagnostics", on_diagnostics, QoSProfile(depth=10))
    deadline = time.monotonic() + 120.0
    while not latency:
        executor.spin_once(timeout_sec=0.1)
        if time.monotonic() > deadline:
            raise SystemExit("the node does not answer")
    settled = time.monotonic() + SETTLE
    while time.monotonic() < settled:
        executor.spin_once(timeout_sec=0.1)
    part = min(60.0, seconds / 10.0)
    rows: list[dict[str, Any]] = []
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        latency.clear()
        arrivals.clear()
        end = begin + part * (len(rows) + 1)
        while time.monotonic() < end:
            executor.spin_once(timeout_sec=0.1)
        status = _status(pid)
        intervals = np.diff(arrivals)
        p50, p99, p999 = np.percentile(latency, (50.0, 99.0, 99.9)) if latency else (np.nan,) * 3
        rows.append({"minute": (time.monotonic() - begin) / 60.0, "count": len(latency), "rate": len(latency) / part,
                     "p50": float(p50), "p99": float(p99), "p999": float(p999), "max": max(latency, default=np.nan),
                     "node_p99": diagnostics.get("latency_p99_us", "?"), "late": diagnostics.get("late_states", "?"),
                     "misses": diagnostics.get("deadline_misses", "?"), "gaps": int((intervals > 3.0 / RATE).sum()),
                     **status})
        row = rows[-1]
        print(f"  minute {row['minute']:.1f}: {row['rate']:.1f} Hz, p50 {row['p50']:.0f} µs, p99 {row['p99']:.0f} µs, "
              f"{row['memory']:.1f} MB", flush=True)
    executor.shutdown()
    own.destroy_node()
    return rows


def _status(pid: int) -> dict[str, Any]:
    """Resident memory (MB) and number of threads of a process."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {"memory": int(fields["VmRSS"].split()[0]) / 1024.0, "threads": int(fields["Threads"])}


def _slope(x: list[float], y: list[float]) -> float:
    return float(np.polyfit(x, y, 1)[0]) if len(x) > 1 else float("nan")
