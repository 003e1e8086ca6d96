"""The subscriptions of a torque node to ~/emergency_stop, which hear a stop whatever else the node does."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from std_msgs.msg import Bool

from .model_node import LATCHED
from .rclpy_inside import take

TOPIC = "~/emergency_stop"
STOPS = QoSProfile(depth=100)    # a stop that the next message releases at once is a stop all the same
UNRELIABLE = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
LOOK = 0.25                      # s between looks for publishers that latch, by `take`


class EmergencyStopInput:
    """Calls `stop` for every message with true, whatever the QoS of its publisher; more than once for some. What
    releases a stop is not heard here.
    """

    def __init__(self, node: Node, stop: Callable[[], None]) -> None:
        self._node, self._stop = node, stop
        self._looked, self._latches = 0.0, False
        self._subscriptions: list[Any] = []
        self._listen(STOPS, qos_overriding_options=QoSOverridingOptions.with_default_policies())
        self._listen(UNRELIABLE)    # hears all; the other one does not lose what reliable ones send

    def hear_latched(self) -> None:
        """Where a publisher latches its stops, hear the one from before, too: that takes another subscription, which
        other publishers would warn of.
        """
        self._looked = time.monotonic()
        if not self._latches and any(publisher.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
                                     for publisher in self._node.get_publishers_info_by_topic(TOPIC)):
            self._latches = True
            self._listen(LATCHED)

    def _listen(self, profile: QoSProfile, **options: Any) -> None:
        self._subscriptions.append(self._node.create_subscription(
            Bool, TOPIC, self._hear, profile, event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
            **options))

    def take(self) -> None:
        """Hear what waits, in the thread of an executor that is busy with one of its callbacks."""
        if time.monotonic() - self._looked > LOOK:
            self.hear_latched()
        for subscription in self._subscriptions:
            while (taken := take(subscription)) is not None:
                self._hear(taken[0])

    def _hear(self, message: Bool) -> None:
        if message.data:
            self._stop()
