"""Checks of every published message of a torque node: sizes, names, finiteness, limits, consistency of outputs.

Messages are taken from the subscriptions without an executor, which would cost more than all the checks.
"""
from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from rbd_interfaces.msg import ElasticJointReference, JointEffort

from .targets import DEPTH, Target

QUEUE = QoSProfile(depth=DEPTH)
Array = np.ndarray


class Limits:
    """The effort limits that may be in force at a time (ns of the system clock): lower ones apply once the change is
    acknowledged, and only after `grace` ns where a rate limit may stretch it.
    """

    def __init__(self, described: Array) -> None:
        self._described = described
        self._spans: list[tuple[float, float, float]] = [(math.inf, 0.0, math.inf)]    # maximum, from, until

    def ask(self, maximum: float, when: float) -> None:
        """Another maximum may be in force from now on."""
        self._spans = [*self._spans[-50:], (maximum, when, math.inf)]

    def answer(self, accepted: bool, when: float, grace: float) -> None:
        """Record whether the last requested change is in force."""
        *others, asked = self._spans
        if accepted:
            self._spans = [(maximum, begin, min(end, when + grace)) for maximum, begin, end in others] + [asked]
        else:
            self._spans = others

    def stretch(self, since: float, grace: float) -> None:
        """A rate limit holds from now on: it may stretch a change since then, too."""
        self._spans = [(maximum, begin, end + grace if since < end < math.inf else end)
                       for maximum, begin, end in self._spans]

    def at(self, when: float) -> Array:
        return np.minimum(self._described, max(span[0] for span in self._spans if span[1] <= when <= span[2]))


class Pair:
    """Comparison of two outputs, which must have the same efforts in the same order."""

    def __init__(self) -> None:
        self.leads: deque[bytes] = deque()
        self.follows: deque[bytes] = deque()

    def agree(self) -> bool:
        """Whether both outputs are equal so far; forgets the compared messages."""
        alike = True
        while self.leads and self.follows:
            alike = self.leads.popleft() == self.follows.popleft() and alike
        return alike


