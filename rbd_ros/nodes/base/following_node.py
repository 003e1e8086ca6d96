"""Base class of nodes that follow references.

In addition to the topics of `torque_node`:
  ~/reference           rbd_interfaces/JointReference, in, best effort: a stream of desired states
  ~/joint_trajectory    trajectory_msgs/JointTrajectory, in: interpolated, see the node. Without points: stop here, and
                        stay
  ~/external_wrenches   rbd_interfaces/NamedWrenches, in, best effort: wrenches of the environment on the robot
  <payload.topic>       rbd_interfaces/Payload, in: estimates of the load
  ~/adopt_payload       std_srvs/Trigger, with payload.topic: take the last one over into parameters payload.*
The newest reference or trajectory is followed.
"""
from __future__ import annotations

import time
from typing import Any

from trajectory_msgs.msg import JointTrajectory

from rbd_interfaces.msg import JointReference, NamedWrenches

from ...runtime.control.following import FollowingController
from ...runtime.inputs.trajectory_points import MOST_POINTS, TrajectoryMessage, TrajectoryReader
from ...runtime.parameters import Table
from .conversions import named_wrenches, nanoseconds, reading
from .model_node import BEST_EFFORT, RELIABLE
from .payload_adoption import TOPIC, adopt_from_topic
from .torque_node import TORQUE_NODE_TABLE, TorqueNode

FOLLOWING_NODE_TABLE: Table = (*TORQUE_NODE_TABLE, TOPIC)


class FollowingNode(TorqueNode):
    """Converts messages for a `FollowingController`."""

    controller: FollowingController

    def create_inputs(self) -> None:
        self.subscribe(JointReference, "~/reference", self._on_reference, BEST_EFFORT)
        topic, most = "~/joint_trajectory", int(self.get_parameter(MOST_POINTS.name).value)
        reader = TrajectoryReader(self.resolve_topic_name(topic), most, self.most_bytes, self.controller.model)
        self.subscribe_unlocked(
            JointTrajectory, topic, lambda message: self.guarded(lambda: self._on_trajectory(message)), RELIABLE,
            read=reader.read, most=reader.most, parameter=MOST_POINTS.name)
        self.subscribe(NamedWrenches, "~/external_wrenches", self._on_wrenches, BEST_EFFORT,
                       read=reading(NamedWrenches, named_wrenches))
        if topic := self.get_parameter(TOPIC.name).value:
            adopt_from_topic(self, topic)

    def _on_reference(self, message: JointReference) -> None:
        self.report_rejection(self.controller.on_reference(
            time.monotonic(), nanoseconds(message.header.stamp), message.name, message.position, message.velocity,
            message.acceleration, message.jerk, message.snap))

    def _on_trajectory(self, message: TrajectoryMessage) -> None:
        accepted = self.controller.on_trajectory(time.monotonic(), *message, lock=self.lock)
        self.report_rejection(accepted)
        if accepted and accepted.text:
            self.get_logger().warning(accepted.text)

    def _on_wrenches(self, wrenches: Any) -> None:
        self.report_rejection(self.controller.on_wrenches(time.monotonic(), wrenches))
