"""Force-torque sensors as topics: `~/wrench/<joint>`, geometry_msgs/WrenchStamped in the frame of the child link."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

from ...runtime.safety import Command
from ...runtime.wrench_sensors import WrenchSensor
from ..base.conversions import put_wrench
from .output import Array, Output, Stamp


class WrenchPublishers:
    """One publisher per sensor."""

    def __init__(self, node: Node, sensors: Sequence[WrenchSensor]) -> None:
        self._node = node
        self._made = []
        for sensor in sensors:
            message = WrenchStamped()
            message.header.frame_id = sensor.frame
            self._made.append((message, node.create_publisher(
                WrenchStamped, sensor.topic, QoSProfile(depth=10),
                qos_overriding_options=QoSOverridingOptions.with_default_policies())))

    def send(self, stamp: Stamp, readings: Array | None) -> None:
        """Publish the readings (n, 6); nothing for None (unknown)."""
        if readings is None:
            return
        for (message, publisher), wrench in zip(self._made, readings, strict=True):
            message.header.stamp.sec, message.header.stamp.nanosec = stamp
            put_wrench(message.wrench, wrench)
            publisher.publish(message)

    def destroy(self) -> None:
        for _, publisher in self._made:
            self._node.destroy_publisher(publisher)


class WrenchOutput(Output):
    """Output of a torque node: expected readings of the sensors, computed by `sensed`."""

    def __init__(self, node: Node, sensors: Sequence[WrenchSensor], sensed: Callable[[], Array | None]) -> None:
        self._sensors, self._sensed = WrenchPublishers(node, sensors), sensed

    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        self._sensors.send(stamp, self._sensed())

    @property
    def topics(self) -> list[str]:
        return []    # other publishers on these topics are harmless

    def destroy(self) -> None:
        self._sensors.destroy()
