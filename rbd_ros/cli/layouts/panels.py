"""Contents of the layouts, independent of the program: panels of curves, named by topic and field."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...core.model.robot_model import RobotModel

TIMING = {"latency_p50_us": "latency, median (µs)", "latency_p99_us": "latency, p99 (µs)", "rate_hz": "rate (Hz)",
          "deadline_misses": "deadlines missed", "rejected_total": "messages rejected"}


@dataclass(frozen=True)
class Curve:
    """One number over time: a field of a topic's messages; index: of the joint in a list field.

    key: of /diagnostics, if the topic is a node's status.
    """

    topic: str
    field: str = ""
    index: int = -1
    joint: str = ""
    key: str = ""


@dataclass(frozen=True)
class Panel:
    """Curves with names, and limits as horizontal lines."""

    title: str
    curves: tuple[tuple[str, Curve], ...]
    limits: tuple[float, ...] = ()


def tabs(model: RobotModel, joints: Sequence[str], node: str, joint_states: str,
         residual: str) -> dict[str, list[Panel]]:
    """Title of each tab and its panels. joints: the order in which the node publishes them."""
    limits = {joint.name: model.effort_limit[joint.idx_v] for joint in model.joints}
    effort = f"{node}/effort"

    def per_joint(title: str, curves: Sequence[tuple[str, str, str]], limited: bool = False) -> list[Panel]:
        return [Panel(f"{title} {joint}", tuple(
            (f"{joint} {name}", Curve(topic, field, i, joint)) for name, topic, field in curves),
            (limits[joint], -limits[joint]) if limited and math.isfinite(limits[joint]) else ())
            for i, joint in enumerate(joints)]

    return {
        "Effort": per_joint("effort", [("measured", joint_states, "effort"), ("commanded", effort, "effort")], True),
        "Effort rate": per_joint("effort rate", [("commanded", effort, "effort_rate")]),
        "Residual": per_joint("residual", [("unexplained", residual, "effort")]),
        "Timing": [Panel(text, ((text, Curve("/diagnostics", key=key, joint=node)),)) for key, text in TIMING.items()],
    }
