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
  ~/target_wrench       geometry_msgs/WrenchStamped, in: what the link exerts on what it touches, about its origin;
                        frame_id as of a pose, its axes alone count. It holds until the next one; zero ends it
  <force.topic>         geometry_msgs/WrenchStamped, in, best effort: what acts on the link, as node observer has it in
                        ~/external_wrench: in axes of the link frame_id, about its origin
  ~/target              geometry_msgs/PoseStamped, out, 30 times per second at most: where the target is, in axes of the
                        root link
  ~/guide               std_srvs/SetBool: begin or end hand guiding
  ~/teach               std_srvs/SetBool: begin to record a path that is guided; end, and write it to `teach.file`
Keys of /diagnostics, in addition: guided (no, yes, or held: it drifted), taught_s, goals, twists, trajectories,
goals_dropped, position_error_mm, rotation_error_mrad, hidden_directions (of the link's motion, that the pose does not
allow), bounded_damping (directions whose stiffness wants more damping than is stable at the rate of the joint states:
less stiffness, or a higher rate), wall_depth_mm (behind a virtual wall), spring_share (of the springs to the target
that acts), tank_j (level of the energy tank), target_wrenches, target_force_n, measured_force_n.
"""
from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from std_srvs.srv import SetBool
from trajectory_msgs.msg import MultiDOFJointTrajectory

from ..core.compiled.kernel import COMPILED
from ..core.errors import RbdError
from ..core.model.robot_model import RobotModel
from ..runtime.control.cartesian import CartesianController
from ..runtime.control.cartesian_settings import CARTESIAN_TABLE, CartesianSettings
from ..runtime.control.loop_rate import Transit
from ..runtime.control.torque_settings import TorqueSettings
from ..runtime.inputs.pose_points import PosePoint
from ..runtime.steady.steady_cartesian import CartesianCycle
from .base.answering import answered
from .base.conversions import numbers_of, pose_trajectory, reading
from .base.model_node import BEST_EFFORT, RELIABLE
from .base.spin import run
from .base.torque_node import TORQUE_NODE_TABLE, TorqueNode
from .loop.joint_state_inputs import Shortcut
from .loop.steady_answers import InTurn, QuickAnswers, SteadyAnswers
from .outputs.output import Output
from .outputs.target_pose import TargetOutput


class CartesianNode(TorqueNode):
    """Takes goal poses, twists and trajectories."""

    controller: CartesianController
    logic, make_settings = CARTESIAN_TABLE, staticmethod(CartesianSettings.from_values)
    table = (*TORQUE_NODE_TABLE, *logic)

    def __init__(self) -> None:
        super().__init__("cartesian")
        self._counts: Counter[str] = Counter()

    def make_controller(self, model: RobotModel, settings: TorqueSettings) -> CartesianController:
        assert isinstance(settings, CartesianSettings)
        return CartesianController(model, settings)

    def shortcut(self, transit: Transit) -> Shortcut | None:
        if not COMPILED:
            return None
        return InTurn(SteadyAnswers(self, CartesianCycle(self.controller, transit)), QuickAnswers(self, transit))

    def late_outputs(self, settings: TorqueSettings) -> list[Output]:
        return [TargetOutput(self, settings.model.body_names[0], lambda: self.controller.target)]

    def create_inputs(self) -> None:
        self.subscribe(PoseStamped, "~/target_pose", self._on_pose, RELIABLE)
        self.subscribe(WrenchStamped, "~/target_wrench", self._on_target_wrench, RELIABLE)
        if topic := self.controller.settings.forces.topic:
            self.subscribe(WrenchStamped, topic, self._on_measured_wrench, BEST_EFFORT)
        self.serve(SetBool, "~/guide", self._on_guide)
        self.serve(SetBool, "~/teach", self._on_teach)
        self.subscribe(TwistStamped, "~/target_twist", self._on_twist, BEST_EFFORT)
        self.subscribe_unlocked(MultiDOFJointTrajectory, "~/target_trajectory",
                                lambda message: self.guarded(lambda: self._on_trajectory(*message)), RELIABLE,
                                read=reading(MultiDOFJointTrajectory, pose_trajectory))

    def _on_pose(self, message: PoseStamped) -> None:
        p, r = message.pose.position, message.pose.orientation
        self.report_rejection(self.controller.on_goal(
            time.monotonic(), message.header.frame_id, (p.x, p.y, p.z), (r.x, r.y, r.z, r.w)))

    def _on_guide(self, request: SetBool.Request, response: SetBool.Response) -> Any:
        def answer() -> None:
            with self.lock:
                verdict = self.controller.guide(time.monotonic(), request.data)
            if not verdict:
                raise RbdError(verdict.text)
            response.success = True
            response.message = f"guided along {', '.join(self.controller.settings.axes)}" if request.data else "held"

        return answered(self.get_logger(), self._counts, "guide", answer, response)

    def _on_teach(self, request: SetBool.Request, response: SetBool.Response) -> Any:
        def answer() -> None:
            with self.lock:
                if request.data and not (verdict := self.controller.teach()):
                    raise RbdError(verdict.text)
                taught = None if request.data else self.controller.take_taught()
                names = self.controller.model.joint_names
            response.success, response.message = True, "recording"
            if not request.data:
                positions = () if taught is None else taught.positions    # outside the lock: it takes milliseconds
                if len(positions) < 2:
                    raise RbdError("nothing was taught: call ~/guide, then ~/teach with true, and move the arm")
                response.message = self._written(names, positions)

        return answered(self.get_logger(), self._counts, "teach", answer, response)

    def _written(self, names: tuple[str, ...], positions: Any) -> str:
        path = Path(self.controller.settings.file).expanduser()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:    # as NumPy would otherwise add a suffix to some names
                np.savez(file, joints=np.array(names), positions=positions)
        except OSError as error:
            raise RbdError(f"cannot write {path} (parameter 'teach.file'): {error.strerror}") from None
        return f"wrote {len(positions)} positions to {path.absolute()}: rbd retrace makes a trajectory of them"

    def _on_target_wrench(self, message: WrenchStamped) -> None:
        self.report_rejection(self.controller.on_target_wrench(
            time.monotonic(), message.header.frame_id, numbers_of(message.wrench)))

    def _on_measured_wrench(self, message: WrenchStamped) -> None:
        self.report_rejection(self.controller.on_measured_wrench(
            time.monotonic(), message.header.frame_id, numbers_of(message.wrench)))

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
