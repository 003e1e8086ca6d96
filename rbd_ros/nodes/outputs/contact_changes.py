"""Contacts as a topic: `~/contact`, rbd_interfaces/Contact, when one begins, is felt further out, or ends."""
from __future__ import annotations

from collections.abc import Callable, Iterable

from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

from rbd_interfaces.msg import Contact as ContactMessage

from ...runtime.estimation.contacts import Contact
from ...runtime.safety import Command
from ..base.conversions import put_wrench
from .output import Array, Output, Stamp


class ContactPublisher:
    """Publishes changes of contacts."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._publisher = node.create_publisher(ContactMessage, "~/contact", QoSProfile(depth=100),
                                                qos_overriding_options=QoSOverridingOptions.with_default_policies())

    def send(self, stamp: Stamp, changes: Iterable[Contact]) -> None:
        for change in changes:
            message = ContactMessage(touching=change.touching)
            message.header.frame_id = change.body
            message.header.stamp.sec, message.header.stamp.nanosec = stamp
            put_wrench(message.wrench, change.wrench)
            message.point.x, message.point.y, message.point.z = map(float, change.point)
            self._publisher.publish(message)

    def destroy(self) -> None:
        self._node.destroy_publisher(self._publisher)


class ContactOutput(Output):
    """Output of a torque node. take: returns the changes since its last call."""

    def __init__(self, node: Node, take: Callable[[], list[Contact]]) -> None:
        self._contacts, self._take = ContactPublisher(node), take

    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        if changes := self._take():
            self._contacts.send(stamp, changes)

    @property
    def topics(self) -> list[str]:
        return []    # other publishers on this topic are harmless

    def destroy(self) -> None:
        self._contacts.destroy()
