"""Node `feedforward`: joint states and a reference in, joint efforts out (`runtime.control.feedforward`).

Topics: those of `torque_node` and `following_node`. Trajectories are interpolated as joint_trajectory_controller does.
  <odometry>            nav_msgs/Odometry, in, best effort, the topic of parameter `odometry`: pose and twist of the
                        root link
  ~/contact             rbd_interfaces/Contact, out, with parameter `contact.reaction`: when something begins to touch
                        the robot, is felt at a link further out, and when the contact ends
  ~/wrench/<joint>      geometry_msgs/WrenchStamped, out, per joint of parameter `wrench_joints`, after the torque:
                        expected reading of a force-torque sensor in the answered state, with the acceleration of the
                        reference (zero without one) and ~/external_wrenches: wrench of the child link on the parent
                        link, in the frame of the child link
"""
from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ..core.compiled.kernel import COMPILED
from ..core.errors import RbdError
from ..core.model.robot_model import RobotModel
from ..runtime.control.feedforward import FEEDFORWARD_TABLE, FeedforwardController, FeedforwardSettings
from ..runtime.control.torque_settings import TorqueSettings
from ..runtime.control.loop_rate import Transit
from ..runtime.steady.steady_tracking import TrackingCycle
from .base.following_node import FOLLOWING_NODE_TABLE, FollowingNode
from .base.rclpy_inside import take
from .base.spin import run
from .loop.joint_state_inputs import Shortcut
from .loop.steady_answers import QuickAnswers, SteadyAnswers
from .outputs.contact_changes import ContactOutput
from .outputs.output import Output
from .outputs.wrenches import WrenchOutput
from .world.odometry import subscribe_odometry


class FeedforwardNode(FollowingNode):
    """Creates the feed-forward controller."""

    controller: FeedforwardController
    logic, make_settings = FEEDFORWARD_TABLE, staticmethod(FeedforwardSettings.from_values)
    table = (*FOLLOWING_NODE_TABLE, *logic)

    def __init__(self) -> None:
        super().__init__("feedforward")
        self._odometry: Any = None    # the subscription

    def load(self, values: Mapping[str, Any], description: str) -> tuple[RobotModel, list[str]]:
        if values["odometry"] and values["mounting.frame"]:
            raise RbdError("parameters 'odometry' and 'mounting.frame' are both set: odometry says how the root link "
                           "is turned")
        return super().load(values, description)

    def late_outputs(self, settings: TorqueSettings) -> list[Output]:
        controller = self.controller
        assert isinstance(settings, FeedforwardSettings) and isinstance(controller, FeedforwardController)
        wrenches = [WrenchOutput(self, settings.sensors, lambda: controller.sensed(time.monotonic()))
                    ] if settings.sensors else []
        return [ContactOutput(self, controller.model, controller.contacts.take_changes), *wrenches]

    def shortcut(self, transit: Transit) -> Shortcut | None:
        # The steady cycle does not support a moving base, and an output that looks at the controller.
        if not COMPILED or self.controller.odometry is not None:
            return None
        if self.controller.local_loop:
            return QuickAnswers(self, transit)
        return SteadyAnswers(self, TrackingCycle(self.controller, transit))

    def create_inputs(self) -> None:
        super().create_inputs()
        topic = self.get_parameter("odometry").value
        if self.controller.odometry is not None:
            self._odometry = subscribe_odometry(self, topic, lambda odometry: self.report_rejection(
                self.controller.on_odometry(time.monotonic(), odometry)))

    def tear_down(self) -> None:
        self._odometry = None
        super().tear_down()

    def _go_on(self) -> None:
        while self._odometry is not None and (taken := take(self._odometry)) is not None:
            self._odometry.callback(*taken)
        super()._go_on()

    def report(self) -> Mapping[str, Any]:
        odometry = self.controller.odometry
        return {**super().report(), **({} if odometry is None else {"odometry_age": odometry.age(time.monotonic())})}

    def look_around(self, now: float) -> str:
        odometry = self.controller.odometry if self.active else None
        return "; ".join(filter(None, (super().look_around(now), "" if odometry is None else odometry.problem(now))))

    def make_controller(self, model: RobotModel, settings: TorqueSettings) -> FeedforwardController:
        assert isinstance(settings, FeedforwardSettings)
        return FeedforwardController(model, settings)


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `feedforward`."""
    run(FeedforwardNode, arguments)


if __name__ == "__main__":
    main()
