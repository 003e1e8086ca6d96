"""Node `dynamics_server`: dynamics of one robot as services (`runtime.service`).

Topics (relative names):
  robot_description     std_msgs/String, in, latched; unless a parameter gives it
  joint_states          sensor_msgs/JointState, in, best effort: the state of requests that list no joint
  <odometry>            nav_msgs/Odometry, in, best effort, the topic of parameter `odometry`: pose and twist of a
                        floating base in requests that list no joint
  /diagnostics          diagnostic_msgs/DiagnosticArray, out, once a second. Keys: requests, refused, defects (errors of
                        the program), calls_<service>, time_p50_us, time_p99_us (request taken → response given to the
                        middleware), joint_state_age and odometry_age (s), rejected_total (joint states,
                        odometry), total_mass (kg)
Services (rbd_interfaces): ~/inverse_dynamics, ~/forward_dynamics, ~/hybrid_dynamics, ~/constrained_dynamics,
  ~/dynamics_terms, ~/dynamics_derivatives, ~/time_derivatives, ~/trajectory_inverse_dynamics, ~/set_payload,
  ~/get_model_info

The services exist as long as the node. Each response has `success`, and if false a reason in `message`. One thread
answers all requests in order of arrival.
"""
from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from rbd_interfaces import srv

from ..core.errors import RbdError
from ..core.model.robot_model import RobotModel
from ..runtime.inputs.rejections import Verdict
from ..runtime.service.constrained import ConstrainedRequest
from ..runtime.service.dynamics import DynamicsService
from ..runtime.service.server_settings import SERVER_TABLE, ServerSettings, load_server_model
from ..runtime.statistics import CycleStatistics
from . import service_conversions as convert
from .base.answering import answered
from .base.conversions import nanoseconds, wrenches
from .base.model_node import BEST_EFFORT, ModelNode
from .base.parameters import MODEL_NODE_TABLE
from .base.spin import run
from .world.odometry import subscribe_odometry

# Depth of the queues: the default of 10 loses requests or responses with many concurrent clients.
SERVICE = QoSProfile(depth=1000)


