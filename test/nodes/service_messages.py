"""Requests of the dynamics services from plain fields (`support.service_requests`), and a client of them."""
from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import Inertia
from harness import NodeProcess, Peer
from rclpy.qos import QoSProfile
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import rbd_ros as rbd
from rbd_interfaces import srv
from rbd_interfaces.msg import NamedWrench, RobotState
from support.answers import Answer

URDF = rbd.sample_path("five_bar")

KINDS = {"inverse": (srv.InverseDynamics, "inverse_dynamics"), "forward": (srv.ForwardDynamics, "forward_dynamics"),
         "hybrid": (srv.HybridDynamics, "hybrid_dynamics"),
         "constrained": (srv.ConstrainedDynamics, "constrained_dynamics"),
         "terms": (srv.DynamicsTerms, "dynamics_terms"),
         "derivatives": (srv.DynamicsDerivatives, "dynamics_derivatives"),
         "time_derivatives": (srv.TimeDerivatives, "time_derivatives"),
         "trajectory": (srv.TrajectoryInverseDynamics, "trajectory_inverse_dynamics"),
         "set_payload": (srv.SetPayload, "set_payload"), "info": (srv.GetModelInfo, "get_model_info")}


def named_wrench(body: str, value: Any) -> NamedWrench:
    """[moment, force] as a message, which has the force first."""
    message = NamedWrench(body=body)
    for part, numbers in ((message.wrench.torque, value[:3]), (message.wrench.force, value[3:])):
        part.x, part.y, part.z = (float(number) for number in numbers)
    return message


def inertia(mass: float, com: Any, matrix: Any) -> Inertia:
    message = Inertia(m=float(mass))
    message.com.x, message.com.y, message.com.z = (float(number) for number in com)
    message.ixx, message.ixy, message.ixz, message.iyy, message.iyz, message.izz = (
        float(number) for number in np.asarray(matrix)[np.triu_indices(3)])
    return message


def trajectory(names: Any, points: Any) -> JointTrajectory:
    message = JointTrajectory(joint_names=list(names))
    for point in points:
        made = JointTrajectoryPoint(positions=point["position"], velocities=point["velocity"],
                                    accelerations=point["acceleration"])
        ns = round(point["time"] * 1e9)
        made.time_from_start.sec, made.time_from_start.nanosec = divmod(ns, 10**9)
        message.points.append(made)
    return message


def request(kind: str, fields: dict[str, Any]) -> Any:
    """The request message of a service of `KINDS`."""
    made = KINDS[kind][0].Request()
    if kind == "set_payload":
        made.body, made.inertia = fields["body"], inertia(fields["mass"], fields["com"], fields["matrix"])
        return made
    if kind == "trajectory":
        made.trajectory = trajectory(fields["joint_names"], fields["points"])
        made.friction = fields.get("friction", 0)
        return made
    for field, value in fields.items():
        if field == "state":
            value = RobotState(**value)
        elif field == "external_wrenches":
            value = [named_wrench(*item) for item in value]
        setattr(made, field, value)
    return made


class Client(Peer):
    """Asks a dynamics server."""

    def __init__(self, target: str = "dynamics_server") -> None:
        super().__init__(target)
        self._ends: dict[str, Any] = {}

    def ask(self, kind: str, fields: dict[str, Any] | None = None) -> Any:
        """The response to a request in plain fields; `kind` may go on after a space."""
        return self.ask_all([(kind, fields or {})])[0]

    def ask_all(self, requests: Sequence[tuple[str, dict[str, Any]]]) -> list[Any]:
        """The responses to requests that are sent without waiting in between."""
        answers = []
        for full, fields in requests:
            kind = full.split()[0]
            if kind not in self._ends:
                end = self._ends[kind] = self.node.create_client(KINDS[kind][0], f"{self.target}/{KINDS[kind][1]}",
                                                                 qos_profile=QoSProfile(depth=1000))
                self.spin_until(end.service_is_ready, f"service {KINDS[kind][1]}")
            answers.append(Answer(partial(self._ends[kind].call_async, request(kind, fields))))
        return [self.spin_until(answer.result, f"answers to {len(answers)} requests") for answer in answers]

    def wait_until_active(self) -> Any:
        """Model info, once the server is active."""
        found: list[Any] = []

        def active() -> bool:
            found[:] = [self.ask("info")]
            return bool(found[0].success)

        self.spin_until(active, "active server")
        return found[0]


@contextlib.contextmanager
def server(folder: Path, number: signal.Signals = signal.SIGINT,
           **parameters: Any) -> Iterator[tuple[NodeProcess, Client]]:
    """A server for the five-bar and a client of it; at the signal it must end cleanly."""
    process = NodeProcess(folder, "dynamics_server", **({"robot_description_file": str(URDF)} | parameters))
    try:
        with Client() as client:
            yield process, client
        assert process.end(number) == 0
        assert "Traceback" not in process.output()
    finally:
        process.kill()
