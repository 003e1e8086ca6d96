"""`~/contact_forces`: forces of unilateral and compliant contacts, from the simulator."""
from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from geometry_msgs.msg import Point, Vector3
from rclpy.node import Node
from rclpy.qos_overriding_options import QoSOverridingOptions

from rbd_interfaces.msg import ContactForces

from ...core.simulation.contact.records import ContactState

STATES = {"open": ContactForces.OPEN, "sticking": ContactForces.STICKING, "sliding": ContactForces.SLIDING}


class ContactPublisher:
    """Publisher of contact forces, if there are contacts; world: frame of the root link."""

    def __init__(self, node: Node, contacts: Sequence[Any], world: str) -> None:
        self._node = node
        self._message = ContactForces(name=[contact.name for contact in contacts])
        self._message.header.frame_id = world
        self._publisher = node.create_publisher(ContactForces, "~/contact_forces", 10, qos_overriding_options=(
            QoSOverridingOptions.with_default_policies())) if contacts else None

    def send(self, stamp: Any, states: Sequence[ContactState] | None) -> None:
        """Publish the contacts at a builtin_interfaces/Time; nothing for None (unknown)."""
        if self._publisher is None or states is None:
            return
        message = self._message
        message.header.stamp = stamp
        message.state = array("B", [STATES[state.state] for state in states])
        message.point = [Point(**_parts(state.point)) for state in states]
        for field in ("normal", "force", "impulse"):
            setattr(message, field, [Vector3(**_parts(getattr(state, field))) for state in states])
        message.gap = array("d", [state.gap for state in states])
        self._publisher.publish(message)

    def destroy(self) -> None:
        if self._publisher is not None:
            self._node.destroy_publisher(self._publisher)


def _parts(vector: Any) -> dict[str, float]:
    x, y, z = vector.tolist()
    return {"x": x, "y": y, "z": z}
