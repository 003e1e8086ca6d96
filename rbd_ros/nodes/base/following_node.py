"""What the nodes that follow references share.

Beside the topics of `torque_node`:
  ~/reference           rbd_interfaces/JointReference, in, best effort: a stream of desired states
  ~/joint_trajectory    trajectory_msgs/JointTrajectory, in: interpolated, see the node
  ~/external_wrenches   rbd_interfaces/NamedWrenches, in, best effort: what the surroundings exert on the robot
The newest reference or trajectory counts.
"""
from __future__ import annotations

import time

from trajectory_msgs.msg import JointTrajectory

from rbd_interfaces.msg import JointReference, NamedWrenches

from ...runtime.control.following import FollowingController
from .conversions import named_wrenches, nanoseconds, trajectory_points
from .model_node import BEST_EFFORT, RELIABLE
from .torque_node import TorqueNode


class FollowingNode(TorqueNode):
    """Converts messages for a `FollowingController`."""

    controller: FollowingController

    def create_inputs(self) -> None:
        self.subscribe(JointReference, "~/reference", self._on_reference, BEST_EFFORT)
        self.subscribe(JointTrajectory, "~/joint_trajectory", self._on_trajectory, RELIABLE)
        self.subscribe(NamedWrenches, "~/external_wrenches", self._on_wrenches, BEST_EFFORT)

    def _on_reference(self, message: JointReference) -> None:
        self.report_rejection(self.controller.on_reference(
            time.monotonic(), nanoseconds(message.header.stamp), message.name, message.position, message.velocity,
            message.acceleration, message.jerk, message.snap))

    def _on_trajectory(self, message: JointTrajectory) -> None:
        accepted = self.controller.on_trajectory(
            time.monotonic(), nanoseconds(message.header.stamp), message.joint_names, trajectory_points(message))
        self.report_rejection(accepted)
        if accepted and accepted.text:
            self.get_logger().warning(accepted.text)

    def _on_wrenches(self, message: NamedWrenches) -> None:
        self.report_rejection(self.controller.on_wrenches(time.monotonic(), named_wrenches(message)))
