"""Obstacles in messages, as the entries of `CollisionModel.with_obstacles`: visualization_msgs/Marker, and the
shapes of moveit_msgs/CollisionObject. Messages are read by their fields' names, so that none of these packages is
needed here.

What is not convex becomes its convex hull; cones and prisms become meshes, cones from outside.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.kinematics import forward_kinematics
from ...core.errors import RbdError, shown
from ...core.lie import se3, so3
from ...core.model.robot_model import RobotModel
from ...core.motion.collision.obstacles import LARGEST
from ...core.motion.collision.pairs import rigid_parts

Array = NDArray[np.float64]
Entry: TypeAlias = dict[str, Any]
CUBE, SPHERE, CYLINDER, CUBE_LIST, SPHERE_LIST, POINTS, TEXT, MESH_RESOURCE, TRIANGLES = 1, 2, 3, 6, 7, 8, 9, 10, 11
ADD, DELETE, DELETE_ALL = 0, 2, 3    # actions of markers; of collision objects:
PUT, REMOVE, APPEND, MOVE = range(4)
NO_SOLIDS = {0: "an arrow", 4: "a line", 5: "lines", 12: "an arrow", MESH_RESOURCE: "a mesh by its file, which is not "
             "opened for a sender: send its triangles"}
BOX, BALL, ROD, CONE, PRISM = 1, 2, 3, 4, 5    # types of shape_msgs/SolidPrimitive
SIZES = {BOX: 3, BALL: 1, ROD: 2, CONE: 2, PRISM: 1}
CORNERS = 16       # of a cone's base, around its circle
ROUND = 1e-6       # relative difference of the axes of what is a sphere or a cylinder
UNIT = 1e-3        # difference of a quaternion's length from 1: rounding of single precision, and of people


def fixed_frames(model: RobotModel, alias: str = "") -> dict[str, Array]:
    """Poses (4, 4) in the root frame of the links that are fixed to it. alias: another name of the root link."""
    poses = forward_kinematics(model, model.neutral())
    frames = {name: poses[i] for i, (name, part) in enumerate(zip(model.body_names, rigid_parts(model), strict=True))
              if part == -1}
    return {alias: np.eye(4), **frames} if alias else frames


def frame_of(header: Any, frames: Mapping[str, Array], what: str) -> Array:
    """Pose (4, 4) of a message's frame; raises `RbdError` unless it is fixed to the root link."""
    if header.frame_id not in frames:
        raise RbdError(f"{what}: frame {shown(header.frame_id)}, expected one that is fixed to the root link: "
                       f"{', '.join(list(frames)[:8])} (another name of it: parameter 'collisions.frame')")
    return frames[header.frame_id]


def pose_of(pose: Any, what: str) -> Array:
    """Pose (4, 4) of a geometry_msgs/Pose; raises `RbdError`."""
    p, r = pose.position, pose.orientation
    position, quaternion = np.array([p.x, p.y, p.z]), np.array([r.x, r.y, r.z, r.w])
    if not np.abs(position).max() <= LARGEST:
        raise RbdError(f"{what}: position is {shown(position.tolist())}, expected numbers of at most {LARGEST:g} m")
    length = math.hypot(*quaternion)
    if not abs(length - 1.0) < UNIT:
        raise RbdError(f"{what}: orientation is {shown(quaternion.tolist())}, expected a quaternion of length 1")
    return se3.from_rotation(so3.from_quaternion(quaternion / length), position)


def entry(name: str, shape: str, pose: Array, **sizes: Any) -> Entry:
    """An obstacle; of plain values, so that equal ones compare equal."""
    return {"name": name, "shape": shape, "frame": pose.tolist(), **sizes}


# ---- markers

def marker_name(marker: Any) -> str:
    """Name of the obstacle."""
    return f"{marker.ns or 'marker'}/{marker.id}"


def marker_entries(marker: Any, frames: Mapping[str, Array], most: int) -> list[Entry]:
    """The solids of a visualization_msgs/Marker: one, or of a list one per point, at most `most`; of a text none.
    Raises `RbdError` for what is no solid.
    """
    name, kind = marker_name(marker), int(marker.type)
    what = f"marker {shown(name)}"
    if kind == TEXT:
        return []
    if kind in NO_SOLIDS:
        raise RbdError(f"{what}: it is {NO_SOLIDS[kind]}, expected a solid")
    pose = frame_of(marker.header, frames, what) @ pose_of(marker.pose, what)
    scale = [float(marker.scale.x), float(marker.scale.y), float(marker.scale.z)]
    if kind == TRIANGLES:
        if not np.isfinite(scale).all():
            raise RbdError(f"{what}: scale is {shown(scale)}, expected finite numbers")
        with np.errstate(over="ignore"):
            return [entry(name, "mesh", pose, points=corners(_points(marker.points, what) * scale))]
    if kind in (CUBE, SPHERE, CYLINDER):
        return [_solid(what, name, kind, scale, pose)]
    if kind not in (CUBE_LIST, SPHERE_LIST, POINTS):
        raise RbdError(f"{what}: unknown type {kind}, expected a cube, sphere, cylinder, list of these, or triangles")
    if len(marker.points) > most:
        raise RbdError(f"{what}: {len(marker.points)} solids, expected at most {most}")
    if kind == POINTS:    # squares that face the viewer: cubes of their width
        scale = [max(scale[:2])] * 3
    places = np.tile(pose, (len(marker.points), 1, 1))
    places[:, :3, 3] += _points(marker.points, what) @ pose[:3, :3].T
    return [_solid(what, f"{name}/{k}", SPHERE if kind == SPHERE_LIST else CUBE, scale, place)
            for k, place in enumerate(places)]


