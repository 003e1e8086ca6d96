"""Node `cartesian`: Cartesian impedance control of one link by torques (`runtime.control.cartesian`).

Topics: those of `torque_node`, and
  ~/target_pose         geometry_msgs/PoseStamped, in: where the link goes; frame_id: a link of the robot, at its place
                        when the message arrives, or empty: the root link. The stamp is not used
  ~/target_twist        geometry_msgs/TwistStamped, in, best effort: how the link moves, about its origin; frame_id: a
                        link whose axes count, as they are when the message arrives, or empty: the root link. The stamp
                        is not used
  ~/target_trajectory   trajectory_msgs/MultiDOFJointTrajectory, in: joint_names: the controlled link; frame_id: as of a
                        pose; transforms, and at all points or none velocities and accelerations, in the same axes.
                        Stamp 0: it begins at once. Without points: stop here, and stay
  ~/target              geometry_msgs/PoseStamped, out, 30 times per second at most: where the target is, in axes of the
                        root link
Keys of /diagnostics, in addition: goals, twists, trajectories, goals_dropped, position_error_mm, rotation_error_mrad,
hidden_directions (of the link's motion, that the pose does not allow), bounded_damping (directions whose
stiffness wants more damping than is stable at the rate of the joint states: less stiffness, or a higher rate).
"""
from __future__ import annotations

import time
from collections.abc import Sequence

from geometry_msgs.msg import PoseStamped, TwistStamped
from trajectory_msgs.msg import MultiDOFJointTrajectory

from ..core.compiled.kernel import COMPILED
from ..core.model.robot_model import RobotModel
from ..runtime.control.cartesian import CartesianController
from ..runtime.control.cartesian_settings import CARTESIAN_TABLE, CartesianSettings
from ..runtime.control.loop_rate import Transit
from ..runtime.control.torque_settings import TorqueSettings
from ..runtime.inputs.pose_points import PosePoint
from .base.conversions import pose_trajectory, reading
from .base.model_node import BEST_EFFORT, RELIABLE
from .base.spin import run
from .base.torque_node import TORQUE_NODE_TABLE, TorqueNode
from .loop.joint_state_inputs import Shortcut
from .loop.steady_answers import QuickAnswers
from .outputs.output import Output
from .outputs.target_pose import TargetOutput


class CartesianNode(TorqueNode):
    """Takes goal poses, twists and trajectories."""

    controller: CartesianController
    logic, make_settings = CARTESIAN_TABLE, staticmethod(CartesianSettings.from_values)
    table = (*TORQUE_NODE_TABLE, *logic)

    def __init__(self) -> None:
        super().__init__("cartesian")

    def make_controller(self, model: RobotModel, settings: TorqueSettings) -> CartesianController:
        assert isinstance(settings, CartesianSettings)
        return CartesianController(model, settings)

    def shortcut(self, transit: Transit) -> Shortcut | None:
        return QuickAnswers(self, transit) if COMPILED else None

    def late_outputs(self, settings: TorqueSettings) -> list[Output]:
        return [TargetOutput(self, settings.model.body_names[0], lambda: self.controller.target)]

    def create_inputs(self) -> None:
        self.subscribe(PoseStamped, "~/target_pose", self._on_pose, RELIABLE)
        self.subscribe(TwistStamped, "~/target_twist", self._on_twist, BEST_EFFORT)
        self.subscribe_unlocked(MultiDOFJointTrajectory, "~/target_trajectory",
                                lambda message: self.guarded(lambda: self._on_trajectory(*message)), RELIABLE,
                                read=reading(MultiDOFJointTrajectory, pose_trajectory))

    def _on_pose(self, message: PoseStamped) -> None:
        p, r = message.pose.position, message.pose.orientation
        self.report_rejection(self.controller.on_goal(
            time.monotonic(), message.header.frame_id, (p.x, p.y, p.z), (r.x, r.y, r.z, r.w)))

    def _on_twist(self, message: TwistStamped) -> None:
        v, w = message.twist.linear, message.twist.angular
        self.report_rejection(self.controller.on_twist(
            time.monotonic(), message.header.frame_id, (v.x, v.y, v.z), (w.x, w.y, w.z)))

    def _on_trajectory(self, stamp_ns: int, frame: str, names: Sequence[str], points: Sequence[PosePoint]) -> None:
        self.report_rejection(self.controller.on_trajectory(time.monotonic(), stamp_ns, frame, names, points,
                                                            lock=self.lock))


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `cartesian`."""
    run(CartesianNode, arguments)


if __name__ == "__main__":
    main()
