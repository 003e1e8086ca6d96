"""Messages of obstacles without ROS: what has the fields of visualization_msgs and moveit_msgs."""
from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import numpy as np


def point(x=0.0, y=0.0, z=0.0):
    return SimpleNamespace(x=x, y=y, z=z)


def pose(xyz=(0.0, 0.0, 0.0), quaternion=(0.0, 0.0, 0.0, 1.0)):
    return SimpleNamespace(position=point(*xyz), orientation=SimpleNamespace(**dict(zip("xyzw", quaternion,
                                                                                      strict=True))))


def header(frame="base"):
    return SimpleNamespace(frame_id=frame)


def marker(kind=1, xyz=(0.0, 0.0, 0.0), scale=(0.1, 0.1, 0.1), *, ns="camera", number=0, action=0, frame="base",
           quaternion=(0.0, 0.0, 0.0, 1.0), points=()):
    return SimpleNamespace(header=header(frame), ns=ns, id=number, type=kind, action=action,
                           pose=pose(xyz, quaternion), scale=point(*scale), points=[point(*p) for p in points])


def markers(*each):
    return SimpleNamespace(markers=list(each))


def primitive(kind, *dimensions, polygon=()):
    return SimpleNamespace(type=kind, dimensions=list(dimensions), polygon=SimpleNamespace(
        points=[point(*p) for p in polygon]))


def thing(name, *shapes, xyz=(0.0, 0.0, 0.0), operation=0, frame="base", places=None, meshes=(), planes=()):
    """A moveit_msgs/CollisionObject with these primitives, meshes (points) and planes (coefficients)."""
    places = [pose() for _ in shapes] if places is None else places
    return SimpleNamespace(
        header=header(frame), id=name, pose=pose(xyz), operation=bytes([operation]), primitives=list(shapes),
        primitive_poses=places, meshes=[SimpleNamespace(vertices=[point(*p) for p in each]) for each in meshes],
        mesh_poses=[pose() for _ in meshes], planes=[SimpleNamespace(coef=each) for each in planes],
        plane_poses=[pose() for _ in planes])


def attached(link, item, touching=()):
    return SimpleNamespace(link_name=link, object=item, touch_links=list(touching))


def scene(*things: Any, held=(), diff=True, state_diff=True, allowed=(), octomap=(), joints=()):
    """A moveit_msgs/PlanningScene. allowed: names and rows."""
    names, rows = allowed or ((), ())
    return SimpleNamespace(
        is_diff=diff, world=SimpleNamespace(collision_objects=list(things), octomap=SimpleNamespace(
            octomap=SimpleNamespace(data=octomap))),
        robot_state=SimpleNamespace(attached_collision_objects=list(held), is_diff=state_diff,
                                    joint_state=SimpleNamespace(name=list(joints))),
        allowed_collision_matrix=SimpleNamespace(entry_names=list(names), entry_values=[
            SimpleNamespace(enabled=list(row)) for row in rows]))


def cloud(points, frame="base", *, kind="f4", step=None, height=1, row_step=None, big=False, fields=("x", "y", "z"),
          types=None, offsets=None, data=None, encapsulation=b"\0\1\0\0", spare=b"\0"):
    """A sensor_msgs/PointCloud2, serialized by hand: points (N, 3) of `kind`, in `height` rows."""
    points = np.asarray(points, dtype=float).reshape(-1, 3)
    size = int(kind[1])
    step, width = 3 * size if step is None else step, len(points) // height
    row = width * step if row_step is None else row_step
    if data is None:
        data = bytearray(row * height)
        for k, point in enumerate(points.astype((">" if big else "<") + kind)):
            begin = k // width * row + k % width * step
            data[begin:begin + 3 * size] = point.tobytes()
    out = bytearray(encapsulation)

    def put(code, *values):
        width = struct.calcsize(code[-1])
        out.extend(bytes(-(len(out) - 4) % width) + struct.pack(f"<{code}", *values))

    def text(words):
        put("I", len(words) + 1)
        out.extend(words.encode() + b"\0")

    put("iI", 0, 0)
    text(frame)
    put("I", height)
    put("I", width)
    put("I", len(fields))
    for k, name in enumerate(fields):
        text(name)
        put("I", k * size if offsets is None else offsets[k])
        put("B", {4: 7, 8: 8}[size] if types is None else types[k])
        put("I", 1)
    put("B", big)
    put("I", step)
    put("I", row)
    put("I", len(data))
    return bytes(out + data + spare)