class Outputs:
    """Subscriptions to all outputs of a target. `offend(what, message)` is called for each one that must not be.

    efforts: how many came on ~/effort. last_stamp: of the last one (ns). answers: stamp (ns) → first ~/effort,
    ~/motor_effort and ~/motor_reference with it, while `listening`.
    """

    def __init__(self, node: Node, target: Target, offend: Callable[[str, Any], None]) -> None:
        self._target, self._offend = target, offend
        self.limits, self.motor_limits = (Limits(target.limits[:target.model.nv]), Limits(target.limits))
        self.efforts, self.last_stamp = 0, 0
        self.answers: dict[int, dict[str, bytes]] = {}
        self.listening = False
        self._pairs: dict[str, Pair] = {}
        name, joints = target.executable, target.joints
        kinds: list[tuple[type, str, Callable[[Any], None]]] = [
            (JointEffort, f"{name}/effort", self._effort),
            (JointState, f"{name}/effort_commands", self._joint_state),
            (Float64MultiArray, "effort_controller/commands", lambda m: self._same("forward_command", m, np.asarray(
                m.data)[::-1])),
            (JointTrajectory, "joint_trajectory_controller/joint_trajectory", self._jtc)]
        if target.motors:
            kinds += [(JointState, f"{name}/motor_effort", self._motor_effort),
                      (Float64MultiArray, f"{name}/motor_commands", self._motor_command),
                      (ElasticJointReference, f"{name}/motor_reference", self._motor_reference)]
        self._joints, self._when = joints, 0.0
        self._heard: set[str] = set()
        self._subscriptions = [(node.create_subscription(kind, topic, check, QUEUE), kind, check)
                               for kind, topic, check in kinds]

    def take(self) -> int:
        """Check the received messages; returns their number."""
        taken = 0
        for subscription, kind, check in self._subscriptions:
            with subscription.handle:
                while (found := subscription.handle.take_message(kind, False)) is not None:
                    message, info = found
                    self._when = info["source_timestamp"] or time.time_ns()
                    check(message)
                    taken += 1
        return taken

    def lag(self) -> str:
        """Outputs with fewer messages than their leading output, "" if none."""
        return ", ".join(f"{name} by {len(pair.leads) - len(pair.follows)}" for name, pair in self._pairs.items()
                         if pair.leads or pair.follows)

    @property
    def connected(self) -> bool:
        """Whether something came on all outputs but the reference of motors, which may be silent."""
        return len(self._heard) == len(self._subscriptions) - bool(self._target.motors)

    def restart(self) -> None:
        """Reset for new publishers."""
        followers = ["joint_state", "forward_command", "jtc", *(["~/motor_commands"] if self._target.motors else [])]
        self._pairs, self._heard = {name: Pair() for name in followers}, set()

    # ---- outputs

    def _effort(self, message: Any) -> None:
        self.efforts += 1
        self.last_stamp = stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
        self._answer(stamp, "effort", message.effort, message.effort_rate, message.effort_acceleration)
        self._check(message, list(message.name) == self._joints, "names of ~/effort")
        self._same("~/effort", message, np.asarray(message.effort))
        for field in ("effort_rate", "effort_acceleration"):
            values = np.asarray(getattr(message, field))
            self._check(message, len(values) in (0, len(self._joints)), f"size of {field} in ~/effort")
            self._check(message, bool(np.isfinite(values).all()), f"{field} of ~/effort is not finite")
        self._check(message, len(message.effort_rate) > 0 or not message.derivatives_valid,
                    "derivatives are valid and not there")

    def _joint_state(self, message: Any) -> None:
        self._check(message, list(message.name) == self._joints, "names of adapter joint_state")
        self._finite("joint_state", message, message.position, message.velocity)
        self._same("joint_state", message, np.asarray(message.effort))

    def _jtc(self, message: Any) -> None:
        self._check(message, list(message.joint_names) == self._joints and len(message.points) == 1,
                    "names or points of adapter jtc")
        point = message.points[0]
        self._finite("jtc", message, point.positions, point.velocities)
        self._same("jtc", message, np.asarray(point.effort))

    def _motor_effort(self, message: Any) -> None:
        stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
        self._answer(stamp, "motor_effort", message.effort)
        self._check(message, tuple(message.name) == self._target.motors, "names of ~/motor_effort")
        self._same("~/motor_effort", message, np.asarray(message.effort), "~/motor_effort")

    def _motor_command(self, message: Any) -> None:
        self._same("~/motor_commands", message, np.asarray(message.data), "~/motor_effort")

    def _motor_reference(self, message: Any) -> None:
        stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
        fields = ("position", "velocity", "acceleration", "effort")
        first = [np.asarray(getattr(message, f"motor_{field}")) for field in fields]
        second = [np.asarray(getattr(message, f"stiffness_motor_{field}")) for field in fields]
        self._answer(stamp, "motor_reference", *first, *second)
        names = list(message.name)
        self._check(message, names == [name for name in self._target.elastic if "/" not in name],
                    "names of ~/motor_reference")
        own = np.array([f"{name}/stiffness" in self._target.motors for name in names])
        self._finite("~/motor_reference", message, *first, message.stiffness)
        for values in second:    # NaN where there is no second motor
            self._check(message, np.array_equal(np.isfinite(values), own), "second motors of ~/motor_reference")

    # ---- rules

    def _answer(self, stamp: int, output: str, *values: Any) -> None:
        if self.listening:
            self.answers.setdefault(stamp, {}).setdefault(output, b"".join(map(bytes, values)))

    def _check(self, message: Any, good: bool, what: str) -> None:
        if not good:
            self._offend(what, message)

    def _finite(self, output: str, message: Any, *arrays: Any) -> None:
        for values in arrays:
            self._check(message, len(values) == len(self._joints), f"size of {output}")
            self._check(message, bool(np.isfinite(values).all()), f"{output} is not finite")

    def _same(self, output: str, message: Any, effort: Array, leader: str = "~/effort") -> None:
        """Within the limits, and the same efforts in the same order as the output that leads."""
        self._heard.add(output)
        limit = (self.motor_limits if leader == "~/motor_effort" else self.limits).at(self._when)
        if effort.shape != limit.shape:
            self._offend(f"size of {output}", message)
            return
        self._check(message, bool(np.isfinite(effort).all()), f"effort of {output} is not finite")
        self._check(message, bool((np.abs(effort) <= limit).all()), f"effort of {output} beyond the limits {limit}")
        for name, pair in self._pairs.items():
            leads = output == leader and (name == "~/motor_commands") == (leader == "~/motor_effort")
            if leads or output == name:
                (pair.leads if leads else pair.follows).append(effort.tobytes())
                self._check(message, pair.agree(), f"{name} differs from {leader}")
