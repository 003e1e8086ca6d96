"""Output for joint_trajectory_controller (JTC): each effort as a trajectory of one point, which replaces the last one.

Behaviour of the controller (ros2_controllers 4 to 6):
- It accepts `effort` only with command interface `effort`, or `position` and `effort`. With `effort` alone it adds its
  own PID on the error to `positions` and `velocities`. These are the measured ones here, so that the PID has almost no
  effect while this node runs: feedback comes from this node's gains only.
- The stamp stays 0, which means now: a stamp of the joint state would lie in the past, and a trajectory that ends in
  the past is rejected. With `time_from_start` 0 the effort acts in the controller's next cycle; otherwise it is
  approached linearly from the present command within that time.
- `velocities` that are not 0 are rejected unless its allow_nonzero_velocity_at_trajectory_end is true. Without
  velocities its derivative gain damps every motion.
- All its joints are required, by name, in any order.
- Without messages it holds the last point: its effort, and gains about its position. Its `cmd_timeout` sets the effort
  to 0 instead: an arm without its own gravity compensation sags by gravity / p, or falls.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ...core.model.robot_model import RobotModel
from ...runtime.control.adapter_topics import ADAPTER_TOPICS
from ...runtime.control.torque_settings import TorqueSettings
from ...runtime.parameters import Parameter, Table
from ...runtime.safety import Command
from .output import Array, Indices, Output, Stamp, joint_indices

(TOPIC,) = ADAPTER_TOPICS["jtc"]
TABLE: Table = (
    TOPIC.parameter,
    Parameter("jtc.joints", "strings", (), "All joints of that controller, in any order. Empty: `joints`.",
              read_only=True),
    Parameter("jtc.time_from_start", "number", 0.0, "Time within which the controller approaches each effort linearly, "
              "s; 0: in its next cycle.", lower=0.0, upper=1.0, read_only=True),
    Parameter("jtc.velocities", "bool", True, "Also send the measured velocity. The controller then needs "
              "allow_nonzero_velocity_at_trajectory_end; if false, its derivative gain damps every motion.",
              read_only=True),
)


class JtcOutput(Output):
    """trajectory_msgs/JointTrajectory of one point with measured position and velocity, and effort."""

    def __init__(self, node: Node, topic: str, joints: Sequence[str], indices: Indices, reach: float,
                 velocities: bool) -> None:
        point = JointTrajectoryPoint()
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(round(reach * 1e9), 1_000_000_000)
        self._velocities = velocities
        fields = ("positions", "velocities", "effort") if velocities else ("positions", "effort")
        super().__init__(node, JointTrajectory(joint_names=list(joints), points=[point]),
                         topic, indices,
                         {f"points.0.{field}": len(joints) for field in fields})

    def publish(self, stamp: Stamp, q: Array, v: Array, command: Command) -> None:
        numbers = self.numbers
        numbers["points.0.positions"][:] = q[self._indices]
        if self._velocities:
            numbers["points.0.velocities"][:] = v[self._indices]
        numbers["points.0.effort"][:] = command.effort[self._indices]
        self.send()


def make(node: Any, model: RobotModel, settings: TorqueSettings, values: Mapping[str, Any]) -> JtcOutput:
    """The output of parameters `jtc.*`."""
    joints = values["jtc.joints"] or settings.joints
    return JtcOutput(node, TOPIC.name(values), joints, joint_indices("jtc.joints", joints, model),
                     values["jtc.time_from_start"], values["jtc.velocities"])
