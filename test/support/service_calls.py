"""Requests in the fields of `service_requests`, put to a service without ROS."""
from __future__ import annotations

from typing import Any

from rbd_ros import RobotModel
from rbd_ros.runtime.service.constrained import ConstrainedRequest
from rbd_ros.runtime.service.dynamics import DynamicsService
from rbd_ros.runtime.service.robot_state import StateRequest
from rbd_ros.runtime.service.server_settings import ServerSettings
from rbd_ros.runtime.service.trajectory import TrajectoryPoint
from support.service_requests import FIVE_BAR


def service(model: RobotModel = FIVE_BAR, **values: Any) -> DynamicsService:
    """With parameters; the five-bar with its constraints."""
    values = {"constraints_file": "five_bar" if model is FIVE_BAR else ""} | {
        name.replace("__", "."): value for name, value in values.items()}
    return DynamicsService(model, ServerSettings.from_values(values, model))


def state(fields: dict[str, Any]) -> StateRequest:
    return StateRequest(fields["name"], fields["position"], fields["velocity"])


def ask(made: DynamicsService, kind: str, fields: dict[str, Any]) -> Any:
    """A request in the fields of `requests`."""
    fields = dict(fields)
    if "state" in fields:
        fields["state"] = state(fields["state"])
    kind = kind.split()[0]
    if kind == "constrained":
        outer = {key: fields.pop(key) for key in ("state", "external_wrenches")}
        return made.constrained(request=ConstrainedRequest(**fields), **outer)
    if kind == "trajectory":
        return made.trajectory(fields["joint_names"], [TrajectoryPoint(**point) for point in fields["points"]],
                               fields["friction"])
    return getattr(made, kind)(**fields)
