"""Node `flatness`: joint states and a reference in, joint efforts and their time derivatives out.

Topics: those of `torque_node` and `following_node`. A streamed reference needs jerk and snap, or ~/effort has no
derivatives. Trajectories are interpolated four times continuously differentiable (`core.motion.smooth_trajectory`).

With parameter `actuation_file` the joints are elastic (`runtime.control.elastic_controller`), with further topics:
  motor_states        sensor_msgs/JointState, in, best effort: position and velocity of the motors behind the gears, by
                      the names of the joints, and <joint>/stiffness for the second motors
  ~/motor_reference   rbd_interfaces/ElasticJointReference, out, for drives with their own controller: with each
                      ~/effort while there is a command; not while the output is the safe effort
  ~/motor_effort      sensor_msgs/JointState, out, by name: torque of the motors behind the gears, for drives with a
                      torque input; with each ~/effort
  ~/motor_commands    std_msgs/Float64MultiArray, out: the torques of ~/motor_effort, joints in the order of parameter
                      `joints`, then the second motors
Diagnostics in addition to those of `torque_node`: control_mode, motor_mode, motor_saturated, motor_rate_limited, cycles
without a command by cause (motor_state_missing, reference_incomplete, impossible, feedback_missing), problem (the
present cause).
"""
from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ..core.compiled.kernel import COMPILED
from ..core.model.robot_model import RobotModel
from ..runtime.control.elastic_controller import ElasticController, flatness_controller
from ..runtime.control.elastic_settings import ElasticSettings, flatness_settings
from ..runtime.control.flatness import FLATNESS_TABLE, FlatnessController, FlatnessSettings
from ..runtime.control.loop_rate import Transit
from ..runtime.control.quick_flatness import QuickFlatness
from ..runtime.steady.steady_flatness import FlatnessCycle
from ..runtime.control.torque_settings import TorqueSettings
from ..runtime.inputs.joint_state_bytes import Fields
from .base.following_node import FOLLOWING_NODE_TABLE, FollowingNode
from .loop.joint_state_inputs import Info, JointStateInputs, Shortcut
from .loop.steady_answers import InTurn, QuickAnswers, QuickMotorStates, SteadyAnswers
from .base.spin import run
from .outputs.efforts import EffortOutput, EffortRateOutput
from .outputs.motors import MotorEffortOutput, MotorReferenceOutput
from .outputs.output import Output


class FlatnessNode(FollowingNode):
    """Creates the controller of rigid or elastic joints, and its outputs."""

    logic = FLATNESS_TABLE
    table = (*FOLLOWING_NODE_TABLE, *logic)
    controller: FlatnessController

    def __init__(self) -> None:
        super().__init__("flatness")

    def make_settings(self, values: Mapping[str, Any], model: RobotModel) -> FlatnessSettings:
        return flatness_settings(values, model, None if self.controller is None else self.controller.settings)

    def shortcut(self, transit: Transit) -> Shortcut | None:
        if not COMPILED:
            return None
        controller, quick = self.controller, QuickAnswers(self, transit)
        if isinstance(controller, ElasticController) and QuickFlatness.suits(controller.actuation):
            return InTurn(SteadyAnswers(self, FlatnessCycle(controller, transit)), quick)
        return quick

    def make_controller(self, model: RobotModel, settings: TorqueSettings) -> FlatnessController:
        assert isinstance(settings, FlatnessSettings)
        return flatness_controller(model, settings)

    def effort_output(self, settings: TorqueSettings) -> EffortOutput:
        return EffortRateOutput(self, settings)

    def further_outputs(self, settings: TorqueSettings) -> list[Output]:
        if not isinstance(settings, ElasticSettings):
            return []
        self.get_logger().info(f"{settings.actuation}; motors: {', '.join(settings.motor_names)}")
        return [MotorEffortOutput(self, settings), MotorReferenceOutput(self, settings)]    # torque first

    def listen_to_states(self, states: JointStateInputs) -> Any:
        if isinstance(self.controller, ElasticController):    # subscribed first, so that motor states are taken first
            states.listen("motor_states", self._on_motor_state,
                          QuickMotorStates(self.controller.motor_state) if COMPILED else None)
        return super().listen_to_states(states)

    def _on_motor_state(self, state: Fields, info: Info) -> None:
        controller = self.controller
        if isinstance(controller, ElasticController):
            self.report_rejection(controller.on_motor_state(
                time.monotonic(), state.stamp_ns, state.names, state.position, state.velocity))


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `flatness`."""
    run(FlatnessNode, arguments)


if __name__ == "__main__":
    main()
