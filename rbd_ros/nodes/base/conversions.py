"""Conversion of messages to plain values."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.serialization import deserialize_message
from std_msgs.msg import String

from ...runtime.inputs.joint_state_bytes import Fields, Malformed
from ...runtime.inputs.pose_points import PosePoint
from ...runtime.inputs.robot_description import received
from ...runtime.inputs.trajectory_points import Point


def reading(kind: type, plain: Callable[[Any], Any] = lambda message: message) -> Callable[[bytes], Any]:
    """Decoder of serialized messages, followed by the conversion `plain`; raises `Malformed`."""
    def read(data: bytes) -> Any:
        try:
            return plain(deserialize_message(data, kind))
        except Exception as error:
            raise Malformed(data, kind.__name__, error) from None

    return read


def read_description(data: bytes) -> str:
    """The robot description in the bytes of a std_msgs/String; raises `Rejected`."""
    return received(reading(String)(data).data)


def nanoseconds(stamp: Any) -> int:
    """A builtin_interfaces/Time or Duration in ns."""
    return int(stamp.sec * 1_000_000_000 + stamp.nanosec)


def fields_of(message: Any) -> Fields:
    """Fields of a sensor_msgs/JointState."""
    stamp = message.header.stamp
    return Fields(stamp.sec, stamp.nanosec, message.name, message.position, message.velocity, message.effort)


def trajectory_points(message: Any) -> list[Point]:
    """Points of a trajectory_msgs/JointTrajectory."""
    return [Point(nanoseconds(point.time_from_start) * 1e-9, point.positions, point.velocities, point.accelerations)
            for point in message.points]


def pose_trajectory(message: Any) -> tuple[int, str, list[str], list[PosePoint]]:
    """Stamp (ns), frame, names and points of a trajectory_msgs/MultiDOFJointTrajectory."""
    def rates(twists: Any) -> list[tuple[float, ...]]:
        return [(v.x, v.y, v.z, w.x, w.y, w.z) for v, w in ((each.linear, each.angular) for each in twists)]

    points = [PosePoint(
        nanoseconds(point.time_from_start) * 1e-9,
        [(p.x, p.y, p.z, r.x, r.y, r.z, r.w) for p, r in ((T.translation, T.rotation) for T in point.transforms)],
        rates(point.velocities), rates(point.accelerations)) for point in message.points]
    return nanoseconds(message.header.stamp), message.header.frame_id, message.joint_names, points


def named_wrenches(message: Any) -> list[tuple[str, list[float]]]:
    """(body, [moment, force]) of a rbd_interfaces/NamedWrenches."""
    return wrenches(message.wrenches)


def put_wrench(message: Any, wrench: Any) -> None:
    """Write [moment, force] into a geometry_msgs/Wrench, which has the force first."""
    for part, values in ((message.torque, wrench[:3]), (message.force, wrench[3:])):
        part.x, part.y, part.z = (float(value) for value in values)


def wrenches(items: Any) -> list[tuple[str, list[float]]]:
    """(body, [moment, force]) of each rbd_interfaces/NamedWrench: messages put the force first, the library second."""
    return [(item.body, numbers_of(item.wrench)) for item in items]


def numbers_of(wrench: Any) -> list[float]:
    """[moment, force] of a geometry_msgs/Wrench, which has the force first."""
    moment, force = wrench.torque, wrench.force
    return [moment.x, moment.y, moment.z, force.x, force.y, force.z]
