"""Parameters `collisions.*`: between which shapes motions keep a clearance, and where obstacles come from."""
from __future__ import annotations

from dataclasses import dataclass

from ...core.motion.collision.clearance import CLEARANCE
from ..parameters import parameter


@dataclass(frozen=True, kw_only=True)
class CollisionSettings:
    """Validated parameters."""

    use_collisions: str = parameter("auto", "Whether motions hit neither the robot itself nor obstacles. auto: where "
                                    "the package coal is installed and the description has collision shapes; the log "
                                    "says whether. always: configuration fails otherwise.", name="collisions.use",
                                    choices=("auto", "always", "never"), read_only=True)
    srdf: str = parameter("", "Path of an SRDF whose <disable_collisions> are the pairs of links that may touch. "
                          "Empty: neighbours, and pairs that touch in each of 500 random configurations.",
                          name="collisions.srdf", read_only=True)
    obstacles: str = parameter("", "Path of a YAML file of what stands around the robot (docs/collision.md); more may "
                               "come on ~/obstacles.", name="collisions.obstacles", read_only=True)
    clearance: float = parameter(CLEARANCE, "Smallest distance between links, and to obstacles, m.",
                                 name="collisions.clearance", lower=0.0, upper=10.0)
    marker_topic: str = parameter("", "Topic of obstacles as visualization_msgs/MarkerArray. Empty: none. Needs "
                                  "visualization_msgs.", name="collisions.marker_topic", read_only=True)
    scene_topic: str = parameter("", "Topic of obstacles, attached objects and allowed pairs as moveit_msgs/"
                                 "PlanningScene, for example /monitored_planning_scene. Empty: none. Needs "
                                 "moveit_msgs.", name="collisions.scene_topic", read_only=True)
    cloud_topic: str = parameter("", "Topic of points around the robot, without those on itself, as sensor_msgs/"
                                 "PointCloud2; each cloud replaces the one before. Empty: none.",
                                 name="collisions.cloud_topic", read_only=True)
    voxel_size: float = parameter(0.05, "Edge of the cells, along the root link's axes, of which those with points of "
                                  "a cloud are obstacles, m.", name="collisions.voxel_size", lower=1e-3, upper=10.0,
                                  read_only=True)
    frame: str = parameter("", "Name of a frame of these messages that is the root link's, besides the root link's own "
                           "name: for example world. Links that are fixed to the root link are known.",
                           name="collisions.frame", read_only=True)
    show: bool = parameter(False, "Publish collision shapes and obstacles on ~/collision_markers, red where a motion "
                           "hits. Needs visualization_msgs.", name="collisions.show", read_only=True)
