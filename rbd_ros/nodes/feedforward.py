"""Node `feedforward`: joint states and a reference in, joint efforts out (`core.control.feedforward`).

Beside the topics of `torque_node`:
  ~/reference           rbd_interfaces/JointReference, in, best effort: a stream of desired states
  ~/joint_trajectory    trajectory_msgs/JointTrajectory, in: interpolated as joint_trajectory_controller does
  ~/external_wrenches   rbd_interfaces/NamedWrenches, in, best effort: what the surroundings exert on the robot
The newest reference or trajectory counts.
"""
from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from trajectory_msgs.msg import JointTrajectory

from rbd_interfaces.msg import JointReference, NamedWrenches

from ..core.control.feedforward import FEEDFORWARD_TABLE, FeedforwardController, FeedforwardSettings
from ..core.control.torque_settings import TorqueSettings
from ..core.model.robot_model import RobotModel
from .conversions import named_wrenches, nanoseconds, trajectory_points
from .spin import run
from .torque_node import BEST_EFFORT, RELIABLE, TorqueNode


class FeedforwardNode(TorqueNode):
    """Converts messages, calls the controller, publishes."""

    table = FEEDFORWARD_TABLE
    controller: FeedforwardController

    def __init__(self) -> None:
        super().__init__("feedforward")

    def make_settings(self, values: Mapping[str, Any], model: RobotModel) -> FeedforwardSettings:
        return FeedforwardSettings.from_values(values, model)

    def make_controller(self, model: RobotModel, settings: TorqueSettings) -> FeedforwardController:
        assert isinstance(settings, FeedforwardSettings)
        return FeedforwardController(model, settings)

    def create_inputs(self) -> None:
        self.subscribe(JointReference, "~/reference", self._on_reference, BEST_EFFORT)
        self.subscribe(JointTrajectory, "~/joint_trajectory", self._on_trajectory, RELIABLE)
        self.subscribe(NamedWrenches, "~/external_wrenches", self._on_wrenches, BEST_EFFORT)

    def _on_reference(self, message: JointReference) -> None:
        self.report_rejection(self.controller.on_reference(
            time.monotonic(), nanoseconds(message.header.stamp), message.name, message.position, message.velocity,
            message.acceleration))

    def _on_trajectory(self, message: JointTrajectory) -> None:
        self.report_rejection(self.controller.on_trajectory(
            time.monotonic(), nanoseconds(message.header.stamp), message.joint_names, trajectory_points(message)))

    def _on_wrenches(self, message: NamedWrenches) -> None:
        self.report_rejection(self.controller.on_wrenches(time.monotonic(), named_wrenches(message)))


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `feedforward`."""
    run(FeedforwardNode, arguments)


if __name__ == "__main__":
    main()
