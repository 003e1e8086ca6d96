"""Obstacles around a robot, and objects that it carries, of messages: texts, markers, planning scenes, point clouds.

What is invalid is rejected as a whole, and all that came before stays. Each source replaces or edits its own alone.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import RbdError, shown, unknown_name
from ...core.lie import se3
from ...core.motion.collision.collision_model import CollisionModel
from ...core.motion.collision.obstacles import LONGEST_NAME, MOST_OBSTACLES, read_obstacles
from ...core.motion.collision.voxels import occupied_cells
from ..inputs.point_cloud import read_cloud
from ..inputs.rejections import TAKEN, Rejected, Rejections, Verdict
from .obstacle_messages import (
    ADD, APPEND, DELETE, DELETE_ALL, MOVE, PUT, REMOVE, Array, Entry, entry, fixed_frames, frame_of, marker_entries,
    marker_name, object_entries, pose_of,
)
from .robot_collisions import UNAWARE

MOST_NAMES = 500    # of a planning scene's matrix of allowed collisions
CLOUD = "cloud"     # name of the obstacle


class Object(NamedTuple):
    """An object of a planning scene: its pose, and its shapes in its frame. touching: links that it may touch, of an
    object that is attached to a link.
    """

    pose: list[list[float]]
    shapes: list[Entry]
    link: str = ""
    touching: tuple[str, ...] = ()

    def entries(self, name: str) -> list[Entry]:
        """As obstacles, in the frame of the root or of the link."""
        pose = np.array(self.pose)
        return [{**shape, "name": name if len(self.shapes) == 1 else f"{name}/{k}",
                 "frame": (pose @ np.array(shape["frame"])).tolist()} for k, shape in enumerate(self.shapes)]


class Parts(NamedTuple):
    """What each source says: a YAML text; solids by the name of their marker; objects of the planning scene by name,
    in the world and attached, and pairs of names that may touch; the cells of a point cloud, by their middles.
    """

    text: str = ""
    markers: Mapping[str, list[Entry]] = {}
    world: Mapping[str, Object] = {}
    attached: Mapping[str, Object] = {}
    allowed: frozenset[frozenset[str]] = frozenset()
    cloud: Sequence[Entry] = ()


class Surroundings:
    """Collision model of a robot with what messages say; it begins with `fixed`, None if nothing is considered.

    frame: another name of the root link's frame. voxel_size (m): of the cells of point clouds. Rejected messages are
    counted in `rejections`.
    """

    def __init__(self, fixed: CollisionModel | None, frame: str = "", voxel_size: float = 0.05) -> None:
        self.rejections = Rejections()
        self._voxel_size = voxel_size
        self.collisions = self._fixed = fixed
        self._parts = Parts()
        self._frames = {} if fixed is None else fixed_frames(fixed.model, frame)

    @property
    def obstacles(self) -> int:
        """Number of pieces that are none of the robot's."""
        return 0 if self.collisions is None else sum(not piece.own for piece in self.collisions.pieces)

    def report(self) -> dict[str, int]:
        """Numbers for /diagnostics."""
        return {"collision_pairs": 0 if self.collisions is None else len(self.collisions.pairs),
                "obstacles": self.obstacles}

    def without_pairs(self, pairs: Sequence[tuple[str, str]]) -> CollisionModel | None:
        """The collision model for a motion in which these pairs may touch; raises `RbdError` for unknown names."""
        if self.collisions is None or not pairs:
            return self.collisions
        known = _known(self.collisions)
        for name in (name for pair in pairs for name in pair):
            if name not in known:
                raise unknown_name("link, obstacle or object in `allowed_pairs`:", name, sorted(known))
        return without(self.collisions, pairs)

    def take_text(self, text: str) -> Verdict:
        """Take the obstacles of a YAML text instead of those of the text before; "": none."""
        return self._take(lambda: self._parts._replace(text=text if text.strip() else ""))

    def take_markers(self, markers: Any) -> Verdict:
        """Take the changes of a visualization_msgs/MarkerArray. A marker stays until it is deleted or replaced."""
        return self._take(lambda: self._parts._replace(markers=self._marked(markers.markers)))

    def take_scene(self, scene: Any) -> Verdict:
        """Take a moveit_msgs/PlanningScene, or with `is_diff` its changes."""
        return self._take(lambda: self._staged(scene))

    def take_cloud(self, data: bytes) -> Verdict:
        """Take the points of a serialized sensor_msgs/PointCloud2 instead of those of the cloud before."""
        return self._take(lambda: self._parts._replace(cloud=self._seen(data)))

    def _take(self, change: Callable[[], Parts]) -> Verdict:
        try:
            parts = change()
            if parts != self._parts:
                self.collisions = self._made(parts)
                self._parts = parts
        except RbdError as error:
            return self.rejections.add(Rejected("malformed", f"obstacles rejected, the earlier ones stay: {error}"))
        return TAKEN

    def _considered(self) -> CollisionModel:
        if self._fixed is None:
            raise RbdError(UNAWARE)
        return self._fixed

    def _made(self, parts: Parts) -> CollisionModel:
        collisions = self._considered()
        if parts.text:
            collisions = collisions.with_obstacles(parts.text, trusted=False)
        objects = {**parts.world, **parts.attached}
        entries = {name: object.entries(name) for name, object in objects.items()}
        standing = [each for group in (*parts.markers.values(), *(entries[name] for name in parts.world), parts.cloud)
                    for each in group]
        read_obstacles([*standing, *(each for name in parts.attached for each in entries[name])], trusted=False)
        if standing:
            collisions = collisions.with_obstacles(standing)
        for name, object in parts.attached.items():
            collisions = collisions.with_shapes(object.link, entries[name], object.touching)
        known = _known(collisions)
        return without(collisions, (pair for pair in map(tuple, parts.allowed) if known.issuperset(pair)))

    # ---- markers

    def _marked(self, messages: Any) -> dict[str, list[Entry]]:
        self._considered()
        markers = dict(self._parts.markers)
        for marker in messages:
            name, action = marker_name(marker), int(marker.action)
            if action == DELETE_ALL:    # of a namespace, if it has one
                markers = {each: entries for each, entries in markers.items()
                           if marker.ns and each.rpartition("/")[0] != marker.ns}
            elif action == DELETE:
                markers.pop(name, None)
            elif action == ADD:
                markers[name] = marker_entries(marker, self._frames, MOST_OBSTACLES)
            else:
                raise RbdError(f"marker {shown(name)}: unknown action {action}, expected 0, 2 or 3")
        return markers

    # ---- point clouds

    def _seen(self, data: bytes) -> Sequence[Entry]:
        self._considered()
        cloud, size = read_cloud(data), self._voxel_size
        pose = frame_of(cloud, self._frames, "point cloud")
        with np.errstate(over="ignore", invalid="ignore"):    # beyond 1e307 m
            points = cloud.points @ pose[:3, :3].T + pose[:3, 3]
        cells = occupied_cells(points, size, "point cloud")
        return [entry(CLOUD, "points", np.eye(4), points=(size * (cells + 0.5)).tolist(), voxel_size=size)
                ] if len(cells) else ()

    # ---- planning scenes

    def _staged(self, scene: Any) -> Parts:
        self._considered()
        parts = self._parts if scene.is_diff else self._parts._replace(world={}, attached={}, allowed=frozenset())
        if len(scene.world.octomap.octomap.data):
            raise RbdError("the planning scene has an octomap, which is not read: expected collision objects")
        world, attached, state = dict(parts.world), dict(parts.attached), scene.robot_state
        said = bool(state.attached_collision_objects or state.joint_state.name)    # as in MoveIt, an empty one is none
        if said and not state.is_diff:
            attached.clear()
        placed = {item.id for item in scene.world.collision_objects}
        for each in state.attached_collision_objects:
            self._attach(world, attached, each, placed)
        for item in scene.world.collision_objects:
            self._edit(world, item, frame_of(item.header, self._frames, _what(item)) if _operation(item) != REMOVE
                       else np.eye(4))
        return parts._replace(world=world, attached=attached, allowed=_allowed(scene.allowed_collision_matrix) if
                              scene.allowed_collision_matrix.entry_names else parts.allowed)

    def _attach(self, world: dict[str, Object], attached: dict[str, Object], each: Any, placed: set[str]) -> None:
        """Do the operation of an attached object. placed: of which objects the message says where they are."""
        item, link, what = each.object, each.link_name, _what(each.object)
        if _operation(item) == REMOVE:
            if lost := ({item.id} & set(attached) if item.id else set(attached)) - placed:
                raise RbdError(f"object {shown(min(lost))}: detached, and where it stays is not said: expected it "
                               "among the world's objects of the same message")
            self._edit(attached, item, np.eye(4))
            return
        self._considered().model.body_index(link)
        if item.header.frame_id != link:
            raise RbdError(f"{what}: frame {shown(item.header.frame_id)}, expected that of the link it is attached to, "
                           f"'{link}'")
        if not (item.primitives or item.meshes or item.planes):
            raise RbdError(f"{what}: attached to '{link}' without shapes, expected them in the message, as in those "
                           "of MoveIt's monitored scene")
        if len(each.touch_links) > MOST_NAMES:
            raise RbdError(f"{what}: {len(each.touch_links)} touch_links, expected at most {MOST_NAMES}")
        self._edit(attached, item, np.eye(4))
        attached[item.id] = attached[item.id]._replace(link=link, touching=tuple(each.touch_links))
        world.pop(item.id, None)

    def _edit(self, objects: dict[str, Object], item: Any, frame: Array) -> None:
        """Do the operation of a collision object. frame: pose (4, 4) of the frame of its header."""
        what, operation, before = _what(item), _operation(item), objects.get(item.id)
        if operation == REMOVE:
            if item.id:
                objects.pop(item.id, None)
            else:
                objects.clear()
            return
        if not item.id or len(item.id) > LONGEST_NAME:
            raise RbdError(f"{what}: id, expected a name of at most {LONGEST_NAME} characters")
        pose = frame @ pose_of(item.pose, what)
        if operation == MOVE:
            if before is None:
                raise RbdError(f"{what}: it is to move, but there is no such object")
            if item.primitives or item.meshes or item.planes:
                raise RbdError(f"{what}: it is to move, and has shapes, expected none")
            objects[item.id] = before._replace(pose=pose.tolist())
            return
        if operation not in (PUT, APPEND):
            raise RbdError(f"{what}: unknown operation {operation}, expected 0 to 3")
        count = len(item.primitives) + len(item.meshes) + len(item.planes)
        if not 1 <= count <= MOST_OBSTACLES:
            raise RbdError(f"{what}: {count} shapes, expected 1 to {MOST_OBSTACLES}")
        shapes = object_entries(item, what)
        if operation == APPEND and before is not None:
            moved = se3.inverse(np.array(before.pose)) @ pose
            shapes = [*before.shapes, *({**each, "frame": (moved @ np.array(each["frame"])).tolist()}
                                        for each in shapes)]
            pose = np.array(before.pose)
        objects[item.id] = Object(pose.tolist(), shapes)


