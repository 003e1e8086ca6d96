"""Conversion of requests of the dynamics services to plain values, and of results to responses."""
from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from geometry_msgs.msg import Vector3

from rbd_interfaces.msg import NamedWrench

from ..runtime.service.robot_state import StateRequest
from ..runtime.service.trajectory import TrajectoryPoint
from .base.conversions import nanoseconds, put_wrench


def robot_state(message: Any) -> StateRequest:
    """A state from an rbd_interfaces/RobotState, whose twist has the linear part first."""
    pose, twist = message.base_pose, message.base_twist
    return StateRequest(message.name, message.position, message.velocity, xyz(pose.position),
                        (*xyz(pose.orientation), pose.orientation.w), (*xyz(twist.angular), *xyz(twist.linear)))


def xyz(message: Any) -> tuple[float, float, float]:
    """A geometry_msgs/Vector3 or Point."""
    return message.x, message.y, message.z


def inertia(message: Any) -> tuple[float, tuple[float, float, float], list[list[float]]]:
    """Mass, centre of mass and tensor of a geometry_msgs/Inertia."""
    m = message
    return m.m, xyz(m.com), [[m.ixx, m.ixy, m.ixz], [m.ixy, m.iyy, m.iyz], [m.ixz, m.iyz, m.izz]]


def points(trajectory: Any) -> list[TrajectoryPoint]:
    """Points of a trajectory_msgs/JointTrajectory."""
    return [TrajectoryPoint(nanoseconds(point.time_from_start) * 1e-9, point.positions, point.velocities,
                            point.accelerations) for point in trajectory.points]


def numbers(values: Any) -> array[float]:
    """Values for a float64[] field; matrices in row-major order."""
    return array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes())


def named_wrench(body: str, wrench: Any) -> NamedWrench:
    """A rbd_interfaces/NamedWrench of [moment, force] on a body; the message has the force first."""
    message = NamedWrench(body=body)
    put_wrench(message.wrench, wrench)
    return message


def fill(response: Any, result: Any) -> Any:
    """Copy the fields of a NamedTuple to the response's fields of the same name."""
    for field, value in zip(result._fields, result, strict=True):
        if isinstance(getattr(response, field), Vector3):
            value = Vector3(x=float(value[0]), y=float(value[1]), z=float(value[2]))
        elif isinstance(value, np.ndarray):
            value = numbers(value)
        elif field == "joint_wrenches":
            value = [named_wrench(body, wrench) for body, wrench in value]
        elif isinstance(value, tuple):
            value = list(value)
        setattr(response, field, value)
    return response
