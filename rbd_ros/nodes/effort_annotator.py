"""Node `effort_annotator`: fills the efforts of joint trajectories (`runtime.control.effort_annotator`).

Topics (relative names):
  robot_description       std_msgs/String, in, latched; unless a parameter gives it
  ~/joint_trajectory_in   trajectory_msgs/JointTrajectory, in
  ~/joint_trajectory      trajectory_msgs/JointTrajectory, out: with `effort` of every point added, N m or N; remap it
                          to <controller>/joint_trajectory. With parameter `retime` possibly with other points along
                          the same path, so that the efforts are within their limits
  ~/obstacles             std_msgs/String, in, latched: YAML text of what stands around the robot (docs/collision.md),
                          for later trajectories. Unless `collisions.use` is never
  <collisions.marker_topic>    visualization_msgs/MarkerArray, in: obstacles, if the parameter names a topic
  <collisions.scene_topic>     moveit_msgs/PlanningScene, in: obstacles, attached objects, allowed pairs, likewise
  <collisions.cloud_topic>     sensor_msgs/PointCloud2, in, best effort: points around the robot, likewise
  ~/collision_markers     visualization_msgs/MarkerArray, out, latched, with `collisions.show`: collision shapes and
                          obstacles in the frames of their links; red what the latest trajectory hits
  /diagnostics            diagnostic_msgs/DiagnosticArray, out, once a second. Keys: trajectories, points,
                          points_over_effort_limit, points_over_velocity_limit, points_over_position_limit, retimed,
                          not_retimed (though it should be), last_excess, hitting (trajectories), last_hit,
                          collision_pairs (0: collisions are not considered), obstacles (of file and topics),
                          time_p50_us, time_p99_us (trajectory received → published), rejected_total, rejected_<kind>;
                          with the action goals, goals_running, goals_succeeded, goals_canceled, goals_aborted,
                          goals_rejected
An invalid trajectory is not forwarded.

Action (control_msgs/FollowJointTrajectory), with parameter `action.controller`:
  ~/follow_joint_trajectory    goals that the action of the same name of that controller gets, with the efforts; it
                               decides everything else: feedback, result and cancel pass through
While the node is not active, invalid goals and goals without that controller are rejected; the transition to inactive
cancels goals.
"""
from __future__ import annotations

import time
from array import array
from collections.abc import Mapping
from typing import Any

from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.qos import QoSProfile
from trajectory_msgs.msg import JointTrajectory

from ..core.model.robot_model import RobotModel
from ..runtime.control.effort_annotator import ACTION, ANNOTATOR_TABLE, AnnotatorSettings, EffortAnnotator
from ..runtime.inputs.rejections import Rejected, Verdict, check_size
from ..runtime.inputs.trajectory_points import MOST_POINTS, TrajectoryReader
from ..runtime.planning.robot_collisions import considered
from ..runtime.planning.sampled import Points
from ..runtime.statistics import CycleStatistics
from .base.conversions import trajectory_points
from .base.model_node import ModelNode
from .base.parameters import MODEL_NODE_TABLE
from .base.spin import run
from .motion_conversions import joint_trajectory
from .obstacle_topics import ObstacleTopics
from .trajectory_action import TrajectoryRelay

SHOWN = 5    # excesses logged per trajectory


