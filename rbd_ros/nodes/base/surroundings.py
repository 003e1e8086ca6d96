"""Monitoring of the ROS graph: missing publishers and rival publishers.

Each check takes some tens of µs: only for slow timers.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rclpy.node import Node

PATIENCE, AGAIN = 3.0, 30.0    # s until the first warning, and until its repetition


class Reminder:
    """Logs a persistent problem: after `patience` s, every `again` s, and on change."""

    def __init__(self, log: Callable[[str], object], patience: float = PATIENCE, again: float = AGAIN) -> None:
        self._log, self._patience, self._again = log, patience, again
        self._since: float | None = None
        self._said, self._due = "", 0.0

    def tell(self, problem: str, hint: str, now: float) -> None:
        """Report the problem at `now` (s, steady), "" without one; hint: its remedy."""
        if not problem:
            self._since = None
            return
        if self._since is None:
            self._since, self._said = now, ""
        if now - self._since >= self._patience and (problem != self._said or now >= self._due):
            self._log(f"{problem}: {hint}")
            self._said, self._due = problem, now + self._again


class TorqueReminder:
    """Warnings of a torque node about missing joint states and rival publishers."""

    def __init__(self, log: Callable[[str], object]) -> None:
        self._missing, self._rivals = Reminder(log), Reminder(log, patience=0.0, again=math.inf)

    def tell(self, missing: str, joints: Sequence[str], others: str, now: float) -> None:
        """Report problems: `missing` of `no_state`, `others` of `rivals`; joints: of the model."""
        self._missing.tell(missing, f"no torque before a sensor_msgs/JointState of all joints: {', '.join(joints)}. "
                           "`ros2 topic info -v` and `ros2 topic echo --once` show its publisher, QoS and names", now)
        self._rivals.tell(others, "the robot gets the torque of both in turns. Stop one of them, or give it another "
                          "name (a killed process still counts for some 20 s)", now)


def silence(node: Node, topic: str) -> str:
    """Likely reason for missing messages on this topic, from the ROS graph."""
    count = node.count_publishers(topic)
    if not count:
        return f"nobody publishes on {topic}"
    return f"nothing arrives on {topic}, though it has {count} publisher{'s' * (count > 1)}"


def no_state(node: Node, topic: str, state: Any, names: Sequence[str]) -> str:
    """Why no joint state with these joints was accepted yet; `state`: a `StateInput`."""
    if state.refused:
        return f"{topic} is rejected: {state.refused}"
    return f"{topic} has {', '.join(state.foreign)}, but none of {', '.join(names)}" if state.foreign else silence(
        node, topic)


def rivals(node: Node, topics: Iterable[str]) -> str:
    """Other nodes with the node's name, or with publishers on its topics; "" without any."""
    name = node.get_fully_qualified_name()
    names = [_full(*found) for found in node.get_node_names_and_namespaces()]
    notes = [f"{names.count(name)} nodes are named {name}"] if names.count(name) > 1 else []
    for topic in topics:
        if node.count_publishers(topic) > 1:
            others = [_full(found.node_name, found.node_namespace)
                      for found in node.get_publishers_info_by_topic(topic)]
            if name in others:
                others.remove(name)
            notes.append(f"{topic} is also published by {', '.join(sorted(others))}")
    return "; ".join(notes)


def _full(name: str, namespace: str) -> str:
    return f"{namespace.rstrip('/')}/{name}"
