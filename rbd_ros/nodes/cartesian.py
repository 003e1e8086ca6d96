"""Node `cartesian`: Cartesian impedance control of one link by torques (`runtime.control.cartesian`).

Topics: those of `torque_node`, and
  ~/target_pose         geometry_msgs/PoseStamped, in: where the link goes; frame_id: a link of the robot, at its place
                        when the message arrives, or empty: the root link. The stamp is not used
  ~/target_twist        geometry_msgs/TwistStamped, in, best effort: how the link moves, about its origin; frame_id: a
                        link whose axes count, as they are when the message arrives, or empty: the root link. The stamp
                        is not used
Keys of /diagnostics, in addition: goals, twists, goals_dropped, position_error_mm, rotation_error_mrad,
hidden_directions (of the link's motion, that the pose does not allow), bounded_damping (directions whose stiffness wants more damping than is
stable at the rate of the joint states: less stiffness, or a higher rate).
"""
from __future__ import annotations

import time

from geometry_msgs.msg import PoseStamped, TwistStamped

from ..core.model.robot_model import RobotModel
from ..runtime.control.cartesian import CartesianController
from ..runtime.control.cartesian_settings import CARTESIAN_TABLE, CartesianSettings
from ..runtime.control.torque_settings import TorqueSettings
from .base.model_node import BEST_EFFORT, RELIABLE
from .base.spin import run
from .base.torque_node import TORQUE_NODE_TABLE, TorqueNode


class CartesianNode(TorqueNode):
    """Takes goal poses and twists."""

    controller: CartesianController
    logic, make_settings = CARTESIAN_TABLE, staticmethod(CartesianSettings.from_values)
    table = (*TORQUE_NODE_TABLE, *logic)

    def __init__(self) -> None:
        super().__init__("cartesian")

    def make_controller(self, model: RobotModel, settings: TorqueSettings) -> CartesianController:
        assert isinstance(settings, CartesianSettings)
        return CartesianController(model, settings)

    def create_inputs(self) -> None:
        self.subscribe(PoseStamped, "~/target_pose", self._on_pose, RELIABLE)
        self.subscribe(TwistStamped, "~/target_twist", self._on_twist, BEST_EFFORT)

    def _on_pose(self, message: PoseStamped) -> None:
        p, r = message.pose.position, message.pose.orientation
        self.report_rejection(self.controller.on_goal(
            time.monotonic(), message.header.frame_id, (p.x, p.y, p.z), (r.x, r.y, r.z, r.w)))

    def _on_twist(self, message: TwistStamped) -> None:
        v, w = message.twist.linear, message.twist.angular
        self.report_rejection(self.controller.on_twist(
            time.monotonic(), message.header.frame_id, (v.x, v.y, v.z), (w.x, w.y, w.z)))


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `cartesian`."""
    run(CartesianNode, arguments)


if __name__ == "__main__":
    main()