def without(collisions: CollisionModel, pairs: Iterable[tuple[str, ...]]) -> CollisionModel:
    """A copy that does not compare these pairs of links, obstacles, or objects of several shapes."""
    left_out = {frozenset(pair) for pair in pairs}
    if not left_out:
        return collisions
    links = {piece.link for piece in collisions.pieces}
    return collisions.without_pairs(
        (first, second) for first, second in combinations(sorted(links), 2)
        if not left_out.isdisjoint(frozenset((one, other)) for one in (first, _object_of(first))
                                   for other in (second, _object_of(second))))


def _known(collisions: CollisionModel) -> set[str]:
    links = {piece.link for piece in collisions.pieces}
    return links | set(map(_object_of, links))


def _object_of(name: str) -> str:
    """Name of the object or marker whose shape has this name."""
    return re.sub(r"/\d+$", "", name)


def _what(item: Any) -> str:
    return f"object {shown(item.id)}"


def _operation(item: Any) -> int:
    """Of a collision object, whose field is a `byte`: in Python one of bytes."""
    return int(item.operation[0])


def _allowed(matrix: Any) -> frozenset[frozenset[str]]:
    """Pairs of names that a moveit_msgs/AllowedCollisionMatrix lets touch; raises `RbdError`."""
    names, rows = list(matrix.entry_names), matrix.entry_values
    if len(names) > MOST_NAMES or len(set(names)) < len(names):
        raise RbdError(f"allowed_collision_matrix: {len(names)} names, expected at most {MOST_NAMES}, each once")
    if len(rows) != len(names) or any(len(row.enabled) != len(names) for row in rows):
        raise RbdError(f"allowed_collision_matrix: expected {len(names)} rows of {len(names)} values, one per name")
    table = np.array([row.enabled for row in rows], dtype=bool).reshape(len(names), len(names))
    if (table != table.T).any():
        raise RbdError("allowed_collision_matrix: expected a symmetric one")
    return frozenset(frozenset((names[i], names[k])) for i, k in combinations(range(len(names)), 2) if table[i, k])
