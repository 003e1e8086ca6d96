"""Node simulator by each of its loops: processor time, states per second in turns with node feedforward, in lockstep.

Turns: the simulator waits for the answer to each state, and for nothing else; so the time of a turn is a round trip.
"""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor

import rbd_ros as rbd

from .timing import table

RATE = 1000.0    # Hz of simulated time
ROUNDS = 3       # each loop in turns
POSITION = "[0.1, 0.3, 0.1, -1.0, 0.1, 0.5, 0.1]"
CONTROLLER = {"feedforward": "gravity", "ramp_in": "0.0", "ramp_out": "0.0", "state_timeout": "10.0",
              "feedback.max_age": ".inf", "gravity_check": "false"}
DIRECTLY = {"adapters": "[forward_command]", "forward_command.controller": "simulator"}
RELIABLE = {"qos_overrides./joint_states.subscription.reliability": "reliable",
            "qos_overrides./joint_states.subscription.depth": "10"}
LOCKSTEP = {"plant": "simulator", "controller": "simulator", "steps": "1"}
# what runs beside the simulator, and the simulator's parameters
WAYS: dict[str, tuple[dict[str, dict[str, str]], dict[str, str]]] = {
    "real time": ({"feedforward": CONTROLLER | DIRECTLY}, {}),
    "turns": ({"feedforward": CONTROLLER | DIRECTLY}, {"real_time_factor": "0.0", "wait_for_command": "60.0"}),
    "lockstep": ({"feedforward": CONTROLLER | RELIABLE, "lockstep": LOCKSTEP},
                 {"paused": "true", "publish_clock": "true", "command_timeout": "0.0"}),
}


class Listener:
    """Hears the diagnostics of the simulator."""

    def __init__(self) -> None:
        self.node = rclpy.create_node("listener")
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._on_report, 10)
        self.report: dict[str, str] = {}

    def _on_report(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.endswith("simulator"):
                self.report = {item.key: item.value for item in status.values}

    def next(self) -> tuple[float, dict[str, str]]:
        """When a report comes, and what it says."""
        self.report, deadline = {}, time.monotonic() + 60.0
        while not self.report:
            self.executor.spin_once(timeout_sec=0.1)
            if time.monotonic() > deadline:
                raise SystemExit("node simulator says nothing")
        return time.monotonic(), self.report

    def close(self) -> None:
        self.executor.shutdown()
        self.node.destroy_node()


def _start(name: str, parameters: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    arguments = [item for key, value in parameters.items() for item in ("-p", f"{key}:={value}")]
    with log.open("a") as stream:
        return subprocess.Popen([sys.executable, "-m", f"rbd_ros.nodes.{name}", "--ros-args", *arguments],
                                stderr=stream)


def _spent(process: subprocess.Popen[bytes]) -> float:
    """s of processor time."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _measure(way: str, loop: str, seconds: float, listener: Listener, log: Path) -> dict[str, float]:
    others, parameters = WAYS[way]
    arm = {"robot_description_file": str(rbd.sample_path("iiwa"))}
    processes = {"simulator": _start("simulator", {
        **arm, "initial_position": POSITION, "publish_rate": str(RATE), "control_loop": loop, **parameters}, log)}
    for name, values in others.items():
        own = arm if name == "feedforward" else {"control_loop": loop}
        processes[name] = _start(name, own | values, log)
    try:
        deadline = time.monotonic() + 180.0
        while int((begin := listener.next())[1].get("commands", 0)) < 300:
            if time.monotonic() > deadline:
                raise SystemExit(f"the simulator gets no commands: see {log}")
        spent = {name: -_spent(process) for name, process in processes.items()}
        while (end := listener.next())[0] - begin[0] < seconds:
            pass
        for name, process in processes.items():
            spent[name] += _spent(process)
    finally:
        for process in processes.values():
            process.send_signal(signal.SIGINT)
        for process in processes.values():
            process.wait(timeout=20)
    states = RATE * (float(end[1]["simulated_time"]) - float(begin[1]["simulated_time"]))
    return {"states_per_s": states / (end[0] - begin[0]),
            **{f"{name}_us": 1e6 * value / states for name, value in spent.items()}}


def run(seconds: float = 10.0) -> dict[str, Any]:
    """Print rates, and processor time per state, of the simulated iiwa with 1 kHz; returns the best of all rounds."""
    environment = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DOMAIN_ID": "95", **os.environ}
    os.environ.update(environment)
    rclpy.init()
    listener, found = Listener(), {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "nodes.log"
            for way in WAYS:
                rounds: dict[str, list[dict[str, float]]] = {"executor": [], "direct": []}
                for _ in range(ROUNDS):
                    for loop, rows in rounds.items():
                        rows.append(_measure(way, loop, seconds, listener, log))
                        print(f"  {way}, {loop}: {rows[-1]['states_per_s']:.0f} states/s, "
                              f"{rows[-1]['simulator_us']:.0f} µs", flush=True)
                found[way] = {loop: {key: (max if key == "states_per_s" else min)(row[key] for row in rows)
                                     for key in rows[0]} for loop, rows in rounds.items()}
    finally:
        listener.close()
        rclpy.try_shutdown()
    table(f"Simulator, 7 joints, 1 kHz of its time, best of {ROUNDS}: states per s, processor time per state (µs)",
          ["way", "control_loop", "states/s", "simulator", "feedforward", "lockstep"],
          [[way, loop, f"{row['states_per_s']:.0f}", *(f"{row[name]:.0f}" if (name := f"{node}_us") in row else "" for
            node in ("simulator", "feedforward", "lockstep"))] for way, rows in found.items()
           for loop, row in rows.items()])
    return found
