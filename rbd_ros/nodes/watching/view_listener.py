"""Listener to a torque node for `rbd view --live`, with emergency stop: joint states, `~/effort`, `/diagnostics`, and
the node's references; external wrenches of a node `observer` beside it; target and goals of node `cartesian`.

It has no executor: `poll` takes the newest messages, thirty times a second, at any publishing rate of the robot.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.context import Context
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from rbd_interfaces.msg import JointEffort, JointReference

from ...core.errors import RbdError
from ...core.lie import so3
from ...runtime.inputs.rejections import Rejected, check_size
from ...runtime.inputs.robot_description import LONGEST
from ...runtime.observed_robot import ObservedRobot
from ...runtime.inputs.trajectory_points import Point
from ..base.conversions import nanoseconds, read_description, reading
from ..base.rclpy_inside import bounded, take, take_answer

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)    # compatible with reliable publishers, too
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
PATIENCE = 5.0    # s for an answer of `~/reset`
MOST = 2**20      # bytes of a message other than the description


class ViewListener:
    """Listener to one torque node. node: its full name; joint_states: topic. Call `close` at the end."""

    def __init__(self, node: str, joint_states: str = "") -> None:
        if not node.startswith("/") or node.endswith("/"):
            raise RbdError(f"--node '{node[:80]}': expected a full name, as /feedforward")
        self.node = node
        self._context = Context()
        rclpy.init(args=[], context=self._context)
        try:
            self._own = rclpy.create_node("rbd_view", context=self._context, start_parameter_services=False)
            listener = self._own
            beside = node.rpartition("/")[0]
            topic = joint_states or f"{beside}/joint_states"
            self._states = bounded(listener, JointState, topic, _nothing, NEWEST, MOST)
            self._efforts = bounded(listener, JointEffort, f"{node}/effort", _nothing, NEWEST, MOST)
            self._references = bounded(listener, JointReference, f"{node}/reference", _nothing, NEWEST, MOST)
            self._trajectories = bounded(listener, JointTrajectory, f"{node}/joint_trajectory", _nothing, 1, MOST)
            self._wrenches = bounded(listener, WrenchStamped, f"{beside}/observer/external_wrench", _nothing, NEWEST,
                                     MOST)
            self._targets = bounded(listener, PoseStamped, f"{node}/target", _nothing, NEWEST, MOST)
            self._goal = listener.create_publisher(PoseStamped, f"{node}/target_pose", 1)
            self._reports = bounded(listener, DiagnosticArray, "/diagnostics", _nothing, 20, MOST)
            self._stop = listener.create_publisher(Bool, f"{node}/emergency_stop", LATCHED)
            self._reset = listener.create_client(Trigger, f"{node}/reset")
        except Exception as error:    # for invalid names
            self.close()
            raise RbdError(f"--node {node[:80]}: {' '.join(str(error).split())[:200]}") from None
        self._asked: tuple[Any, float, Callable[[str], object]] | None = None

    def description(self, topic: str = "/robot_description", patience: float = PATIENCE) -> str:
        """The latched robot description of a topic; raises `RbdError` if none, or no valid one, comes."""
        subscription = bounded(self._own, String, topic, _nothing, LATCHED, LONGEST)
        why = ""
        try:
            end = time.monotonic() + patience
            while time.monotonic() < end:
                if (taken := take(subscription)) is not None:
                    try:
                        check_size(topic, len(taken[0]), LONGEST, parameter="")
                        return read_description(taken[0])
                    except Rejected as error:    # another publisher may send a valid one
                        why = f" ({error})"
                time.sleep(0.02)
        finally:
            self._own.destroy_subscription(subscription)
        raise RbdError(f"no robot description on {topic} within {patience:g} s{why}: give its file, too")

    def poll(self, observed: ObservedRobot) -> None:
        """Pass the received messages to `observed`."""
        now = time.monotonic()
        for state in _taken(self._states, 1):
            observed.on_state(now, state.name, state.position, state.effort, nanoseconds(state.header.stamp))
        for command in _taken(self._efforts, 1):
            observed.on_command(now, command.name, command.effort)
        for wrench in _taken(self._wrenches, 1):
            force = wrench.wrench.force
            observed.on_force(now, wrench.header.frame_id, [force.x, force.y, force.z])
        for target in _taken(self._targets, 1):
            p, r = target.pose.position, target.pose.orientation
            observed.on_target(now, target.header.frame_id, (p.x, p.y, p.z), (r.x, r.y, r.z, r.w))
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

    def go_to(self, pose: Any) -> None:
        """Publish a goal (4, 4) of node `cartesian`, in axes of the root link."""
        message = PoseStamped()
        p, r = message.pose.position, message.pose.orientation
        p.x, p.y, p.z = (float(x) for x in pose[:3, 3])
        r.x, r.y, r.z, r.w = (float(x) for x in so3.to_quaternion(pose[:3, :3]))
        self._goal.publish(message)

    def emergency_stop(self) -> str:
        """Publish an emergency stop, latched: a node that starts later stops, too. Returns a message about subscribers.
        """
        self._stop.publish(Bool(data=True))
        heard = self._stop.get_subscription_count() > 0
        return "emergency stop sent" + ("" if heard else f", but nobody listens on {self.node}/emergency_stop")

    def reset(self, tell: Callable[[str], object]) -> None:
        """Call `~/reset`; `tell` is called with its answer."""
        self._stop.publish(Bool(data=False))    # releases nothing, but replaces the latched stop of this publisher
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
    """At most `most` waiting messages, without too large and malformed ones."""
    for _ in range(most):
        if (taken := take(subscription)) is None:
            return
        with suppress(Rejected):
            check_size(subscription.topic_name, len(taken[0]), MOST)
            yield reading(subscription.msg_type)(taken[0])


def _nothing(*_: Any) -> None:
    """Unused callback: messages are taken by `poll`."""