class EffortAnnotatorNode(ModelNode):
    """Converts trajectories, calls the annotator, publishes."""

    logic, make_settings = ANNOTATOR_TABLE, staticmethod(AnnotatorSettings.from_values)
    table = (*MODEL_NODE_TABLE, *logic)

    def __init__(self) -> None:
        super().__init__("effort_annotator")
        self.annotator: Any = None
        self._publisher: Any = None
        self._relay: Any = None
        self._obstacles: Any = None
        self._urdf = ""
        self._most_points = 0
        self._statistics = CycleStatistics()
        self._last_excess = self._last_hit = ""

    # ---- configuration

    def load(self, values: Mapping[str, Any], description: str) -> tuple[RobotModel, list[str]]:
        self._urdf = description
        return super().load(values, description)

    def set_up(self, values: Mapping[str, Any], model: RobotModel) -> None:
        settings = self.settings(values, model)
        collisions, said, _ = considered(settings, self._urdf, model)
        self.annotator = EffortAnnotator(model, settings, collisions)
        self._obstacles = ObstacleTopics(self, settings, self.annotator.surroundings)
        self.get_logger().info(said)
        publisher = self._publisher = self.create_publisher(JointTrajectory, "~/joint_trajectory", QoSProfile(depth=10))
        self.undo.append(lambda: self.destroy_publisher(publisher))
        topic = "~/joint_trajectory_in"
        reader = TrajectoryReader(self.resolve_topic_name(topic), int(values[MOST_POINTS.name]), self.most_bytes, model)
        self.subscribe(JointTrajectory, topic, self._on_trajectory, QoSProfile(depth=10), most=reader.most,
                       parameter=MOST_POINTS.name)
        self._most_points = int(values[MOST_POINTS.name])
        if controller := values[ACTION.name]:
            self._relay = TrajectoryRelay(self, "~/follow_joint_trajectory", f"{controller}/follow_joint_trajectory",
                                          self._fill_goal)
            self.undo.append(self._relay.destroy)

    def tear_down(self) -> None:
        self.annotator = self._publisher = self._relay = None

    def on_rejected(self, error: Rejected) -> None:
        super().on_rejected(error)
        if self.annotator is not None:
            self.annotator.rejections.add(error)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        if self._relay is not None:
            self._relay.end(f"node {self.get_fully_qualified_name()} was deactivated")
        return super().on_deactivate(state)

    def look_around(self, now: float) -> str:
        if self._relay is not None:
            self._relay.check()
        return super().look_around(now)

    def apply(self, settings: AnnotatorSettings) -> None:
        self.annotator.apply(settings)

    def report(self) -> Mapping[str, Any]:
        annotator = self.annotator
        p50, p99 = self._statistics.latency_us()
        report = {"model": annotator.model.name, **annotator.counts, "last_excess": self._last_excess,
                  "last_hit": self._last_hit, **annotator.surroundings.report(),
                  "time_p50_us": p50, "time_p99_us": p99,
                  "rejected_total": annotator.rejections.total + annotator.surroundings.rejections.total}
        if self._relay is not None:
            report |= self._relay.counts | {"goals_running": self._relay.running}
        return report | {f"rejected_{kind}": count for kind, count in annotator.rejections.counts.items()}

    # ---- work

    def _on_trajectory(self, message: JointTrajectory) -> None:
        if not self.active:
            return
        begin = time.perf_counter()
        if problem := self._fill(message):
            self.get_logger().warning(f"trajectory rejected, not passed on: {problem}")
            return
        self._publisher.publish(message)
        self._statistics.published(time.perf_counter() - begin)

    def _fill_goal(self, message: JointTrajectory) -> str:
        """`_fill` for a goal, which was not measured before it was read."""
        if not self.active:
            return f"node {self.get_fully_qualified_name()} is not active: {self.status}"
        with self.lock:
            try:
                check_size("~/follow_joint_trajectory", len(message.points), self._most_points, MOST_POINTS.name,
                           "points")
            except Rejected as error:
                return str(self.annotator.rejections.add(error).text)
            return self._fill(message)

    def _fill(self, message: JointTrajectory) -> str:
        """Add the efforts in place, log what is beyond limits; the reason of a rejection, "" without one."""
        annotation = self.annotator.annotate(message.joint_names, trajectory_points(message))
        hit = self.annotator.hit
        self._obstacles.show_hit(hit.pieces)
        self._last_hit = hit.words or self._last_hit
        if isinstance(annotation, Verdict):
            return annotation.text
        if annotation.retimed is not None:
            t, q, v, a = annotation.retimed
            message.points = joint_trajectory(message.joint_names, Points(t, q, v, a, annotation.effort)).points
        else:
            for point, effort in zip(message.points, annotation.effort, strict=True):
                point.effort = array("d", effort.tobytes())
        if annotation.kept:
            self.get_logger().warning(f"trajectory {annotation.kept}")
        if hit.words:
            self.get_logger().warning(f"trajectory hits, and passes: {hit.words}")
        if annotation.excesses:
            self._warn(annotation.excesses)
        return ""

    def _warn(self, excesses: list[Any]) -> None:
        self._last_excess = str(excesses[-1])
        shown = "; ".join(map(str, excesses[:SHOWN])) + (f"; {len(excesses) - SHOWN} more" * (len(excesses) > SHOWN))
        clipped = ", efforts are clipped" if self.annotator.settings.clip else ""
        self.get_logger().warning(f"trajectory beyond limits{clipped}: {shown}")


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `effort_annotator`."""
    run(EffortAnnotatorNode, arguments)


if __name__ == "__main__":
    main()
