"""Conversion of rbd_interfaces/MotionRequest to plain values, and of plans to rbd_interfaces/PlannedMotion."""
from __future__ import annotations

from dataclasses import fields
from typing import Any

from builtin_interfaces.msg import Duration
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rbd_interfaces.msg import LimitUsage, PlannedMotion

from ..runtime.planning.motion_planner import Plan
from ..runtime.planning.motion_request import MotionRequest, MotionWaypoint
from ..runtime.planning.sampled import Points
from .base.conversions import wrenches
from .service_conversions import inertia, numbers

SECOND = 1_000_000_000
CONVERTED = {
    "waypoints": lambda items: [MotionWaypoint(item.fraction, item.position) for item in items],
    "allowed_pairs": lambda items: [(item.first, item.second) for item in items],
    "payload": inertia, "external_wrenches": wrenches}


def motion_request(message: Any) -> MotionRequest:
    """A request from an rbd_interfaces/MotionRequest, whose fields have the same names."""
    return MotionRequest(**{
        field.name: CONVERTED.get(field.name, _same)(getattr(message, field.name)) for field in fields(MotionRequest)})


def planned_motion(plan: Plan) -> Any:
    """An rbd_interfaces/PlannedMotion; without a trajectory unless the plan is good."""
    motion = plan.motion
    return PlannedMotion(
        trajectory=joint_trajectory(plan.names, plan.points) if plan.points else JointTrajectory(),
        duration=motion.duration, cost=motion.cost, violation=float(motion.violation),
        kkt_residual=float(motion.kkt_residual), iterations=motion.iterations, planning_time=motion.seconds,
        usage=[LimitUsage(limit=name, ratio=used.ratio, joint=used.joint, time=used.time)
               for name, used in motion.usage.items()])


def joint_trajectory(names: Any, points: Points) -> Any:
    """A trajectory_msgs/JointTrajectory with efforts; its stamp is zero: start on reception."""
    message = JointTrajectory(joint_names=list(names))
    for t, q, v, a, effort in zip(*points, strict=True):
        sec, nanosec = divmod(round(float(t) * SECOND), SECOND)
        message.points.append(JointTrajectoryPoint(
            positions=numbers(q), velocities=numbers(v), accelerations=numbers(a), effort=numbers(effort),
            time_from_start=Duration(sec=sec, nanosec=nanosec)))
    return message


def _same(value: Any) -> Any:
    return value
