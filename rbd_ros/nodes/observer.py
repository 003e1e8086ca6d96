"""Node `observer`: external efforts, the wrench behind them and contacts of a running robot.

Logic: `runtime.estimation.contact_observer`.

Topics (relative names):
  robot_description   std_msgs/String, in, latched; unless a parameter gives it
  joint_states        sensor_msgs/JointState, in, with efforts
  <effort_topic>      rbd_interfaces/JointEffort, in: the commands, with effort_source effort
  ~/external_effort   rbd_interfaces/JointEffort, out: what the world applies to the joints, N m or N, behind the filter
  ~/external_wrench   geometry_msgs/WrenchStamped, out: the wrench on parameter `body` that explains it, in its frame;
                      zero along directions that the pose does not show
  ~/contact           rbd_interfaces/Contact, out: when something begins to touch the robot, is felt at a link further
                      out, and when the contact ends
  /diagnostics        diagnostic_msgs/DiagnosticArray, out, once a second. Keys: estimates, gaps, repeated,
                      without_effort, contacts, touched, external_<joint>, rejected_total
"""
from __future__ import annotations

from array import array
from collections.abc import Mapping
from functools import partial
from typing import Any

from geometry_msgs.msg import WrenchStamped
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from rbd_interfaces.msg import JointEffort

from ..core.model.robot_model import RobotModel
from ..runtime.estimation.contact_observer import OBSERVER_TABLE, ContactObserver, Observed, ObserverSettings
from .base.conversions import nanoseconds, put_wrench
from .base.model_node import ModelNode
from .base.parameters import MODEL_NODE_TABLE
from .base.spin import run
from .outputs.contact_changes import ContactPublisher
from .watching.time_jumps import RESET_OF_GAZEBO, watch_time

QOS = QoSProfile(depth=10)


class ObserverNode(ModelNode):
    """Converts messages, calls the observer, publishes."""

    logic, make_settings = OBSERVER_TABLE, staticmethod(ObserverSettings.from_values)
    table = (*MODEL_NODE_TABLE, *logic)

    def __init__(self) -> None:
        super().__init__("observer")
        self._observer: Any = None
        self._outputs: Any = None
        self._contacts: Any = None

    def set_up(self, values: Mapping[str, Any], model: RobotModel) -> None:
        settings: ObserverSettings = self.settings(values, model)
        self._observer = ContactObserver(model, settings)
        self._observer.warm_up()
        self._outputs = (self.create_publisher(JointEffort, "~/external_effort", QOS),
                         self.create_publisher(WrenchStamped, "~/external_wrench", QOS))
        self._contacts = ContactPublisher(self, model)
        self.undo += [self._contacts.destroy,
                      *(partial(self.destroy_publisher, publisher) for publisher in self._outputs)]
        if settings.effort_source == "effort":
            self.subscribe(JointEffort, settings.effort_topic, self._on_effort, QOS)
        self.subscribe(JointState, "joint_states", self._on_state, QOS)
        self.undo.append(watch_time(self, self._on_time_back))

    def tear_down(self) -> None:
        self._observer = self._outputs = self._contacts = None

    def apply(self, settings: ObserverSettings) -> None:
        self._observer.apply(settings)

    def report(self) -> Mapping[str, Any]:
        report: Mapping[str, Any] = self._observer.report()
        return report

    def _on_effort(self, message: JointEffort) -> None:
        if self.active:
            self._observer.on_command(message.name, message.effort)

    def _on_state(self, message: JointState) -> None:
        if not self.active:
            return
        found = self._observer.on_state(nanoseconds(message.header.stamp), message.name, message.position,
                                        message.velocity, message.effort)
        if isinstance(found, Observed):
            self._publish(message, found)
        elif found.text:
            self.get_logger().warning(f"input rejected: {found.text}", throttle_duration_sec=1.0)

    def _publish(self, state: JointState, found: Observed) -> None:
        efforts, wrenches = self._outputs
        settings = self._observer.settings
        efforts.publish(JointEffort(header=state.header, name=list(settings.joints),
                                    effort=array("d", found.effort[settings.output])))
        message = WrenchStamped()
        message.header.stamp, message.header.frame_id = state.header.stamp, self._observer.body
        put_wrench(message.wrench, found.wrench)
        wrenches.publish(message)
        if change := found.change:
            self._contacts.send([change])
            text = f"contact at '{change.body}'" if change.touching else "no contact"
            self.get_logger().info(text, throttle_duration_sec=1.0)

    def _on_time_back(self, seconds: float) -> None:
        if self.active:
            self.get_logger().warning(f"the time of the simulation went back by {seconds:.3f} s. {RESET_OF_GAZEBO}")


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `observer`."""
    run(ObserverNode, arguments)


if __name__ == "__main__":
    main()
