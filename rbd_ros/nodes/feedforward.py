"""Node `feedforward`: joint states and a reference in, joint efforts out (`runtime.control.feedforward`).

Topics: those of `torque_node` and `following_node`. Trajectories are interpolated as joint_trajectory_controller does.
  ~/wrench/<joint>      geometry_msgs/WrenchStamped, out, per joint of parameter `wrench_joints`, after the torque:
                        what a force-torque sensor there should show, in the state that is answered and if the robot
                        accelerates as the reference does (without one: at rest), under ~/external_wrenches: what the
                        child link exerts on the parent link, in the frame of the child link
"""
from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ..core.compile import COMPILED
from ..core.model.robot_model import RobotModel
from ..runtime.control.feedforward import FEEDFORWARD_TABLE, FeedforwardController, FeedforwardSettings
from ..runtime.control.torque_settings import TorqueSettings
from ..runtime.control.loop_rate import Transit
from ..runtime.steady.steady_tracking import TrackingCycle
from .base.following_node import FollowingNode
from .base.spin import run
from .base.torque_node import TORQUE_NODE_TABLE
from .loop.joint_state_inputs import Shortcut
from .loop.steady_answers import SteadyAnswers
from .outputs.output import Output
from .outputs.wrenches import WrenchOutput


class FeedforwardNode(FollowingNode):
    """Makes the controller."""

    logic = FEEDFORWARD_TABLE
    table = (*TORQUE_NODE_TABLE, *logic)

    def __init__(self) -> None:
        super().__init__("feedforward")

    def make_settings(self, values: Mapping[str, Any], model: RobotModel) -> FeedforwardSettings:
        return FeedforwardSettings.from_values(self.own(values), model)

    def late_outputs(self, settings: TorqueSettings) -> list[Output]:
        controller = self.controller
        assert isinstance(settings, FeedforwardSettings) and isinstance(controller, FeedforwardController)
        return [WrenchOutput(self, settings.sensors, lambda: controller.sensed(time.monotonic()))
                ] if settings.sensors else []

    def shortcut(self, transit: Transit) -> Shortcut | None:
        return SteadyAnswers(self, TrackingCycle(self.controller, transit)) if COMPILED else None

    def make_controller(self, model: RobotModel, settings: TorqueSettings) -> FeedforwardController:
        assert isinstance(settings, FeedforwardSettings)
        return FeedforwardController(model, settings)


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `feedforward`."""
    run(FeedforwardNode, arguments)


if __name__ == "__main__":
    main()
