"""Node `feedforward`: joint states and a reference in, joint efforts out (`runtime.control.feedforward`).

Topics: those of `torque_node` and `following_node`. Trajectories are interpolated as joint_trajectory_controller does.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.model.robot_model import RobotModel
from ..runtime.control.feedforward import FEEDFORWARD_TABLE, FeedforwardController, FeedforwardSettings
from ..runtime.control.torque_settings import TorqueSettings
from .base.following_node import FollowingNode
from .base.spin import run
from .base.torque_node import TORQUE_NODE_TABLE


class FeedforwardNode(FollowingNode):
    """Makes the controller."""

    logic = FEEDFORWARD_TABLE
    table = (*TORQUE_NODE_TABLE, *logic)

    def __init__(self) -> None:
        super().__init__("feedforward")

    def make_settings(self, values: Mapping[str, Any], model: RobotModel) -> FeedforwardSettings:
        return FeedforwardSettings.from_values(self.own(values), model)

    def make_controller(self, model: RobotModel, settings: TorqueSettings) -> FeedforwardController:
        assert isinstance(settings, FeedforwardSettings)
        return FeedforwardController(model, settings)


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `feedforward`."""
    run(FeedforwardNode, arguments)


if __name__ == "__main__":
    main()