class DynamicsServerNode(ModelNode):
    """Converts requests, calls the `DynamicsService`, fills responses."""

    logic, make_settings = SERVER_TABLE, staticmethod(ServerSettings.from_values)
    table = (*MODEL_NODE_TABLE, *logic)

    def __init__(self) -> None:
        super().__init__("dynamics_server")
        self.dynamics: Any = None
        self._counts: Counter[str] = Counter({"requests": 0, "refused": 0, "defects": 0})
        self._statistics = CycleStatistics()
        for kind, answer in (
                (srv.InverseDynamics, self._inverse), (srv.ForwardDynamics, self._forward),
                (srv.HybridDynamics, self._hybrid), (srv.ConstrainedDynamics, self._constrained),
                (srv.DynamicsTerms, self._terms), (srv.DynamicsDerivatives, self._derivatives),
                (srv.TimeDerivatives, self._time_derivatives), (srv.TrajectoryInverseDynamics, self._trajectory),
                (srv.SetPayload, self._set_payload), (srv.GetModelInfo, self._model_info)):
            self._offer(kind, answer)

    def _offer(self, kind: Any, answer: Callable[[Any, Any], None]) -> None:
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in kind.__name__)[1:]

        def respond(request: Any, response: Any) -> Any:
            begin = time.perf_counter()
            self._counts["requests"] += 1
            self._counts[f"calls_{name}"] += 1
            response = self._respond(name, answer, request, response)
            self._statistics.published(time.perf_counter() - begin)
            return response

        self.create_service(kind, f"~/{name}", respond, qos_profile=SERVICE)

    def _respond(self, name: str, answer: Callable[[Any, Any], None], request: Any, response: Any) -> Any:
        """The answer, or a response with the error: no request ends the node."""
        def locked() -> None:
            with self.lock, np.errstate(all="ignore"):
                if not self.active:
                    raise RbdError(f"node {self.get_fully_qualified_name()} is not active: {self.status}")
                answer(request, response)
            response.success = True

        return answered(self.get_logger(), self._counts, name, locked, response)

    # ---- configuration

    def load(self, values: Mapping[str, Any], description: str) -> tuple[RobotModel, list[str]]:
        return load_server_model(values, description)

    def set_up(self, values: Mapping[str, Any], model: RobotModel) -> None:
        settings: ServerSettings = self.settings(values, model)
        if settings.contacts:
            self.get_logger().warning(
                f"parameter 'constraints_file' has unilateral or compliant contacts ({', '.join(settings.contacts)}): "
                "no service uses them, as they are no constraints; node simulator does")
        dynamics = DynamicsService(model, settings)
        dynamics.warm_up()
        odometry = dynamics.states.odometry
        if odometry is not None:
            subscribe_odometry(self, settings.odometry, lambda message: self._note(odometry.accept(
                time.monotonic(), message)))
        self.subscribe(JointState, "joint_states", self._on_joint_state, BEST_EFFORT)
        self.dynamics = dynamics

    def tear_down(self) -> None:
        self.dynamics = None

    def apply(self, settings: ServerSettings) -> None:
        self.dynamics.apply(settings)

    def report(self) -> Mapping[str, Any]:
        p50, p99 = self._statistics.latency_us()
        states = self.dynamics.states
        return {"model": self.dynamics.robot.model.name, **self._counts, "time_p50_us": p50, "time_p99_us": p99,
                "joint_state_age": states.latest.age(time.monotonic()), "rejected_total": states.rejections.total,
                "total_mass": self.dynamics.robot.model.total_mass,
                **({} if states.odometry is None else {"odometry_age": states.odometry.age(time.monotonic())})}

    def _note(self, verdict: Verdict) -> None:
        if not verdict:
            self.seldom.warning("rejected", f"input rejected: {verdict.text}")

    def _on_joint_state(self, message: JointState) -> None:
        if self.dynamics is not None:
            self.dynamics.states.latest.accept(time.monotonic(), nanoseconds(message.header.stamp), message.name,
                                               message.position, message.velocity)

    # ---- services

    def _inverse(self, request: Any, response: Any) -> None:
        convert.fill(response, self.dynamics.inverse(convert.robot_state(request.state), request.name,
                                                     request.acceleration, wrenches(request.external_wrenches),
                                                     request.with_joint_wrenches, request.friction))

    def _forward(self, request: Any, response: Any) -> None:
        convert.fill(response, self.dynamics.forward(convert.robot_state(request.state), request.name, request.effort,
                                                     wrenches(request.external_wrenches), request.with_joint_wrenches,
                                                     request.friction))

    def _hybrid(self, request: Any, response: Any) -> None:
        convert.fill(response, self.dynamics.hybrid(
            convert.robot_state(request.state), request.name, request.prescribed, request.acceleration, request.effort,
            wrenches(request.external_wrenches), request.with_joint_wrenches, request.friction))

    def _constrained(self, request: Any, response: Any) -> None:
        arguments = ConstrainedRequest(*(getattr(request, field.name) for field in fields(ConstrainedRequest)))
        convert.fill(response, self.dynamics.constrained(convert.robot_state(request.state), arguments,
                                                         wrenches(request.external_wrenches)))

    def _terms(self, request: Any, response: Any) -> None:
        convert.fill(response, self.dynamics.terms(convert.robot_state(request.state)))

    def _derivatives(self, request: Any, response: Any) -> None:
        convert.fill(response, self.dynamics.derivatives(convert.robot_state(request.state), request.mode, request.name,
                                                         request.input, wrenches(request.external_wrenches),
                                                         request.friction))

    def _time_derivatives(self, request: Any, response: Any) -> None:
        convert.fill(response, self.dynamics.time_derivatives(convert.robot_state(request.state), request.mode,
                                                              request.name, request.rows, request.input,
                                                              request.friction))

    def _trajectory(self, request: Any, response: Any) -> None:
        efforts = self.dynamics.trajectory(request.trajectory.joint_names, convert.points(request.trajectory),
                                           request.friction)
        for point, effort in zip(request.trajectory.points, efforts, strict=True):
            point.effort = convert.numbers(effort)
        response.trajectory = request.trajectory

    def _set_payload(self, request: Any, response: Any) -> None:
        response.message = self.dynamics.set_payload(request.body, *convert.inertia(request.inertia))

    def _model_info(self, request: Any, response: Any) -> None:
        convert.fill(response, self.dynamics.model_info())


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `dynamics_server`."""
    run(DynamicsServerNode, arguments)


if __name__ == "__main__":
    main()
