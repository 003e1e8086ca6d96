"""Follows a torque node for `rbd view --live`, and can stop it: joint states, `~/effort`, `/diagnostics`, and the
references that it is sent.

It has no executor: `poll` takes the newest messages, thirty times a second, however fast the robot publishes.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.context import Context
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from rbd_interfaces.msg import JointEffort, JointReference

from ...core.errors import RbdError
from ...runtime.inputs.rejections import Rejected, check_size
from ...runtime.inputs.robot_description import LONGEST
from ...runtime.observed_robot import ObservedRobot
from ...runtime.inputs.trajectory_points import Point
from ..base.conversions import nanoseconds, read_description, reading
from ..base.rclpy_inside import bounded, take, take_answer

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)    # hears reliable publishers, too
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
PATIENCE = 5.0    # s for an answer of `~/reset`
MOST = 2**20      # bytes of a message other than the description


class ViewListener:
    """node: full name of the torque node; joint_states: topic. Close it at the end."""

    def __init__(self, node: str, joint_states: str = "") -> None:
        if not node.startswith("/") or node.endswith("/"):
            raise RbdError(f"--node '{node[:80]}': expected a full name, as /feedforward")
        self.node = node
        self._context = Context()
        rclpy.init(args=[], context=self._context)
        try:
            self._own = rclpy.create_node("rbd_view", context=self._context, start_parameter_services=False)
            own = self._own
            topic = joint_states or f"{node.rpartition('/')[0]}/joint_states"
            self._states = bounded(own, JointState, topic, _nothing, NEWEST, MOST)
            self._efforts = bounded(own, JointEffort, f"{node}/effort", _nothing, NEWEST, MOST)
            self._references = bounded(own, JointReference, f"{node}/reference", _nothing, NEWEST, MOST)
            self._trajectories = bounded(own, JointTrajectory, f"{node}/joint_trajectory", _nothing, 1, MOST)
            self._reports = bounded(own, DiagnosticArray, "/diagnostics", _nothing, 20, MOST)
            self._stop = own.create_publisher(Bool, f"{node}/emergency_stop", LATCHED)
            self._reset = own.create_client(Trigger, f"{node}/reset")
        except Exception as error:    # for invalid names
            self.close()
            raise RbdError(f"--node {node[:80]}: {' '.join(str(error).split())[:200]}") from None
        self._asked: tuple[Any, float, Callable[[str], object]] | None = None

    def description(self, topic: str = "/robot_description", patience: float = PATIENCE) -> str:
        """The robot description on a topic that latches it; `RbdError` where none comes, or something else."""
        subscription = bounded(self._own, String, topic, _nothing, LATCHED, LONGEST)
        why = ""
        try:
            end = time.monotonic() + patience
            while time.monotonic() < end:
                if (taken := take(subscription)) is not None:
                    try:
                        check_size(topic, len(taken[0]), LONGEST, parameter="")
                        return read_description(taken[0])
                    except Rejected as error:    # somebody else may publish one
                        why = f" ({error})"
                time.sleep(0.02)
        finally:
            self._own.destroy_subscription(subscription)
        raise RbdError(f"no robot description on {topic} within {patience:g} s{why}: give its file, too")

    def poll(self, observed: ObservedRobot) -> None:
        """Hand over what has come."""
        now = time.monotonic()
        for state in _taken(self._states, 1):
            observed.on_state(now, state.name, state.position, state.effort, nanoseconds(state.header.stamp))
        for command in _taken(self._efforts, 1):
            observed.on_command(now, command.name, command.effort)
        for report in _taken(self._reports, 20):
            for status in report.status:
                observed.on_report(now, status.name, status.message, {item.key: item.value for item in status.values})
        for reference in _taken(self._references, 1):
            observed.on_reference(now, nanoseconds(reference.header.stamp), reference.name, reference.position)
        for trajectory in _taken(self._trajectories, 1):
            observed.on_trajectory(now, nanoseconds(trajectory.header.stamp), trajectory.joint_names, [
                Point(1e-9 * nanoseconds(point.time_from_start), point.positions, point.velocities,
                      point.accelerations) for point in trajectory.points])
        if self._asked is not None:
            pending, asked, tell = self._asked
            answer = take_answer(self._reset, pending)
            if answer is not None or now - asked > PATIENCE:
                self._asked = None
                tell(answer.message if answer is not None else f"{self.node}/reset did not answer")

    def emergency_stop(self) -> str:
        """Publish it, latched: a node that starts later stops, too. Says whether anyone hears it."""
        self._stop.publish(Bool(data=True))
        heard = self._stop.get_subscription_count() > 0
        return "emergency stop sent" + ("" if heard else f", but nobody listens on {self.node}/emergency_stop")

    def reset(self, tell: Callable[[str], object]) -> None:
        """Call `~/reset`; tell gets its answer."""
        self._stop.publish(Bool(data=False))    # releases nothing, but takes the place of the stop that is latched here
        if not self._reset.service_is_ready():
            tell(f"there is no service {self.node}/reset")
            return
        self._asked = self._reset.call_async(Trigger.Request()), time.monotonic(), tell

    def close(self) -> None:
        """Leave the graph."""
        if hasattr(self, "_own"):
            self._own.destroy_node()
        rclpy.try_shutdown(context=self._context)


def _taken(subscription: Any, most: int) -> Iterator[Any]:
    """At most so many of the messages that wait; those that are too large, or none, are left out."""
    for _ in range(most):
        if (taken := take(subscription)) is None:
            return
        with suppress(Rejected):
            check_size(subscription.topic_name, len(taken[0]), MOST)
            yield reading(subscription.msg_type)(taken[0])


def _nothing(*_: Any) -> None:
    """Messages are taken, not called back."""
