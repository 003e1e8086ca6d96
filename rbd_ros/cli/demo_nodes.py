"""Motions executed by nodes: `simulator` and `feedforward` as processes, joined by ROS topics, as on a real robot."""
from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .demo_report import Array, Columns, Progress, Result, errors
from .processes import NodeProcesses

Points = tuple[Array, Array, Array, Array]    # times (N,) from 0, positions, velocities, accelerations (N, nv)
RATE = 500.0             # Hz
LEADS = (2.0, 4.0, 8.0)    # s from the sending of a motion to its start, by attempts
PATIENCE = 5.0           # s for which the simulated robot waits for a torque
HISTORY = 30_000         # depth of the recorder's queue of states, for busy machines
RELEASED_LATER = 1e12    # a stamp that is never reached
RAMP = 0.2               # s


def points_of(motion: Any, duration: float) -> Points:
    """Points of a motion with `position`, `velocity` and `acceleration`, 100 per second."""
    t = np.linspace(0.0, duration, math.ceil(100.0 * duration) + 1)
    return t, motion.position(t), motion.velocity(t), motion.acceleration(t)


def driving(rate: float = RATE) -> dict[str, Any]:
    """Parameters of a controller that drives the simulated robot through adapter `joint_state`."""
    return {"adapters": ["joint_state"], "joint_state.topic": "simulator/effort_commands", "state_rate": rate,
            "tracking_tolerance": [math.inf], "ramp_in": RAMP, "ramp_out": RAMP}


def execute(folder: Path, joints: tuple[str, ...], nodes: Mapping[str, Mapping[str, Any]],
            points: Points | Callable[[Any], Points], progress: Progress,
            rate: float = RATE) -> tuple[Any, NodeProcesses]:
    """The `Recording` of a motion, and the ended processes, whose logs are in `folder`.

    nodes: parameters by name of the node, `simulator` and `feedforward` among them; points: of the motion, or a
    function of the `DemoRecorder`. Time counts as that of the simulation, which waits for the torque. If the nodes
    answer too late for the start of the motion, they are started again, with more time until then.
    """
    from ..nodes.demo_recorder import TooBusy

    for lead in LEADS[:-1]:
        with contextlib.suppress(TooBusy):
            return _execute(folder, joints, nodes, points, progress, rate, lead)
    return _execute(folder, joints, nodes, points, progress, rate, LEADS[-1])


def _execute(folder: Path, joints: tuple[str, ...], nodes: Mapping[str, Mapping[str, Any]],
             points: Points | Callable[[Any], Points], progress: Progress, rate: float,
             lead: float) -> tuple[Any, NodeProcesses]:
    from ..nodes.demo_recorder import DemoRecorder

    namespace = f"/rbd_demo_{os.getpid()}_{lead:g}"
    waiting = {
        "simulator": {"brakes_until": RELEASED_LATER, "publish_rate": rate, "command_timeout": 0.5,
                      "step": 1.0 / (rate * math.ceil(1000.0 / rate)), "wait_for_command": PATIENCE,
                      f"qos_overrides.{namespace}/joint_states.publisher.depth": HISTORY},
        "feedforward": {"feedback.max_age": math.inf, "state_timeout": 2.0 * PATIENCE}}
    with NodeProcesses(folder, namespace) as processes:
        for name, parameters in nodes.items():
            processes.start(name, {**parameters, **waiting.get(name, {})})
        with DemoRecorder(namespace, joints, processes.check, HISTORY) as recorder:
            recorder.wait_until_ready(60.0)
            recording = recorder.play(points(recorder) if callable(points) else points, progress.at, lead)
        processes.close_after(recording.report)
    return recording, processes


class Executed(Result):
    """One mode. report, plant: diagnostics of controller and simulator."""

    def __init__(self, title: str, recording: Any, reference: NDArray[np.float64]) -> None:
        super().__init__(title, recording.t, recording.q - reference)
        self.report, self.plant = recording.report, recording.plant
        self.latency = {name: self.report[f"latency_{name}_us"] for name in ("p50", "p99")}

    def figures(self) -> dict[str, Any]:
        return {"states": len(self.t), "rate_hz": self.report["rate_hz"], "latency_us": self.latency,
                "deadline_misses": int(self.report["deadline_misses"]), "saturated": int(self.report["saturated"]),
                "simulator_waits": int(self.plant["waits"]),
                "simulator_deadline_misses": int(self.plant["deadline_misses"])}


def columns(results: Mapping[str, Executed], joints: Sequence[str]) -> Columns:
    """Columns of tracking errors and cycles."""
    return {**{name: text for name, text in errors(results, joints).items() if name != "largest"},
            "latency p50 / p99": lambda result: f"{result.latency['p50']:.0f} / {result.latency['p99']:.0f} µs",
            "late": lambda result: f"{result.report['deadline_misses']:.0f}",
            "waits": lambda result: f"{result.plant['waits']:.0f}"}


def cycles(results: Mapping[str, Executed]) -> dict[str, Any]:
    """For `summary.json`: latency and rate of the last mode, misses of all modes."""
    last = list(results.values())[-1]
    return {"latency_us": last.latency, "rate_hz": last.report["rate_hz"],
            "deadline_misses": int(sum(result.report["deadline_misses"] for result in results.values()))}
