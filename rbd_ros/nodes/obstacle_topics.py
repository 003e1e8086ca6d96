"""Topics of obstacles of a node, and of the markers that show what it keeps apart."""
from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from geometry_msgs.msg import Point, Pose
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import String

from ..core.lie.so3 import to_quaternion
from ..runtime.inputs.point_cloud import MOST_BYTES
from ..runtime.inputs.rejections import Verdict
from ..runtime.planning.collision_markers import Solid, solids
from ..runtime.planning.collision_settings import CollisionSettings
from ..runtime.planning.obstacle_messages import ADD, DELETE_ALL
from ..runtime.planning.surroundings import Surroundings
from .base.model_node import BEST_EFFORT, LATCHED, RELIABLE, ModelNode
from .base.optional import interface_type

SHOWN_ON = "~/collision_markers"


class ObstacleTopics:
    """Subscriptions until the cleanup of the node, and its publisher of markers. options: of the subscriptions."""

    def __init__(self, node: ModelNode, settings: CollisionSettings, surroundings: Surroundings,
                 **options: Any) -> None:
        self._node, self._surroundings, self._options = node, surroundings, options
        self._hit: frozenset[str] = frozenset()
        self._publisher: Any = None
        if settings.use_collisions == "never":
            return
        markers = "visualization_msgs", "msg", "MarkerArray"
        if settings.show:
            kind = interface_type("parameter 'collisions.show' needs", *markers)
            publisher = self._publisher = node.create_publisher(kind, SHOWN_ON, LATCHED)
            node.undo.append(lambda: node.destroy_publisher(publisher))
            self._marker = interface_type("parameter 'collisions.show' needs", "visualization_msgs", "msg", "Marker")
        self._hear(String, "~/obstacles", lambda message: surroundings.take_text(message.data), LATCHED)
        if settings.marker_topic:
            self._hear(interface_type("parameter 'collisions.marker_topic' needs", *markers), settings.marker_topic,
                       surroundings.take_markers, RELIABLE)
        if settings.scene_topic:
            self._hear(interface_type("parameter 'collisions.scene_topic' needs", "moveit_msgs", "msg",
                                      "PlanningScene"), settings.scene_topic, surroundings.take_scene, RELIABLE)
        if settings.cloud_topic:
            self._hear(PointCloud2, settings.cloud_topic, surroundings.take_cloud, BEST_EFFORT, said=False,
                       most=MOST_BYTES, parameter="", read=lambda data: data)
        self._show()

    def show_hit(self, pieces: Collection[str]) -> None:
        """Show these pieces in red, from now on, and no others."""
        if self._hit != (names := frozenset(pieces)):
            self._hit = names
            self._show()

    def _hear(self, kind: type, topic: str, take: Callable[[Any], Verdict], qos: Any, said: bool = True,
              **options: Any) -> None:
        """said: log changes. options: of the subscription."""
        def heard(message: Any) -> None:
            before = self._surroundings.collisions
            verdict = take(message)
            if not verdict:
                self._node.seldom.warning("obstacles", verdict.text)
            elif self._surroundings.collisions is not before:
                if said:
                    self._node.get_logger().info(f"obstacles around the robot: {self._surroundings.obstacles}")
                self._show()

        self._node.subscribe_unlocked(kind, topic, lambda message: self._node.guarded(lambda: heard(message)), qos,
                                      **self._options, **options)

    def _show(self) -> None:
        collisions = self._surroundings.collisions
        if self._publisher is not None and collisions is not None:
            shown = [marker_message(self._marker, k, solid) for k, solid in enumerate(solids(collisions, self._hit))]
            kind = self._publisher.msg_type
            self._publisher.publish(kind(markers=[self._marker(action=DELETE_ALL), *shown]))


def marker_message(kind: type, number: int, solid: Solid) -> Any:
    """The visualization_msgs/Marker, of which `kind` is the class."""
    marker = kind(ns=solid.group, id=number, type=solid.kind, action=ADD, frame_locked=True)
    marker.header.frame_id = solid.frame
    marker.pose = pose_message(solid.pose)
    marker.scale.x, marker.scale.y, marker.scale.z = map(float, solid.scale)
    colour = marker.color
    colour.r, colour.g, colour.b, colour.a = map(float, solid.colour)
    marker.points = [Point(x=x, y=y, z=z) for x, y, z in solid.points.tolist()]
    return marker


def pose_message(pose: Any) -> Any:
    """The geometry_msgs/Pose of a pose (4, 4)."""
    message, (x, y, z, w) = Pose(), to_quaternion(pose[:3, :3]).tolist()
    message.position.x, message.position.y, message.position.z = pose[:3, 3].tolist()
    message.orientation.x, message.orientation.y, message.orientation.z, message.orientation.w = x, y, z, w
    return message
