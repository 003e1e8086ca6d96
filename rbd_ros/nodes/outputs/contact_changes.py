"""Contacts as a topic: `~/contact`, rbd_interfaces/Contact, when one begins, is at another link, or ends."""
from __future__ import annotations

from collections.abc import Callable, Iterable

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

from rbd_interfaces.msg import Contact as ContactMessage

from ...core.model.robot_model import RobotModel
from ...runtime.estimation.contacts import Contact, wrench_and_point
from ...runtime.safety import Command
from ..base.conversions import put_wrench
from .output import Array, Output, Stamp


class ContactPublisher:
    """Publishes changes of contacts of a robot."""

    def __init__(self, node: Node, model: RobotModel) -> None:
        self._node, self._model = node, model
        self._publisher = node.create_publisher(ContactMessage, "~/contact", QoSProfile(depth=100),
                                                qos_overriding_options=QoSOverridingOptions.with_default_policies())

    def send(self, changes: Iterable[Contact], stamped: bool = True) -> None:
        """stamped: whether the joint states are; otherwise stamps are 0."""
        for change in changes:
            wrench, point = wrench_and_point(self._model, change)
            message = ContactMessage(touching=change.touching)
            message.header.frame_id = change.body
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(change.time_ns if stamped else 0, 10**9)
            put_wrench(message.wrench, wrench)
            message.point.x, message.point.y, message.point.z = map(float, point)
            self._publisher.publish(message)

    def destroy(self) -> None:
        self._node.destroy_publisher(self._publisher)


class ContactOutput(Output):
    """Output of a torque node. take: returns the changes since its last call."""

    def __init__(self, node: Node, model: RobotModel, take: Callable[[], list[Contact]]) -> None:
        self._contacts, self._take = ContactPublisher(node, model), take

    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        if changes := self._take():
            self._contacts.send(changes, stamp != (0, 0))

    @property
    def topics(self) -> list[str]:
        return []    # other publishers on this topic are harmless

    def destroy(self) -> None:
        self._contacts.destroy()