def _solid(what: str, name: str, kind: int, scale: list[float], pose: Array) -> Entry:
    if kind == CUBE:
        return entry(name, "box", pose, size=scale)
    across = scale if kind == SPHERE else scale[:2]
    if not max(across) - min(across) <= ROUND * max(across):
        raise RbdError(f"{what}: scale is {shown(scale)}, expected that of a round one: x and y" +
                       " and z" * (kind == SPHERE) + " alike")
    radius = 0.5 * max(across)
    return (entry(name, "sphere", pose, radius=radius) if kind == SPHERE else
            entry(name, "cylinder", pose, radius=radius, length=scale[2]))


# ---- collision objects

def object_entries(item: Any, what: str) -> list[Entry]:
    """The shapes of a moveit_msgs/CollisionObject, in its frame; raises `RbdError`."""
    groups = (("primitive", item.primitives, item.primitive_poses, _primitive),
              ("mesh", item.meshes, item.mesh_poses, lambda mesh, where: ("mesh", np.eye(4), {
                  "points": corners(_points(mesh.vertices, where))})),
              ("plane", item.planes, item.plane_poses, _plane))
    entries = []
    for kind, shapes, poses, read in groups:
        if len(poses) != len(shapes):
            raise RbdError(f"{what}: {len(shapes)} of {kind}, and {len(poses)} poses of them, expected one each")
        for k, (shape, pose) in enumerate(zip(shapes, poses, strict=True)):
            where = f"{what}, {kind} {k}"
            name, offset, sizes = read(shape, where)
            entries.append(entry("", name, pose_of(pose, where) @ offset, **sizes))
    return entries


def _primitive(shape: Any, what: str) -> tuple[str, Array, dict[str, Any]]:
    kind, size = int(shape.type), [float(x) for x in shape.dimensions]
    if kind not in SIZES:
        raise RbdError(f"{what}: unknown type {kind}, expected a box, sphere, cylinder, cone or prism")
    if len(size) != SIZES[kind]:
        raise RbdError(f"{what}: {len(size)} dimensions, expected {SIZES[kind]}")
    if kind == BOX:
        return "box", np.eye(4), {"size": size}
    if kind == BALL:
        return "sphere", np.eye(4), {"radius": size[0]}
    if kind == ROD:
        return "cylinder", np.eye(4), {"radius": size[1], "length": size[0]}
    if kind == CONE:
        angles = 2.0 * np.pi * np.arange(CORNERS) / CORNERS
        around = size[1] / np.cos(np.pi / CORNERS) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        base = np.column_stack([around, np.full(CORNERS, -0.5 * size[0])])
        return "mesh", np.eye(4), {"points": [*base.tolist(), [0.0, 0.0, 0.5 * size[0]]]}
    outline = _points(shape.polygon.points, what)[:, :2]
    return "mesh", np.eye(4), {"points": corners(np.concatenate([
        np.column_stack([outline, np.full(len(outline), z)]) for z in (-0.5 * size[0], 0.5 * size[0])]))}


def _plane(shape: Any, what: str) -> tuple[str, Array, dict[str, Any]]:
    """The half space below a x + b y + c z + d = 0, the side that its normal (a, b, c) points away from."""
    coefficients = np.array(shape.coef, dtype=np.float64)
    length = math.hypot(*coefficients[:3])
    if not (np.isfinite(coefficients).all() and length > 0.0):
        raise RbdError(f"{what}: coefficients are {shown(coefficients.tolist())}, expected finite ones with a normal")
    normal = coefficients[:3] / length
    across = np.eye(3)[int(np.argmin(np.abs(normal)))]
    x = np.cross(across, normal)
    x /= np.linalg.norm(x)
    return "plane", se3.from_rotation(np.column_stack([x, np.cross(normal, x), normal]),
                                      -coefficients[3] / length * normal), {}


def _points(points: Sequence[Any], what: str) -> Array:
    """Points (N, 3) of geometry_msgs/Point; raises `RbdError`."""
    array = np.array([(p.x, p.y, p.z) for p in points], dtype=np.float64).reshape(-1, 3)
    good = (np.abs(array) <= LARGEST).all(axis=1)
    if not good.all():
        i = int(np.argmin(good))
        raise RbdError(f"{what}: point {i} is {shown(array[i].tolist())}, expected numbers of at most {LARGEST:g} m")
    return array


def corners(points: Array) -> list[list[float]]:
    """The points (N, 3) on the convex hull; all of them where it has no volume, which is refused elsewhere."""
    from scipy.spatial import ConvexHull, QhullError    # local import: saves 20 MB in nodes without obstacles

    try:
        return points[ConvexHull(points).vertices].tolist()    # type: ignore[no-any-return]
    except (QhullError, ValueError):
        return points.tolist()    # type: ignore[no-any-return]
