"""Node `effort_annotator`: fills the efforts of joint trajectories (`runtime.control.effort_annotator`).

Topics (relative names):
  robot_description       std_msgs/String, in, latched; unless a parameter gives it
  ~/joint_trajectory_in   trajectory_msgs/JointTrajectory, in
  ~/joint_trajectory      trajectory_msgs/JointTrajectory, out: with `effort` of every point added, N m or N; remap it
                          to <controller>/joint_trajectory. With parameter `retime` possibly with other points along
                          the same path, so that the efforts are within their limits
  /diagnostics            diagnostic_msgs/DiagnosticArray, out, once a second. Keys: trajectories, points,
                          points_over_effort_limit, points_over_velocity_limit, points_over_position_limit, retimed,
                          not_retimed (though it should be), last_excess,
                          time_p50_us, time_p99_us (trajectory received → published), rejected_total, rejected_<kind>
An invalid trajectory is not forwarded.
"""
from __future__ import annotations

import time
from array import array
from collections.abc import Mapping
from typing import Any

from rclpy.qos import QoSProfile
from trajectory_msgs.msg import JointTrajectory

from ..core.model.robot_model import RobotModel
from ..runtime.control.effort_annotator import ANNOTATOR_TABLE, AnnotatorSettings, EffortAnnotator
from ..runtime.inputs.rejections import Verdict
from ..runtime.inputs.trajectory_points import MOST_POINTS, TrajectoryReader
from ..runtime.planning.sampled import Points
from ..runtime.statistics import CycleStatistics
from .base.conversions import trajectory_points
from .base.model_node import ModelNode
from .base.parameters import MODEL_NODE_TABLE
from .base.spin import run
from .motion_conversions import joint_trajectory

SHOWN = 5    # excesses logged per trajectory


class EffortAnnotatorNode(ModelNode):
    """Converts trajectories, calls the annotator, publishes."""

    logic, make_settings = ANNOTATOR_TABLE, staticmethod(AnnotatorSettings.from_values)
    table = (*MODEL_NODE_TABLE, *logic)

    def __init__(self) -> None:
        super().__init__("effort_annotator")
        self.annotator: Any = None
        self._publisher: Any = None
        self._statistics = CycleStatistics()
        self._last_excess = ""

    # ---- configuration

    def set_up(self, values: Mapping[str, Any], model: RobotModel) -> None:
        self.annotator = EffortAnnotator(model, self.settings(values, model))
        publisher = self._publisher = self.create_publisher(JointTrajectory, "~/joint_trajectory", QoSProfile(depth=10))
        self.undo.append(lambda: self.destroy_publisher(publisher))
        topic = "~/joint_trajectory_in"
        reader = TrajectoryReader(self.resolve_topic_name(topic), int(values[MOST_POINTS.name]), self.most_bytes, model)
        self.subscribe(JointTrajectory, topic, self._on_trajectory, QoSProfile(depth=10), most=reader.most,
                       parameter=MOST_POINTS.name)

    def tear_down(self) -> None:
        self.annotator = self._publisher = None

    def apply(self, settings: AnnotatorSettings) -> None:
        self.annotator.apply(settings)

    def report(self) -> Mapping[str, Any]:
        annotator = self.annotator
        p50, p99 = self._statistics.latency_us()
        report = {"model": annotator.model.name, **annotator.counts, "last_excess": self._last_excess,
                  "time_p50_us": p50, "time_p99_us": p99, "rejected_total": annotator.rejections.total}
        return report | {f"rejected_{kind}": count for kind, count in annotator.rejections.counts.items()}

    # ---- work

    def _on_trajectory(self, message: JointTrajectory) -> None:
        if not self.active:
            return
        begin = time.perf_counter()
        annotation = self.annotator.annotate(message.joint_names, trajectory_points(message))
        if isinstance(annotation, Verdict):
            self.get_logger().warning(f"trajectory rejected, not passed on: {annotation.text}")
            return
        if annotation.retimed is not None:
            t, q, v, a = annotation.retimed
            message.points = joint_trajectory(message.joint_names, Points(t, q, v, a, annotation.effort)).points
        else:
            for point, effort in zip(message.points, annotation.effort, strict=True):
                point.effort = array("d", effort.tobytes())
        self._publisher.publish(message)
        self._statistics.published(time.perf_counter() - begin)
        if annotation.kept:
            self.get_logger().warning(f"trajectory {annotation.kept}")
        if annotation.excesses:
            self._warn(annotation.excesses)

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
