"""The target of node `cartesian` as a topic: `~/target`, geometry_msgs/PoseStamped in axes of the root link."""
from __future__ import annotations

import time
from collections.abc import Callable

from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

from ...core.lie.so3 import to_quaternion
from ...runtime.safety import Command
from .output import Array, Output, Stamp

PERIOD = 1.0 / 30.0    # s


class TargetOutput(Output):
    """frame: the root link. target: returns axes and origin (12,) first; None before there is one."""

    def __init__(self, node: Node, frame: str, target: Callable[[], Array | None]) -> None:
        self._node, self._target, self._sent = node, target, 0.0
        self._message = PoseStamped()
        self._message.header.frame_id = frame
        self._publisher = node.create_publisher(PoseStamped, "~/target", QoSProfile(depth=1), qos_overriding_options=(
            QoSOverridingOptions.with_default_policies()))

    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        now, target = time.monotonic(), self._target()
        if target is None or now - self._sent < PERIOD:
            return
        self._sent, pose = now, self._message.pose
        self._message.header.stamp.sec, self._message.header.stamp.nanosec = stamp
        pose.position.x, pose.position.y, pose.position.z = target[9:12].tolist()
        r = pose.orientation
        r.x, r.y, r.z, r.w = to_quaternion(target[:9].reshape(3, 3)).tolist()
        self._publisher.publish(self._message)

    def destroy(self) -> None:
        self._node.destroy_publisher(self._publisher)
