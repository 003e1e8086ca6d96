"""Node `residual`: residual of the equations of motion of a simulated or real robot.

Logic: `runtime.cosimulation.residual`.

Topics (relative names):
  robot_description   std_msgs/String, in, latched; unless a parameter gives it
  joint_states        sensor_msgs/JointState, in
  <effort_topic>      rbd_interfaces/JointEffort, in: the commands
  ~/residual          rbd_interfaces/JointEffort, out: over the interval that ends with the stamp
  /diagnostics        diagnostic_msgs/DiagnosticArray, out, once a second. Keys: residuals, gaps, repeated,
                      without_effort, commands_judged, commands_late, commands_split, commands_held
                      (`cosimulation.applied`), command_delay_mean_ms, command_delay_max_ms (from a state to the
                      beginning of the interval in which the answer to it acted), rms_<joint>, max_<joint>,
                      rejected_total
"""
from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from rbd_interfaces.msg import JointEffort

from ..core.model.robot_model import RobotModel
from ..runtime.cosimulation.residual import RESIDUAL_TABLE, ResidualMonitor, ResidualSettings
from ..runtime.inputs.rejections import Verdict
from .base.conversions import nanoseconds
from .base.model_node import ModelNode
from .base.parameters import MODEL_NODE_TABLE
from .base.spin import run
from .watching.time_jumps import RESET_OF_GAZEBO, watch_time

QOS = QoSProfile(depth=1000)    # so that a busy machine loses no interval
HELD = 3                        # consecutive commands without effect before a warning


class ResidualNode(ModelNode):
    """Converts messages, calls the monitor, publishes."""

    logic, make_settings = RESIDUAL_TABLE, staticmethod(ResidualSettings.from_values)
    table = (*MODEL_NODE_TABLE, *logic)

    def __init__(self) -> None:
        super().__init__("residual")
        self._monitor: Any = None
        self._publisher: Any = None
        self._held = 0

    def set_up(self, values: Mapping[str, Any], model: RobotModel) -> None:
        settings: ResidualSettings = self.settings(values, model)
        self._monitor = ResidualMonitor(model, settings)
        self._monitor.warm_up()
        publisher = self._publisher = self.create_publisher(JointEffort, "~/residual", QOS)
        self.undo.append(lambda: self.destroy_publisher(publisher))
        self.subscribe(JointEffort, settings.effort_topic, self._on_effort, QOS)
        self.subscribe(JointState, "joint_states", self._on_state, QOS)
        self.undo.append(watch_time(self, self._on_time_back))

    def tear_down(self) -> None:
        self._monitor = self._publisher = None

    def apply(self, settings: ResidualSettings) -> None:
        self._monitor.apply(settings)

    def report(self) -> Mapping[str, Any]:
        report: Mapping[str, Any] = self._monitor.report()
        return report

    def _on_effort(self, message: JointEffort) -> None:
        if self.active:
            self._monitor.on_command(nanoseconds(message.header.stamp), message.name, message.effort)

    def _on_state(self, message: JointState) -> None:
        if not self.active:
            return
        residual = self._monitor.on_state(nanoseconds(message.header.stamp), message.name, message.position,
                                          message.velocity, message.effort)
        self._tell_hold(self._monitor.applied.held)
        if not isinstance(residual, Verdict):
            settings = self._monitor.settings
            answer = JointEffort(header=message.header, name=list(settings.joints),
                                 effort=array("d", residual[settings.output]))
            self._publisher.publish(answer)
        elif residual.text:
            self.get_logger().warning(f"input rejected: {residual.text}", throttle_duration_sec=1.0)

    def _tell_hold(self, held: int) -> None:
        """Log when an outdated command keeps acting, and when that ends."""
        if held >= HELD > self._held:
            self.get_logger().warning(f"the last {held} commands do not act: the torque is still that of an older one. "
                                      "Whoever takes the commands does not get them")
        elif self._held >= HELD and not held:
            self.get_logger().warning(f"commands act again; {self._held} did not")
        self._held = held

    def _on_time_back(self, seconds: float) -> None:
        if self.active:
            self.get_logger().warning(f"the time of the simulation went back by {seconds:.3f} s. {RESET_OF_GAZEBO}")


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `residual`."""
    run(ResidualNode, arguments)


if __name__ == "__main__":
    main()
