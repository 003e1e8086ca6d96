"""Node `observer`: external efforts, the wrench behind them and contacts of a running robot.

Logic: `runtime.estimation.contact_observer`.

Topics (relative names):
  robot_description   std_msgs/String, in, latched; unless a parameter gives it
  joint_states        sensor_msgs/JointState, in, with efforts
  <effort_topic>      rbd_interfaces/JointEffort, in: the commands, with effort_source effort
  ~/external_effort   rbd_interfaces/ExternalEffort, out: what the world applies to the joints, N m or N, behind the
                      filter
  ~/external_wrench   geometry_msgs/WrenchStamped, out: the wrench on parameter `body` that explains it, in its frame;
                      zero along directions that the pose does not show
  ~/external_wrench_with_covariance    rbd_interfaces/WrenchWithCovarianceStamped, out: the same, and how well it is
                      known, if parameter sigma is given
  ~/contact           rbd_interfaces/Contact, out: when something begins to touch the robot, is at another link, and
                      when the contact ends
  ~/payload           rbd_interfaces/Payload, out, once a second with payload.estimate: the load on that link
  ~/adopt_payload     std_srvs/Trigger: take the present estimate of the load over into parameters payload.*
  /diagnostics        diagnostic_msgs/DiagnosticArray, out, once a second. Keys: estimates, gaps, repeated,
                      without_effort, contacts, touched, payload_kg, external_<joint>, rejected_total
"""
from __future__ import annotations

from array import array
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from numpy.typing import NDArray
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from rbd_interfaces.msg import ExternalEffort, JointEffort, Payload, WrenchWithCovarianceStamped

from ..core.errors import RbdError
from ..core.model.robot_model import RobotModel
from ..runtime.estimation.contact_observer import (
    OBSERVER_TABLE, ContactObserver, LoadEstimate, Observed, ObserverSettings,
)
from .base.conversions import nanoseconds, put_wrench
from .base.model_node import ModelNode
from .base.parameters import MODEL_NODE_TABLE
from .base.payload_adoption import serve_adoption
from .base.spin import run
from .outputs.contact_changes import ContactPublisher
from .watching.time_jumps import RESET_OF_GAZEBO, watch_time

QOS, STATES = QoSProfile(depth=10), QoSProfile(depth=100)    # states that come while a load is estimated wait
FORCE_FIRST = [3, 4, 5, 0, 1, 2]


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
        self._outputs = [self.create_publisher(kind, f"~/{name}", QOS) for kind, name in (
            (ExternalEffort, "external_effort"), (WrenchStamped, "external_wrench"),
            (WrenchWithCovarianceStamped, "external_wrench_with_covariance"), (Payload, "payload"))]
        self._contacts = ContactPublisher(self, model)
        self.undo += [self._contacts.destroy,
                      *(partial(self.destroy_publisher, publisher) for publisher in self._outputs)]
        if settings.effort_source == "effort":
            self.subscribe(JointEffort, settings.effort_topic, self._on_effort, QOS)
        self.subscribe(JointState, "joint_states", self._on_state, STATES)
        serve_adoption(self, self._load)
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
        efforts, wrenches, known_wrenches, payloads = self._outputs
        settings, stamp = self._observer.settings, state.header.stamp
        efforts.publish(ExternalEffort(
            header=state.header, name=list(settings.joints), effort=array("d", found.effort[settings.output]),
            sigma=array("d", found.sigma[settings.output])))
        message = WrenchStamped()
        message.header.stamp, message.header.frame_id = stamp, self._observer.body
        put_wrench(message.wrench, found.wrench.wrench)
        wrenches.publish(message)
        if settings.knows_sigma:
            known_wrenches.publish(WrenchWithCovarianceStamped(
                header=message.header, wrench=message.wrench, covariance=covariance_numbers(found.wrench.covariance)))
        if change := found.change:
            self._contacts.send([change])
            text = f"contact at '{change.body}'" if change.touching else "no contact"
            self.get_logger().info(text, throttle_duration_sec=1.0)
        if found.load is not None:
            payloads.publish(payload_message(found.load, stamp))

    def _load(self) -> LoadEstimate:
        """The present estimate of the load."""
        if not self._observer.settings.estimate:
            raise RbdError("no load is estimated: set parameter 'payload.estimate' to the link that carries it")
        found: LoadEstimate = self._observer.estimated()
        return found

    def _on_time_back(self, seconds: float) -> None:
        if self.active:
            self.get_logger().warning(f"the time of the simulation went back by {seconds:.3f} s. {RESET_OF_GAZEBO}")


def covariance_numbers(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """36 numbers of a message from a covariance (6, 6), moment first; -1 for infinite variances."""
    C = covariance[np.ix_(FORCE_FIRST, FORCE_FIRST)]
    known = np.isfinite(np.diag(C))
    C = np.where(known[:, None] & known, C, 0.0)
    C[~known, ~known] = -1.0
    return C.reshape(36)


def payload_message(found: LoadEstimate, stamp: Any) -> Payload:
    """An estimated load at this stamp."""
    message = Payload(half_width=np.where(found.observed, found.half_width, 0.0), observed=found.observed.tolist(),
                      touching=found.touching)
    message.header.stamp, message.header.frame_id = stamp, found.body
    I, inertia = found.load.matrix, message.inertia
    inertia.m = float(found.load.mass)
    inertia.com.x, inertia.com.y, inertia.com.z = map(float, found.load.com)
    inertia.ixx, inertia.ixy, inertia.ixz, inertia.iyy, inertia.iyz, inertia.izz = (
        float(I[k]) for k in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)))
    return message


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `observer`."""
    run(ObserverNode, arguments)


if __name__ == "__main__":
    main()
