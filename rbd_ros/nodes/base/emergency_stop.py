"""~/emergency_stop and ~/reset of a torque node; stops are received during all other activity of the node."""
from __future__ import annotations

import time
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

from .model_node import LATCHED
from .rclpy_inside import LentGroup, take

TOPIC = "~/emergency_stop"
STOPS = QoSProfile(depth=100)    # deep enough that no stop is overwritten by later messages
UNRELIABLE = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
LOOK = 0.25                      # s between checks for latching publishers, by `take`


class EmergencyStop:
    """Emergency stop of a torque node, and service `~/reset`, which releases it.

    Every message with true is a stop, for any QoS of its publisher; false is ignored. A stop holds from its message on,
    also before configuration and through cleanup.
    """

    def __init__(self, node: Any) -> None:
        self._node, self._held = node, False
        self.group = LentGroup()    # served by the control loop, if there is one, because it never waits for long
        self._looked, self._latches = 0.0, False
        self._subscriptions: list[Any] = []
        self._listen(STOPS, callback_group=self.group,
                     qos_overriding_options=QoSOverridingOptions.with_default_policies())
        self._listen(UNRELIABLE, callback_group=self.group)    # the reliable one loses no messages

    def set_up(self) -> None:
        """Start to act on the controller after configuration."""
        if self._held:
            self._node.controller.safety.stop()
        self._node.serve(Trigger, "~/reset", self._on_reset)

    def tear_down(self) -> None:
        """Stop to act on the controller, at cleanup."""
        if self._node.controller is not None:
            self._held = self._node.controller.safety.latched

    def hear_latched(self) -> None:
        """Receive the latched stop of a publisher, too. This takes a further subscription, only made for latching
        publishers, because others would warn of incompatible QoS.
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
        """Take waiting messages in the thread of an executor during a long callback."""
        if time.monotonic() - self._looked > LOOK:
            self.hear_latched()
        for subscription in self._subscriptions:
            while (taken := take(subscription)) is not None:
                self._hear(taken[0])

    def _hear(self, message: Bool, info: Any = None) -> None:
        if not message.data:
            return
        node = self._node
        with node.lock:
            safety = None if node.controller is None else node.controller.safety
            if self._held if safety is None else safety.latched:
                return
            if safety is None:
                self._held = True
            else:
                safety.stop()
        node.get_logger().error("emergency stop: publishing the safe effort until service ~/reset is called"
                                if node.active else "emergency stop: it holds after activation, until ~/reset")

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        node = self._node
        with node.lock:
            response.success = node.controller.safety.latched
            node.controller.reset(time.monotonic())
        response.message = "released, ramping in while active" if response.success else "there was no emergency stop"
        if response.success:
            node.get_logger().info(f"emergency stop: {response.message}")
        return response
